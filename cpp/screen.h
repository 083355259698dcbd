// What bounds of scores decide: which components have to be measured, and which of those are nearest.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels.h"
#include "simd.h"

namespace cprime::CPRIME_ISA {

// gamma: the rounding error of a score of D products, relative to |x||m| + |m|^2/2.
template <class T> inline T score_error(int D) {
    return static_cast<T>(D + 12) * std::numeric_limits<T>::epsilon() / 2 * T(1.05);
}

// Between distances and the squares that are measured of them: what the arithmetic takes, made up for.
template <class T> class Rounding {
  public:
    explicit Rounding(int D)
        : error_(score_error<T>(D)), least_(2 * std::sqrt(std::numeric_limits<T>::min() * static_cast<T>(D + 1))) {}

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

inline int candidate_capacity(int H) { return 2 * H + 96; }

// The error of row x's score with m is at most error |m| + norm |lost from m| + gamma |m|^2/2.
template <class T> struct RowBound {
    T error, norm;
};

// The candidates of a block of rows, and the threshold that a lower bound has to pass.
template <class T> class Screen {
  public:
    Screen(const NearestTask<T> &task, std::size_t n_rows)
        : task_(task), capacity_(candidate_capacity(task.H)), error_(score_error<T>(task.X.D)),
          candidates_(n_rows * capacity_), counts_(n_rows), thresholds_(n_rows), bounds_(n_rows),
          squares_(task.lows ? n_rows : 0) {}

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
        thresholds_[row] = static_cast<T>(score + ulp * (farthest + square));
    }

    void offer(int row, std::uint32_t mask, const T *low, int panel) {
        constexpr int L = TILE_LANES<T>;
        if (counts_[row] + L > capacity_)
            compact(row);
        if (counts_[row] < 0)
            return;
        Candidate<T> *list = candidates_ + static_cast<std::size_t>(row) * capacity_;
        const T *half_norm = task_.panels.half_norm + static_cast<std::size_t>(panel) * L;
        const T *norm = task_.panels.norm + static_cast<std::size_t>(panel) * L;
        const T *lost = task_.panels.lost + static_cast<std::size_t>(panel) * L;
        const RowBound<T> bound = bounds_[row];
        int n = counts_[row];
        for (; mask; mask &= mask - 1) {
            const int lane = __builtin_ctz(mask);
            const T high =
                low[lane] + 2 * (bound.error * norm[lane] + bound.norm * lost[lane] + error_ * half_norm[lane]);
            list[n++] = {low[lane], high, panel * L + lane};
            if (task_.H == 1 && high < thresholds_[row])
                thresholds_[row] = high;
        }
        const bool first = task_.H > 1 && thresholds_[row] == std::numeric_limits<T>::max() && n > task_.H;
        counts_[row] = n;
        if (first)
            compact(row);
    }

    // Drops what is excluded; how many candidates are left, or a number above any limit where they were too many.
    int settle(int row) {
        if (counts_[row] > task_.H)
            compact(row);
        return counts_[row] < task_.H ? std::numeric_limits<int>::max() : counts_[row];
    }

    // Writes the row's H nearest.
    void close(int row, const T *x, std::int32_t *kept, T *distances) {
        if (settle(row) > capacity_)
            return search_all(x, kept, distances);
        Candidate<T> *list = candidates_ + static_cast<std::size_t>(row) * capacity_;
        measure(list, counts_[row], x, kept, distances);
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

    // For tasks with lows: writes the nearest of row n, whose place in the screen is `row`, and H - 1 others.
    void close_nearest(int row, std::size_t n) {
        const int n_close = settle_nearest(row), C = static_cast<int>(task_.centers.n);
        if (n_close <= capacity_)
            return bound(row, candidates_ + static_cast<std::size_t>(row) * capacity_, n_close, counts_[row], n);
        Scratch<Candidate<T>> all(C);
        for (int c = 0; c < C; ++c)
            all[c].id = c;
        bound(row, all, C, C, n);
    }

  private:
    // Drops what cannot be among the H nearest; a row with too many ties to hold is left to `search_all`.
    void compact(int row) {
        Candidate<T> *list = candidates_ + static_cast<std::size_t>(row) * capacity_;
        int n = counts_[row];
        if (n < task_.H)
            return;
        std::nth_element(list, list + task_.H - 1, list + n,
                         [](const Candidate<T> &a, const Candidate<T> &b) { return a.high < b.high; });
        const T threshold = std::min(thresholds_[row], list[task_.H - 1].high);
        thresholds_[row] = threshold;
        n = static_cast<int>(std::remove_if(list, list + n, [&](const Candidate<T> &c) { return c.low > threshold; }) -
                             list);
        if (n + TILE_LANES<T> > capacity_) {
            thresholds_[row] = -std::numeric_limits<T>::max();
            n = -1;
        }
        counts_[row] = n;
    }

    void search_all(const T *x, std::int32_t *kept, T *distances) {
        Scratch<Candidate<T>> all(task_.centers.n);
        const int C = static_cast<int>(task_.centers.n);
        for (int c = 0; c < C; ++c)
            all[c].id = c;
        measure(all, C, x, kept, distances);
    }

    void measure(Candidate<T> *list, int n, const T *x, std::int32_t *kept, T *distances) {
        const int H = task_.H;
        for (int i = 0; i < n; ++i)
            list[i].low = squared_distance(x, task_.centers[list[i].id], task_.X.D);
        if (H == 1)
            std::swap(list[0], *std::min_element(list, list + n, nearer<T>));
        else
            std::partial_sort(list, list + H, list + n, nearer<T>);
        for (int h = 0; h < H; ++h) {
            kept[h] = list[h].id;
            distances[h] = list[h].low;
        }
    }

    // The nearest of the first n_close candidates, which are measured; of all of them the near ones, with lower bounds.
    void bound(int row, Candidate<T> *list, int n_close, int count, std::size_t n) {
        const int H = task_.H;
        const bool all = static_cast<std::size_t>(count) == task_.centers.n;
        for (int i = 0; i < count; ++i)
            list[i].low = i < n_close ? squared_distance(task_.X[n], task_.centers[list[i].id], task_.X.D)
                                      : least_square(row, list[i].low);
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
        return static_cast<T>((2 * score + (1 - 6 * ulp) * square - 4 * ulp * (std::abs(score) + square)) /
                              (1 + 2.0 * error_ + 2 * ulp));
    }

    const NearestTask<T> &task_;
    int capacity_;
    T error_;
    Scratch<Candidate<T>> candidates_;
    Scratch<int> counts_;
    Scratch<T> thresholds_;
    Scratch<RowBound<T>> bounds_;
    Scratch<double> squares_;
};

} // namespace cprime::CPRIME_ISA
