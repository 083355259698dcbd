// Sums over the rows of one component. The sums of a run (at most 64 rows) are computed in registers; the sums of runs
// are added in double precision. Within a run, plain sums are in double precision, and moments about the component's
// mean in the precision of the rows, because these sums do not cancel.
#pragma once
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

constexpr int RUN = 64; // greatest number of rows in a run

template <class T, bool moments> using SumNumber = std::conditional_t<moments, T, double>;

// n <= RUN rows of D numbers and their weights; the mean about which moments are taken, or null.
template <class T> struct Run {
    const T *const *rows;
    const double *weights;
    int n, D;
    const T *mean;
};

// Weights of a run. For moments they are divided by a unit so that they sum to 1 at most. A sum of weighted squares
// then does not overflow if the squares do not.
template <class T, bool moments> class RunWeights {
  public:
    RunWeights(const double *weights, int n) {
        if constexpr (moments) {
            double most = 0;
            for (int i = 0; i < n; ++i)
                most = std::max(most, std::abs(weights[i]));
            unit = most > 0 ? std::ldexp(RUN, std::ilogb(most) + 1) : 1.0;
            for (int i = 0; i < n; ++i)
                own_[i] = static_cast<T>(weights[i] / unit);
            of = own_;
        } else {
            of = weights;
        }
    }
    double unit = 1;
    const SumNumber<T, moments> *of;

  private:
    SumNumber<T, moments> own_[moments ? RUN : 1];
};

inline void add_vector(double *to, simd<double>::vec sum, double unit) {
    simd<double>::store(to, simd<double>::load(to) + sum * unit);
}
inline void add_vector(double *to, simd<float>::vec sum, double unit) {
    constexpr int W = simd<double>::width;
    alignas(64) float numbers[2 * W];
    simd<float>::store(numbers, sum);
    add_vector(to, load_wide(numbers), unit);
    add_vector(to + W, load_wide(numbers + W), unit);
}

// Add N vectors of sums, from coordinate k on. The last vector ends at D; it omits coordinates that are already in the
// vector before.
template <int N, class T, bool moments>
inline void add_vectors(const Run<T> &run, const RunWeights<T, moments> &weights, int k, double *first,
                        double *second) {
    using V = simd<SumNumber<T, moments>>;
    constexpr int W = V::width;
    const int last = std::min(k + (N - 1) * W, run.D - W);
    typename V::vec sum[N], square[moments ? N : 1];
#pragma GCC unroll 16
    for (int v = 0; v < N; ++v)
        sum[v] = square[moments ? v : 0] = typename V::vec{};
    for (int i = 0; i < run.n; ++i) {
        const auto w = V::fill(weights.of[i]);
        const T *x = run.rows[i];
#pragma GCC unroll 16
        for (int v = 0; v < N; ++v) {
            const int at = v < N - 1 ? k + v * W : last;
            if constexpr (moments) {
                const auto d = V::load(x + at) - V::load(run.mean + at);
                const auto weighted = w * d;
                sum[v] += weighted;
                square[v] += weighted * d;
            } else {
                sum[v] += w * load_wide(x + at);
            }
        }
    }
    for (int i = 0; i < k + (N - 1) * W - last; ++i) {
        sum[N - 1][i] = 0;
        if constexpr (moments)
            square[N - 1][i] = 0;
    }
#pragma GCC unroll 16
    for (int v = 0; v < N; ++v) {
        const int at = v < N - 1 ? k + v * W : last;
        add_vector(first + at, sum[v], weights.unit);
        if constexpr (moments)
            add_vector(second + at, square[v], weights.unit);
    }
}

template <int N, class T, bool moments>
inline void add_vectors(int n, const Run<T> &run, const RunWeights<T, moments> &weights, int k, double *first,
                        double *second) {
    if constexpr (N > 1)
        if (n < N)
            return add_vectors<N - 1>(n, run, weights, k, first, second);
    add_vectors<N>(run, weights, k, first, second);
}

// Add w x to `first`, or for moments w (x - m) to `first` and w (x - m)^2 to `second`, (D,) each.
template <bool moments, class T> inline void add_run(const Run<T> &run, double *first, double *second) {
    constexpr int W = simd<SumNumber<T, moments>>::width;
    constexpr int MOST = VECTOR_BYTES == 64 ? (moments ? 8 : 12) : (moments ? 4 : 8); // sums in registers
    const RunWeights<T, moments> weights(run.weights, run.n);
    if (run.D < W) { // padded with zeros to a vector
        alignas(64) T wide[RUN + 1][W] = {};
        const T *places[RUN];
        for (int i = 0; i < run.n; ++i) {
            std::copy_n(run.rows[i], run.D, wide[i]);
            places[i] = wide[i];
        }
        if constexpr (moments)
            std::copy_n(run.mean, run.D, wide[RUN]);
        double sums[2][W] = {};
        add_vectors<1>(Run<T>{places, run.weights, run.n, W, wide[RUN]}, weights, 0, sums[0], sums[1]);
        for (int k = 0; k < run.D; ++k) {
            first[k] += sums[0][k];
            if constexpr (moments)
                second[k] += sums[1][k];
        }
        return;
    }
    const int n_vectors = (run.D + W - 1) / W, n_parts = (n_vectors + MOST - 1) / MOST;
    for (int p = 0, v = 0; p < n_parts; ++p) {
        const int some = (n_vectors + p) / n_parts;
        add_vectors<MOST>(some, run, weights, v * W, first, second);
        v += some;
    }
}

// Call use(rows, weights, n) for runs of at most `length` entries e in [begin, end) whose weight(e) is not 0. row(e)
// returns the row's address; it is called, and the row prefetched, before the previous run is used. Returns the sum of
// the weights.
template <class T, class Weight, class Row, class Use>
inline double for_each_run(Weight weight, Row row, std::size_t begin, std::size_t end, int D, int length, Use use) {
    const T *rows[2][RUN];
    double weights[2][RUN];
    double total = 0;
    std::size_t e = begin;
    const auto read = [&](int turn) {
        int n = 0;
        for (; e < end && n < length; ++e) {
            const double w = weight(e);
            if (w == 0)
                continue;
            const T *x = row(e);
            prefetch(x, D);
            rows[turn][n] = x;
            weights[turn][n++] = w;
            total += w;
        }
        return n;
    };
    int turn = 0;
    for (int n = read(turn), after; n; n = after, turn ^= 1) {
        after = read(turn ^ 1);
        use(rows[turn], weights[turn], n);
    }
    return total;
}

} // namespace cprime::CPRIME_ISA
