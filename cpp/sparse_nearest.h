// Search for the nearest centers of sparse rows: each entry of a row is multiplied by a packed column of as many
// centers as fit into registers, and added to their scores. Bounds of the rounding error decide to which centers
// distances have to be computed.
#pragma once
#include <algorithm>

#include "signals.h"
#include "sparse_rows.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

constexpr int SPARSE_VECTORS = 8;
template <class T> constexpr int SPARSE_LANES = SPARSE_VECTORS * simd<T>::width;

// Pack the columns of `lanes` rows from `first` on, (D, lanes).
template <class T> inline void pack_sparse(const Rows<T> &centers, std::size_t first, T *out) {
    constexpr int W = simd<T>::width, L = SPARSE_LANES<T>;
    typename simd<T>::vec part[W];
    for (int v = 0; v < SPARSE_VECTORS; ++v) {
        const std::size_t begin = first + v * W;
        for (int k = 0; k < centers.D; k += W) {
            const int m = std::min(W, centers.D - k);
            for (int i = 0; i < W; ++i) {
                if (begin + i >= centers.n)
                    part[i] = typename simd<T>::vec{};
                else
                    part[i] =
                        m == W ? simd<T>::load(centers[begin + i] + k) : simd<T>::load_first(centers[begin + i] + k, m);
            }
            simd<T>::transpose(part);
            for (int j = 0; j < m; ++j)
                simd<T>::store(out + static_cast<std::size_t>(k + j) * L + v * W, part[j]);
        }
    }
}

template <class T> inline void pack_sparse_columns(const Rows<T> &candidates, T *out) {
    constexpr int L = SPARSE_LANES<T>;
    for (std::size_t first = 0; first < candidates.n; first += L, out += static_cast<std::size_t>(L) * candidates.D)
        pack_sparse(candidates, first, out);
}

// Pack one panel of centers whose squares are known.
template <class T> inline void pack_sparse_panel(const Rows<T> &centers, const SparsePanels<T> &panels, int panel) {
    constexpr int L = SPARSE_LANES<T>;
    constexpr T ulp = std::numeric_limits<T>::epsilon();
    const std::size_t first = static_cast<std::size_t>(panel) * L;
    pack_sparse(centers, first, panels.columns + first * centers.D);
    for (std::size_t c = first; c < first + L; ++c) {
        const double square = c < centers.n ? panels.square[c].high : 0;
        panels.half_norm[c] = c < centers.n ? static_cast<T>(square / 2) : std::numeric_limits<T>::max() / 4;
        panels.norm[c] = static_cast<T>(std::sqrt(square)) * (1 + 4 * ulp);
    }
}

// Bounds of the exact scores of a row with the centers of a panel.
template <class T> struct SparseBounds {
    using V = simd<T>;
    typename V::vec low[SPARSE_VECTORS], high[SPARSE_VECTORS];

    SparseBounds(const SparseNearestTask<T> &task, const SparseRow<T> &x, const SparseRowBound<T> &bound, int panel) {
        constexpr int W = V::width, L = SPARSE_LANES<T>;
        const SparsePanels<T> &panels = task.panels;
        const std::size_t first = static_cast<std::size_t>(panel) * L;
        typename V::vec score[SPARSE_VECTORS];
        sparse_scores<SPARSE_VECTORS>(x.values, x.columns, x.length, panels.columns + first * task.X.D,
                                      panels.half_norm + first, score);
        const auto share = V::fill(bound.share), along = V::fill(bound.share * bound.norm),
                   least = V::fill(bound.least);
        for (int v = 0; v < SPARSE_VECTORS; ++v) {
            const auto error = along * V::load(panels.norm + first + v * W) +
                               (share * V::load(panels.half_norm + first + v * W) + least);
            low[v] = score[v] - error;
            high[v] = score[v] + error;
        }
    }
};

// Return a score such that components with a greater score are farther than the given squared distance.
template <class T> inline T bar_of(T squared, const SparseRowBound<T> &bound) {
    constexpr T ulp = std::numeric_limits<T>::epsilon();
    return ((squared - bound.square) / 2 + bound.least) + ulp * squared;
}

