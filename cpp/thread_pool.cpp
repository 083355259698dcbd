#include "thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace cprime {
namespace {

void (*poll_function)() = nullptr;

// The clock of one calling thread's polls.
class Poll {
  public:
    void operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (poll_function == nullptr || now - last_ < std::chrono::milliseconds(100))
            return;
        last_ = now;
        poll_function();
    }

  private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

struct Job {
    const std::function<void(std::size_t)> *task;
    std::size_t n_tasks;
    std::atomic<std::size_t> next{0};
    int helpers_wanted;
    int helpers_inside = 0; // guarded by the pool's mutex, as helpers_wanted is
    std::condition_variable left;
    std::exception_ptr error;
    std::atomic<bool> failed{false};

    Job(const std::function<void(std::size_t)> *task_, std::size_t n_tasks_, int helpers)
        : task(task_), n_tasks(n_tasks_), helpers_wanted(helpers) {}

    void work(std::mutex &mutex, bool calling) {
        Poll poll;
        for (;;) {
            const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
            if (i >= n_tasks || failed.load(std::memory_order_relaxed))
                return;
            try {
                (*task)(i);
                if (calling)
                    poll();
            } catch (...) {
                const std::lock_guard<std::mutex> lock(mutex);
                if (!failed.exchange(true))
                    error = std::current_exception();
            }
        }
    }
};

class Pool {
  public:
    void run(std::size_t n_tasks, int n_threads, const std::function<void(std::size_t)> &task) {
        Job job(&task, n_tasks, n_threads - 1);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (workers_ < n_threads - 1)
                spawn();
            jobs_.push_back(&job);
        }
        wake_.notify_all();
        job.work(mutex_, true);
        std::unique_lock<std::mutex> lock(mutex_);
        std::erase(jobs_, &job);
        job.left.wait(lock, [&] { return job.helpers_inside == 0; });
        if (job.error)
            std::rethrow_exception(job.error);
    }

  private:
    void spawn() {
        // Detached: the workers hold no resource and must not delay the interpreter's exit.
        std::thread([this] { serve(); }).detach();
        ++workers_;
    }

    void serve() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            Job *job = nullptr;
            wake_.wait(lock, [&] {
                const auto open =
                    std::find_if(jobs_.begin(), jobs_.end(), [](Job *j) { return j->helpers_wanted > 0; });
                job = open == jobs_.end() ? nullptr : *open;
                return job != nullptr;
            });
            --job->helpers_wanted;
            ++job->helpers_inside;
            lock.unlock();
            job->work(mutex_, false);
            lock.lock();
            if (--job->helpers_inside == 0)
                job->left.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job *> jobs_;
    int workers_ = 0;
};

// Never destroyed: detached workers may outlive static destructors.
Pool *pool = nullptr;
std::once_flag created;

Pool &the_pool() {
    std::call_once(created, [] {
        pool = new Pool;
#if !defined(_WIN32)
        // A forked child has none of its parent's threads: it starts with a pool of its own.
        pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
#endif
    });
    return *pool;
}

} // namespace

void set_poll(void (*poll)()) { poll_function = poll; }

void parallel_for(std::size_t n_tasks, int n_threads, const std::function<void(std::size_t)> &task) {
    n_threads = static_cast<int>(std::min<std::size_t>(std::max(n_threads, 1), n_tasks));
    if (n_threads <= 1) {
        Poll poll;
        for (std::size_t i = 0; i < n_tasks; ++i) {
            task(i);
            poll();
        }
        return;
    }
    the_pool().run(n_tasks, n_threads, task);
}

} // namespace cprime
