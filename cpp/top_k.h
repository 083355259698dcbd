// Partial search with active sets of C' >= 1 components, which processes all points of one component together: a
// point's new active set has the nearest components among its previous active set and the neighbors of its nearest
// component.
#pragma once
#include "candidates.h"

namespace cprime::CPRIME_ISA {

// The nearest components found so far for each of a few points, in order of distance.
template <class T> class Keeper {
  public:
    Keeper(const TopKTask<T> &task, int n_points)
        : task_(task), found_(static_cast<std::size_t>(n_points) * task.H), counts_(n_points) {}

    // Begin the list of point n, whose row is x, with the components of its previous active set.
    void open(int i, std::size_t n, const T *x) {
        counts_[i] = 0;
        const std::int32_t *previous = task_.previous + n * task_.n_previous;
        for (int h = 0; h < task_.n_previous; ++h)
            if (previous[h] >= 0)
                offer(i, x, previous[h]);
    }

    // Return the squared distance that a further component must not exceed to enter the active set of the i-th point.
    T bar(int i) const { return counts_[i] < task_.H ? std::numeric_limits<T>::max() : of(i)[task_.H - 1].square; }

    void offer(int i, const T *x, std::int32_t c) {
        Candidate<T> *found = of(i);
        int place = counts_[i];
        for (int k = 0; k < place; ++k)
            if (found[k].id == c)
                return;
        const Candidate<T> entry{comparable(squared_distance(x, task_.centers[c], task_.X.D)), c};
        if (place == task_.H && !nearer(entry, found[--place]))
            return;
        counts_[i] = place + 1;
        for (; place > 0 && nearer(entry, found[place - 1]); --place)
            found[place] = found[place - 1];
        found[place] = entry;
    }

    void close(int i, std::size_t n) {
        for (int h = 0; h < task_.H; ++h) {
            task_.kept[n * task_.H + h] = h < counts_[i] ? of(i)[h].id : -1;
            task_.distances[n * task_.H + h] = h < counts_[i] ? of(i)[h].square : std::numeric_limits<T>::infinity();
        }
    }

  private:
    Candidate<T> *of(int i) const { return found_.get() + static_cast<std::size_t>(i) * task_.H; }

    const TopKTask<T> &task_;
    Scratch<Candidate<T>> found_;
    Scratch<int> counts_;
};

template <class T>
inline void keep_by_products(const TopKTask<T> &task, int c, std::size_t begin, std::size_t end,
                             const std::int32_t *list, int n_candidates) {
    using V = simd<T>;
    constexpr int L = TILE_LANES<T>;
    const T *origin = task.centers[c];
    const ProductCandidates<T> candidates(task.centers, list, n_candidates, origin, nullptr);
    const T error = 2 * score_error<T>(task.X.D), lost = 4 * underflow<T>(task.X.D);
    ProductPoints<T> points(task.X);
    Keeper<T> keeper(task, 1);
    Scratch<T> scores(static_cast<std::size_t>(candidates.n_panels) * TILE_ROWS * L);
    for (std::size_t first = begin; first < end; first += TILE_ROWS) {
        points.read(task, origin, first, end);
        for (int p = 0; p < candidates.n_panels; ++p)
            candidates.score(points, p,
                             reinterpret_cast<T(*)[L]>(scores + static_cast<std::size_t>(p) * TILE_ROWS * L));
        for (int i = 0; i < points.n; ++i) {
            const std::size_t n = task.entries[first + i];
            keeper.open(0, n, points.rows[i]);
            const bool fit = candidates.fit(points.square[i]);
            const auto limit = [&] { // upper limit of scores to evaluate; falls with each component found
                const T bar = keeper.bar(0);
                return fit ? bar + error * (bar + points.square[i] + candidates.longest) + lost
                           : std::numeric_limits<T>::infinity();
            };
            T most = limit();
            for (int p = 0; p < candidates.n_panels; ++p) {
                const T *score = scores + (static_cast<std::size_t>(p) * TILE_ROWS + i) * L;
                for (auto mask = (V::mask_not_above(V::load(score), V::fill(most)) |
                                  V::mask_not_above(V::load(score + V::width), V::fill(most)) << V::width) &
                                 first_lanes(lanes_used<T>(n_candidates, p));
                     mask; mask &= mask - 1) {
                    const int lane = __builtin_ctz(mask);
                    if (score[lane] > most)
                        continue;
                    keeper.offer(0, points.rows[i], list[p * L + lane]);
                    most = limit();
                }
            }
            keeper.close(0, n);
        }
    }
}

#if CPRIME_COARSE

inline void keep_coarsely(const TopKTask<float> &task, int c, std::size_t begin, std::size_t end,
                          const std::int32_t *list, int n_candidates) {
    const float *origin = task.centers[c];
    CoarsePoints buffers[2] = {CoarsePoints(task.X), CoarsePoints(task.X)}; // two: a product stalls on just-stored data
    buffers[0].read(task, origin, begin, end);
    CoarseCandidates candidates(task.centers, list, n_candidates, origin, nullptr);
    Keeper<float> keeper(task, COARSE_POINTS);
    int turn = 0;
    for (std::size_t first = begin; first < end; first += COARSE_POINTS, turn ^= 1) {
        const CoarsePoints &points = buffers[turn];
        if (first + COARSE_POINTS < end)
            buffers[turn ^ 1].read(task, origin, first + COARSE_POINTS, end);
        alignas(64) float bar[COARSE_POINTS];
        for (int i = 0; i < points.n; ++i) {
            keeper.open(i, task.entries[first + i], points.row[i]);
            bar[i] = keeper.bar(i);
        }
        candidates.bound(points, bar, false);
        candidates.for_each_below(points, bar, [&](int i, int b, float low) {
            if (!(low > keeper.bar(i))) // the bar has fallen since the screen
                keeper.offer(i, points.row[i], list[b]);
        });
        for (int i = 0; i < points.n; ++i)
            keeper.close(i, task.entries[first + i]);
    }
}

#endif

// Update the active sets of points [begin, end) of `entries`, whose previous nearest component is c.
template <class T> inline void top_k(const TopKTask<T> &task, int c, std::size_t begin, std::size_t end) {
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int n_candidates = static_cast<int>(std::find(list, list + task.G, -1) - list);
#if CPRIME_COARSE
    if constexpr (sizeof(T) == sizeof(float))
        if (task.X.D >= LEAST_D_OF_KEPT && task.X.D <= MOST_COARSE) {
            const CoarseUnit unit;
            return keep_coarsely(task, c, begin, end, list, n_candidates);
        }
#endif
    keep_by_products(task, c, begin, end, list, n_candidates);
}

} // namespace cprime::CPRIME_ISA
