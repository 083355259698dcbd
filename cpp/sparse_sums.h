// Sums of sparse rows, their products with directions, and their squared distances to a few other rows.
#pragma once
#include <algorithm>

#include "signals.h"
#include "sparse_nearest.h"
#include "spread.h"
#include "two_nearest.h"

namespace cprime::CPRIME_ISA {

template <class T>
inline void sparse_accumulate(const SparseAccumulateTask<T> &task, std::size_t begin, std::size_t end, double *count,
                              double *__restrict sum) {
    double total = 0;
    for (std::size_t e = begin; e < end; ++e) {
        const std::size_t entry = task.entries[e];
        const std::size_t n = task.rows ? task.rows[entry / task.H] : entry / task.H;
        const SparseRow<T> x = row_of(task.sparse, n);
        const double weight = (task.responsibilities ? task.responsibilities[entry] : 1.0) *
                              (task.sample_weight ? task.sample_weight[n] : 1.0);
        total += weight;
        add_row(sum, x, weight, task.sparse.D);
    }
    *count += total;
}

// Return the dot product of m and v (D numbers each) in double precision.
template <class T> inline double wide_product(const T *m, const T *v, int D) {
    double sum[8] = {};
    int k = 0;
    for (; k + 8 <= D; k += 8)
        for (int j = 0; j < 8; ++j)
            sum[j] += static_cast<double>(m[k + j]) * static_cast<double>(v[k + j]);
    for (int j = 0; k + j < D; ++j)
        sum[j] += static_cast<double>(m[k + j]) * static_cast<double>(v[k + j]);
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

template <class T>
inline void sparse_along(const SparseRows<T> &X, const Rows<T> &directions, const double *offsets,
                         const std::int32_t *labels, double *out, std::size_t begin, std::size_t end) {
    for (std::size_t n = begin; n < end; ++n) {
        const SparseRow<T> x = row_of(X, n);
        const T *v = directions[labels[n]];
        double sum[4] = {};
        for (std::int64_t k = 0; k < x.length; ++k)
            sum[k % 4] += static_cast<double>(x.values[k]) * static_cast<double>(v[x.columns[k]]);
        out[n] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) - offsets[labels[n]];
    }
}

// Compute the products of a row with the first N vectors of doubles of every packed column.
template <int N, class T> inline void wide_products(const SparseRow<T> &x, const T *packed, double *out) {
    using V = simd<double>;
    V::vec sum[N] = {};
    for (std::int64_t k = 0; k < x.length; ++k) {
        const T *column = packed + static_cast<std::size_t>(x.columns[k]) * SPARSE_LANES<T>;
        const auto value = V::fill(static_cast<double>(x.values[k]));
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v)
            sum[v] += value * load_wide(column + v * V::width);
    }
    for (int v = 0; v < N; ++v)
        V::store(out + v * V::width, sum[v]);
}

// Compute squared distances from products in double precision, or by `measured` if cancellation makes them inaccurate.
template <class T>
inline void sparse_distances(const SparseRows<T> &X, const Rows<T> &candidates, const Twofold *square, const T *packed,
                             const T *current, T *out, std::size_t begin, std::size_t end) {
    constexpr int W = simd<double>::width, L = SPARSE_LANES<T>;
    constexpr double LOST = sizeof(T) == sizeof(float) ? 0x1p-16 : 0x1p-3; // least share of |x|^2 + |m|^2 accepted
    alignas(64) double product[8 * W];
    for (std::size_t first = 0; first < candidates.n; first += 8 * W) {
        answer_signals();
        const int n = static_cast<int>(std::min<std::size_t>(8 * W, candidates.n - first));
        const T *columns = packed + first / L * L * X.D + first % L;
        for (std::size_t i = begin; i < end; ++i) {
            const SparseRow<T> x = row_of(X, i);
            const double own = square_of(x);
            if (n <= W)
                wide_products<1>(x, columns, product);
            else if (n <= 2 * W)
                wide_products<2>(x, columns, product);
            else if (n <= 4 * W)
                wide_products<4>(x, columns, product);
            else
                wide_products<8>(x, columns, product);
            for (int l = 0; l < n; ++l) {
                const double both = own + square[first + l].high, squared = both - 2 * product[l];
                const std::size_t place = (first + l) * X.n + i;
                const T distance = squared > LOST * both ? static_cast<T>(squared)
                                                         : measured(x, candidates[first + l], square[first + l]);
                out[place] = current ? std::min(current[i], distance) : distance;
            }
        }
    }
}

// A sparse row expanded to all of its columns.
template <class T> class Expanded {
  public:
    explicit Expanded(int D) : row_(D) { std::fill_n(row_.get(), D, T(0)); }
    void hold(const SparseRow<T> &x) {
        for (std::int64_t k = 0; k < held_.length; ++k)
            row_[held_.columns[k]] = 0;
        held_ = x;
        Squares squares;
        for (std::int64_t k = 0; k < x.length; ++k) {
            row_[x.columns[k]] = x.values[k];
            squares.add(static_cast<int>(k % TWOFOLD_LANES), x.values[k]);
        }
        square_ = squares.total();
    }
    T to(const SparseRow<T> &x) const { return measured(x, row_.get(), square_); }

  private:
    Scratch<T> row_;
    SparseRow<T> held_{};
    Twofold square_{};
};

template <class T>
inline void sparse_spread_out(const SparseRows<T> &candidates, const double *weights, const double *uniform,
                              int n_trials, std::size_t n_chosen, std::int64_t *chosen) {
    Expanded<T> tried(candidates.D);
    const auto from = [&](std::size_t i) {
        tried.hold(row_of(candidates, i));
        return [&](std::size_t j) { return tried.to(row_of(candidates, j)); };
    };
    spread_among<T>(candidates.n, from, weights, uniform, n_trials, n_chosen, chosen);
}

template <class T> const SparseKernels<T> &sparse_table() {
    static const SparseKernels<T> kernels = {
        SPARSE_LANES<T>,         squares<T>,           pack_sparse_panel<T>,   sparse_nearest<T>, sparse_distances<T>,
        pack_sparse_columns<T>,  sparse_accumulate<T>, wide_product<T>,        sparse_along<T>,   sparse_reassign<T>,
        sparse_best_in_lists<T>, sparse_spread_out<T>, halve<T, SparseRows<T>>};
    return kernels;
}

} // namespace cprime::CPRIME_ISA
