// The arguments of the partial searches, checked and put together: the same for rows of arrays and for sparse ones.
#pragma once
#include <optional>

#include "arrays.h"
#include "kernels.h"

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
            evaluations ? evaluations->data() : nullptr};
}

} // namespace cprime
