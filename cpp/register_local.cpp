#include <algorithm>
#include <utility>
#include <vector>

#include "arrays.h"
#include "grouping.h"
#include "local_tasks.h"
#include "thread_pool.h"

namespace cprime {
namespace {

template <class T>
void reassign(AnyRows<T> X, Matrix<T> centers, Table<std::int32_t> lists, std::optional<Vector<T>> inside,
              std::optional<Vector<T>> outside, double share, std::optional<Vector<std::uint8_t>> active,
              Vector<std::int32_t> labels, OutVector<std::int32_t> new_labels, OutVector<T> distances, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Rows<T> m = components(centers);
    ReassignTask<T> task = reassign_task(x, m, lists, inside, outside, share, active, labels, new_labels, distances);

    const KernelCall call;
    require_components(lists, m.n, -1, "lists");
    if (!columns(lists) && !active) { // there are no candidates
        for (std::size_t n = 0; n < x.n; ++n)
            if (static_cast<std::uint32_t>(labels.data()[n]) >= lists.shape(0))
                throw std::invalid_argument(OUTSIDE);
        std::copy_n(labels.data(), x.n, new_labels.data());
        constexpr std::size_t STEP = 2048;
        return parallel_for((x.n + STEP - 1) / STEP, n_threads, [&](std::size_t i) {
            kernel.own_distances(x, m, labels.data(), distances.data(), i * STEP, std::min(x.n, (i + 1) * STEP));
        });
    }
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> begin = group(labels.data(), x.n, lists.shape(0), n_threads, entries);
    task.entries = entries.data();
    for_each(segments(begin, SHARED, data_or_null(active)), n_threads,
             [&](int c, std::size_t b, std::size_t e) { kernel.reassign(task, c, b, e); });
}

template <class T>
void top_k(AnyRows<T> X, Matrix<T> centers, Table<std::int32_t> lists, Table<std::int32_t> previous,
           OutTable<std::int32_t> kept, OutTable<T> distances, int n_threads) {
    const Rows<T> m = components(centers);
    top_k_of<TopKTask<T>>(points(X), m, m, lists, previous, kept, distances, SHARED, n_threads, kernels<T>().top_k);
}

template <class T>
nb::object best_in_lists(AnyRows<T> X, Matrix<T> centers, Table<std::int32_t> lists, Table<std::int32_t> previous,
                         Table<std::int32_t> extra, OutTable<std::int32_t> kept, OutTable<T> distances,
                         OutVector<std::int32_t> counts, bool evidence, std::optional<Vector<double>> sample_weight,
                         std::optional<Factors<T>> factors, std::optional<Vector<T>> offsets,
                         std::optional<Vector<T>> dof, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    ListSearchTask<T> task =
        among_task(points(X), components(centers), lists, previous, extra, kept, distances, counts);
    require(factors.has_value() == offsets.has_value() && (factors || !dof), "factors, offsets, dof");
    const auto gaussians = factors ? std::optional(gaussians_of(centers, *factors, *offsets, dof)) : std::nullopt;
    task.gaussians = gaussians ? &*gaussians : nullptr;

    std::optional<Evidence> looked;
    {
        const KernelCall call;
        for (const auto &ids : {lists, previous, extra})
            require_components(ids, task.centers.n, -1, "lists, previous or extra");
        looked = search_rows<T>(task, evidence, sample_weight, n_threads, kernel.best_in_lists);
    }
    return as_arrays(std::move(looked));
}

// Write the points in the order of their components, in ascending order within each.
void grouped_order(Vector<std::int32_t> labels, std::size_t n_components, OutVector<std::int64_t> order,
                   int n_threads) {
    require(order.shape(0) == labels.shape(0), "order");
    const KernelCall call;
    std::vector<std::int64_t> entries;
    group(labels.data(), labels.shape(0), n_components, n_threads, entries);
    std::copy(entries.begin(), entries.end(), order.data());
}

// Mark the rows that differ between two arrays in their first n_columns columns.
void changed(Table<std::int32_t> after, Table<std::int32_t> before, std::size_t n_columns, OutVector<bool> out,
             int n_threads) {
    const std::size_t n = after.shape(0), width = after.shape(1), other_width = before.shape(1);
    require(before.shape(0) == n && out.shape(0) == n, "before, out");
    require(n_columns <= std::min(width, other_width), "n_columns");
    const KernelCall call;
    constexpr std::size_t STEP = 16384;
    parallel_for((n + STEP - 1) / STEP, n_threads, [&](std::size_t task) {
        for (std::size_t i = task * STEP; i < std::min(n, (task + 1) * STEP); ++i) {
            bool other = false;
            for (std::size_t h = 0; h < n_columns; ++h)
                other |= after.data()[i * width + h] != before.data()[i * other_width + h];
            out.data()[i] = other;
        }
    });
}

template <class T> void gather(Matrix<T> X, Vector<std::int64_t> order, OutTable<T> out, int n_threads) {
    const Rows<T> x = rows(X);
    require(out.shape(0) == order.shape(0) && out.shape(1) == X.shape(1), "out");
    const KernelCall call;
    const std::size_t n = order.shape(0), step = 4096;
    parallel_for((n + step - 1) / step, n_threads, [&](std::size_t task) {
        for (std::size_t i = task * step; i < std::min(n, (task + 1) * step); ++i) {
            const std::int64_t row = order.data()[i];
            require(row >= 0 && static_cast<std::size_t>(row) < x.n, "order: outside X");
            std::copy_n(x[row], x.D, out.data() + i * x.D);
        }
    });
}

template <class T>
void normalized(Matrix<T> X, std::optional<Vector<std::int64_t>> order, T least, OutTable<T> out,
                OutVector<double> lengths, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X);
    const std::size_t n = order ? order->shape(0) : x.n, step = 256;
    require(out.shape(0) == n && out.shape(1) == X.shape(1) && lengths.shape(0) == n, "out, lengths");
    const KernelCall call;
    for (std::size_t i = 0; order && i < n; ++i)
        require(order->data()[i] >= 0 && static_cast<std::size_t>(order->data()[i]) < x.n, "order: outside X");
    parallel_for((n + step - 1) / step, n_threads, [&](std::size_t task) {
        kernel.normalized(x, data_or_null(order), least, out.data(), lengths.data(), task * step,
                          std::min(n, (task + 1) * step));
    });
}

} // namespace

void register_local(nb::module_ &m) {
    define(m, "reassign", &reassign<float>);
    define(m, "reassign", &reassign<double>);
    define(m, "top_k", &top_k<float>);
    define(m, "top_k", &top_k<double>);
    define(m, "grouped_order", &grouped_order);
    define(m, "changed", &changed);
    define(m, "gather", &gather<float>);
    define(m, "gather", &gather<double>);
    define(m, "normalized", &normalized<float>);
    define(m, "normalized", &normalized<double>);
    define(m, "best_in_lists", &best_in_lists<float>);
    define(m, "best_in_lists", &best_in_lists<double>);
}

} // namespace cprime
