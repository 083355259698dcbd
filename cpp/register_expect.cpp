#include <cmath>
#include <vector>

#include "arrays.h"
#include "thread_pool.h"

namespace cprime {
namespace {

// Return the number of rows in a block: as many as a fixed amount of memory permits, but at least one tile of rows.
std::size_t block_rows(std::size_t n, std::size_t row_bytes, std::size_t tile_rows) {
    constexpr std::size_t BUDGET = std::size_t(48) << 20;
    const std::size_t fitting = std::max<std::size_t>(BUDGET / row_bytes / tile_rows * tile_rows, tile_rows);
    return (std::min({n, fitting, std::size_t(32768)}) + tile_rows - 1) / tile_rows * tile_rows;
}

template <class T> struct Packed {
    std::vector<T> columns;
    int n_panels;

    Packed(const Kernels<T> &kernel, const Rows<T> &centers)
        : n_panels(static_cast<int>((centers.n + kernel.lanes - 1) / kernel.lanes)) {
        columns.resize(static_cast<std::size_t>(n_panels) * centers.D * kernel.lanes);
        kernel.pack_columns(centers, columns.data());
    }
};

// Compute an exact E-step: add to counts (C,) and sums (C, D); write least, excess and log_sum of every row (see
// ExpectTask).
template <class T>
void expect_all(AnyRows<T> X, Matrix<T> centers, double variance, std::optional<Vector<double>> sample_weight,
                OutVector<double> counts, OutTable<double> sums, OutVector<double> least, OutVector<double> excess,
                OutVector<double> log_sum, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Rows<T> m = components(centers);
    require(x.D == m.D, "X and centers differ in their columns");
    require(counts.shape(0) == m.n && sums.shape(0) == m.n && sums.shape(1) == centers.shape(1), "counts, sums");
    require(least.shape(0) == x.n && excess.shape(0) == x.n && log_sum.shape(0) == x.n, "least, excess, log_sum");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");

    const KernelCall call;
    const Packed<T> packed(kernel, m);
    const std::size_t rows_a_tile = kernel.tile_rows;
    const std::size_t dimensions = (x.D + rows_a_tile) / rows_a_tile * rows_a_tile; // D + 1, padded
    const std::size_t width = static_cast<std::size_t>(packed.n_panels) * kernel.lanes;
    const std::size_t block = block_rows(x.n, (width + dimensions) * sizeof(T), rows_a_tile);
    std::vector<T> exponentials(width * block), scaled(dimensions * block);
    ExpectTask<T> task{};
    task.columns = packed.columns.data();
    task.n_panels = packed.n_panels;
    task.C = static_cast<int>(m.n);
    task.variance = variance;
    task.exponentials = exponentials.data();
    task.scaled = scaled.data();
    task.n_padded = block;
    n_threads = worth(static_cast<double>(x.n) * m.n * x.D, n_threads);
    for (std::size_t first = 0; first < x.n; first += block) {
        task.X = x.from(first, std::min(block, x.n - first));
        task.sample_weight = sample_weight ? sample_weight->data() + first : nullptr;
        task.excess = excess.data() + first;
        task.least = least.data() + first;
        task.log_sum = log_sum.data() + first;
        const std::size_t step = block < 32 * rows_a_tile ? rows_a_tile : 16 * rows_a_tile;
        parallel_for((task.X.n + step - 1) / step, n_threads,
                     [&](std::size_t i) { kernel.expect(task, i * step, std::min(task.X.n, (i + 1) * step)); });
        parallel_for(packed.n_panels, n_threads,
                     [&](std::size_t p) { kernel.maximise(task, static_cast<int>(p), counts.data(), sums.data()); });
    }
}

template <class T>
void log_sum_exp(AnyRows<T> X, Matrix<T> centers, double variance, OutVector<double> least, OutVector<double> log_sum,
                 int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Rows<T> m = components(centers);
    require(x.D == m.D, "X and centers differ in their columns");
    require(least.shape(0) == x.n && log_sum.shape(0) == x.n, "least, log_sum");

    const KernelCall call;
    const Packed<T> packed(kernel, m);
    ExpectTask<T> task{};
    task.X = x;
    task.columns = packed.columns.data();
    task.n_panels = packed.n_panels;
    task.C = static_cast<int>(m.n);
    task.variance = variance;
    task.least = least.data();
    task.log_sum = log_sum.data();
    n_threads = worth(static_cast<double>(x.n) * m.n * x.D, n_threads);
    const std::size_t step = static_cast<std::size_t>(kernel.tile_rows) * 16;
    parallel_for((x.n + step - 1) / step, n_threads,
                 [&](std::size_t i) { kernel.log_sum_exp(task, i * step, std::min(x.n, (i + 1) * step)); });
}

} // namespace

void register_expect(nb::module_ &m) {
    define(m, "expect_all", &expect_all<float>);
    define(m, "expect_all", &expect_all<double>);
    define(m, "log_sum_exp", &log_sum_exp<float>);
    define(m, "log_sum_exp", &log_sum_exp<double>);
}

} // namespace cprime
