// Partial search with active sets of one component (C' = 1): all points of a component are compared with the neighbors
// of this component together, and reassigned to the best of them.
#pragma once
#include <algorithm>

#include "candidates.h"

namespace cprime::CPRIME_ISA {

// Reassignments of the points of component c. A point is reassigned to the neighbor b of least outside[b] |x - m_b|^2
// if that is less than inside[c] |x - m_c|^2. The factors `inside` and `outside` of exchange steps (Hartigan) are exact
// only if a single point is reassigned. So if the chosen neighbor is not nearer than c, the point is reassigned only if
// it has one of the greatest gains: at most a share of the component's points.
template <class T> class Moves {
  public:
    Moves(const ReassignTask<T> &task, int c, std::size_t n_points)
        : task_(task), c_(c), inside_(task.inside ? task.inside[c] : T(1)), exchanges_(n_points),
          most_(std::max<std::size_t>(1, static_cast<std::size_t>(task.share * static_cast<double>(n_points)))) {}

    T inside() const { return inside_; }

    // Decide on point n. `stay` is its squared distance to its own center; squared(b) computes the squared distance to
    // candidate b.
    template <class Squared>
    [[gnu::always_inline]] void settle(std::size_t n, T stay, const std::int32_t *candidates, int n_candidates,
                                       Squared squared) {
        T best = inside_ * stay, distance = stay;
        std::int32_t winner = c_;
        for (int i = 0; i < n_candidates; ++i) {
            const T there = squared(candidates[i]);
            const T score = task_.outside ? task_.outside[candidates[i]] * there : there;
            if (score < best) {
                best = score;
                winner = candidates[i];
                distance = there;
            }
        }
        if (winner != c_ && distance >= stay)
            exchanges_[n_exchanges_++] = {inside_ * stay - best, stay, n};
        task_.labels[n] = winner;
        task_.distances[n] = distance;
    }

    void limit() {
        if (n_exchanges_ <= most_)
            return;
        std::nth_element(exchanges_.get(), exchanges_ + most_, exchanges_ + n_exchanges_,
                         [](const Exchange &a, const Exchange &b) {
                             return a.gain > b.gain || (a.gain == b.gain && a.point < b.point);
                         });
        for (std::size_t e = most_; e < n_exchanges_; ++e) {
            task_.labels[exchanges_[e].point] = c_;
            task_.distances[exchanges_[e].point] = exchanges_[e].stay;
        }
    }

  private:
    struct Exchange {
        T gain, stay;
        std::size_t point;
    };
    const ReassignTask<T> &task_;
    std::int32_t c_;
    T inside_;
    Scratch<Exchange> exchanges_;
    std::size_t n_exchanges_ = 0, most_;
};

// Return a function of b that computes the squared distance of a dense row to center b.
template <class T> inline auto squared_from(const T *x, const Rows<T> &centers) {
    return [x, &centers](std::int32_t b) { return squared_distance(x, centers[b], centers.D); };
}

// Reassign points by scores outside (|m|^2 - 2 x m + |x|^2), all relative to the origin; |x|^2 is an additional
// dimension of x. The distance is computed only to the candidate whose rounded score is least.
template <class T>
inline void reassign_by_products(const ReassignTask<T> &task, int c, std::size_t begin, std::size_t end,
                                 const std::int32_t *list, int n_candidates) {
    using V = simd<T>;
    constexpr int L = TILE_LANES<T>;
    const T *origin = task.centers[c];
    const ProductCandidates<T> candidates(task.centers, list, n_candidates, origin, task.outside);
    Moves<T> moves(task, c, end - begin);
    ProductPoints<T> points(task.X);
    alignas(64) T score[TILE_ROWS][L];
    for (std::size_t first = begin; first < end; first += TILE_ROWS) {
        points.read(task, origin, first, end);
        T best[TILE_ROWS];
        std::int32_t winner[TILE_ROWS];
        for (int i = 0; i < TILE_ROWS; ++i) {
            best[i] = moves.inside() * points.square[i];
            winner[i] = -1;
        }
        for (int p = 0; p < candidates.n_panels; ++p) {
            candidates.score(points, p, score);
            for (int i = 0; i < points.n; ++i) {
                const auto limit = V::fill(best[i]);
                const auto low = V::load(&score[i][0]), high = V::load(&score[i][V::width]);
                const auto lowest = V::min(low, high);
                if (!V::mask_not_above(lowest, limit))
                    continue;
                const T least = V::lowest(lowest);
                if (least < best[i]) {
                    const auto bar = V::fill(least);
                    best[i] = least;
                    const auto mask = V::mask_not_above(low, bar) | V::mask_not_above(high, bar) << V::width;
                    winner[i] = list[p * L + __builtin_ctz(mask & first_lanes(lanes_used<T>(n_candidates, p)))];
                }
            }
        }
        for (int i = 0; i < points.n; ++i) {
            const auto squared = squared_from(points.rows[i], task.centers);
            if (candidates.fit(points.square[i]))
                moves.settle(task.entries[first + i], points.square[i], &winner[i], winner[i] >= 0, squared);
            else
                moves.settle(task.entries[first + i], points.square[i], list, n_candidates, squared);
        }
    }
    moves.limit();
}

// Reassign points by distances from differences. Used for so few points that packing the candidates takes longer.
template <class T>
inline void reassign_by_differences(const ReassignTask<T> &task, int c, std::size_t begin, std::size_t end,
                                    const std::int32_t *list, int n_candidates) {
    Moves<T> moves(task, c, end - begin);
    for_each_of(
        task.X, [&](std::size_t e) { return static_cast<std::size_t>(task.entries[e]); }, begin, end, task.X.n,
        [&](std::size_t, std::size_t n, const T *x) {
            const auto squared = squared_from(x, task.centers);
            moves.settle(n, squared(c), list, n_candidates, squared);
        });
    moves.limit();
}

#if CPRIME_COARSE

// Reassign points by scores in coarse numbers. Distances are computed to candidates whose lower bound is not above the
// least upper bound, nor above the point's score for its own component.
inline void reassign_coarsely(const ReassignTask<float> &task, int c, std::size_t begin, std::size_t end,
                              const std::int32_t *list, int n_candidates) {
    const float *origin = task.centers[c];
    CoarsePoints buffers[2] = {CoarsePoints(task.X), CoarsePoints(task.X)}; // two: a product stalls on just-stored data
    buffers[0].read(task, origin, begin, end);
    CoarseCandidates candidates(task.centers, list, n_candidates, origin, task.outside);
    Moves<float> moves(task, c, end - begin);
    Scratch<std::int32_t> near(static_cast<std::size_t>(COARSE_POINTS) * n_candidates);
    int turn = 0;
    for (std::size_t first = begin; first < end; first += COARSE_POINTS, turn ^= 1) {
        const CoarsePoints &points = buffers[turn];
        if (first + COARSE_POINTS < end)
            buffers[turn ^ 1].read(task, origin, first + COARSE_POINTS, end);
        alignas(64) float bar[COARSE_POINTS];
        for (int i = 0; i < points.n; ++i)
            bar[i] = moves.inside() * points.square(i);
        int n_near[COARSE_POINTS] = {};
        candidates.bound(points, bar, true);
        candidates.for_each_below(points, bar, [&](int i, int b, float) {
            near[static_cast<std::size_t>(i) * n_candidates + n_near[i]++] = list[b];
        });
        for (int i = 0; i < points.n; ++i)
            moves.settle(task.entries[first + i], points.square(i), near + static_cast<std::size_t>(i) * n_candidates,
                         n_near[i], squared_from(points.row[i], task.centers));
    }
    moves.limit();
}

#endif

// Reassign points [begin, end) of `entries`, all of component c.
template <class T> inline void reassign(const ReassignTask<T> &task, int c, std::size_t begin, std::size_t end) {
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int n_candidates = static_cast<int>(std::find(list, list + task.G, -1) - list);
    if (end - begin <= static_cast<std::size_t>(std::min(4, task.X.D / 8)))
        return reassign_by_differences(task, c, begin, end, list, n_candidates);
#if CPRIME_COARSE
    if constexpr (sizeof(T) == sizeof(float))
        if (task.X.D >= LEAST_D_OF_LISTS && task.X.D <= MOST_COARSE) {
            const CoarseUnit unit;
            return reassign_coarsely(task, c, begin, end, list, n_candidates);
        }
#endif
    reassign_by_products(task, c, begin, end, list, n_candidates);
}

} // namespace cprime::CPRIME_ISA
