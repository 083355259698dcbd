// Checks and tasks of the partial searches, common to dense and sparse rows.
#pragma once
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.h"
#include "evidence.h"
#include "grouping.h"
#include "kernels.h"
#include "thread_pool.h"

namespace cprime {

// Return the task of a reassignment except for its entries, which the caller computes from the labels. Only the shape
// of x is used here, so x may have no data.
template <class T>
ReassignTask<T> reassign_task(const std::type_identity_t<Points<T>> &x, const Rows<T> &m,
                              const Table<std::int32_t> &lists, const std::optional<Vector<T>> &inside,
                              const std::optional<Vector<T>> &outside, double share,
                              const std::optional<Vector<std::uint8_t>> &active, const Vector<std::int32_t> &labels,
                              const OutVector<std::int32_t> &new_labels, const OutVector<T> &distances) {
    require(x.D == m.D, "X and centers differ in their columns");
    require(lists.shape(0) <= m.n, "lists"); // one list for each component to which points may belong
    require(!active || active->shape(0) == m.n, "active");
    require((!inside || inside->shape(0) == m.n) && (!outside || outside->shape(0) == m.n), "inside, outside");
    require(labels.shape(0) == x.n && new_labels.shape(0) == x.n && distances.shape(0) == x.n, "labels, distances");
    return {x,     m,       lists.data(),      columns(lists),  data_or_null(inside), data_or_null(outside),
            share, nullptr, new_labels.data(), distances.data()};
}

// Run the kernel keep, top_k_gaussians or top_k_factors: find the best components of each point among its active set
// and the neighbor list of the first component in it. `means` are those of the components.
template <class Task, class T, class Components, class Kernel>
void top_k_of(const Points<T> &x, const Components &components, const Rows<T> &means, const Table<std::int32_t> &lists,
              const Table<std::int32_t> &previous, const OutTable<std::int32_t> &kept, const OutTable<T> &costs,
              std::size_t step, int n_threads, Kernel kernel) {
    require(x.D == means.D, "X and the components differ in their columns");
    require(lists.shape(0) == means.n && previous.shape(0) == x.n && previous.shape(1) >= 1, "lists, previous");
    require(kept.shape(0) == x.n && kept.shape(1) >= 1, "kept");
    require(costs.shape(0) == x.n && costs.shape(1) == kept.shape(1), "costs");
    const KernelCall call;
    for (const auto &ids : {lists, previous})
        require_components(ids, means.n, -1, "lists or previous");
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> begin =
        group_by_first(previous.data(), x.n, previous.shape(1), means.n, n_threads, entries);
    const Task task{x,
                    components,
                    lists.data(),
                    columns(lists),
                    previous.data(),
                    columns(previous),
                    entries.data(),
                    columns(kept),
                    kept.data(),
                    costs.data()};
    for_each(segments(begin, step), n_threads, [&](int c, std::size_t b, std::size_t e) { kernel(task, c, b, e); });
}

// Return the task of a search among rows' active sets, the neighbor lists of these, and extra components.
template <class T>
ListSearchTask<T> among_task(const std::type_identity_t<Points<T>> &x, const Rows<T> &m,
                             const Table<std::int32_t> &lists, const Table<std::int32_t> &previous,
                             const Table<std::int32_t> &extra, const OutTable<std::int32_t> &kept,
                             const OutTable<T> &distances, const OutVector<std::int32_t> &counts) {
    require(x.D == m.D, "X and centers differ in their columns");
    require(lists.shape(0) == m.n && previous.shape(0) == x.n && extra.shape(0) == x.n, "lists, previous, extra");
    require(kept.shape(0) == x.n && distances.shape(0) == x.n && distances.shape(1) == kept.shape(1),
            "kept, distances");
    require(counts.shape(0) == x.n, "counts");
    const ListSearchTask<T> task{x,
                                 m,
                                 nullptr,
                                 lists.data(),
                                 columns(lists),
                                 previous.data(),
                                 columns(previous),
                                 extra.data(),
                                 columns(extra),
                                 columns(kept),
                                 kept.data(),
                                 distances.data(),
                                 counts.data()};
    require(task.capacity() <= MOST_COMPONENTS, "previous, lists, extra: more than 2^29 candidates of a row");
    return task;
}

// Search all rows by search(task, begin, end). Rows with the same first component are searched together, because they
// have candidates in common. Returns the sums of evaluated distances if `evidence` is set.
template <class T, class Task, class Search>
std::optional<Evidence> search_rows(Task task, bool evidence, const std::optional<Vector<double>> &sample_weight,
                                    int n_threads, Search search) {
    constexpr std::size_t VALUES = std::size_t(1) << 17; // evaluations that stay in the cache while they are summed
    const std::size_t n = task.X.n, C = task.centers.n, capacity = task.capacity();
    require(!sample_weight || sample_weight->shape(0) == n, "sample_weight");
    require(!evidence || task.H >= 1, "kept");
    std::size_t step = 256;
    std::vector<std::int64_t> entries;
    if (task.G && task.n_previous) {
        step = std::clamp(VALUES / capacity, step, std::max(step, n / 16)); // several tasks for each of many threads
        std::vector<std::int32_t> first(n);
        for (std::size_t i = 0; i < n; ++i)
            first[i] = std::max(task.previous[i * task.n_previous], 0);
        group(first.data(), n, C, n_threads, entries);
        task.entries = entries.data();
    }
    step = std::max(step, C / 64); // each task clears marks for all C components
    const std::size_t n_tasks = (n + step - 1) / step;
    std::vector<std::vector<EvidenceRow>> pieces(evidence ? n_tasks : 0);
    parallel_for(n_tasks, n_threads, [&](std::size_t i) {
        const std::size_t begin = i * step, end = std::min(n, begin + step);
        Task own = task;
        std::unique_ptr<std::int32_t[]> ids;
        std::unique_ptr<T[]> values;
        if (evidence) {
            ids = std::make_unique_for_overwrite<std::int32_t[]>((end - begin) * capacity);
            values = std::make_unique_for_overwrite<T[]>((end - begin) * capacity);
            own.evaluated = ids.get();
            own.evaluations = values.get();
        }
        search(own, begin, end);
        if (evidence)
            pieces[i] = evidence_of<T>(own, data_or_null(sample_weight), begin, end);
    });
    if (!evidence)
        return std::nullopt;
    return Evidence(pieces, C, n_threads);
}

template <class V> auto as_array(std::vector<V> &&values) {
    auto *kept = new std::vector<V>(std::move(values));
    const nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<V> *>(p); });
    return nb::ndarray<nb::numpy, V, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

inline nb::object as_arrays(std::optional<Evidence> &&looked) {
    if (!looked)
        return nb::none();
    return nb::make_tuple(as_array(std::move(looked->begins)), as_array(std::move(looked->ids)),
                          as_array(std::move(looked->sums)), as_array(std::move(looked->weights)));
}

} // namespace cprime
