#include <algorithm>
#include <vector>

#include "arrays.h"
#include "grouping.h"
#include "local_tasks.h"
#include "thread_pool.h"

namespace cprime {
namespace {

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T> using Loadings = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Return factor analyzers without offsets.
template <class T>
FactorAnalysers<T> factors_of(const Matrix<T> &means, const std::optional<Table<double>> &precisions,
                              const Loadings<T> &loadings, const std::optional<Cube> &roots) {
    const Rows<T> m = components(means);
    const std::size_t C = m.n, D = m.D, own = loadings.shape(0), H = loadings.shape(1);
    require(C > 0 && (own == C || own == 1) && loadings.shape(2) == D && H <= MOST_COLUMNS, "means, loadings");
    require(!precisions || (precisions->shape(0) == C && precisions->shape(1) == D), "precisions");
    require(!roots || (roots->shape(0) == C && roots->shape(1) == H && roots->shape(2) == H), "roots");
    require(precisions.has_value() == roots.has_value(), "precisions without roots, or roots without precisions");
    return {m,       data_or_null(precisions), loadings.data(), own == C ? H * D : 0, data_or_null(roots),
            nullptr, static_cast<int>(H)};
}

// Return factor analyzers with all that costs need.
template <class T>
FactorAnalysers<T> factors_of(const Matrix<T> &means, const Table<double> &precisions, const Loadings<T> &loadings,
                              const Cube &roots, const Vector<double> &offsets) {
    FactorAnalysers<T> out = factors_of(means, std::optional(precisions), loadings, std::optional(roots));
    require(loadings.shape(0) == out.means.n, "loadings");
    require(offsets.shape(0) == out.means.n, "offsets");
    out.offsets = offsets.data();
    return out;
}

// Compute the costs of components ids (n, m) for each row, infinite for id -1.
template <class T>
void factor_costs(AnyRows<T> X, Matrix<T> means, Table<double> precisions, Loadings<T> loadings, Cube roots,
                  Vector<double> offsets, Table<std::int32_t> ids, OutTable<T> costs, int n_threads) {
    const Points<T> x = points(X);
    const FactorAnalysers<T> factors = factors_of(means, precisions, loadings, roots, offsets);
    const std::size_t C = factors.means.n, n = ids.size();
    require(x.D == factors.means.D, "X and means differ in their columns");
    require(ids.shape(0) == x.n && costs.shape(0) == x.n && costs.shape(1) == ids.shape(1), "ids, costs");
    const KernelCall call;
    require_components(ids, C, -1, "ids");
    std::vector<std::int32_t> component(n); // id -1 becomes C, which is last
    for (std::size_t i = 0; i < n; ++i)
        component[i] = ids.data()[i] < 0 ? static_cast<std::int32_t>(C) : ids.data()[i];
    std::vector<std::int64_t> entries;
    std::vector<std::size_t> begin = group(component.data(), n, C + 1, n_threads, entries);
    for (std::size_t e = begin[C]; e < n; ++e)
        costs.data()[entries[e]] = std::numeric_limits<T>::infinity();
    begin.resize(C + 1);
    const FactorCostsTask<T> task{x, factors, entries.data(), std::max<std::size_t>(ids.shape(1), 1), costs.data()};
    for_each(segments(begin, SHARED), n_threads,
             [&](int c, std::size_t b, std::size_t e) { kernels<T>().factor_costs(task, c, b, e); });
}

template <class T>
void top_k_factors(AnyRows<T> X, Matrix<T> means, Table<double> precisions, Loadings<T> loadings, Cube roots,
                   Vector<double> offsets, Table<std::int32_t> lists, Table<std::int32_t> previous,
                   OutTable<std::int32_t> kept, OutTable<T> costs, int n_threads) {
    const FactorAnalysers<T> factors = factors_of(means, precisions, loadings, roots, offsets);
    constexpr std::size_t STEP = 256; // points of a task; few, because each has many candidates
    top_k_of<TopKFactorsTask<T>>(points(X), factors, factors.means, lists, previous, kept, costs, STEP, n_threads,
                                 kernels<T>().top_k_factors);
}

// Add the moments of all points to those of their components: counts (C,), first (C, 2 D + H + H^2), the sums of y,
// y^2, z and z z^T, and second (C, H D), the sums of z y^T (y: point minus mean, z: expected factors).
template <class T>
void factor_moments(AnyRows<T> X, Matrix<T> means, std::optional<Table<double>> precisions, Loadings<T> loadings,
                    std::optional<Cube> roots, Table<std::int32_t> kept, std::optional<Table<double>> responsibilities,
                    std::optional<Vector<double>> sample_weight, OutVector<double> counts, OutTable<double> first,
                    OutTable<double> second, int n_threads) {
    const Points<T> x = points(X);
    const FactorAnalysers<T> factors = factors_of(means, precisions, loadings, roots);
    const std::size_t C = factors.means.n, D = x.D, H = factors.H, width = kept.shape(1);
    require(x.D == factors.means.D, "X and means differ in their columns");
    require(kept.shape(0) == x.n, "kept");
    require(!responsibilities || (responsibilities->shape(0) == x.n && responsibilities->shape(1) == width),
            "responsibilities");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");
    require(counts.shape(0) == C && first.shape(0) == C && first.shape(1) == 2 * D + H + H * H, "counts, first");
    require(second.shape(0) == C && second.shape(1) == H * D, "second");
    const KernelCall call;
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> begin =
        group_shares(kept.data(), x.n, width, C, data_or_null(responsibilities), data_or_null(sample_weight), nullptr,
                     LEAST_SHARE<T>, n_threads, entries);
    const FactorMomentsTask<T> task{x,
                                    factors,
                                    entries.data(),
                                    data_or_null(responsibilities),
                                    data_or_null(sample_weight),
                                    std::max<std::size_t>(width, 1)};
    sum_segments(segments(begin, SHARED), {counts.data(), first.data(), second.data(), first.shape(1), second.shape(1)},
                 1, n_threads, [&](const Segment &s, Part, const Sums &to) {
                     kernels<T>().factor_moments(task, s.component, s.begin, s.end, to.count, to.first, to.second);
                 });
}

} // namespace

void register_factors(nb::module_ &m) {
    define(m, "factor_costs", &factor_costs<float>);
    define(m, "factor_costs", &factor_costs<double>);
    define(m, "top_k_factors", &top_k_factors<float>);
    define(m, "top_k_factors", &top_k_factors<double>);
    define(m, "factor_moments", &factor_moments<float>);
    define(m, "factor_moments", &factor_moments<double>);
}

} // namespace cprime