// Find the H nearest centers of one row, however many distances have to be computed.
template <class T> inline void search_sparse_row(const SparseNearestTask<T> &task, std::size_t n) {
    using V = simd<T>;
    constexpr int W = V::width, L = SPARSE_LANES<T>;
    const std::size_t C = task.centers.n;
    const SparseRow<T> x = row_of(task.X, n);
    const SparseRowBound<T> bound(x);
    const std::size_t padded = static_cast<std::size_t>(task.panels.n_panels) * L;
    Scratch<T> low(padded), high(padded);
    for (int p = 0; p < task.panels.n_panels; ++p) {
        const SparseBounds<T> bounds(task, x, bound, p);
        for (int v = 0; v < SPARSE_VECTORS; ++v) {
            V::store(low + static_cast<std::size_t>(p) * L + v * W, bounds.low[v]);
            V::store(high + static_cast<std::size_t>(p) * L + v * W, bounds.high[v]);
        }
    }
    std::nth_element(high.get(), high + (task.H - 1), high + C);
    const T bar = high[task.H - 1];
    struct Measured {
        T square;
        std::int32_t id;
        bool operator<(const Measured &other) const {
            return square < other.square || (square == other.square && id < other.id);
        }
    };
    Scratch<Measured> found(C);
    std::size_t count = 0;
    for (std::size_t c = 0; c < C; ++c)
        if (!(low[c] > bar))
            found[count++] = {measured(x, task.centers[c], task.panels.square[c]), static_cast<std::int32_t>(c)};
    std::partial_sort(found.get(), found + task.H, found + count);
    for (int h = 0; h < task.H; ++h) {
        task.kept[n * task.H + h] = found[h].id;
        task.distances[n * task.H + h] = found[h].square;
    }
}

// Find the H nearest centers of rows [begin, end), ordered by (distance, id).
template <class T> inline void sparse_nearest(const SparseNearestTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    constexpr int L = SPARSE_LANES<T>;
    if (task.H > 1) {
        for (std::size_t n = begin; n < end; ++n) {
            answer_signals();
            search_sparse_row(task, n);
        }
        return;
    }
    const std::size_t n_rows = end - begin;
    Scratch<SparseScreen<T>> screens(n_rows);
    Scratch<SparseRowBound<T>> bounds(n_rows);
    for (std::size_t i = 0; i < n_rows; ++i) {
        const SparseRow<T> x = row_of(task.X, begin + i);
        bounds[i] = SparseRowBound<T>(x);
        T bar = std::numeric_limits<T>::max() / 8;
        if (task.hint) {
            const std::int32_t hint = task.hint[begin + i];
            bar = std::min(bar, bar_of(measured(x, task.centers[hint], task.panels.square[hint]), bounds[i]));
        }
        screens[i].open(bar);
    }
    for (int p = 0; p < task.panels.n_panels; ++p) {
        answer_signals();
        for (std::size_t i = 0; i < n_rows; ++i) {
            const SparseBounds<T> found(task, row_of(task.X, begin + i), bounds[i], p);
            auto least = found.low[0];
            for (int v = 1; v < SPARSE_VECTORS; ++v)
                least = V::min(least, found.low[v]);
            if (!V::mask_not_above(least, V::fill(screens[i].bar())))
                continue;
            auto highest = found.high[0];
            for (int v = 1; v < SPARSE_VECTORS; ++v)
                highest = V::min(highest, found.high[v]);
            screens[i].narrow(V::lowest(highest));
            const auto bar = V::fill(screens[i].bar());
            for (int v = 0; v < SPARSE_VECTORS; ++v)
                for (auto mask = V::mask_not_above(found.low[v], bar); mask; mask &= mask - 1) {
                    const int lane = __builtin_ctz(mask);
                    const std::size_t id = static_cast<std::size_t>(p) * L + v * V::width + lane;
                    if (id < task.centers.n)
                        screens[i].add(found.low[v][lane], static_cast<std::int32_t>(id));
                }
        }
    }
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::size_t n = begin + i;
        if (!screens[i].close() || screens[i].size() == 0) {
            search_sparse_row(task, n);
            continue;
        }
        const SparseRow<T> x = row_of(task.X, n);
        T best = std::numeric_limits<T>::infinity();
        std::int32_t winner = screens[i][0];
        for (int j = 0; j < screens[i].size(); ++j) { // in ascending order of ids
            const std::int32_t c = screens[i][j];
            const T square = measured(x, task.centers[c], task.panels.square[c]);
            if (square < best) {
                best = square;
                winner = c;
            }
        }
        task.kept[n] = winner;
        task.distances[n] = best;
    }
}

} // namespace cprime::CPRIME_ISA
