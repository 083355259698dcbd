#include "arrays.h"
#include "sparse_calls.h"

namespace cprime {
namespace {

template <class T, class X>
void nearest(X rows, Matrix<T> centers, std::optional<Table<std::int32_t>> hint, OutTable<std::int32_t> kept,
             OutTable<T> distances, int n_threads) {
    const auto x = points(rows);
    const Rows<T> m = components(centers);
    const int H = columns(kept);
    require(x.D == m.D, "X and centers differ in their columns");
    require(kept.shape(0) == x.n && distances.shape(0) == x.n && distances.shape(1) == kept.shape(1),
            "kept, distances");
    require(!hint || (hint->shape(0) == x.n && hint->shape(1) == kept.shape(1)), "hint");
    require(H >= 1 && static_cast<std::size_t>(H) <= m.n, "n_kept");
    const KernelCall call;
    check(rows, n_threads);
    if (hint)
        require_components(*hint, m.n, 0, "hint");
    nearest_of(x, m, data_or_null(hint), H, kept.data(), distances.data(), n_threads);
}

// Compute the E-step of k-means: the nearest center of every row, and each center's count and sum of rows. Returns how
// many rows of positive weight have another nearest center than before; all of them if `before` is none.
template <class T, class X>
std::size_t assign(X rows, Matrix<T> centers, std::optional<Table<std::int32_t>> before,
                   std::optional<Vector<double>> sample_weight, OutTable<std::int32_t> kept, OutTable<T> distances,
                   OutVector<double> counts, OutTable<double> sums, OutVector<std::int64_t> members, int n_threads) {
    const auto x = points(rows);
    const Rows<T> m = components(centers);
    const std::size_t C = m.n;
    require(x.D == m.D && C >= 1, "X and centers differ in their columns");
    require(kept.shape(0) == x.n && kept.shape(1) == 1 && distances.shape(0) == x.n && distances.shape(1) == 1,
            "kept, distances");
    require(!before || (before->shape(0) == x.n && before->shape(1) == 1), "before");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");
    require(counts.shape(0) == C && members.shape(0) == C && sums.shape(0) == C && sums.shape(1) == centers.shape(1),
            "counts, sums, members");
    const KernelCall call;
    check(rows, n_threads);
    if (before)
        require_components(*before, C, 0, "before");
    const std::int32_t *old = data_or_null(before), *ids = kept.data();
    const double *weight = data_or_null(sample_weight);
    nearest_of(x, m, old, 1, kept.data(), distances.data(), n_threads);
    accumulate_of(x, ids, x.n, 1, C, static_cast<const double *>(nullptr), weight, nullptr, false, counts.data(),
                  sums.data(), n_threads);
    std::int64_t *n_members = members.data();
    if (weight) {
        std::fill_n(n_members, C, std::int64_t(0));
        for (std::size_t n = 0; n < x.n; ++n)
            n_members[ids[n]] += weight[n] > 0;
    } else {
        std::copy_n(counts.data(), C, n_members);
    }
    std::size_t n_moved = 0;
    for (std::size_t n = 0; n < x.n; ++n)
        n_moved += (!old || old[n] != ids[n]) && (!weight || weight[n] > 0);
    return n_moved;
}

template <class T, class X> void define_nearest(nb::module_ &m) {
    define(m, "nearest", &nearest<T, X>);
    define(m, "assign", &assign<T, X>);
}

} // namespace

void register_nearest(nb::module_ &m) {
    define_nearest<float, AnyRows<float>>(m);
    define_nearest<double, AnyRows<double>>(m);
    define_nearest<float, Csr<float>>(m);
    define_nearest<double, Csr<double>>(m);
}

} // namespace cprime
