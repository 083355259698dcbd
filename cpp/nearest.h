// The H nearest of C centres, by a screen and a proof.
//
// Screen: the products of a tile give score(n, c) = |m_c|^2/2 - x_n m_c, both relative to a common shift, so the score
// is half the squared distance less a constant of the row. Its rounding error is at most gamma (|x_n||m_c| +
// |m_c|^2/2); that bound is one more dimension of the product, so a tile yields *lower* bounds of the scores, and upper
// ones where needed. Proof: a component whose lower bound exceeds the H-th smallest upper bound cannot be among the H
// nearest. The few that remain are measured from differences, which is accurate wherever the origin is. The result is
// therefore that of a search by differences over all C, ties going to the lower id.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

template <class T> inline T score_error(int D) {
    return static_cast<T>(D + 12) * std::numeric_limits<T>::epsilon() / 2 * T(1.05);
}

template <class T> inline void pack_panels(const Rows<T> &centers, Panels<T> panels, int begin, int end) {
    constexpr int L = TILE_LANES<T>;
    const int D = centers.D;
    const T error = score_error<T>(D);
    for (int p = begin; p < end; ++p) {
        const int n = std::min(L, static_cast<int>(centers.n) - p * L);
        T *columns = const_cast<T *>(panels.columns) + static_cast<std::size_t>(p) * (D + 1) * L;
        T *half_norm = const_cast<T *>(panels.half_norm) + static_cast<std::size_t>(p) * L;
        T *norm = const_cast<T *>(panels.norm) + static_cast<std::size_t>(p) * L;
        pack<L>([&](int i) { return centers[static_cast<std::size_t>(p) * L + i]; }, n, D, panels.shift, columns);
        for (int i = 0; i < L; ++i) {
            double square = 0;
            for (int k = 0; k < D; ++k) {
                T &m = columns[static_cast<std::size_t>(k) * L + i];
                square += static_cast<double>(m) * static_cast<double>(m);
                m = -m;
            }
            norm[i] = static_cast<T>(std::sqrt(square) * (1 + 1e-6));
            columns[static_cast<std::size_t>(D) * L + i] = -norm[i];
            half_norm[i] = i < n ? static_cast<T>(square / 2) * (1 - error) : std::numeric_limits<T>::infinity();
        }
    }
}

template <class T> struct Candidate {
    T low, high; // bounds of the score while screening; `low` is the squared distance afterwards
    std::int32_t id;
};

template <class T> inline bool nearer(const Candidate<T> &a, const Candidate<T> &b) {
    return a.low < b.low || (a.low == b.low && a.id < b.id);
}

inline int candidate_capacity(int H) { return 2 * H + 96; }

template <class T> inline std::size_t nearest_rows(int H, int D) {
    const std::size_t bytes = candidate_capacity(H) * sizeof(Candidate<T>) + D * sizeof(T);
    const std::size_t fitting = (std::size_t(1) << 19) / bytes / TILE_ROWS * TILE_ROWS;
    return std::clamp<std::size_t>(fitting, TILE_ROWS, 192 / TILE_ROWS * TILE_ROWS);
}

// The candidates of a block of rows, and the threshold that a lower bound has to pass.
template <class T> class Screen {
  public:
    Screen(const NearestTask<T> &task, std::size_t n_rows)
        : task_(task), capacity_(candidate_capacity(task.H)), error_(score_error<T>(task.X.D)),
          candidates_(n_rows * capacity_), counts_(n_rows), thresholds_(n_rows), norms_(n_rows) {}

    T threshold(int row) const { return thresholds_[row]; }

    void open(int row, const T *x, const std::int32_t *hint, double square) {
        counts_[row] = 0;
        norms_[row] = static_cast<T>(std::sqrt(square) * (1 + 1e-6));
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
        int n = counts_[row];
        for (; mask; mask &= mask - 1) {
            const int lane = __builtin_ctz(mask);
            const T high = low[lane] + 2 * error_ * (norms_[row] * norm[lane] + half_norm[lane]);
            list[n++] = {low[lane], high, panel * L + lane};
            if (task_.H == 1 && high < thresholds_[row])
                thresholds_[row] = high;
        }
        const bool first = task_.H > 1 && thresholds_[row] == std::numeric_limits<T>::max() && n > task_.H;
        counts_[row] = n;
        if (first)
            compact(row);
    }

    // Writes the row's H nearest.
    void close(int row, const T *x, std::int32_t *kept, T *distances) {
        const int H = task_.H;
        if (counts_[row] > H)
            compact(row);
        if (counts_[row] < H)
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
    Scratch<T> thresholds_, norms_;
};

template <class T> inline void nearest(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    const int n = static_cast<int>(end - begin);
    const int n_tiles = (n + TILE_ROWS - 1) / TILE_ROWS;
    const T error = score_error<T>(D);
    const std::size_t tile_size = static_cast<std::size_t>(D + 1) * TILE_ROWS;

    Screen<T> screen(task, static_cast<std::size_t>(n_tiles) * TILE_ROWS);
    Scratch<T> packed(tile_size * n_tiles + PACK_SLACK<T>);
    for (int t = 0; t < n_tiles; ++t) {
        T *a = packed + tile_size * t;
        const std::size_t first = begin + static_cast<std::size_t>(t) * TILE_ROWS;
        const int rows = std::min(TILE_ROWS, static_cast<int>(end - first));
        pack<TILE_ROWS>([&](int i) { return task.X[first + i]; }, rows, D, task.panels.shift, a);
        for (int i = 0; i < TILE_ROWS; ++i) {
            T *bound = a + static_cast<std::size_t>(D) * TILE_ROWS + i;
            *bound = 0;
            if (i >= rows)
                continue;
            double square = 0;
            for (int k = 0; k < D; ++k) {
                const double v = a[static_cast<std::size_t>(k) * TILE_ROWS + i];
                square += v * v;
            }
            *bound = error * static_cast<T>(std::sqrt(square) * (1 + 1e-6));
            const std::int32_t *hint = task.hint ? task.hint + (first + i) * task.H : nullptr;
            screen.open(t * TILE_ROWS + i, task.X[first + i], hint, square);
        }
    }

    alignas(64) T low[TILE_ROWS][L];
    for (int p = 0; p < task.panels.n_panels; ++p) {
        const T *b = task.panels.columns + static_cast<std::size_t>(p) * (D + 1) * L;
        const T *start = task.panels.half_norm + static_cast<std::size_t>(p) * L;
        for (int t = 0; t < n_tiles; ++t) {
            tile<T, Form::product>(packed + tile_size * t, b, D + 1, start, low);
            const int rows = std::min(TILE_ROWS, n - t * TILE_ROWS);
            for (int i = 0; i < rows; ++i) {
                const auto limit = V::fill(screen.threshold(t * TILE_ROWS + i));
                const std::uint32_t mask =
                    V::mask_le(V::load(&low[i][0]), limit) | V::mask_le(V::load(&low[i][V::width]), limit) << V::width;
                if (__builtin_expect(mask != 0, 0))
                    screen.offer(t * TILE_ROWS + i, mask, low[i], p);
            }
        }
    }

    for (int i = 0; i < n; ++i) {
        const std::size_t row = begin + i;
        screen.close(i, task.X[row], task.kept + row * task.H, task.distances + row * task.H);
    }
}

} // namespace cprime::CPRIME_ISA
