// A small pool of worker threads, shared by the whole process.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>

namespace cprime {

// Calls task(i) for every i in [0, n_tasks), on the calling thread and at most n_threads - 1 workers; fewer where the
// system gives no more threads. Tasks are handed out in order but finish in any; whatever is merged afterwards must be
// merged by index. Safe from several threads at once, within a task, and in a forked child; the first exception of a
// task is rethrown.
void parallel_for(std::size_t n_tasks, int n_threads, const std::function<void(std::size_t)> &task);

// Threads that so many multiplications are worth: waking one takes as long as some of them.
inline int worth(double multiplications, int n_threads) {
    constexpr double OF_ONE = 1 << 19;
    return std::max(1, static_cast<int>(std::min<double>(n_threads, multiplications / OF_ONE)));
}

// What threads that call `parallel_for` call between tasks, every tenth of a second; if it throws, the call ends with
// that.
void set_poll(void (*poll)());

} // namespace cprime
