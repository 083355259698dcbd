// Costs of Gaussian components, (31) of Luecke & Forster: offset_c + |A_c (x - m_c)|^2, A_c a diagonal or a lower
// triangle. Points lie in the lanes of vectors, so that a component is read once for many of them.
#pragma once
#include <algorithm>

#include "id_set.h"
#include "kernels.h"
#include "lane_best.h"
#include "lane_points.h"
#include "law.h"
#include "points.h"
#include "signals.h"

namespace cprime::CPRIME_ISA {

template <class T> inline T dot(const T *a, const T *b, int n) {
    using V = simd<T>;
    typename V::vec sum{};
    int k = 0;
    for (; k + V::width <= n; k += V::width)
        sum += V::load(a + k) * V::load(b + k);
    if (k < n)
        sum += V::load_first(a + k, n - k) * V::load_first(b + k, n - k);
    return V::sum(sum);
}

// A_c (origin - m_c) of component c: (D,). What is A_c (x - m_c) less this is A_c (x - origin).
template <class T> inline void gaussian_start(const Gaussians<T> &gaussians, std::size_t c, const T *origin, T *out) {
    const int D = gaussians.means.D;
    const T *A = gaussians.factor(c), *m = gaussians.means[c];
    if (!gaussians.full) {
        for (int k = 0; k < D; ++k)
            out[k] = A[k] * (origin[k] - m[k]);
        return;
    }
    Scratch<T> shift(D);
    for (int k = 0; k < D; ++k)
        shift[k] = origin[k] - m[k];
    for (int j = 0; j < D; ++j)
        out[j] = dot(A + static_cast<std::size_t>(j) * D, shift.get(), j + 1);
}

// Parts of |A (x - m)|^2, A a diagonal.
template <class T> inline typename simd<T>::vec scaled_square_parts(const T *x, const T *m, const T *A, int D) {
    using V = simd<T>;
    constexpr int W = V::width;
    typename V::vec sum{};
    int k = 0;
    for (; k + W <= D; k += W) {
        const auto t = (V::load(x + k) - V::load(m + k)) * V::load(A + k);
        sum += t * t;
    }
    if (k < D) {
        const int n = D - k;
        const auto t = (V::load_first(x + k, n) - V::load_first(m + k, n)) * V::load_first(A + k, n);
        sum += t * t;
    }
    return sum;
}

// |A (x - m)|^2 of component c for one point.
template <class T> inline T gaussian_square(const Gaussians<T> &gaussians, std::size_t c, const T *x) {
    using V = simd<T>;
    const int D = gaussians.means.D;
    const T *A = gaussians.factor(c), *m = gaussians.means[c];
    T total = 0;
    if (gaussians.full) {
        if (D >= 256)
            answer_signals();
        Scratch<T> d(D);
        for (int k = 0; k < D; ++k)
            d[k] = x[k] - m[k];
        for (int j = 0; j < D; ++j) {
            const T y = dot(A + static_cast<std::size_t>(j) * D, d.get(), j + 1);
            total += y * y;
        }
    } else {
        total = V::sum(scaled_square_parts(x, m, A, D));
    }
    return total;
}

// The cost of component c for one point.
template <class T> inline T gaussian_cost(const Gaussians<T> &gaussians, std::size_t c, const T *x) {
    return cost_at(gaussians, c, simd<T>::fill(gaussian_square(gaussians, c, x)))[0];
}

// Rows [begin, end): the H best of all components. Where rows that lie together keep the same ones, those of the rows
// before are tried first, and bars are low when the others come.
template <class T> inline void best(const BestTask<T> &task, std::size_t begin, std::size_t end) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D, H = task.H, C = static_cast<int>(task.gaussians.means.n);
    LanePoints<T> points(D);
    const Wide<T> wide(task.X, L);
    LaneBest<T> found(H);
    Preferred candidates(C);
    alignas(64) T cost[L];
    const auto start = [&](int c) { return task.starts + static_cast<std::size_t>(c) * D; };
    const bool worth_bars = task.gaussians.full; // whatever they are
    for (std::size_t first = begin; first < end; first += L) {
        const int n = static_cast<int>(std::min<std::size_t>(L, end - first));
        const Rows<T> x = rows_of(task.X, first, first + n, wide);
        points.read([&](int i) { return x[i]; }, n, task.origin);
        found.clear();
        const bool alike = first > begin && 3 * candidates.n_first() <= L * H;
        if (alike || worth_bars) {
            if (!alike)
                candidates.clear();
            const std::int32_t *order = candidates.order();
            for (int k = 0; k < C; ++k)
                if (const std::int32_t c = order[k]; points.cost_within(task.gaussians, c, start(c), found.bar(), cost))
                    found.offer(c, cost);
        } else {
            for (int c = 0; c < C; ++c) {
                points.cost(task.gaussians, c, start(c), cost);
                found.offer(c, cost);
            }
        }
        candidates.clear();
        for (int i = 0; i < n; ++i) {
            std::int32_t *kept = task.kept + (first + i) * H;
            found.store(i, kept, task.costs + (first + i) * H);
            for (int h = 0; h < H; ++h)
                candidates.add(kept[h]);
        }
    }
}

