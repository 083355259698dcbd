// The point-major partial search: each row has candidates of its own, the union of the lists of what it keeps.
#pragma once
#include <algorithm>

#include "distances.h"
#include "gaussians.h"
#include "screen.h"

namespace cprime::CPRIME_ISA {

// What row n keeps of the components that were measured for it.
template <class T> inline void keep_found(const AmongTask<T> &task, std::size_t n, Candidate<T> *found, int count) {
    const int H = std::min(task.H, count);
    task.counts[n] = count;
    sort_nearest(found, H, count);
    for (int h = 0; h < task.H; ++h) {
        task.kept[n * task.H + h] = h < H ? found[h].id : -1;
        task.distances[n * task.H + h] = h < H ? found[h].square : std::numeric_limits<T>::infinity();
    }
}

// Asks for what component c is measured by.
template <class T> inline void fetch(const AmongTask<T> &task, std::int32_t c) {
    prefetch(task.centers[c], task.X.D);
    if (task.gaussians && !task.gaussians->full)
        prefetch(task.gaussians->factor(c), task.X.D);
}

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
            found[i].square = comparable(cost(n, found[i].id));
        }
        if (task.evaluated) {
            std::int32_t *ids = task.evaluated + n * capacity;
            T *distances = task.evaluations + n * capacity;
            for (std::size_t i = 0; i < capacity; ++i) {
                ids[i] = i < static_cast<std::size_t>(count) ? found[i].id : -1;
                distances[i] = ids[i] >= 0 ? found[i].square : T(0);
            }
        }
        keep_found(task, n, found.get(), count);
    }
}

// The same where rows look at nothing but what they keep, bit for bit: the sums of several rows are made together.
template <class T> inline void measure_kept(const AmongTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    constexpr std::size_t W = V::width, AHEAD = 8;
    const int D = task.X.D, H = task.n_previous;
    const Gaussians<T> *gaussians = task.gaussians;
    Scratch<T> costs(W * H);
    Scratch<Candidate<T>> found(H);
    for (std::size_t first = begin; first < end; first += W) {
        const std::size_t n_entries = std::min(W, end - first) * H, n_ahead = (end - first) * H;
        const std::int32_t *ids = task.previous + first * H;
        std::size_t n = first;
        int h = 0;
        for (std::size_t e = 0; e < n_entries; e += W) {
            typename V::vec parts[W] = {};
            for (std::size_t i = 0; i < std::min(W, n_entries - e); ++i) {
                if (const std::size_t ahead = e + i + AHEAD; ahead < n_ahead && ids[ahead] >= 0)
                    fetch(task, ids[ahead]);
                if (const std::int32_t c = ids[e + i]; c >= 0)
                    parts[i] = gaussians ? scaled_square_parts(task.X[n], task.centers[c], gaussians->factor(c), D)
                                         : square_parts(task.X[n], task.centers[c], D);
                if (++h == H) {
                    h = 0;
                    ++n;
                }
            }
            V::store(costs + e, V::sums(parts));
        }
        for (std::size_t i = 0; i < n_entries; i += H) {
            int count = 0;
            for (int k = 0; k < H; ++k) {
                const std::int32_t c = ids[i + k];
                if (c >= 0 && std::find(ids + i, ids + i + k, c) == ids + i + k)
                    found[count++] = {comparable(costs[i + k] + (gaussians ? gaussians->offsets[c] : T(0))), c};
            }
            keep_found(task, first + i / H, found.get(), count);
        }
    }
}

template <class T> inline void nearest_among(const AmongTask<T> &task, std::size_t begin, std::size_t end) {
    const bool full = task.gaussians && task.gaussians->full;
    const bool kept_only = !task.G && !task.n_extra && !task.evaluated && task.n_previous && !full;
    const std::size_t step = kept_only ? 64 : end - begin; // rows that are still near when they are squared
    Scratch<std::int32_t> winners(task.squares ? step : 0);
    for (std::size_t from = begin; from < end; from += step) {
        const std::size_t to = std::min(end, from + step);
        if (kept_only)
            measure_kept(task, from, to);
        else
            search_among(
                task, from, to, [&](std::int32_t c) { fetch(task, c); },
                [&](std::size_t n, std::int32_t c) {
                    return task.gaussians ? gaussian_cost(*task.gaussians, c, task.X[n])
                                          : squared_distance(task.X[n], task.centers[c], task.X.D);
                });
        if (!task.squares)
            continue;
        for (std::size_t n = from; n < to; ++n)
            winners[n - from] = std::max(task.kept[n * task.H], 0);
        own_distances<T>({task.X[from], task.X.stride, to - from, task.X.D}, task.centers, winners, task.squares + from,
                         0, to - from);
    }
}

} // namespace cprime::CPRIME_ISA
