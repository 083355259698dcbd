// Nearest centers and sums of sparse rows, with the interface of `nearest_call.h` and `component_sums.h`.
#pragma once
#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

#include <nanobind/stl/tuple.h>

#include "component_sums.h"
#include "nearest_call.h"
#include "sparse.h"
#include "thread_pool.h"

namespace cprime {

// Sparse rows: values, columns, where rows begin, and the number of columns.
template <class T> using Csr = std::tuple<Vector<T>, Vector<std::int32_t>, Vector<std::int64_t>, std::size_t>;

// Return the rows as they are given; only the lengths of the arrays are checked.
template <class T> SparseRows<T> points(const Csr<T> &X) {
    const auto &[values, columns, begin, D] = X;
    require(begin.shape(0) >= 1 && values.shape(0) == columns.shape(0), "values, columns, begin");
    require(D <= MOST_COLUMNS, "more than 2^24 columns");
    return {values.data(), columns.data(), begin.data(), begin.shape(0) - 1, static_cast<int>(D)};
}

// Throw if a row is outside the arrays, or a column outside X. Dense rows have no indices that could be wrong.
template <class T> void check(const Csr<T> &rows, int n_threads) {
    const SparseRows<T> X = points(rows);
    const std::size_t n_entries = std::get<0>(rows).shape(0);
    require(X.begin[0] >= 0 && static_cast<std::size_t>(X.begin[X.n]) <= n_entries, "begin: outside the entries");
    for (std::size_t i = 0; i < X.n; ++i)
        require(X.begin[i] <= X.begin[i + 1], "begin: it falls");
    constexpr std::size_t STEP = std::size_t(1) << 20;
    const std::size_t first = X.begin[0], last = X.begin[X.n];
    parallel_for((last - first + STEP - 1) / STEP, n_threads, [&](std::size_t task) {
        std::uint32_t most = 0;
        for (std::size_t k = first + task * STEP; k < std::min(last, first + (task + 1) * STEP); ++k)
            most = std::max(most, static_cast<std::uint32_t>(X.columns[k]));
        require(most < static_cast<std::uint32_t>(X.D), "columns: outside X");
    });
}
template <class T> void check(const AnyRows<T> &, int) {}

template <class T> std::vector<Twofold> squares_of(const Rows<T> &m, int n_threads) {
    std::vector<Twofold> square(m.n);
    constexpr std::size_t STEP = 64;
    parallel_for((m.n + STEP - 1) / STEP, n_threads, [&](std::size_t i) {
        kernels<T>().sparse->squares(m, square.data(), i * STEP, std::min(m.n, (i + 1) * STEP));
    });
    return square;
}

// All centers, packed for sparse rows.
template <class T> class SparsePacked {
  public:
    SparsePacked(const Rows<T> &m, const std::vector<Twofold> &square, int n_threads) {
        const SparseKernels<T> &kernel = *kernels<T>().sparse;
        const std::size_t n_panels = (m.n + kernel.lanes - 1) / kernel.lanes, n_padded = n_panels * kernel.lanes;
        columns_.reset(new T[n_padded * m.D]);
        half_norm_.resize(n_padded);
        norm_.resize(n_padded);
        panels_ = {columns_.get(), half_norm_.data(), norm_.data(), square.data(), static_cast<int>(n_panels)};
        parallel_for(n_panels, n_threads, [&](std::size_t p) { kernel.pack(m, panels_, static_cast<int>(p)); });
    }
    SparsePacked(const SparsePacked &) = delete;
    SparsePacked &operator=(const SparsePacked &) = delete;
    const SparsePanels<T> &panels() const { return panels_; }

  private:
    std::unique_ptr<T[]> columns_;
    std::vector<T> half_norm_, norm_;
    SparsePanels<T> panels_;
};

template <class T>
void nearest_of(const SparseRows<T> &x, const Rows<T> &m, const std::int32_t *hint, int H, std::int32_t *kept,
                T *distances, int n_threads) {
    const std::vector<Twofold> square = squares_of(m, n_threads);
    const SparsePacked<T> packed(m, square, n_threads);
    const SparseNearestTask<T> task{x, m, packed.panels(), hint, H, kept, distances};
    const std::size_t step = std::clamp<std::size_t>(x.n / 32, 16, 1024);
    parallel_for((x.n + step - 1) / step, n_threads,
                 [&](std::size_t i) { kernels<T>().sparse->nearest(task, i * step, std::min(x.n, (i + 1) * step)); });
}

template <class T>
void accumulate_of(const SparseRows<T> &x, const std::int32_t *kept, std::size_t n, int H, std::size_t C,
                   const double *q, const double *weight, const std::int64_t *subset, bool onto, double *counts,
                   double *sums, int n_threads) {
    const std::size_t D = x.D;
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> first =
        group_shares(kept, n, H, C, q, weight, subset, LEAST_SHARE<T>, n_threads, entries);
    const SparseAccumulateTask<T> task{{{}, subset, entries.data(), q, weight, H, entries.size()}, x};
    std::fill_n(counts, C, 0.0);
    if (!onto)
        parallel_for(C, n_threads, [&](std::size_t c) { std::fill_n(sums + c * D, D, 0.0); });
    sum_segments(segments(first, SUMMED), {counts, sums, nullptr, D, 0}, 1, n_threads,
                 [&](const Segment &segment, Part, const Sums &to) {
                     kernels<T>().sparse->accumulate(task, segment.begin, segment.end, to.count, to.first);
                 });
}

template <class T>
void assign_with_second(const SparseRows<T> &x, const double *weights, const Rows<T> &m, std::int32_t *labels, T *least,
                        T *second, double *counts, double *sums, int n_threads) {
    std::vector<std::int32_t> kept(2 * x.n);
    std::vector<T> distances(2 * x.n);
    nearest_of(x, m, nullptr, 2, kept.data(), distances.data(), n_threads);
    for (std::size_t n = 0; n < x.n; ++n) {
        labels[n] = kept[2 * n];
        least[n] = distances[2 * n];
        second[n] = distances[2 * n + 1];
    }
    accumulate_of(x, labels, x.n, 1, m.n, static_cast<const double *>(nullptr), weights, nullptr, false, counts, sums,
                  n_threads);
}

} // namespace cprime
