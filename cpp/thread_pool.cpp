#include "thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

#include "arithmetic.h"
#include "signals.h"

namespace cprime {
namespace {

void (*poll_function)() = nullptr;
std::size_t n_forks = 0; // number of forks between the first process and this one

struct Job {
    const std::function<void(std::size_t)> *task;
    std::size_t n_tasks;
    int helpers_wanted;                 // accessed only while the pool's mutex is held
    std::atomic<int> helpers_inside{0}; // changed only while the pool's mutex is held
    std::size_t born = n_forks;
    std::atomic<std::size_t> next{0};
    std::condition_variable left;
    std::exception_ptr error;
    std::atomic<bool> failed{false};

    Job(const std::function<void(std::size_t)> &task_, std::size_t n_tasks_, int helpers)
        : task(&task_), n_tasks(n_tasks_), helpers_wanted(helpers) {}

    void work(std::mutex &mutex);
};

thread_local Job *job_of_thread = nullptr; // null if a call has no other threads

class Within {
  public:
    explicit Within(Job *job) : before_(std::exchange(job_of_thread, job)) {}
    ~Within() { job_of_thread = before_; }
    Within(const Within &) = delete;
    Within &operator=(const Within &) = delete;

  private:
    Job *before_;
};

struct Abandoned {}; // thrown to end a task after another one has failed

void Job::work(std::mutex &mutex) {
    const Within within(this);
    for (;;) {
        const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= n_tasks || failed.load(std::memory_order_relaxed))
            return;
        try {
            (*task)(i);
            answer_signals();
        } catch (...) {
            const std::lock_guard<std::mutex> lock(mutex);
            if (!failed.exchange(true))
                error = std::current_exception();
        }
    }
}

// Guard: a thread that is started while an instance exists receives no signals but those of its own faults, because
// signals are for Python's threads.
class WithoutSignals {
  public:
#if !defined(_WIN32)
    WithoutSignals() {
        sigset_t others;
        sigfillset(&others);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
            sigdelset(&others, fault);
        pthread_sigmask(SIG_BLOCK, &others, &before_);
    }
    ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    WithoutSignals(const WithoutSignals &) = delete;
    WithoutSignals &operator=(const WithoutSignals &) = delete;

  private:
    sigset_t before_;
#endif
};

// Wait until `done` returns true, but at most some 50 microseconds. Small fits call kernels in quick succession, and to
// wake a sleeping thread takes as long as such a kernel does.
template <class Done> void spin(Done done) {
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + std::chrono::microseconds(50); !done() && Clock::now() < end;)
        std::atomic_signal_fence(std::memory_order_seq_cst);
}

class Pool {
  public:
    void run(std::size_t n_tasks, int n_threads, const std::function<void(std::size_t)> &task) {
        Job job(task, n_tasks, n_threads - 1);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (workers_ < n_threads - 1 && grow())
                ++workers_;
            jobs_.push_back(&job);
            helpers_wanted_ += job.helpers_wanted;
        }
        wake_.notify_all();
        job.work(mutex_);
        spin([&] { return job.helpers_inside.load(std::memory_order_relaxed) == 0; });
        std::unique_lock<std::mutex> lock(mutex_);
        const bool forked = job.born != n_forks; // a signal handler forked; the child has no other threads
        if (!forked) {
            std::erase(jobs_, &job);
            helpers_wanted_ -= job.helpers_wanted;
            job.left.wait(lock, [&] { return job.helpers_inside == 0; });
        }
        if (job.error)
            std::rethrow_exception(job.error);
        if (forked)
            throw std::runtime_error("a signal handler forked the process while several threads computed");
    }

  private:
    // Start one more worker. Returns false if the system gives no more threads; the existing workers suffice then.
    // Workers are detached, because they hold no resource and must not delay the interpreter's exit.
    bool grow() {
        [[maybe_unused]] const WithoutSignals without_signals; // unused on Windows
        try {
            std::thread([this] { serve(); }).detach();
        } catch (const std::system_error &) {
            return false;
        }
        return true;
    }

    void serve() {
        set_standard_arithmetic();
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            Job *job = nullptr;
            if (helpers_wanted_ == 0) {
                lock.unlock();
                spin([&] { return helpers_wanted_.load(std::memory_order_relaxed) > 0; });
                lock.lock();
            }
            wake_.wait(lock, [&] {
                const auto open =
                    std::find_if(jobs_.begin(), jobs_.end(), [](Job *j) { return j->helpers_wanted > 0; });
                job = open == jobs_.end() ? nullptr : *open;
                return job != nullptr;
            });
            --job->helpers_wanted;
            --helpers_wanted_;
            ++job->helpers_inside;
            lock.unlock();
            job->work(mutex_);
            lock.lock();
            if (--job->helpers_inside == 0)
                job->left.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<Job *> jobs_;
    std::atomic<int> helpers_wanted_{0}; // sum over all jobs; changed only while the mutex is held
    int workers_ = 0;
};

// Memory of the pool, which is never destroyed, because detached workers may run longer than static destructors.
alignas(Pool) unsigned char place_of_pool[sizeof(Pool)];

Pool &pool = []() -> Pool & {
#if !defined(_WIN32)
    // A forked child has no threads of its parent, so a new pool is created, whatever the state of the old one.
    pthread_atfork(nullptr, nullptr, [] {
        ++n_forks;
        new (place_of_pool) Pool;
    });
#endif
    return *new (place_of_pool) Pool;
}();

} // namespace

void set_poll(void (*poll)()) { poll_function = poll; }

void answer_signals() {
    using Clock = std::chrono::steady_clock;
    thread_local Clock::time_point last{};
    if (job_of_thread && job_of_thread->failed.load(std::memory_order_relaxed))
        throw Abandoned();
    const Clock::time_point now = Clock::now();
    if (poll_function == nullptr || now - last < std::chrono::milliseconds(50))
        return;
    last = now;
    poll_function();
}

void parallel_for(std::size_t n_tasks, int n_threads, const std::function<void(std::size_t)> &task) {
    n_threads = static_cast<int>(std::min<std::size_t>(std::max(n_threads, 1), n_tasks));
    if (n_threads > 1)
        return pool.run(n_tasks, n_threads, task);
    const Within within(nullptr);
    for (std::size_t i = 0; i < n_tasks; ++i) {
        task(i);
        answer_signals();
    }
}

} // namespace cprime
