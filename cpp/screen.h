// What bounds of scores decide: which components have to be measured, and which of those are nearest.
#pragma once
#include <algorithm>
#include <cmath>

#include "halves.h"
#include "kernels.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Behind the coordinates: |m|^2/2 in three halves, |m|, and what rounding has taken from m.
constexpr int HALF_EXTRA = 5;
constexpr int LEAST_D_OF_HALVES = 8; // below, the register tile is as fast

// Numbers in a panel of halves, 0 where they are not used.
template <class T> inline std::size_t half_panel_size(int D) {
    if (!HAS_HALVES || sizeof(T) != sizeof(float) || D < LEAST_D_OF_HALVES)
        return 0;
    return static_cast<std::size_t>(TILE_LANES<T>) * half_depth(D + HALF_EXTRA);
}

// One of the panels.
template <class T> struct Panel {
    T *columns, *half_norm, *norm;
    std::uint16_t *halves;
    T *lost;
};

template <class T> inline Panel<T> panel_of(const Panels<T> &panels, int p, int D) {
    constexpr int L = TILE_LANES<T>;
    const std::size_t first = static_cast<std::size_t>(p) * L;
    return {panels.columns + first * (static_cast<std::size_t>(D) + 1), panels.half_norm + first, panels.norm + first,
            panels.halves ? panels.halves + p * half_panel_size<T>(D) : nullptr, panels.lost + first};
}

// Those of a panel's lanes that hold one of n centres.
template <class T> inline int lanes_used(std::size_t n, int p) {
    return static_cast<int>(std::min<std::size_t>(TILE_LANES<T>, n - static_cast<std::size_t>(p) * TILE_LANES<T>));
}

// What underflow takes at most from a sum of D products, also where subnormal numbers count as zeros.
template <class T> inline T underflow(int D) { return static_cast<T>(D + 12) * std::numeric_limits<T>::min(); }

// gamma: the rounding error of a score of D products, relative to |x||m| + |m|^2/2.
template <class T> inline T score_error(int D) {
    return static_cast<T>(D + 12) * std::numeric_limits<T>::epsilon() / 2 * T(1.05);
}

// Between distances and the squares that are measured of them: what the arithmetic takes, made up for.
template <class T> class Rounding {
  public:
    explicit Rounding(int D) : error_(score_error<T>(D)), least_(2 * std::sqrt(underflow<T>(D))) {}

    // No more than the distance of which this square, or a greater one, is measured.
    T low(T square) const {
        return std::sqrt(std::clamp(square, T(0), std::numeric_limits<T>::max())) * (1 - error_) - least_;
    }

    // Of whatever is farther than this a greater square is measured.
    T limit(T square) const { return std::sqrt(square) * (1 + error_) + least_; }

    static T down(T bound) { return bound * (1 - 2 * std::numeric_limits<T>::epsilon()); }

  private:
    T error_, least_; // a share, and what is lost where squares underflow
};

template <class T> struct Candidate {
    T low, high; // bounds of the score while screening; `low` is the squared distance afterwards
    std::int32_t id;
};

template <class T> inline bool nearer(const Candidate<T> &a, const Candidate<T> &b) {
    return a.low < b.low || (a.low == b.low && a.id < b.id);
}

// The H nearest of n come first, in order; of a few, mostly in order already, faster than by a heap.
template <class T> inline void sort_nearest(Candidate<T> *found, int H, int n) {
    constexpr int FEW = 16;
    if (n > FEW) {
        std::partial_sort(found, found + H, found + n, nearer<T>);
        return;
    }
    for (int i = 1; i < n; ++i) {
        const Candidate<T> entry = found[i];
        int place = i;
        for (; place > 0 && nearer(entry, found[place - 1]); --place)
            found[place] = found[place - 1];
        found[place] = entry;
    }
}

constexpr int FEW_TO_MEASURE = 3; // beyond the H: sooner measured than excluded

inline int candidate_capacity(int H) { return 2 * H + 96; }

// A bit for each lane of a panel whose lower bound does not exceed the limit.
template <class T> inline std::uint32_t not_above(const T *low, T limit) {
    using V = simd<T>;
    const auto bar = V::fill(limit);
    return V::mask_not_above(V::load(low), bar) | V::mask_not_above(V::load(low + V::width), bar) << V::width;
}

// The error of row x's score with m is at most error |m| + norm |lost from m| + gamma |m|^2/2.
template <class T> struct RowBound {
    T error, norm;
};

