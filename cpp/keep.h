// The cluster-major partial search with C' >= 1 components kept: each point keeps the nearest of what it keeps already
// and of the neighbours of its nearest.
#pragma once
#include "candidates.h"

namespace cprime::CPRIME_ISA {

// What each of a few points may keep.
template <class T> class Keeper {
  public:
    Keeper(const KeepTask<T> &task, int n_candidates, int n_points)
        : task_(task), capacity_(static_cast<std::size_t>(task.n_previous) + n_candidates),
          found_(n_points * capacity_), counts_(n_points) {}

    // Measures what point n keeps already; returns the squared distance that another component has to be within.
    T open(int i, std::size_t n) {
        counts_[i] = 0;
        const std::int32_t *previous = task_.previous + n * task_.n_previous;
        for (int h = 0; h < task_.n_previous; ++h)
            if (previous[h] >= 0)
                offer(i, n, previous[h]);
        if (counts_[i] < task_.H)
            return std::numeric_limits<T>::max();
        Candidate<T> *found = found_ + i * capacity_;
        sort_nearest(found, task_.H, counts_[i]);
        return found[task_.H - 1].low;
    }

    void offer(int i, std::size_t n, std::int32_t c) {
        Candidate<T> *found = found_ + i * capacity_;
        for (int k = 0; k < std::min(counts_[i], task_.n_previous); ++k) // only what is kept already may come twice
            if (found[k].id == c)
                return;
        found[counts_[i]++] = {comparable(squared_distance(task_.X[n], task_.centers[c], task_.X.D)), T(0), c};
    }

    void close(int i, std::size_t n) {
        Candidate<T> *found = found_ + i * capacity_;
        const int H = std::min(task_.H, counts_[i]);
        sort_nearest(found, H, counts_[i]);
        for (int h = 0; h < task_.H; ++h) {
            task_.kept[n * task_.H + h] = h < H ? found[h].id : -1;
            task_.distances[n * task_.H + h] = h < H ? found[h].low : std::numeric_limits<T>::infinity();
        }
    }

  private:
    const KeepTask<T> &task_;
    std::size_t capacity_;
    Scratch<Candidate<T>> found_;
    Scratch<int> counts_;
};

template <class T>
inline void keep_by_products(const KeepTask<T> &task, int c, std::size_t begin, std::size_t end,
                             const std::int32_t *list, int n_candidates) {
    using V = simd<T>;
    constexpr int L = TILE_LANES<T>;
    const T *origin = task.centers[c];
    const ProductCandidates<T> candidates(task.centers, list, n_candidates, origin, nullptr);
    const T error = 2 * score_error<T>(task.X.D), lost = 4 * underflow<T>(task.X.D);
    ProductPoints<T> points(task.X.D);
    Keeper<T> keeper(task, n_candidates, 1);
    Scratch<T> scores(static_cast<std::size_t>(candidates.n_panels) * TILE_ROWS * L);
    for (std::size_t first = begin; first < end; first += TILE_ROWS) {
        points.read(task, origin, first, end);
        for (int p = 0; p < candidates.n_panels; ++p)
            candidates.score(points, p,
                             reinterpret_cast<T(*)[L]>(scores + static_cast<std::size_t>(p) * TILE_ROWS * L));
        for (int i = 0; i < points.n; ++i) {
            const std::size_t n = task.entries[first + i];
            const T bar = keeper.open(0, n);
            const auto limit = V::fill(candidates.fit(points.square[i])
                                           ? bar + error * (bar + points.square[i] + candidates.longest) + lost
                                           : std::numeric_limits<T>::infinity());
            for (int p = 0; p < candidates.n_panels; ++p) {
                const T *score = scores + (static_cast<std::size_t>(p) * TILE_ROWS + i) * L;
                for (auto mask = (V::mask_not_above(V::load(score), limit) |
                                  V::mask_not_above(V::load(score + V::width), limit) << V::width) &
                                 first_lanes(lanes_used<T>(n_candidates, p));
                     mask; mask &= mask - 1)
                    keeper.offer(0, n, list[p * L + __builtin_ctz(mask)]);
            }
            keeper.close(0, n);
        }
    }
}

#if CPRIME_HALVES

inline void keep_by_halves(const KeepTask<float> &task, int c, std::size_t begin, std::size_t end,
                           const std::int32_t *list, int n_candidates) {
    const float *origin = task.centers[c];
    HalfPoints buffers[2] = {HalfPoints(task.X.D), HalfPoints(task.X.D)}; // a product waits for what was just stored
    buffers[0].read(task, origin, begin, end);
    HalfCandidates candidates(task.centers, list, n_candidates, origin, nullptr);
    Keeper<float> keeper(task, n_candidates, HALF_POINTS);
    int turn = 0;
    for (std::size_t first = begin; first < end; first += HALF_POINTS, turn ^= 1) {
        const HalfPoints &points = buffers[turn];
        if (first + HALF_POINTS < end)
            buffers[turn ^ 1].read(task, origin, first + HALF_POINTS, end);
        alignas(64) float bar[HALF_POINTS];
        for (int i = 0; i < points.n; ++i)
            bar[i] = keeper.open(i, task.entries[first + i]);
        candidates.bound(points, bar, false);
        candidates.for_each_below(points, bar,
                                  [&](int i, int b) { keeper.offer(i, task.entries[first + i], list[b]); });
        for (int i = 0; i < points.n; ++i)
            keeper.close(i, task.entries[first + i]);
    }
}

#endif

// Points [begin, end) of `entries`, all of them with component c nearest.
template <class T> inline void keep(const KeepTask<T> &task, int c, std::size_t begin, std::size_t end) {
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int n_candidates = static_cast<int>(std::find(list, list + task.G, -1) - list);
#if CPRIME_HALVES
    if constexpr (sizeof(T) == sizeof(float)) {
        const MatrixUnit unit;
        return keep_by_halves(task, c, begin, end, list, n_candidates);
    }
#endif
    keep_by_products(task, c, begin, end, list, n_candidates);
}

} // namespace cprime::CPRIME_ISA
