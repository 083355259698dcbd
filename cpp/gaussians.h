// Costs of Gaussian components, (31) of Luecke & Forster: offset_c + |A_c (x - m_c)|^2, with a diagonal or lower
// triangular A_c and mean m_c. Each vector lane is a point, so a component is read once for many points.
#pragma once
#include <algorithm>

#include "id_set.h"
#include "kernels.h"
#include "lane_best.h"
#include "lane_points.h"
#include "points.h"

namespace cprime::CPRIME_ISA {

// Find the H best of all components for rows [begin, end). If neighboring rows have similar active sets, the components
// of the previous rows' active sets are evaluated first. Then the bars (costs above which a component is not among the
// H best) are low for all other components.
template <class T> inline void best(const BestTask<T> &task, std::size_t begin, std::size_t end) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D, H = task.H, C = static_cast<int>(task.gaussians.means.n);
    LanePoints<T> points(D);
    const Wide<T> wide(task.X, L);
    LaneBest<T> found(H);
    Preferred candidates(C);
    alignas(64) T cost[L];
    // For full covariance matrices, limits of costs save time even if the active sets of neighboring rows differ.
    const bool worth_bars = task.gaussians.full;
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
                if (const std::int32_t c = order[k];
                    points.cost_within(task.gaussians, c, task.starts.of(c, D), found.bar(), cost))
                    found.offer(c, cost);
        } else {
            for (int c = 0; c < C; ++c) {
                points.cost(task.gaussians, c, task.starts.of(c, D), cost);
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

// Find the H best components of each of the points [begin, end) of `entries`, whose previous best component is c, among
// the point's active set and the neighbors of c. Points are processed a few at a time; components in the active set of
// any of these are evaluated first for all of them.
template <class T> inline void top_k_gaussians(const TopKGaussiansTask<T> &task, int c, std::size_t begin,
                                               std::size_t end) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D, H = task.H;
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int G = static_cast<int>(std::find(list, list + task.G, -1) - list);
    const T *origin = task.gaussians.means[c];
    const auto candidate = [&](int g) { return g ? list[g - 1] : c; };
    OwnStarts<T> starts(G + 1, D);
    starts.compute(task.gaussians, G + 1, candidate, origin);
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
        std::size_t ahead = first + L; // the next rows are prefetched one at a time
        for (int k = 0; k < candidates.size(); ++k) {
            if (ahead < std::min(end, first + 2 * L)) {
                fetch<2>(task.X, task.entries[ahead]);
                __builtin_prefetch(task.previous + task.entries[ahead++] * task.n_previous);
            }
            const int g = order[k];
            if (points.cost_within(task.gaussians, candidate(g), starts.of(g), found.bar(), cost))
                found.offer(candidate(g), cost);
        }
        for (int i = 0; i < n; ++i)
            found.store(i, task.kept + entries[i] * H, task.costs + entries[i] * H);
    }
}

} // namespace cprime::CPRIME_ISA
