#include <numeric>
#include <vector>

#include "arrays.h"
#include "origin.h"
#include "panels.h"
#include "thread_pool.h"

namespace cprime {
namespace {

constexpr std::size_t BLOCK = 4096; // rows of a task; they stay in the cache, because some are searched anew

template <class T>
std::int64_t nearest_bounded(AnyRows<T> X, Matrix<T> centers, Vector<T> drift, Table<T> reach, Table<T> spread,
                             OutVector<T> distances, OutVector<std::int32_t> labels, OutTable<std::int32_t> others,
                             OutTable<T> lows, OutVector<T> rest, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Rows<T> m = components(centers);
    const std::size_t n_others = others.shape(1);
    require(x.D == m.D, "X and centers differ in their columns");
    require(drift.shape(0) == m.n && reach.shape(0) == m.n && spread.shape(0) == m.n, "drift, reach, spread");
    require(reach.shape(1) == spread.shape(1) && reach.shape(1) % (kernel.lanes / 2) == 0, "reach, spread");
    require(labels.shape(0) == x.n && distances.shape(0) == x.n && rest.shape(0) == x.n, "labels, distances, rest");
    require(others.shape(0) == x.n && lows.shape(0) == x.n && lows.shape(1) == n_others, "others, lows");
    require(n_others < m.n, "others");

    const KernelCall call;
    require_components(labels, m.n, 0, "labels");
    require_components(others, m.n, 0, "others");
    const std::vector<T> shift = median_of(m);
    const PackedCenters<T> packed(m, shift.data(), 0, n_threads);
    const BoundedTask<T> task{
        {x, m, packed.panels(), nullptr, static_cast<int>(n_others) + 1, labels.data(), distances.data(), nullptr},
        drift.data(),
        reach.data(),
        spread.data(),
        columns(reach),
        others.data(),
        lows.data(),
        rest.data()};
    std::vector<std::int64_t> evaluations((x.n + BLOCK - 1) / BLOCK);
    parallel_for(evaluations.size(), n_threads, [&](std::size_t i) {
        evaluations[i] = kernel.nearest_bounded(task, i * BLOCK, std::min(x.n, (i + 1) * BLOCK));
    });
    return std::accumulate(evaluations.begin(), evaluations.end(), std::int64_t(0));
}

} // namespace

void register_bounds(nb::module_ &m) {
    define(m, "nearest_bounded", &nearest_bounded<float>);
    define(m, "nearest_bounded", &nearest_bounded<double>);
}

} // namespace cprime
