// Screen of candidates: bounds of scores (half squared distances minus a constant of the row) decide which distances
// have to be computed. Then the nearest candidates are selected.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels.h"
#include "points.h"
#include "scores.h"
#include "smallest.h"

namespace cprime::CPRIME_ISA {

constexpr int FEW_TO_MEASURE = 3; // so many candidates beyond H are evaluated in less time than excluded
inline int candidate_capacity(int H) { return (2 * H + 96 + 15) / 16 * 16; } // whole vectors

// Return a mask with a bit for each lane of a panel whose bound does not exceed the limit.
template <class T> inline std::uint32_t not_above(const T *low, T limit) {
    using V = simd<T>;
    const auto bar = V::fill(limit);
    return V::mask_not_above(V::load(low), bar) | V::mask_not_above(V::load(low + V::width), bar) << V::width;
}

// Error bound of a row's scores: the error of the score of row x and center m is at most error |m| + norm lost + gamma
// |m|^2/2, where lost is the rounding error of the packed m; square: |x - shift|^2.
template <class T> struct RowBound {
    T error, norm, square;
};

// Return a score such that each center with a greater score has a greater computed squared distance than any center
// with the score `high`.
template <class V, class T> inline V told_apart(V high, T square, T measuring) {
    return high + measuring * (2 * high + square);
}

// The candidates of a block of rows, and for each row the threshold that a lower bound must not exceed.
template <class T> class Screen {
  public:
    Screen(const NearestTask<T> &task, std::size_t n_rows)
        : task_(task), capacity_(candidate_capacity(task.H)), error_(score_error<T>(task.X.D)),
          measuring_(measuring_error<T>(task.X.D)), underflow_(underflow<T>(task.X.D)), found_(n_rows * capacity_),
          highs_(needs_highs() ? n_rows * capacity_ : 0), thresholds_(n_rows), counts_(n_rows), full_(n_rows),
          bounds_(n_rows), squares_(task.lows ? n_rows : 0) {}

    T threshold(int row) const { return thresholds_[row]; }

    // Begin row number n at place `row`. square: |x - shift|^2; bound: what the row contributes to the error of its
    // scores.
    void open(int row, std::size_t n, double square, RowBound<T> bound) {
        counts_[row] = 0;
        bounds_[row] = bound;
        if (task_.lows)
            squares_[row] = square;
        thresholds_[row] = std::numeric_limits<T>::max();
        full_[row] = task_.H > 1 ? task_.H + 1 : capacity_;
        if (!task_.hint && !task_.improve)
            return;
        full_[row] = full_after(task_.H);
        const T farthest = task_.improve ? task_.distances[n * task_.H + task_.H - 1] : farthest_of_hint(n);
        // The error of |x - m|^2 includes that of its D terms; the error of |x - shift|^2 is that of the subtraction
        // alone.
        constexpr double ulp = std::numeric_limits<T>::epsilon();
        const double score = ((1 + 2.0 * error_) * farthest - (1 - 4 * ulp) * square) / 2;
        const double bar = score + ulp * (farthest + square) + 2.0 * underflow_;
        if (bar < std::numeric_limits<T>::max()) // if it overflows, the hint is ignored
            thresholds_[row] = static_cast<T>(bar);
    }

    // Add the lanes in `mask` of panel p to the row's candidates, with their lower bounds.
    void offer(int row, std::uint32_t mask, const T *low, const Panel<T> &panel, int p) {
        constexpr int L = TILE_LANES<T>;
        constexpr T lowest = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();
        using V = simd<T>;
        if (counts_[row] + L > capacity_)
            compact(row);
        if (counts_[row] < 0)
            return;
        const RowBound<T> bound = bounds_[row];
        const auto above = [&](auto least, auto norm, auto lost, auto half_norm) { // for numbers or vectors
            return told_apart(least + 2 * (bound.error * norm + bound.norm * lost + error_ * half_norm) +
                                  6 * underflow_,
                              bound.square, measuring_);
        };
        const auto upper = [&](int lane) {
            return above(low[lane], panel.norm[lane], panel.lost[lane], panel.half_norm[lane]);
        };
        // If this is false, the bounds of a lane are not valid.
        const auto sound = [&](int lane, T high) { return low[lane] > lowest && high < most; };
        if (task_.improve && task_.H == 1) { // some lanes may be centers of other cells
            for (std::uint32_t lanes = mask; lanes; lanes &= lanes - 1)
                if (const T high = upper(__builtin_ctz(lanes)); sound(__builtin_ctz(lanes), high))
                    thresholds_[row] = std::min(thresholds_[row], high);
        } else if (task_.H == 1) {
            auto bar = V::fill(thresholds_[row]);
            for (int v = 0; v < L; v += V::width) {
                const auto least = V::load(low + v);
                const auto high =
                    above(least, V::load(panel.norm + v), V::load(panel.lost + v), V::load(panel.half_norm + v));
                bar = (least > lowest) & (high < bar) ? high : bar;
            }
            thresholds_[row] = V::lowest(bar);
        }
        if (task_.H == 1 && !task_.lows)
            mask &= not_above(low, thresholds_[row]);
        const std::size_t first = static_cast<std::size_t>(row) * capacity_;
        const bool with_highs = needs_highs();
        Found *found = found_ + first;
        int n = counts_[row];
        for (; mask; mask &= mask - 1, ++n) {
            const int lane = __builtin_ctz(mask);
            const T high = upper(lane);
            const bool bounds = sound(lane, high);
            found[n] = {bounds ? low[lane] : lowest, p * L + lane};
            if (with_highs)
                highs_[first + n] = bounds ? high : most;
        }
        counts_[row] = n;
        if (n >= full_[row])
            compact(row);
    }

    // Prefetch row n and the last of its candidates, because their distance will probably be computed.
    void fetch_for(int row, std::size_t n) const {
        if (counts_[row] <= 0)
            return;
        fetch(task_.X, n);
        const std::int32_t id = found_[static_cast<std::size_t>(row) * capacity_ + counts_[row] - 1].id;
        prefetch(task_.centers[id], static_cast<std::size_t>(task_.X.D));
    }

    // Write the nearest centers of row n, which is at place `row`. Returns false if more than `most` distances would
    // have to be computed.
    bool close(int row, std::size_t n, int most) {
        if (!task_.lows && counts_[row] > task_.H + FEW_TO_MEASURE)
            compact(row);
        const int count = counts_[row];
        if (count < (task_.improve ? 0 : task_.H))
            return false;
        const Found *found = found_ + static_cast<std::size_t>(row) * capacity_;
        if (task_.lows)
            return bound(row, found, count, lowest_bar(row), most, n);
        if (count > most)
            return false;
        measure([&](int i) { return found[i].id; }, count, n);
        return true;
    }

    // Compute the distances of row n to all of centers [begin, end), and write the nearest.
    void close_by_all(int row, std::size_t n, int begin, int end) {
        const int count = end - begin;
        if (!task_.lows) {
            measure([&](int i) { return begin + i; }, count, n);
            return;
        }
        Scratch<Found> all(count);
        for (int i = 0; i < count; ++i)
            all[i] = {std::numeric_limits<T>::lowest(), begin + i};
        bound(row, all, count, std::numeric_limits<T>::max(), count, n);
    }

  private:
    struct Found {
        T low; // lower bound of the score
        std::int32_t id;
    };

    bool needs_highs() const { return task_.H > 1 || task_.lows; }

    // Return the number of candidates at which the list is compacted next, if `left` remain after a compaction.
    int full_after(int left) const { return task_.H > 1 ? std::min(left + task_.H / 2 + 16, capacity_) : capacity_; }

    T farthest_of_hint(std::size_t n) const {
        const std::int32_t *hint = task_.hint + n * task_.H;
        T farthest = 0;
        each_square(
            n, [&](int h) { return hint[h]; }, task_.H, [&](int, T square) { farthest = std::max(farthest, square); });
        return farthest;
    }

    // Call see(i, |x_n - m|^2) for centers id(i), i < count; if there are many, the sums of several are computed
    // together.
    template <class Id, class See> void each_square(std::size_t n, Id id, int count, See see) const {
        constexpr int W = simd<T>::width, FEW = 8;
        const T *x = task_.X[n];
        const int D = task_.X.D;
        int first = 0;
        for (; count - first > FEW; first += W) {
            const int m = std::min(W, count - first);
            const auto pair = [&](int i) { return std::pair(x, task_.centers[id(first + i)]); };
            alignas(64) T squares[W];
            simd<T>::store(squares, squared_distances<T>(pair, m, D));
            for (int i = 0; i < m; ++i)
                see(first + i, squares[i]);
        }
        for (; first < count; ++first)
            see(first, squared_distance(x, task_.centers[id(first)], D));
    }

    // Return the greatest value that the lower bound of a nearest center can have.
    T lowest_bar(int row) const {
        const T *highs = highs_ + static_cast<std::size_t>(row) * capacity_;
        return std::min(thresholds_[row], *std::min_element(highs, highs + counts_[row]));
    }

    // Remove candidates that cannot be among the H nearest. A row with too many ties for its capacity has no candidates
    // from then on.
    void compact(int row) {
        const std::size_t first = static_cast<std::size_t>(row) * capacity_;
        Found *found = found_ + first;
        T *highs = highs_ + first;
        const int n = counts_[row];
        if (n < task_.H)
            return;
        if (task_.H > 1) // for H = 1 the bar is known
            thresholds_[row] = std::min(thresholds_[row], above_smallest(highs, n, task_.H));
        const T threshold = thresholds_[row];
        const bool with_highs = needs_highs();
        int left = 0;
        for (int i = 0; i < n; ++i) {
            const bool stays = !(found[i].low > threshold);
            found[left] = found[i];
            if (with_highs)
                highs[left] = highs[i];
            left += stays;
        }
        if (left + TILE_LANES<T> > capacity_) {
            thresholds_[row] = -std::numeric_limits<T>::max();
            left = -1;
        }
        counts_[row] = left;
        full_[row] = full_after(left);
    }

    // Compute the distances of row n to centers id(i), i < count, and write the nearest.
    template <class Id> void measure(Id id, int count, std::size_t n) {
        const int H = task_.H;
        if (H == 1) {
            constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();
            Candidate<T> best{std::numeric_limits<T>::infinity(), none};
            if (task_.improve)
                best = {task_.distances[n], task_.kept[n]};
            each_square(n, id, count, [&](int i, T square) {
                const Candidate<T> other{comparable(square), id(i)};
                if (nearer(other, best))
                    best = other;
            });
            task_.kept[n] = best.id;
            task_.distances[n] = best.square;
            return;
        }
        std::int32_t *kept = task_.kept + n * H;
        T *squares = task_.distances + n * H;
        const int n_known = task_.improve ? H : 0;
        Scratch<Candidate<T>> list(n_known + count);
        for (int h = 0; h < n_known; ++h)
            list[h] = {squares[h], kept[h]};
        int m = n_known;
        each_square(n, id, count, [&](int i, T square) {
            if (std::find(kept, kept + n_known, id(i)) == kept + n_known)
                list[m++] = {comparable(square), id(i)};
        });
        sort_nearest(list.get(), H, m);
        for (int h = 0; h < H; ++h) {
            kept[h] = list[h].id;
            squares[h] = list[h].square;
        }
    }

    // Compute the distances to the candidates whose lower bound is not above the bar, and write the nearest. Write
    // further near candidates too, with lower bounds of their distances. Returns false if more than `most` distances
    // would have to be computed.
    bool bound(int row, const Found *found, int count, T bar, int most, std::size_t n) {
        const int H = task_.H;
        Scratch<Candidate<T>> list(count);
        int n_close = 0, n_far = count;
        for (int i = 0; i < count; ++i)
            if (found[i].low <= bar)
                list[n_close++] = {T(0), found[i].id};
            else
                list[--n_far] = {least_square(row, found[i].low), found[i].id};
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

    // Return the least squared distance that can be computed for a score with this lower bound: the inverse of the
    // threshold in `open`.
    T least_square(int row, T low) const {
        constexpr double ulp = std::numeric_limits<T>::epsilon(), most = std::numeric_limits<T>::max();
        const double square = squares_[row], score = low;
        const double least =
            2 * score + (1 - 6 * ulp) * square - 4 * ulp * (std::abs(score) + square) - 4.0 * underflow_;
        return static_cast<T>(std::clamp(least / (1 + 2.0 * error_ + 2 * ulp), -most, most));
    }

    const NearestTask<T> &task_;
    int capacity_;
    T error_, measuring_, underflow_;
    Scratch<Found> found_;          // the candidates of each row
    Scratch<T> highs_, thresholds_; // upper bounds of scores, if needed; threshold of each row
    Scratch<int> counts_, full_;    // number of candidates, and the one at which to compact
    Scratch<RowBound<T>> bounds_;
    Scratch<double> squares_;
};

// Return a number of type T that is no less than `square`; infinity if there is none.
template <class T> inline T rounded_up(double square) {
    using limits = std::numeric_limits<T>;
    return square < limits::max() / 2 ? static_cast<T>(square * (1 + 1e-6)) : limits::infinity();
}

template <class T> inline double row_square(const T *x, const T *shift, int D) {
    double part[8] = {}; // independent sums, for instruction-level parallelism
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

// Offer those lanes of panel p to the screen, row by row, that may be among the nearest.
template <class T>
inline void offer_tile(Screen<T> &screen, int first, int rows, const T (*low)[TILE_LANES<T>], const Panel<T> &panel,
                       int p, std::uint32_t lanes) {
    for (int i = 0; i < rows; ++i) {
        const std::uint32_t mask = not_above(low[i], screen.threshold(first + i)) & lanes;
        if (__builtin_expect(mask != 0, 0))
            screen.offer(first + i, mask, low[i], panel, p);
    }
}

// Return the function by which a scan of panels passes lower bounds to a screen.
template <class T> inline auto offered_to(Screen<T> &screen) {
    return [&screen](int first, int n_rows, const T(*low)[TILE_LANES<T>], const Panel<T> &panel, int p,
                     std::uint32_t lanes) { offer_tile(screen, first, n_rows, low, panel, p, lanes); };
}

// Write the nearest centers of the n rows with the indices `which`, which are the first rows of the screen. Returns the
// number of rows without a result, because too many distances would have to be computed without narrower bounds. Their
// indices are then the first in `which`.
template <class T> inline int close_rows(Screen<T> &screen, const NearestTask<T> &task, std::size_t *which, int n) {
    const int most = std::max(task.H + 4, task.H + static_cast<int>(task.centers.n) / 8);
    constexpr int AHEAD = 4;
    int n_left = 0;
    for (int i = 0; i < n; ++i) {
        if (task.improve && i + AHEAD < n)
            screen.fetch_for(i + AHEAD, which[i + AHEAD]);
        if (!screen.close(i, which[i], most))
            which[n_left++] = which[i];
    }
    return n_left;
}

} // namespace cprime::CPRIME_ISA
