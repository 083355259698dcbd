// Counting sort of points by component, and parallel work on segments of each component's points.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels.h"
#include "thread_pool.h"

namespace cprime {

constexpr const char *OUTSIDE = "kept has a component outside [0, n_components)";

// Group the entries n * H + h of `kept` (n, H) by component, in ascending order within each component. The counting
// sort runs over a fixed number of chunks, so the order does not depend on the number of threads. Returns the position
// at which each component begins.
std::vector<std::size_t> group(const std::int32_t *kept, std::size_t n_entries, std::size_t n_components, int n_threads,
                               std::vector<std::int64_t> &entries);

// Share of the largest weight of a component's points up to which points cannot change its parameters, whatever their
// values. Numbers in single precision differ by less than 2^129, so 2^48 such points change means by less than 2^-303,
// and variances by less than 2^-174, which is a rounding error in double precision of the least variance of a model in
// single precision, 2^-120. In double precision, squares of differences have no such limit.
template <class T> constexpr double LEAST_SHARE = std::is_same_v<T, float> ? 0x1p-480 : 0;

// The same for entries with responsibilities q (n, H), without those that add nothing to the sums over the points of
// their component: those whose |q| times the weight of the point is 0, or at most the share `negligible` of the largest
// of the component. q is null for ones; weight and rows, the index of each point in `weight`, may be null.
std::vector<std::size_t> group_shares(const std::int32_t *kept, std::size_t n, std::size_t H, std::size_t n_components,
                                      const double *q, const double *weight, const std::int64_t *rows,
                                      double negligible, int n_threads, std::vector<std::int64_t> &entries);

// Group the rows of `kept` (n, width) by the component in their first column.
std::vector<std::size_t> group_by_first(const std::int32_t *kept, std::size_t n, std::size_t width,
                                        std::size_t n_components, int n_threads, std::vector<std::int64_t> &entries);

constexpr std::size_t SHARED = 2048; // points of a segment, which share the packed candidates of their component

// A part of the entries (points) of one component: those at positions [begin, end) after grouping by component.
struct Segment {
    int component;
    std::size_t begin, end;
};

// Divide the entries of every component into segments of at most `length`; begin: position of each component's first
// entry; active: mask of the components to divide, or null for all.
std::vector<Segment> segments(const std::vector<std::size_t> &begin, std::size_t length,
                              const std::uint8_t *active = nullptr);

// Call work(s) for every s < n by several threads. A task has `step` consecutive s, because these write to adjacent
// memory.
template <class Work> void for_each(std::size_t n, int n_threads, Work work, std::size_t step = 4) {
    parallel_for((n + step - 1) / step, n_threads, [&](std::size_t i) {
        for (std::size_t s = i * step; s < std::min(n, (i + 1) * step); ++s)
            work(s);
    });
}

// Call work(component, begin, end) for each segment.
template <class Work> void for_each(const std::vector<Segment> &segments, int n_threads, Work work) {
    for_each(segments.size(), n_threads,
             [&](std::size_t s) { work(segments[s].component, segments[s].begin, segments[s].end); });
}

// Memory of sums: for each component a count, n_first numbers (sums of x) and n_second numbers (second moments).
struct Sums {
    double *count, *first, *second;
    std::size_t n_first, n_second;
    Sums of(std::size_t c) const {
        return {count + c, first + c * n_first, second ? second + c * n_second : nullptr, n_first, n_second};
    }
    void add(const Sums &other) const;
};

// Call work(segment, part, sums), which adds to the sums of the segment's component, for every segment and each of
// n_parts parts; a part computes some of the numbers of the sums. Segments are processed in batches. In a batch, all
// but the first segment of a component are summed separately, within a fixed memory budget, and merged in order, so
// sums do not depend on the number of threads.
template <class Work>
void sum_segments(const std::vector<Segment> &segments, const Sums &out, std::size_t n_parts, int n_threads,
                  Work work) {
    constexpr std::size_t BUDGET = std::size_t(32) << 20; // bytes
    const std::size_t width = 1 + out.n_first + out.n_second, room = BUDGET / (width * sizeof(double));
    std::vector<double> spare;
    for (std::size_t begin = 0, end = 0; begin < segments.size(); begin = end) {
        std::vector<std::size_t> place; // index of each segment's spare sums, from 1; 0 for the result itself
        std::size_t n_spare = 0;
        for (end = begin; end < segments.size(); ++end) {
            const bool later = end > begin && segments[end].component == segments[end - 1].component;
            if (later && n_spare == room)
                break;
            place.push_back(later ? ++n_spare : 0);
        }
        spare.assign(n_spare * width, 0.0);
        const auto sums = [&](std::size_t s) -> Sums {
            if (!place[s - begin])
                return out.of(segments[s].component);
            double *own = spare.data() + (place[s - begin] - 1) * width;
            return {own, own + 1, out.second ? own + 1 + out.n_first : nullptr, out.n_first, out.n_second};
        };
        for_each((end - begin) * n_parts, n_threads,
                 [&](std::size_t i) {
                     const std::size_t s = begin + i / n_parts;
                     work(segments[s], Part{i % n_parts, n_parts}, sums(s));
                 },
                 n_parts > 1 ? 1 : 4);
        for (std::size_t s = begin; s < end; ++s)
            if (place[s - begin])
                out.of(segments[s].component).add(sums(s));
    }
}

// Add rows [begin, end) to count (C,) and sums (C, D), row by row; each row belongs to one component.
template <class T>
void add_rows(const TableSumsTask<T> &task, std::size_t begin, std::size_t end, double *count, double *sums) {
    constexpr std::size_t STEP = 256; // rows of a narrower type that are converted at a time
    const std::size_t D = task.X.D;
    std::vector<T> wide(task.X.stored == Stored::own ? 0 : STEP * D);
    for (std::size_t n = begin; n < end; ++n) {
        const std::size_t place = (n - begin) % STEP;
        if (!wide.empty() && !place)
            kernels<T>().widen(task.X, n, std::min(end, n + STEP), wide.data());
        const double w = task.sample_weight ? task.sample_weight[n] : 1.0;
        const T *x = wide.empty() ? task.X[n] : wide.data() + place * D;
        double *sum = sums + static_cast<std::size_t>(task.kept[n]) * D;
        count[task.kept[n]] += w;
        for (std::size_t k = 0; k < D; ++k)
            sum[k] += w * static_cast<double>(x[k]);
    }
}

// Add rows [begin, end) to a table of counts (C,), sums and second moments.
template <class T>
void add_to_table(const TableSumsTask<T> &task, std::size_t begin, std::size_t end, double *count, double *first,
                  double *second) {
    constexpr int SHORT = 16; // In so few dimensions it takes less time to add each row than to sort rows by component.
    if (task.H == 1 && !task.means && !task.responsibilities && task.X.D <= SHORT)
        add_rows(task, begin, end, count, first);
    else
        kernels<T>().sum_table(task, begin, end, count, first, second);
}

// Add the sums of all components by tables, one per piece of the rows, if this is faster: if the tables fit into a
// cache and components have several entries each. The pieces do not depend on the number of threads and are merged in
// order. Returns whether the sums have been added.
template <class T> bool sum_in_tables(const TableSumsTask<T> &task, const Sums &out, int n_threads) {
    constexpr std::size_t FEW = 8, PIECE = 64, MOST_PIECES = 16; // FEW, PIECE: entries per component
    const std::size_t C = task.C, D = task.X.D;
    const std::size_t near = std::size_t(1) << (task.H > 1 ? 20 : 17); // bytes; for H = 1 grouping is soon faster
    const std::size_t n = task.X.n, n_entries = n * task.H, width = 1 + out.n_first + out.n_second;
    if (C * width * sizeof(double) > near || n_entries < FEW * C)
        return false;
    bool inside = true;
    for (std::size_t e = 0; e < n_entries; ++e)
        inside &= static_cast<std::uint32_t>(task.kept[e]) < C;
    if (!inside)
        throw std::invalid_argument(OUTSIDE);
    const std::size_t n_pieces = std::clamp<std::size_t>(n_entries / (PIECE * C), 1, MOST_PIECES);
    const std::size_t step = (n + n_pieces - 1) / n_pieces;
    const std::unique_ptr<double[]> tables(new double[n_pieces * C * width]); // each piece clears its table
    // In a product of matrices, OF_SUM multiplications take the time of an addition here, and an entry takes the time
    // of OF_ENTRY additions more.
    constexpr std::size_t OF_SUM = 4, OF_ENTRY = 16;
    n_threads = worth(static_cast<double>(n_entries) * static_cast<double>(OF_SUM * (width + OF_ENTRY)), n_threads);
    const auto sums = [&](std::size_t i) -> Sums {
        double *own = tables.get() + i * C * width;
        return {own, own + C, own + C * (1 + out.n_first), out.n_first, out.n_second};
    };
    parallel_for(n_pieces, n_threads, [&](std::size_t i) {
        const Sums to = sums(i);
        std::fill_n(to.count, C * width, 0.0);
        const std::size_t first = std::min(n, i * step), end = std::min(n, first + step);
        add_to_table(task, first, end, to.count, to.first, to.second);
    });
    for_each(C, n_threads, [&](std::size_t c) {
        for (std::size_t i = 0; i < n_pieces; ++i)
            out.of(c).add(sums(i).of(c));
    });
    return true;
}

} // namespace cprime
