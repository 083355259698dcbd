#include <vector>

#include "arrays.h"
#include "sparse_calls.h"
#include "thread_pool.h"

namespace cprime {
namespace {

template <class T>
void posterior(Table<T> values, double scale, OutTable<double> responsibilities, OutVector<double> log_sum,
               OutVector<double> mean, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const std::size_t n = values.shape(0);
    const int H = columns(values);
    require(responsibilities.shape(0) == n && responsibilities.shape(1) == values.shape(1), "responsibilities");
    require(log_sum.shape(0) == n && mean.shape(0) == n, "log_sum, mean");
    const KernelCall call;
    const std::size_t step = 4096;
    parallel_for((n + step - 1) / step, n_threads, [&](std::size_t i) {
        kernel.posterior(values.data(), scale, H, responsibilities.data(), log_sum.data(), mean.data(), i * step,
                         std::min(n, (i + 1) * step));
    });
}

template <class T, class X>
void accumulate(X rows, Table<std::int32_t> kept, std::optional<Table<double>> responsibilities,
                std::optional<Vector<double>> sample_weight, std::optional<Vector<std::int64_t>> subset,
                OutVector<double> counts, OutTable<double> sums, bool onto, int n_threads) {
    const auto x = points(rows);
    const int H = columns(kept);
    const std::size_t C = counts.shape(0), D = x.D;
    const std::size_t n = subset ? subset->shape(0) : x.n;
    require(kept.shape(0) == n, "kept");
    require(sums.shape(0) == C && sums.shape(1) == D, "sums");
    require(!responsibilities || (responsibilities->shape(0) == n && responsibilities->shape(1) == kept.shape(1)),
            "responsibilities");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");

    const KernelCall call;
    check(rows, n_threads);
    for (std::size_t i = 0; subset && i < n; ++i)
        require(subset->data()[i] >= 0 && static_cast<std::size_t>(subset->data()[i]) < x.n, "rows: outside X");
    const double *q = data_or_null(responsibilities), *weight = data_or_null(sample_weight);
    accumulate_of(x, kept.data(), n, H, C, q, weight, data_or_null(subset), onto, counts.data(), sums.data(),
                  n_threads);
}

template <class T> double sum(Vector<T> values, std::optional<Vector<double>> sample_weight) {
    require(!sample_weight || sample_weight->shape(0) == values.shape(0), "sample_weight");
    const KernelCall call;
    return weighted_sum(values.data(), data_or_null(sample_weight), values.shape(0));
}

template <class T>
void along(AnyRows<T> X, Matrix<T> centers, Matrix<T> directions, Vector<std::int32_t> labels, OutVector<double> out,
           int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Rows<T> m = rows(centers), v = rows(directions);
    require(m.D == x.D && v.D == x.D && v.n == m.n, "centers, directions");
    require(labels.shape(0) == x.n && out.shape(0) == x.n, "labels, out");
    const KernelCall call;
    for (std::size_t n = 0; n < x.n; ++n)
        require(labels.data()[n] >= 0 && static_cast<std::size_t>(labels.data()[n]) < m.n, "labels: not a component");
    constexpr std::size_t STEP = 4096;
    parallel_for((x.n + STEP - 1) / STEP, n_threads, [&](std::size_t i) {
        kernel.along(x, m, v, labels.data(), out.data(), i * STEP, std::min(x.n, (i + 1) * STEP));
    });
}

template <class T>
void means(Vector<double> counts, Table<double> sums, Table<T> centers, std::optional<Vector<double>> origin,
           OutTable<T> out, OutVector<double> squares, int n_threads) {
    const std::size_t C = centers.shape(0), D = centers.shape(1);
    require(counts.shape(0) == C && squares.shape(0) == C && (!origin || origin->shape(0) == D), "counts, origin");
    require(sums.shape(0) == C && sums.shape(1) == D && out.shape(0) == C && out.shape(1) == D, "sums");
    const KernelCall call;
    const std::size_t step = 256;
    parallel_for((C + step - 1) / step, n_threads, [&](std::size_t task) {
        for (std::size_t c = task * step; c < std::min(C, (task + 1) * step); ++c) {
            const double count = counts.data()[c];
            const double *sum = sums.data() + c * D;
            const T *center = centers.data() + c * D;
            T *mean = out.data() + c * D;
            double square = 0;
            for (std::size_t k = 0; k < D; ++k) {
                const double value = count > 0 ? sum[k] / count : center[k];
                const double shift = value - (origin ? origin->data()[k] : center[k]);
                mean[k] = static_cast<T>(value);
                square += shift * shift;
            }
            squares.data()[c] = square;
        }
    });
}

// Return the greatest |x| and the greatest |x - origin| of all numbers x of the rows; origin (D,).
template <class T> nb::tuple extent(AnyRows<T> X, Vector<T> origin, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    require(origin.shape(0) == static_cast<std::size_t>(x.D), "origin");
    constexpr std::size_t STEP = 16384;
    const std::size_t n_pieces = (x.n + STEP - 1) / STEP;
    std::vector<T> largest(n_pieces), spread(n_pieces);
    {
        const KernelCall call;
        parallel_for(n_pieces, n_threads, [&](std::size_t i) {
            kernel.extent(x, origin.data(), i * STEP, std::min(x.n, (i + 1) * STEP), &largest[i], &spread[i]);
        });
    }
    T most = 0, farthest = 0;
    for (std::size_t i = 0; i < n_pieces && most == most; ++i) {
        most = largest[i] <= most ? most : largest[i];
        farthest = std::max(farthest, spread[i]);
    }
    return nb::make_tuple(most, farthest);
}

} // namespace

void register_statistics(nb::module_ &m) {
    define(m, "posterior", &posterior<float>);
    define(m, "posterior", &posterior<double>);
    define(m, "accumulate", &accumulate<float, AnyRows<float>>);
    define(m, "accumulate", &accumulate<double, AnyRows<double>>);
    define(m, "accumulate", &accumulate<float, Csr<float>>);
    define(m, "accumulate", &accumulate<double, Csr<double>>);
    define(m, "weighted_sum", &sum<float>);
    define(m, "weighted_sum", &sum<double>);
    define(m, "along", &along<float>);
    define(m, "along", &along<double>);
    define(m, "extent", &extent<float>);
    define(m, "extent", &extent<double>);
    define(m, "means", &means<float>);
    define(m, "means", &means<double>);
}

} // namespace cprime
