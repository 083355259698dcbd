// The point-major partial search: each row has candidates of its own, the union of the lists of what it keeps.
#pragma once
#include <algorithm>

#include "gaussians.h"
#include "screen.h"

namespace cprime::CPRIME_ISA {

// Rows [begin, end): the H nearest among what a row keeps, the lists of those, and `extra` components of its own.
// cost(n, c) of row n, before which fetch(c) asks for what it reads.
template <class T, class Fetch, class Cost>
inline void search_among(const AmongTask<T> &task, std::size_t begin, std::size_t end, Fetch fetch, Cost cost) {
    constexpr int AHEAD = 6;
    const std::size_t C = task.centers.n;
    Scratch<std::int32_t> seen(C);
    std::fill_n(seen.get(), C, -1);
    const std::size_t capacity = static_cast<std::size_t>(task.n_previous) * (task.G + 1) + task.n_extra;
    Scratch<Candidate<T>> found(capacity);
    for (std::size_t n = begin; n < end; ++n) {
        const auto stamp = static_cast<std::int32_t>(n - begin);
        int count = 0;
        const auto offer = [&](std::int32_t c) {
            if (c < 0 || seen[c] == stamp)
                return;
            seen[c] = stamp;
            found[count++].id = c;
        };
        const std::int32_t *previous = task.previous + n * task.n_previous;
        for (int h = 0; h < task.n_previous; ++h)
            offer(previous[h]);
        for (int h = 0; h < task.n_previous; ++h)
            for (int g = 0; previous[h] >= 0 && g < task.G; ++g)
                offer(task.lists[static_cast<std::size_t>(previous[h]) * task.G + g]);
        for (int e = 0; e < task.n_extra; ++e)
            offer(task.extra[n * task.n_extra + e]);
        for (int i = 0; i < count; ++i) { // centres lie anywhere in memory: ask for them early
            if (i + AHEAD < count)
                fetch(found[i + AHEAD].id);
            found[i].low = comparable(cost(n, found[i].id));
        }
        if (task.evaluated) {
            std::int32_t *ids = task.evaluated + n * capacity;
            T *distances = task.evaluations + n * capacity;
            for (std::size_t i = 0; i < capacity; ++i) {
                ids[i] = i < static_cast<std::size_t>(count) ? found[i].id : -1;
                distances[i] = ids[i] >= 0 ? found[i].low : T(0);
            }
        }
        task.counts[n] = count;
        const int H = std::min(task.H, count);
        sort_nearest(found.get(), H, count);
        for (int h = 0; h < task.H; ++h) {
            task.kept[n * task.H + h] = h < H ? found[h].id : -1;
            task.distances[n * task.H + h] = h < H ? found[h].low : std::numeric_limits<T>::infinity();
        }
    }
}

template <class T> inline void nearest_among(const AmongTask<T> &task, std::size_t begin, std::size_t end) {
    const int D = task.X.D;
    const auto fetch = [&](std::int32_t c) {
        const char *next = reinterpret_cast<const char *>(task.centers[c]);
        for (std::size_t byte = 0; byte < D * sizeof(T); byte += 64)
            __builtin_prefetch(next + byte);
    };
    search_among(task, begin, end, fetch, [&](std::size_t n, std::int32_t c) {
        return task.gaussians ? gaussian_cost(*task.gaussians, c, task.X[n])
                              : squared_distance(task.X[n], task.centers[c], D);
    });
}

} // namespace cprime::CPRIME_ISA
