// The arguments of the partial searches, checked and put together: the same for rows of arrays and for sparse ones.
#pragma once
#include <optional>

#include "arrays.h"
#include "grouping.h"
#include "kernels.h"
#include "thread_pool.h"

namespace cprime {

// Without entries, which follow from the labels. Of x, which may be without data, the numbers of rows and columns
// count.
template <class T>
ReassignTask<T> reassign_task(const Rows<T> &x, const Rows<T> &m, const Table<std::int32_t> &lists,
                              const std::optional<Vector<T>> &inside, const std::optional<Vector<T>> &outside,
                              double share, const std::optional<Vector<std::uint8_t>> &active,
                              const Vector<std::int32_t> &labels, const OutVector<std::int32_t> &new_labels,
                              const OutVector<T> &distances) {
    require(x.D == m.D, "X and centers differ in their columns");
    require(lists.shape(0) <= m.n, "lists"); // those that points may be in
    require(!active || active->shape(0) == m.n, "active");
    require((!inside || inside->shape(0) == m.n) && (!outside || outside->shape(0) == m.n), "inside, outside");
    require(labels.shape(0) == x.n && new_labels.shape(0) == x.n && distances.shape(0) == x.n, "labels, distances");
    return {x,     m,       lists.data(),      columns(lists),  data_or_null(inside), data_or_null(outside),
            share, nullptr, new_labels.data(), distances.data()};
}

// What rows look at: what they keep, the lists of that, and extra components.
template <class T>
AmongTask<T> among_task(const Rows<T> &x, const Rows<T> &m, const Table<std::int32_t> &lists,
                        const Table<std::int32_t> &previous, const Table<std::int32_t> &extra,
                        const OutTable<std::int32_t> &kept, const OutTable<T> &distances,
                        const OutVector<std::int32_t> &counts, const std::optional<OutTable<std::int32_t>> &evaluated,
                        const std::optional<OutTable<T>> &evaluations) {
    require(x.D == m.D, "X and centers differ in their columns");
    require(lists.shape(0) == m.n && previous.shape(0) == x.n && extra.shape(0) == x.n, "lists, previous, extra");
    require(kept.shape(0) == x.n && distances.shape(0) == x.n && distances.shape(1) == kept.shape(1),
            "kept, distances");
    require(counts.shape(0) == x.n, "counts");
    const std::size_t capacity = static_cast<std::size_t>(columns(previous)) * (columns(lists) + 1) + columns(extra);
    require(capacity <= MOST_COMPONENTS, "previous, lists, extra: more than 2^29 candidates of a row");
    require(!evaluated || (evaluations && evaluated->shape(0) == x.n && evaluated->shape(1) == capacity &&
                           evaluations->shape(0) == x.n && evaluations->shape(1) == capacity),
            "evaluated, evaluations");
    return {x,
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
            counts.data(),
            evaluated ? evaluated->data() : nullptr,
            evaluations ? evaluations->data() : nullptr,
            nullptr};
}

// Without entries, which follow from the starts.
template <class T>
WalkTask<T> walk_task(const Rows<T> &x, const Rows<T> &m, const Table<std::int32_t> &lists,
                      const Table<std::int32_t> &starts, int width, const OutVector<std::int32_t> &labels,
                      const OutVector<T> &distances, const OutVector<std::int32_t> &counts) {
    require(x.D == m.D, "X and centers differ in their columns");
    require(lists.shape(0) == m.n && starts.shape(0) == x.n && starts.shape(1) >= 1, "lists, starts");
    require(width >= 1, "width");
    require(labels.shape(0) == x.n && distances.shape(0) == x.n && counts.shape(0) == x.n, "labels, distances, counts");
    return {x,     m,       lists.data(),  columns(lists),   starts.data(), columns(starts),
            width, nullptr, labels.data(), distances.data(), counts.data()};
}

// Walks of all rows, those that start at one component side by side: they meet the same centres. walks(begin, end)
template <class T, class Walks>
void walk_in_order(WalkTask<T> &task, const Table<std::int32_t> &starts, int n_threads, Walks walks) {
    std::vector<std::int64_t> entries;
    group_by_first(starts.data(), task.X.n, starts.shape(1), task.centers.n, n_threads, entries);
    task.entries = entries.data();
    const std::size_t step = std::max<std::size_t>(256, task.centers.n / 512); // each clears marks for all components
    parallel_for((task.X.n + step - 1) / step, n_threads,
                 [&](std::size_t i) { walks(i * step, std::min(task.X.n, (i + 1) * step)); });
}

} // namespace cprime
