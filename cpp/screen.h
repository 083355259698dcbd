// What bounds of scores decide: which components have to be measured, and which of those are nearest.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>

#include "distances.h"
#include "kernels.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// One of the panels.
template <class T> struct Panel {
    T *columns, *half_norm, *norm, *scale, *lost;
};

template <class T> inline Panel<T> panel_of(const Panels<T> &panels, int p, int D) {
    constexpr int L = TILE_LANES<T>;
    const std::size_t first = static_cast<std::size_t>(p) * L;
    return {panels.columns + first * (static_cast<std::size_t>(D) + 1), panels.half_norm + first, panels.norm + first,
            panels.scale + first, panels.lost + first};
}

// A bit for each of panel p's lanes that holds one of centres [begin, end).
template <class T> inline std::uint32_t lanes_within(int p, int begin, int end) {
    const int first = p * TILE_LANES<T>;
    return first_lanes(std::min(end - first, TILE_LANES<T>)) & ~first_lanes(std::max(begin - first, 0));
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
    T square; // the distance's
    std::int32_t id;
};

constexpr auto nearer = [](const auto &a, const auto &b) {
    return a.square < b.square || (a.square == b.square && a.id < b.id);
};

// The H nearest of n come first, in order; of a few, mostly in order already, faster than by a heap.
template <class T> inline void sort_nearest(Candidate<T> *found, int H, int n) {
    constexpr int FEW = 16;
    if (n > FEW) {
        2 * H > n ? std::sort(found, found + n, nearer) : std::partial_sort(found, found + H, found + n, nearer);
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

inline int candidate_capacity(int H) { return (2 * H + 96 + 15) / 16 * 16; } // whole vectors

// No less than the H-th smallest of n >= H values, and not much greater. Infinity is written behind them, up to the end
// of the last vector.
template <class T> inline T above_smallest(T *values, int n, int H) {
    using V = simd<T>;
    constexpr T infinity = std::numeric_limits<T>::infinity();
    for (int i = n; i % V::width; ++i)
        values[i] = infinity;
    auto smallest = V::fill(infinity), greatest = V::fill(-infinity);
    for (int i = 0; i < n; i += V::width) {
        const auto v = V::load(values + i);
        smallest = V::min(smallest, v);
        greatest = V::max(greatest, v == infinity ? V::fill(-infinity) : v);
    }
    T low = V::lowest(smallest), high = -V::lowest(-greatest);
    constexpr int STEPS = 20;
    int within = n;
    for (int step = 0; step < STEPS && within > H + H / 16; ++step) {
        const T middle = low / 2 + high / 2;
        if (!(low < middle && middle < high))
            break;
        int count = 0;
        for (int i = 0; i < n; i += V::width)
            count += __builtin_popcount(V::mask_not_above(V::load(values + i), V::fill(middle)));
        if (count >= H) {
            within = count;
            high = middle;
        } else {
            low = middle;
        }
    }
    if (within - H <= (n - H) / 2)
        return high;
    Scratch<T> sorted(n); // values that lie too unevenly
    std::copy_n(values, n, sorted.get());
    std::nth_element(sorted.get(), sorted + H - 1, sorted + n);
    return sorted[H - 1];
}

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
          underflow_(underflow<T>(task.X.D)), lows_(n_rows * capacity_), highs_(n_rows * capacity_),
          ids_(n_rows * capacity_), counts_(n_rows), full_(n_rows), thresholds_(n_rows), bounds_(n_rows),
          squares_(task.lows ? n_rows : 0) {}

    T threshold(int row) const { return thresholds_[row]; }

    // n: the row's number    square: |x - shift|^2    bound: what the row adds to the error of its scores
    void open(int row, std::size_t n, double square, RowBound<T> bound) {
        counts_[row] = 0;
        full_[row] = task_.H > 1 ? task_.H + 1 : capacity_;
        bounds_[row] = bound;
        if (task_.lows)
            squares_[row] = square;
        thresholds_[row] = std::numeric_limits<T>::max();
        if (!task_.hint && !task_.improve)
            return;
        const T farthest = task_.improve ? task_.distances[n] : farthest_of_hint(n);
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
        alignas(64) T sound[L], high[L]; // a score that overflows bounds nothing
        for (int v = 0; v < L; v += V::width) {
            const auto least = V::load(low + v);
            const auto above = least +
                               2 * (bound.error * V::load(panel.norm + v) + bound.norm * V::load(panel.lost + v) +
                                    error_ * V::load(panel.half_norm + v)) +
                               4 * underflow_;
            const auto bounds = (least > lowest) & (above < most);
            V::store(sound + v, bounds ? least : V::fill(lowest));
            V::store(high + v, bounds ? above : V::fill(most));
        }
        if (task_.H == 1) {
            for (std::uint32_t lanes = mask; lanes; lanes &= lanes - 1)
                thresholds_[row] = std::min(thresholds_[row], high[__builtin_ctz(lanes)]);
            if (!task_.lows)
                mask &= not_above(low, thresholds_[row]);
        }
        const std::size_t first = static_cast<std::size_t>(row) * capacity_;
        T *lows = lows_ + first, *highs = highs_ + first;
        std::int32_t *ids = ids_ + first;
        int n = counts_[row];
        for (; mask; mask &= mask - 1, ++n) {
            const int lane = __builtin_ctz(mask);
            lows[n] = sound[lane];
            highs[n] = high[lane];
            ids[n] = p * L + lane;
        }
        counts_[row] = n;
        if (n >= full_[row])
            compact(row);
    }

    // Writes what row n keeps, whose place in the screen is `row`; false where more than `most` had to be measured.
    bool close(int row, std::size_t n, int most) {
        if (!task_.lows && counts_[row] > task_.H + FEW_TO_MEASURE)
            compact(row);
        const int count = counts_[row];
        if (count < (task_.improve ? 0 : task_.H))
            return false;
        const std::size_t first = static_cast<std::size_t>(row) * capacity_;
        if (task_.lows)
            return bound(row, lows_ + first, ids_ + first, count, lowest_bar(row), most, n);
        if (count > most)
            return false;
        measure(ids_ + first, count, n);
        return true;
    }

    // The same where all of centres [begin, end) are measured.
    void close_by_all(int row, std::size_t n, int begin, int end) {
        const int count = end - begin;
        Scratch<std::int32_t> all(count);
        std::iota(all.get(), all + count, begin);
        if (!task_.lows) {
            measure(all, count, n);
            return;
        }
        Scratch<T> nothing(count);
        std::fill_n(nothing.get(), count, std::numeric_limits<T>::lowest());
        bound(row, nothing, all, count, std::numeric_limits<T>::max(), count, n);
    }

  private:
    T farthest_of_hint(std::size_t n) const {
        Scratch<T> squares(task_.H + simd<T>::width);
        distances_to(task_.X[n], task_.centers, task_.hint + n * task_.H, task_.H, squares.get());
        return *std::max_element(squares.get(), squares + task_.H);
    }

    // What the lower bound of a nearest one cannot exceed.
    T lowest_bar(int row) const {
        const T *highs = highs_ + static_cast<std::size_t>(row) * capacity_;
        return std::min(thresholds_[row], *std::min_element(highs, highs + counts_[row]));
    }

    // Drops what cannot be among the H nearest; a row with too many ties to hold has none from then on.
    void compact(int row) {
        const std::size_t first = static_cast<std::size_t>(row) * capacity_;
        T *lows = lows_ + first, *highs = highs_ + first;
        std::int32_t *ids = ids_ + first;
        const int n = counts_[row];
        if (n < task_.H)
            return;
        if (task_.H > 1) // of one, it is known
            thresholds_[row] = std::min(thresholds_[row], above_smallest(highs, n, task_.H));
        const T threshold = thresholds_[row];
        int left = 0;
        for (int i = 0; i < n; ++i) {
            lows[left] = lows[i];
            highs[left] = highs[i];
            ids[left] = ids[i];
            left += !(lows[i] > threshold);
        }
        if (left + TILE_LANES<T> > capacity_) {
            thresholds_[row] = -std::numeric_limits<T>::max();
            left = -1;
        }
        counts_[row] = left;
        full_[row] = task_.H > 1 ? std::min(left + task_.H / 2 + 16, capacity_) : capacity_;
    }

    // The nearest of these candidates, all of which are measured.
    void measure(const std::int32_t *ids, int count, std::size_t n) {
        const int H = task_.H;
        if (!count)
            return;
        Scratch<T> squares(count + simd<T>::width);
        Scratch<Candidate<T>> list(count);
        distances_to(task_.X[n], task_.centers, ids, count, squares.get());
        for (int i = 0; i < count; ++i)
            list[i] = {comparable<T>(squares[i]), ids[i]};
        if (H == 1)
            std::swap(list[0], *std::min_element(list.get(), list + count, nearer));
        else
            sort_nearest(list.get(), H, count);
        if (task_.improve && !nearer(list[0], Candidate<T>{task_.distances[n], task_.kept[n]}))
            return;
        for (int h = 0; h < H; ++h) {
            task_.kept[n * H + h] = list[h].id;
            task_.distances[n * H + h] = list[h].square;
        }
    }

    // The nearest of the candidates whose lower bound is within the bar, which are measured; of all of them the near
    // ones, with lower bounds. False where more than `most` would have to be measured.
    bool bound(int row, const T *lows, const std::int32_t *ids, int count, T bar, int most, std::size_t n) {
        const int H = task_.H;
        Scratch<Candidate<T>> list(count);
        int n_close = 0, n_far = count;
        for (int i = 0; i < count; ++i)
            if (lows[i] <= bar)
                list[n_close++] = {T(0), ids[i]};
            else
                list[--n_far] = {least_square(row, lows[i]), ids[i]};
        if (n_close > most)
            return false;
        for (int i = 0; i < n_close; ++i)
            list[i].square = comparable(squared_distance(task_.X[n], task_.centers[list[i].id], task_.X.D));
        std::swap(list[0], *std::min_element(list.get(), list + n_close, nearer));
        std::partial_sort(list + 1, list + std::min(H + 1, count), list + count, nearer);
        const Rounding<T> rounding(task_.X.D);
        const bool all = static_cast<std::size_t>(count) == task_.centers.n;
        const T beyond = all ? std::numeric_limits<T>::infinity() : rounding.low(least_square(row, thresholds_[row]));
        T *out = task_.lows + n * H;
        for (int h = 0; h < H; ++h) {
            task_.kept[n * H + h] = list[h].id;
            out[h] = h + 1 < count ? rounding.low(list[h + 1].square) : beyond;
        }
        out[H - 1] = std::min(out[H - 1], beyond);
        task_.distances[n] = list[0].square;
        return true;
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
    Scratch<T> lows_, highs_; // of the scores of each row's candidates
    Scratch<std::int32_t> ids_;
    Scratch<int> counts_, full_; // candidates, and how many of them are too many
    Scratch<T> thresholds_;
    Scratch<RowBound<T>> bounds_;
    Scratch<double> squares_;
};

template <class T> inline double row_square(const T *x, const T *shift, int D) {
    double part[8] = {}; // sums that do not wait for each other
    int k = 0;
    for (; k + 8 <= D; k += 8)
        for (int i = 0; i < 8; ++i) {
            const double v = x[k + i] - shift[k + i];
            part[i] += v * v;
        }
    for (; k < D; ++k) {
        const double v = x[k] - shift[k];
        part[k % 8] += v * v;
    }
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

// Offers to the screen, row by row, what may be among the nearest of panel p.
template <class T>
inline void offer_tile(Screen<T> &screen, int first, int rows, const T (*low)[TILE_LANES<T>], const Panel<T> &panel,
                       int p, std::uint32_t lanes) {
    for (int i = 0; i < rows; ++i) {
        const std::uint32_t mask = not_above(low[i], screen.threshold(first + i)) & lanes;
        if (__builtin_expect(mask != 0, 0))
            screen.offer(first + i, mask, low[i], panel, p);
    }
}

// Candidates of a row that are measured without looking for narrower bounds first.
template <class T> inline int most_measured(const NearestTask<T> &task) {
    return std::max(task.H + 4, task.H + static_cast<int>(task.centers.n) / 8);
}

} // namespace cprime::CPRIME_ISA