// The candidates of a block of rows, and the threshold that a lower bound has to pass.
template <class T> class Screen {
  public:
    Screen(const NearestTask<T> &task, std::size_t n_rows)
        : task_(task), capacity_(candidate_capacity(task.H)), error_(score_error<T>(task.X.D)),
          underflow_(underflow<T>(task.X.D)), candidates_(n_rows * capacity_), counts_(n_rows), thresholds_(n_rows),
          bounds_(n_rows), squares_(task.lows ? n_rows : 0) {}

    T threshold(int row) const { return thresholds_[row]; }

    // square: |x - shift|^2    bound: what the row adds to the error of its scores
    void open(int row, const T *x, const std::int32_t *hint, double square, RowBound<T> bound) {
        counts_[row] = 0;
        bounds_[row] = bound;
        if (task_.lows)
            squares_[row] = square;
        thresholds_[row] = std::numeric_limits<T>::max();
        if (!hint)
            return;
        T farthest = 0;
        for (int h = 0; h < task_.H; ++h)
            farthest = std::max(farthest, squared_distance(x, task_.centers[hint[h]], task_.X.D));
        // |x - m|^2 carries the error of its D terms, |x - shift|^2 that of the subtraction alone.
        constexpr double ulp = std::numeric_limits<T>::epsilon();
        const double score = ((1 + 2.0 * error_) * farthest - (1 - 4 * ulp) * square) / 2;
        const double bar = score + ulp * (farthest + square) + 2.0 * underflow_;
        if (bar < std::numeric_limits<T>::max()) // else it overflows: no hint
            thresholds_[row] = static_cast<T>(bar);
    }

    // The lanes in `mask` of panel p, with their lower bounds.
    void offer(int row, std::uint32_t mask, const T *low, const Panel<T> &panel, int p) {
        constexpr int L = TILE_LANES<T>;
        constexpr T lowest = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();
        using V = simd<T>;
        if (counts_[row] + L > capacity_)
            compact(row);
        if (counts_[row] < 0)
            return;
        const RowBound<T> bound = bounds_[row];
        const auto above = [&](auto least, auto norm, auto lost, auto half_norm) { // of numbers, or of vectors
            return least + 2 * (bound.error * norm + bound.norm * lost + error_ * half_norm) + 4 * underflow_;
        };
        if (task_.H == 1) {
            auto bar = V::fill(thresholds_[row]);
            for (int v = 0; v < L; v += V::width) {
                const auto least = V::load(low + v);
                const auto high =
                    above(least, V::load(panel.norm + v), V::load(panel.lost + v), V::load(panel.half_norm + v));
                bar = (least > lowest) & (high < bar) ? high : bar;
            }
            thresholds_[row] = V::lowest(bar);
            if (!task_.lows)
                mask &= not_above(low, thresholds_[row]);
        }
        Candidate<T> *list = candidates_ + static_cast<std::size_t>(row) * capacity_;
        int n = counts_[row];
        for (; mask; mask &= mask - 1) {
            const int lane = __builtin_ctz(mask);
            const T high = above(low[lane], panel.norm[lane], panel.lost[lane], panel.half_norm[lane]);
            if (low[lane] > lowest && high < most)
                list[n++] = {low[lane], high, p * L + lane};
            else
                list[n++] = {lowest, most, p * L + lane}; // a score that overflows bounds nothing
        }
        const bool first = task_.H > 1 && thresholds_[row] == most && n > task_.H;
        counts_[row] = n;
        if (first)
            compact(row);
    }

    // Writes what row n keeps, whose place in the screen is `row`; false where more than `most` had to be measured.
    bool close(int row, std::size_t n, int most) {
        const int n_close = task_.lows ? settle_nearest(row) : settle(row);
        if (n_close > most)
            return false;
        Candidate<T> *list = candidates_ + static_cast<std::size_t>(row) * capacity_;
        task_.lows ? bound(row, list, n_close, counts_[row], n) : measure(list, n_close, n);
        return true;
    }

    // The same where everything is measured.
    void close_by_all(int row, std::size_t n) {
        const int C = static_cast<int>(task_.centers.n);
        Scratch<Candidate<T>> all(C);
        for (int c = 0; c < C; ++c)
            all[c].id = c;
        task_.lows ? bound(row, all, C, C, n) : measure(all, C, n);
    }

  private:
    // Drops what is excluded; how many candidates are left, or a number above any limit where they were too many.
    int settle(int row) {
        if (counts_[row] > task_.H + FEW_TO_MEASURE)
            compact(row);
        return counts_[row] < task_.H ? std::numeric_limits<int>::max() : counts_[row];
    }

    // For tasks with lows: puts the candidates that may be nearest first, as many as it says.
    int settle_nearest(int row) {
        if (counts_[row] < task_.H)
            return std::numeric_limits<int>::max();
        Candidate<T> *list = candidates_ + static_cast<std::size_t>(row) * capacity_;
        T bar = thresholds_[row];
        for (int i = 0; i < counts_[row]; ++i)
            bar = std::min(bar, list[i].high);
        return static_cast<int>(
            std::partition(list, list + counts_[row], [&](const Candidate<T> &c) { return c.low <= bar; }) - list);
    }

    // Drops what cannot be among the H nearest; a row with too many ties to hold has none from then on.
    void compact(int row) {
        Candidate<T> *list = candidates_ + static_cast<std::size_t>(row) * capacity_;
        int n = counts_[row];
        if (n < task_.H)
            return;
        if (task_.H > 1) { // of one, it is known
            std::nth_element(list, list + task_.H - 1, list + n,
                             [](const Candidate<T> &a, const Candidate<T> &b) { return a.high < b.high; });
            thresholds_[row] = std::min(thresholds_[row], list[task_.H - 1].high);
        }
        const T threshold = thresholds_[row];
        n = static_cast<int>(std::remove_if(list, list + n, [&](const Candidate<T> &c) { return c.low > threshold; }) -
                             list);
        if (n + TILE_LANES<T> > capacity_) {
            thresholds_[row] = -std::numeric_limits<T>::max();
            n = -1;
        }
        counts_[row] = n;
    }

    T measured(std::size_t n, std::int32_t id) const {
        return comparable(squared_distance(task_.X[n], task_.centers[id], task_.X.D));
    }

    // The nearest of the candidates, all of which are measured.
    void measure(Candidate<T> *list, int count, std::size_t n) {
        const int H = task_.H;
        for (int i = 0; i < count; ++i)
            list[i].low = measured(n, list[i].id);
        if (H == 1)
            std::swap(list[0], *std::min_element(list, list + count, nearer<T>));
        else
            sort_nearest(list, H, count);
        for (int h = 0; h < H; ++h) {
            task_.kept[n * H + h] = list[h].id;
            task_.distances[n * H + h] = list[h].low;
        }
    }

    // The nearest of the first n_close candidates, which are measured; of all of them the near ones, with lower bounds.
    void bound(int row, Candidate<T> *list, int n_close, int count, std::size_t n) {
        const int H = task_.H;
        const bool all = static_cast<std::size_t>(count) == task_.centers.n;
        for (int i = 0; i < count; ++i)
            list[i].low = i < n_close ? measured(n, list[i].id) : least_square(row, list[i].low);
        std::swap(list[0], *std::min_element(list, list + n_close, nearer<T>));
        std::partial_sort(list + 1, list + std::min(H + 1, count), list + count, nearer<T>);
        const Rounding<T> rounding(task_.X.D);
        const T beyond = all ? std::numeric_limits<T>::infinity() : rounding.low(least_square(row, thresholds_[row]));
        T *lows = task_.lows + n * H;
        for (int h = 0; h < H; ++h) {
            task_.kept[n * H + h] = list[h].id;
            lows[h] = h + 1 < count ? rounding.low(list[h + 1].low) : beyond;
        }
        lows[H - 1] = std::min(lows[H - 1], beyond);
        task_.distances[n] = list[0].low;
    }

    // What is measured at least, where the score has this lower bound: the inverse of the threshold in `open`.
    T least_square(int row, T low) const {
        constexpr double ulp = std::numeric_limits<T>::epsilon();
        const double square = squares_[row], score = low;
        constexpr double most = std::numeric_limits<T>::max();
        const double least =
            2 * score + (1 - 6 * ulp) * square - 4 * ulp * (std::abs(score) + square) - 4.0 * underflow_;
        return static_cast<T>(std::clamp(least / (1 + 2.0 * error_ + 2 * ulp), -most, most));
    }

    const NearestTask<T> &task_;
    int capacity_;
    T error_, underflow_;
    Scratch<Candidate<T>> candidates_;
    Scratch<int> counts_;
    Scratch<T> thresholds_;
    Scratch<RowBound<T>> bounds_;
    Scratch<double> squares_;
};

} // namespace cprime::CPRIME_ISA
