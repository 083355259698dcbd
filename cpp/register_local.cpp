#include <algorithm>
#include <utility>
#include <vector>

#include "arrays.h"
#include "grouping.h"
#include "local_tasks.h"
#include "signals.h"
#include "thread_pool.h"

namespace cprime {
namespace {

template <class T>
void reassign(Matrix<T> X, Matrix<T> centers, Table<std::int32_t> lists, std::optional<Vector<T>> inside,
              std::optional<Vector<T>> outside, double share, std::optional<Vector<std::uint8_t>> active,
              Vector<std::int32_t> labels, OutVector<std::int32_t> new_labels, OutVector<T> distances, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X), m = components(centers);
    ReassignTask<T> task = reassign_task(x, m, lists, inside, outside, share, active, labels, new_labels, distances);

    const KernelCall call;
    require_components(lists, m.n, -1, "lists");
    if (!columns(lists) && !active) { // nobody goes anywhere
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
void keep(Matrix<T> X, Matrix<T> centers, Table<std::int32_t> lists, Table<std::int32_t> previous,
          OutTable<std::int32_t> kept, OutTable<T> distances, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X), m = components(centers);
    require(x.D == m.D, "X and centers differ in their columns");
    require(lists.shape(0) == m.n && previous.shape(0) == x.n && previous.shape(1) >= 1, "lists, previous");
    require(kept.shape(0) == x.n && distances.shape(0) == x.n && distances.shape(1) == kept.shape(1),
            "kept, distances");
    const KernelCall call;
    for (const auto &ids : {lists, previous})
        require_components(ids, m.n, -1, "lists or previous");
    const std::size_t width = previous.shape(1);
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> begin = group_by_first(previous.data(), x.n, width, m.n, n_threads, entries);
    const KeepTask<T> task{x,
                           m,
                           lists.data(),
                           columns(lists),
                           previous.data(),
                           columns(previous),
                           entries.data(),
                           columns(kept),
                           kept.data(),
                           distances.data()};
    for_each(segments(begin, SHARED), n_threads,
             [&](int c, std::size_t b, std::size_t e) { kernel.keep(task, c, b, e); });
}

template <class T>
void nearest_among(Matrix<T> X, Matrix<T> centers, Table<std::int32_t> lists, Table<std::int32_t> previous,
                   Table<std::int32_t> extra, OutTable<std::int32_t> kept, OutTable<T> distances,
                   OutVector<std::int32_t> counts, std::optional<OutTable<std::int32_t>> evaluated,
                   std::optional<OutTable<T>> evaluations, std::optional<Factors<T>> factors,
                   std::optional<Vector<T>> offsets, std::optional<OutVector<T>> squares, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X), m = components(centers);
    AmongTask<T> task = among_task(x, m, lists, previous, extra, kept, distances, counts, evaluated, evaluations);
    require(factors.has_value() == offsets.has_value(), "factors, offsets");
    const auto gaussians = factors ? std::optional(gaussians_of(centers, *factors, *offsets)) : std::nullopt;
    task.gaussians = gaussians ? &*gaussians : nullptr;
    require(!squares || (squares->shape(0) == x.n && task.H >= 1), "squares");
    task.squares = squares ? squares->data() : nullptr;

    const KernelCall call;
    for (const auto &ids : {lists, previous, extra})
        require_components(ids, m.n, -1, "lists, previous or extra");
    const std::size_t step = std::max<std::size_t>(256, m.n / 64); // each task clears marks for all C components
    parallel_for((x.n + step - 1) / step, n_threads,
                 [&](std::size_t i) { kernel.nearest_among(task, i * step, std::min(x.n, (i + 1) * step)); });
}

template <class T>
void walk(Matrix<T> X, Matrix<T> centers, Table<std::int32_t> lists, Table<std::int32_t> starts, int width,
          OutVector<std::int32_t> labels, OutVector<T> distances, OutVector<std::int32_t> counts, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X), m = components(centers);
    WalkTask<T> task = walk_task(x, m, lists, starts, width, labels, distances, counts);
    const KernelCall call;
    for (const auto &ids : {lists, starts})
        require_components(ids, m.n, -1, "lists or starts");
    walk_in_order(task, starts, n_threads, [&](std::size_t begin, std::size_t end) { kernel.walk(task, begin, end); });
}

template <class T>
void thin(Matrix<T> centers, Table<std::int32_t> lists, double spread, OutTable<std::int32_t> out, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> m = components(centers);
    require(lists.shape(0) == m.n && out.shape(0) == m.n && out.shape(1) == lists.shape(1), "lists, out");
    const KernelCall call;
    require_components(lists, m.n, -1, "lists");
    const ThinTask<T> task{m, lists.data(), columns(lists), static_cast<T>(spread), out.data()};
    const std::size_t step = 256;
    parallel_for((m.n + step - 1) / step, n_threads,
                 [&](std::size_t i) { kernel.thin(task, i * step, std::min(m.n, (i + 1) * step)); });
}

