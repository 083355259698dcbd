// Squared distances of every row to a few candidates, from differences x - m. Each vector lane is a row, and the
// coordinates of candidates are broadcast to all lanes.
#pragma once
#include <algorithm>
#include <utility>

#include "kernels.h"
#include "points.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

template <class T> inline void pack_tiles(const Rows<T> &rows, T *out) {
    for (std::size_t first = 0; first < rows.n; first += TILE_ROWS, out += static_cast<std::size_t>(rows.D) * TILE_ROWS)
        pack<TILE_ROWS>([&](int i) { return rows[first + i]; },
                        static_cast<int>(std::min<std::size_t>(TILE_ROWS, rows.n - first)), rows.D,
                        static_cast<const T *>(nullptr), out);
}

// Compute the squared distances of x to n of the centers. Up to one vector is written beyond the end of `out`.
template <class T>
inline void distances_to(const T *x, const Rows<T> &centers, const std::int32_t *ids, int n, T *out) {
    using V = simd<T>;
    for (int i = 0; i < n; i += V::width)
        V::store(out + i, squared_distances<T>([&](int j) { return std::pair(x, centers[ids[i + j]]); },
                                               std::min(V::width, n - i), centers.D));
}

// Compute the squared distance of every row to the center of its label.
template <class T>
inline void own_distances(const Points<T> &X, const Rows<T> &centers, const std::int32_t *labels, T *out,
                          std::size_t begin, std::size_t end) {
    constexpr std::size_t W = simd<T>::width, AHEAD = 4;
    const Wide<T> wide(X, W);
    for (std::size_t first = begin; first < end; first += W) {
        const int n = static_cast<int>(std::min(W, end - first));
        const Rows<T> x = rows_of(X, first, first + n, wide);
        const auto pair = [&](int i) {
            const std::size_t row = first + i;
            if (row + AHEAD < end) // prefetch, because centers are scattered in memory
                __builtin_prefetch(centers[labels[row + AHEAD]]);
            return std::pair(x[i], centers[labels[row]]);
        };
        const auto squares = squared_distances<T>(pair, n, X.D);
        for (int i = 0; i < n; ++i)
            out[first + i] = comparable<T>(squares[i]);
    }
}

template <class T>
inline void distances(const Points<T> &X, const Rows<T> &candidates, const T *packed_candidates, const T *current,
                      T *out, std::size_t begin, std::size_t end) {
    constexpr int L = TILE_LANES<T>;
    const int D = X.D;
    const int n_candidates = static_cast<int>(candidates.n);
    const std::size_t tile_size = static_cast<std::size_t>(D) * TILE_ROWS;
    Scratch<T> columns(static_cast<std::size_t>(D) * L);
    const Wide<T> wide(X, L);
    alignas(64) T square[TILE_ROWS][L];
    for (std::size_t first = begin; first < end; first += L) {
        const int n = static_cast<int>(std::min<std::size_t>(L, end - first));
        const Rows<T> x = rows_of(X, first, first + n, wide);
        pack<L>([&](int i) { return x[i]; }, n, D, static_cast<const T *>(nullptr), columns.get());
        for (int c = 0; c < n_candidates; c += TILE_ROWS) {
            const T *packed = packed_candidates + tile_size * (c / TILE_ROWS);
            const int n_rows = std::min(TILE_ROWS, n_candidates - c);
            if (n_rows <= TILE_ROWS / 2) // few candidates, as mostly in k-means++
                tile<T, Form::difference, TILE_ROWS / 2>(packed, columns, D, nullptr, square);
            else
                tile<T, Form::difference>(packed, columns, D, nullptr, square);
            for (int r = 0; r < n_rows; ++r) {
                T *row = out + static_cast<std::size_t>(c + r) * X.n + first;
                for (int i = 0; i < n; ++i)
                    row[i] = current ? std::min(current[first + i], square[r][i]) : square[r][i];
            }
        }
    }
}

// Return the sum of w min(squares, closest) over [begin, end) in double precision; weights may be null, for ones.
template <class T>
inline double potential(const T *squares, const T *closest, const double *weights, std::size_t begin, std::size_t end) {
    using V = simd<double>;
    constexpr std::size_t W = V::width;
    typename V::vec sum{};
    std::size_t n = begin;
    for (; n + W <= end; n += W) {
        const auto least = V::min(load_wide(squares + n), load_wide(closest + n));
        sum += weights ? V::load(weights + n) * least : least;
    }
    double total = V::sum(sum);
    for (; n < end; ++n)
        total += (weights ? weights[n] : 1.0) * static_cast<double>(std::min(squares[n], closest[n]));
    return total;
}

} // namespace cprime::CPRIME_ISA
