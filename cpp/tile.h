// The one register-blocked loop of the library: TILE_ROWS rows against TILE_LANES columns, both packed.
#pragma once
#include "simd.h"

namespace cprime::CPRIME_ISA {

template <class T> constexpr int TILE_LANES = TILE_VECTORS * simd<T>::width;

// Rows of a matrix, interleaved: out[k * width + i] = rows[i][k] - shift[k] (zeros for missing rows).
// `row(i)` gives the i-th row's address.
template <class T, class Row> inline void pack(Row row, int n_rows, int width, int D, const T *shift, T *out) {
    for (int i = 0; i < width; ++i) {
        if (i >= n_rows) {
            for (int k = 0; k < D; ++k)
                out[static_cast<std::size_t>(k) * width + i] = T(0);
            continue;
        }
        const T *x = row(i);
        if (shift)
            for (int k = 0; k < D; ++k)
                out[static_cast<std::size_t>(k) * width + i] = x[k] - shift[k];
        else
            for (int k = 0; k < D; ++k)
                out[static_cast<std::size_t>(k) * width + i] = x[k];
    }
}

enum class Form { product, difference };

// out[r][lane] = start[lane] + sum_k f(a[k][r], b[k][lane]); f is the product or the squared difference.
template <class T, Form form>
inline void tile(const T *a, const T *b, int K, const T *start, T (*out)[TILE_LANES<T>]) {
    using V = simd<T>;
    using vec = typename V::vec;
    constexpr int W = V::width;
    vec acc[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < TILE_ROWS; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < TILE_VECTORS; ++v)
            acc[r][v] = start ? V::load(start + v * W) : vec{};
    for (int k = 0; k < K; ++k) {
        vec column[TILE_VECTORS];
#pragma GCC unroll 2
        for (int v = 0; v < TILE_VECTORS; ++v)
            column[v] = V::load(b + v * W);
#pragma GCC unroll 16
        for (int r = 0; r < TILE_ROWS; ++r) {
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
        a += TILE_ROWS;
        b += TILE_LANES<T>;
    }
#pragma GCC unroll 16
    for (int r = 0; r < TILE_ROWS; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < TILE_VECTORS; ++v)
            V::store(&out[r][v * W], acc[r][v]);
}

} // namespace cprime::CPRIME_ISA
