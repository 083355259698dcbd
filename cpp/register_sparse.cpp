#include <algorithm>
#include <memory>
#include <vector>

#include "arrays.h"
#include "grouping.h"
#include "local_tasks.h"
#include "sparse_calls.h"
#include "thread_pool.h"

namespace cprime {
namespace {

template <class T>
void sparse_distances(const Csr<T> &X, Matrix<T> candidates, std::optional<Vector<T>> current, OutTable<T> out,
                      int n_threads) {
    const SparseKernels<T> &kernel = *kernels<T>().sparse;
    const SparseRows<T> x = points(X);
    const Rows<T> m = components(candidates);
    require(x.D == m.D, "X and candidates differ in their columns");
    require(out.shape(0) == m.n && out.shape(1) == x.n, "out");
    require(!current || current->shape(0) == x.n, "current");

    const KernelCall call;
    check(X, n_threads);
    const std::vector<Twofold> square = squares_of(m, n_threads);
    const std::size_t n_padded = (m.n + kernel.lanes - 1) / kernel.lanes * kernel.lanes;
    const std::unique_ptr<T[]> packed(new T[n_padded * m.D]);
    kernel.pack_columns(m, packed.get());
    const std::size_t step = 1024;
    parallel_for((x.n + step - 1) / step, n_threads, [&](std::size_t i) {
        kernel.distances(x, m, square.data(), packed.get(), data_or_null(current), out.data(), i * step,
                         std::min(x.n, (i + 1) * step));
    });
}

template <class T>
void sparse_along(const Csr<T> &X, Matrix<T> centers, Matrix<T> directions, Vector<std::int32_t> labels,
                  OutVector<double> out, int n_threads) {
    const SparseKernels<T> &kernel = *kernels<T>().sparse;
    const SparseRows<T> x = points(X);
    const Rows<T> m = rows(centers), v = rows(directions);
    require(m.D == x.D && v.D == x.D && v.n == m.n, "centers, directions");
    require(labels.shape(0) == x.n && out.shape(0) == x.n, "labels, out");
    const KernelCall call;
    check(X, n_threads);
    require_components(labels, v.n, 0, "labels");
    std::vector<double> offsets(v.n);
    parallel_for(v.n, n_threads, [&](std::size_t c) { offsets[c] = kernel.product(m[c], v[c], x.D); });
    constexpr std::size_t STEP = 1024;
    parallel_for((x.n + STEP - 1) / STEP, n_threads, [&](std::size_t i) {
        kernel.along(x, v, offsets.data(), labels.data(), out.data(), i * STEP, std::min(x.n, (i + 1) * STEP));
    });
}

// Return dense rows of the same shape without data, for tasks that use only the shape.
template <class T> Rows<T> shape_of(const SparseRows<T> &x) { return {nullptr, 0, x.n, x.D}; }

template <class T>
void sparse_reassign(const Csr<T> &X, Matrix<T> centers, Table<std::int32_t> lists, std::optional<Vector<T>> inside,
                     std::optional<Vector<T>> outside, double share, std::optional<Vector<std::uint8_t>> active,
                     Vector<std::int32_t> labels, OutVector<std::int32_t> new_labels, OutVector<T> distances,
                     int n_threads) {
    const SparseKernels<T> &kernel = *kernels<T>().sparse;
    const SparseRows<T> x = points(X);
    const Rows<T> m = components(centers);
    SparseReassignTask<T> task;
    static_cast<ReassignTask<T> &>(task) =
        reassign_task(shape_of(x), m, lists, inside, outside, share, active, labels, new_labels, distances);

    const KernelCall call;
    check(X, n_threads);
    require_components(lists, m.n, -1, "lists");
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> first = group(labels.data(), x.n, lists.shape(0), n_threads, entries);
    const std::vector<Twofold> square = squares_of(m, n_threads);
    task.entries = entries.data();
    task.sparse = x;
    task.square = square.data();
    const std::vector<Segment> pieces = segments(first, SHARED, data_or_null(active));
    std::size_t offered = 0, points = 0;
    for (const Segment &piece : pieces) {
        const std::int32_t *list = lists.data() + static_cast<std::size_t>(piece.component) * task.G;
        offered += (piece.end - piece.begin) * static_cast<std::size_t>(std::find(list, list + task.G, -1) - list);
        points += piece.end - piece.begin;
    }
    constexpr std::size_t GOOD_SHARE = 3; // lists of over 1/3 of all components: pack all components once instead
    std::optional<SparsePacked<T>> packed;
    if (offered * GOOD_SHARE > points * m.n)
        packed.emplace(m, square, n_threads);
    task.panels = packed ? &packed->panels() : nullptr;
    for_each(pieces, n_threads, [&](int c, std::size_t b, std::size_t e) { kernel.reassign(task, c, b, e); });
}

template <class T>
nb::object sparse_best_in_lists(const Csr<T> &X, Matrix<T> centers, Table<std::int32_t> lists,
                                Table<std::int32_t> previous, Table<std::int32_t> extra, OutTable<std::int32_t> kept,
                                OutTable<T> distances, OutVector<std::int32_t> counts, bool evidence,
                                std::optional<Vector<double>> sample_weight, std::optional<Factors<T>> factors,
                                std::optional<Vector<T>> offsets, std::optional<Vector<T>> dof, int n_threads) {
    const SparseKernels<T> &kernel = *kernels<T>().sparse;
    const SparseRows<T> x = points(X);
    const Rows<T> m = components(centers);
    SparseListSearchTask<T> task;
    static_cast<ListSearchTask<T> &>(task) =
        among_task(shape_of(x), m, lists, previous, extra, kept, distances, counts);
    require(!factors && !offsets && !dof, "factors, offsets: there are no costs of Gaussians for sparse rows");

    std::optional<Evidence> looked;
    {
        const KernelCall call;
        check(X, n_threads);
        for (const auto &ids : {lists, previous, extra})
            require_components(ids, m.n, -1, "lists, previous or extra");
        const std::vector<Twofold> square = squares_of(m, n_threads);
        task.sparse = x;
        task.square = square.data();
        looked = search_rows<T>(task, evidence, sample_weight, n_threads, kernel.best_in_lists);
    }
    return as_arrays(std::move(looked));
}

template <class T>
void sparse_spread_out(const Csr<T> &X, Vector<std::int64_t> offsets, Vector<double> weights,
                       Vector<std::int64_t> n_chosen, Table<double> uniform, OutVector<std::int64_t> chosen,
                       int n_threads) {
    const SparseKernels<T> &kernel = *kernels<T>().sparse;
    const SparseRows<T> x = points(X);
    const std::size_t n_groups = n_chosen.shape(0);
    require(offsets.shape(0) == n_groups + 1 && weights.shape(0) == x.n, "offsets, weights");
    std::vector<std::size_t> place(n_groups + 1, 0);
    for (std::size_t g = 0; g < n_groups; ++g) {
        require(offsets.data()[g] >= 0 && offsets.data()[g] <= offsets.data()[g + 1] &&
                    static_cast<std::size_t>(offsets.data()[g + 1]) <= x.n,
                "offsets: outside the candidates");
        place[g + 1] = place[g] + static_cast<std::size_t>(n_chosen.data()[g]);
    }
    require(uniform.shape(0) == place[n_groups] && chosen.shape(0) == place[n_groups], "uniform, chosen");
    const KernelCall call;
    check(X, n_threads);
    const int n_trials = columns(uniform);
    parallel_for(n_groups, n_threads, [&](std::size_t g) {
        const std::int64_t first = offsets.data()[g];
        SparseRows<T> group = x;
        group.begin += first;
        group.n = static_cast<std::size_t>(offsets.data()[g + 1] - first);
        kernel.spread_out(group, weights.data() + first, uniform.data() + place[g] * n_trials, n_trials,
                          place[g + 1] - place[g], chosen.data() + place[g]);
    });
}

} // namespace

void register_sparse(nb::module_ &m) {
    define(m, "distances", &sparse_distances<float>);
    define(m, "distances", &sparse_distances<double>);
    define(m, "along", &sparse_along<float>);
    define(m, "along", &sparse_along<double>);
    define(m, "reassign", &sparse_reassign<float>);
    define(m, "reassign", &sparse_reassign<double>);
    define(m, "best_in_lists", &sparse_best_in_lists<float>);
    define(m, "best_in_lists", &sparse_best_in_lists<double>);
    define(m, "spread_out", &sparse_spread_out<float>);
    define(m, "spread_out", &sparse_spread_out<double>);
}

} // namespace cprime
