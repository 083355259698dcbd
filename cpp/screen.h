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
          candidates_(n_rows * capacity_), counts_(n_rows), thresholds_(n_rows), bounds_(n_rows) {}

    T threshold(int row) const { return thresholds_[row]; }

    // square: |x - shift|^2    bound: what the row adds to the error of its scores
    void open(int row, const T *x, const std::int32_t *hint, double square, RowBound<T> bound) {
        counts_[row] = 0;
        bounds_[row] = bound;
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

    const NearestTask<T> &task_;
    int capacity_;
    T error_;
    Scratch<Candidate<T>> candidates_;
    Scratch<int> counts_;
    Scratch<T> thresholds_;
    Scratch<RowBound<T>> bounds_;
};

} // namespace cprime::CPRIME_ISA
