// A small pool of worker threads, shared by the whole process.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>

namespace cprime {

// Call task(i) for every i in [0, n_tasks), on the calling thread and at most n_threads - 1 workers, or fewer if the
// system gives no more threads. Tasks begin in order but finish in any order, so results must be merged by index. Safe
// to call from several threads at once, within a task, and in a forked child; the first exception of a task is
// rethrown.
void parallel_for(std::size_t n_tasks, int n_threads, const std::function<void(std::size_t)> &task);

// Return the number of threads, at most n_threads, that make so many multiplications faster. Waking a thread takes as
// long as many multiplications.
inline int worth(double multiplications, int n_threads) {
    constexpr double OF_ONE = 1 << 19;
    return std::max(1, static_cast<int>(std::min<double>(n_threads, multiplications / OF_ONE)));
}

// Set the function that threads in `parallel_for` call between tasks, each at most every 50 ms. If it throws, the call
// ends with that exception.
void set_poll(void (*poll)());

} // namespace cprime
