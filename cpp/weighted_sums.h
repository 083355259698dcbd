// Moments of the rows of one component about its mean. So nothing cancels: those of a run of rows are made in registers
// and in the precision of the rows, and add up in double precision.
#pragma once
#include <algorithm>

#include "kernels.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

constexpr int RUN = 64; // most rows of a run

inline void add_vector(double *to, simd<double>::vec sum) { simd<double>::store(to, simd<double>::load(to) + sum); }
inline void add_vector(double *to, simd<float>::vec sum) {
    constexpr int W = simd<double>::width;
    alignas(64) float numbers[2 * W];
    simd<float>::store(numbers, sum);
    add_vector(to, load_wide(numbers));
    add_vector(to + W, load_wide(numbers + W));
}

// A few rows of D numbers, at least a vector, and their weights.
template <class T> struct Run {
    const T *const *rows;
    const T *weights;
    int n, D;
};

// N vectors of sums, of coordinate k on; the last of them ends at D and leaves out what the one before it has.
template <int N, class T> inline void add_vectors(const Run<T> &run, const T *m, int k, double *first, double *second) {
    using V = simd<T>;
    constexpr int W = V::width;
    const int last = std::min(k + (N - 1) * W, run.D - W);
    typename V::vec sum[N] = {}, square[N] = {};
    for (int i = 0; i < run.n; ++i) {
        const auto w = V::fill(run.weights[i]);
        const T *x = run.rows[i];
#pragma GCC unroll 16
        for (int v = 0; v < N; ++v) {
            const int at = v < N - 1 ? k + v * W : last;
            const auto d = V::load(x + at) - V::load(m + at);
            const auto weighted = w * d;
            sum[v] += weighted;
            square[v] += weighted * d;
        }
    }
    for (int i = 0; i < k + (N - 1) * W - last; ++i)
        sum[N - 1][i] = square[N - 1][i] = 0;
#pragma GCC unroll 16
    for (int v = 0; v < N; ++v) {
        const int at = v < N - 1 ? k + v * W : last;
        add_vector(first + at, sum[v]);
        add_vector(second + at, square[v]);
    }
}

template <int N, class T>
inline void add_vectors(int n, const Run<T> &run, const T *m, int k, double *first, double *second) {
    if constexpr (N > 1)
        if (n < N)
            return add_vectors<N - 1>(n, run, m, k, first, second);
    add_vectors<N>(run, m, k, first, second);
}

// first += w (x - m) and second += w (x - m)^2, (D,) each, over n <= RUN rows.
template <class T>
inline void add_run(const T *const *rows, const T *weights, int n, int D, const T *m, double *first, double *second) {
    constexpr int W = simd<T>::width, MOST = VECTOR_BYTES == 64 ? 8 : 4; // registers
    if (D < W) {                                                         // as vectors with zeros behind the numbers
        alignas(64) T wide[RUN + 1][W] = {};
        const T *places[RUN];
        for (int i = 0; i < n; ++i) {
            std::copy_n(rows[i], D, wide[i]);
            places[i] = wide[i];
        }
        std::copy_n(m, D, wide[RUN]);
        double sums[2][W] = {};
        add_vectors<1>(Run<T>{places, weights, n, W}, wide[RUN], 0, sums[0], sums[1]);
        for (int k = 0; k < D; ++k) {
            first[k] += sums[0][k];
            second[k] += sums[1][k];
        }
        return;
    }
    const int n_vectors = (D + W - 1) / W, n_parts = (n_vectors + MOST - 1) / MOST;
    for (int p = 0, v = 0; p < n_parts; ++p) {
        const int some = (n_vectors + p) / n_parts;
        add_vectors<MOST>(some, Run<T>{rows, weights, n, D}, m, v * W, first, second);
        v += some;
    }
}

// Over entries e in [begin, end), with weight(e) w and row(e) the address of x:
//     count += w    first += w (x - m)    second += w (x - m)^2, (D,) each
template <class T, class Weight, class Row>
inline void add_rows(Weight weight, Row row, std::size_t begin, std::size_t end, const T *m, int D, double *count,
                     double *first, double *second) {
    constexpr std::size_t NEAR = 12 << 10; // bytes of a run, which is asked for while the one before it is summed
    const int length = std::clamp<int>(static_cast<int>(NEAR / (D * sizeof(T))), 4, RUN);
    const T *rows[2][RUN];
    T weights[2][RUN];
    double total = 0;
    std::size_t e = begin;
    const auto read = [&](int turn) {
        int n = 0;
        for (; e < end && n < length; ++e) {
            const double w = weight(e);
            if (w == 0)
                continue;
            const T *x = row(e);
            for (std::size_t byte = 0; byte < D * sizeof(T); byte += 64)
                __builtin_prefetch(reinterpret_cast<const char *>(x) + byte);
            rows[turn][n] = x;
            weights[turn][n++] = static_cast<T>(w);
            total += w;
        }
        return n;
    };
    int turn = 0;
    for (int n = read(turn), after; n; n = after, turn ^= 1) {
        after = read(turn ^ 1);
        add_run(rows[turn], weights[turn], n, D, m, first, second);
    }
    *count += total;
}

} // namespace cprime::CPRIME_ISA
