// Register tile: the only register-blocked loop of the library, which computes products of dense matrices. It adds up
// products, or squared differences, of TILE_ROWS packed rows and TILE_LANES packed columns; all sums are in registers.
#pragma once
#include "simd.h"

namespace cprime::CPRIME_ISA {

template <class T> constexpr int TILE_LANES = TILE_VECTORS * simd<T>::width;

// Return a mask with a bit for each of the first n lanes.
inline std::uint32_t first_lanes(int n) { return n < 32 ? (std::uint32_t(1) << n) - 1 : ~std::uint32_t(0); }

// Call put(k, column) for every column k of some rows minus a shift, which may be null: one row per vector lane.
// Missing rows have null addresses and count as zeros.
template <class T, class Put> inline void each_column(const T *const *rows, int D, const T *shift, Put put) {
    using V = simd<T>;
    constexpr int W = V::width;
    for (int k = 0; k < D; k += W) {
        const int m = D - k < W ? D - k : W;
        const auto read = [&](const T *p) { return m == W ? V::load(p + k) : V::load_first(p + k, m); };
        const auto origin = shift ? read(shift) : typename V::vec{};
        typename V::vec part[W];
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i)
            part[i] = rows[i] ? read(rows[i]) - origin : typename V::vec{};
        V::transpose(part);
        for (int j = 0; j < m; ++j)
            put(k + j, part[j]);
    }
}

// Interleave rows of a matrix: out[k * width + i] = rows[i][k] - shift[k], with zeros for missing rows; shift may be
// null. row(i) returns the address of the i-th row. Up to PACK_SLACK numbers after the end are overwritten.
template <class T> constexpr int PACK_SLACK = simd<T>::width;

template <int width, class T, class Row> inline void pack(Row row, int n_rows, int D, const T *shift, T *out) {
    using V = simd<T>;
    constexpr int W = V::width;
    for (int v = (width - 1) / W * W; v >= 0;
         v -= W) { // descending: earlier blocks overwrite what a store writes beyond its row
        const T *rows[W];
        for (int i = 0; i < W; ++i)
            rows[i] = v + i < n_rows ? row(v + i) : nullptr;
        each_column(rows, D, shift, [&](int k, typename V::vec column) {
            V::store(out + static_cast<std::size_t>(k) * width + v, column);
        });
    }
}

enum class Form { product, difference };

// Compute out[r][lane] = start[lane] + sum_k f(a[k][r], b[k][lane]), where f is the product or the squared difference,
// for the first n_rows rows of the tile. a_step and b_step are the strides from one k to the next.
template <class T, Form form, int n_rows = TILE_ROWS>
inline void tile(const T *a, const T *b, int K, const T *start, T (*out)[TILE_LANES<T>], std::size_t a_step = TILE_ROWS,
                 std::size_t b_step = TILE_LANES<T>) {
    using V = simd<T>;
    using vec = typename V::vec;
    constexpr int W = V::width;
    vec acc[n_rows][TILE_VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < n_rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < TILE_VECTORS; ++v)
            acc[r][v] = start ? V::load(start + v * W) : vec{};
    for (int k = 0; k < K; ++k) {
        vec column[TILE_VECTORS];
#pragma GCC unroll 2
        for (int v = 0; v < TILE_VECTORS; ++v)
            column[v] = V::load(b + v * W);
#pragma GCC unroll 16
        for (int r = 0; r < n_rows; ++r) {
            const vec x = V::fill(a[r]);
#pragma GCC unroll 2
            for (int v = 0; v < TILE_VECTORS; ++v) {
                if constexpr (form == Form::product) {
                    acc[r][v] += x * column[v];
                } else {
                    const vec d = x - column[v];
                    acc[r][v] += d * d;
                }
            }
        }
        a += a_step;
        b += b_step;
    }
#pragma GCC unroll 16
    for (int r = 0; r < n_rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < TILE_VECTORS; ++v)
            V::store(&out[r][v * W], acc[r][v]);
}

} // namespace cprime::CPRIME_ISA