template <class V> auto as_array(std::vector<V> &&values) {
    auto *kept = new std::vector<V>(std::move(values));
    const nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<V> *>(p); });
    return nb::ndarray<nb::numpy, V, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

// Sums of what was evaluated, by the winner of the point and by the component: rows of a sparse matrix (C, C).
template <class T>
nb::tuple evidence(Vector<std::int32_t> winners, Table<std::int32_t> evaluated, Table<T> values,
                   std::optional<Vector<double>> sample_weight, std::size_t C, int n_threads) {
    const std::size_t n = winners.shape(0), M = evaluated.shape(1);
    require(evaluated.shape(0) == n && values.shape(0) == n && values.shape(1) == M, "evaluated, values");
    require(!sample_weight || sample_weight->shape(0) == n, "sample_weight");
    std::vector<std::int64_t> begins(C + 1);
    std::vector<std::int32_t> indices;
    std::vector<double> sums, weights;
    {
        const KernelCall call;
        require_components(evaluated, C, -1, "evaluated");
        std::vector<std::int64_t> entries;
        const std::vector<std::size_t> begin = group(winners.data(), n, C, n_threads, entries);
        struct Row {
            std::vector<std::int32_t> ids;
            std::vector<double> sums, weights;
        };
        std::vector<Row> rows(C);
        const std::size_t step = std::max<std::size_t>(1, C / 64); // each task clears sums for all C components
        parallel_for((C + step - 1) / step, n_threads, [&](std::size_t task) {
            std::vector<double> sum(C), weight(C);
            std::vector<char> seen(C);
            for (std::size_t c = task * step; c < std::min(C, (task + 1) * step); ++c) {
                Row &row = rows[c];
                for (std::size_t e = begin[c]; e < begin[c + 1]; ++e) {
                    answer_signals_at(e);
                    const std::int64_t point = entries[e];
                    const double w = sample_weight ? sample_weight->data()[point] : 1.0;
                    for (std::size_t i = point * M; w > 0 && i < (point + 1) * M; ++i) {
                        const std::int32_t b = evaluated.data()[i];
                        if (b < 0)
                            continue;
                        if (!seen[b]) {
                            seen[b] = 1;
                            row.ids.push_back(b);
                        }
                        sum[b] += w * static_cast<double>(values.data()[i]);
                        weight[b] += w;
                    }
                }
                std::sort(row.ids.begin(), row.ids.end());
                for (const std::int32_t b : row.ids) {
                    row.sums.push_back(std::exchange(sum[b], 0.0));
                    row.weights.push_back(std::exchange(weight[b], 0.0));
                    seen[b] = 0;
                }
            }
        });
        for (std::size_t c = 0; c < C; ++c) {
            begins[c + 1] = begins[c] + static_cast<std::int64_t>(rows[c].ids.size());
            indices.insert(indices.end(), rows[c].ids.begin(), rows[c].ids.end());
            sums.insert(sums.end(), rows[c].sums.begin(), rows[c].sums.end());
            weights.insert(weights.end(), rows[c].weights.begin(), rows[c].weights.end());
        }
    }
    return nb::make_tuple(as_array(std::move(begins)), as_array(std::move(indices)), as_array(std::move(sums)),
                          as_array(std::move(weights)));
}

// The points in order of their component, each component's in rising order.
void grouped_order(Vector<std::int32_t> labels, std::size_t n_components, OutVector<std::int64_t> order,
                   int n_threads) {
    require(order.shape(0) == labels.shape(0), "order");
    const KernelCall call;
    std::vector<std::int64_t> entries;
    group(labels.data(), labels.shape(0), n_components, n_threads, entries);
    std::copy(entries.begin(), entries.end(), order.data());
}

// Of which rows the first n_columns are not the same.
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

} // namespace

void register_local(nb::module_ &m) {
    define(m, "reassign", &reassign<float>);
    define(m, "reassign", &reassign<double>);
    define(m, "keep", &keep<float>);
    define(m, "keep", &keep<double>);
    define(m, "evidence", &evidence<float>);
    define(m, "evidence", &evidence<double>);
    define(m, "grouped_order", &grouped_order);
    define(m, "changed", &changed);
    define(m, "gather", &gather<float>);
    define(m, "gather", &gather<double>);
    define(m, "nearest_among", &nearest_among<float>);
    define(m, "nearest_among", &nearest_among<double>);
    define(m, "walk", &walk<float>);
    define(m, "walk", &walk<double>);
    define(m, "thin", &thin<float>);
    define(m, "thin", &thin<double>);
}

} // namespace cprime