// Points [begin, end) of `entries`, all of them with component c best before: the H best of what they keep and of the
// neighbours of c. What one of a few points keeps is tried first for all of these.
template <class T> inline void keep_best(const KeepBestTask<T> &task, int c, std::size_t begin, std::size_t end) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D, H = task.H;
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int G = static_cast<int>(std::find(list, list + task.G, -1) - list);
    const T *origin = task.gaussians.means[c];
    Scratch<T> starts(static_cast<std::size_t>(G + 1) * D);
    const auto candidate = [&](int g) { return g ? list[g - 1] : c; };
    for (int g = 0; g <= G; ++g)
        gaussian_start(task.gaussians, candidate(g), origin, starts + static_cast<std::size_t>(g) * D);
    const IdSet listed(list, G);
    const Gathered<T> gathered(task.X, L);
    Preferred candidates(G + 1);
    LanePoints<T> points(D);
    LaneBest<T> found(H);
    alignas(64) T cost[L];
    for (std::size_t first = begin; first < end; first += L) {
        const int n = static_cast<int>(std::min<std::size_t>(L, end - first));
        const std::int64_t *entries = task.entries + first;
        const T *rows[L];
        gathered.read(task.X, [&](int i) { return entries[i]; }, n, rows);
        points.read([&](int i) { return rows[i]; }, n, origin);
        found.clear();
        candidates.clear();
        candidates.add(0);
        for (int i = 0; i < n; ++i) {
            const std::int32_t *previous = task.previous + entries[i] * task.n_previous;
            for (int h = 0; h < task.n_previous; ++h)
                if (const std::int32_t p = previous[h]; p >= 0 && p != c) {
                    if (const int g = listed.find(p); g >= 0)
                        candidates.add(g + 1);
                    else if (std::find(previous, previous + h, p) == previous + h)
                        found.offer_to(i, p, gaussian_cost(task.gaussians, p, rows[i]));
                }
        }
        const std::int32_t *order = candidates.order();
        std::size_t ahead = first + L; // rows that come next are asked for one at a time
        for (int k = 0; k < candidates.size(); ++k) {
            if (ahead < std::min(end, first + 2 * L)) {
                fetch<2>(task.X, task.entries[ahead]);
                __builtin_prefetch(task.previous + task.entries[ahead++] * task.n_previous);
            }
            const int g = order[k];
            const T *start = starts + static_cast<std::size_t>(g) * D;
            if (points.cost_within(task.gaussians, candidate(g), start, found.bar(), cost))
                found.offer(candidate(g), cost);
        }
        for (int i = 0; i < n; ++i)
            found.store(i, task.kept + entries[i] * H, task.costs + entries[i] * H);
    }
}

} // namespace cprime::CPRIME_ISA
