// Sums over the rows of each component.
#pragma once
#include <vector>

#include "grouping.h"
#include "kernels.h"

namespace cprime {

// Compute counts (C,) and sums (C, D) of the entries kept (n, H), all of which are component ids. Both results are
// overwritten; if `onto`, sums are added to the previous content instead. subset: the rows of X to which the entries
// refer, or null for all in order. A component of many points is summed in segments that are merged in order, so sums
// do not depend on the number of threads.
template <class T>
void accumulate_of(const Points<T> &x, const std::int32_t *kept, std::size_t n, int H, std::size_t C, const double *q,
                   const double *weight, const std::int64_t *subset, bool onto, double *counts, double *sums,
                   int n_threads) {
    const std::size_t D = x.D;
    const Sums out{counts, sums, nullptr, D, 0};
    std::fill_n(counts, C, 0.0);
    if (!onto)
        std::fill_n(sums, C * D, 0.0);
    if (!subset && sum_in_tables(TableSumsTask<T>{x, nullptr, kept, q, weight, H, C}, out, n_threads))
        return;
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> begin =
        group_shares(kept, n, H, C, q, weight, subset, LEAST_SHARE<T>, n_threads, entries);
    const AccumulateTask<T> task{x, subset, entries.data(), q, weight, H, entries.size()};
    constexpr std::size_t SEGMENT = 8192;
    sum_segments(segments(begin, SEGMENT), out, 1, n_threads, [&](const Segment &segment, Part, const Sums &to) {
        kernels<T>().accumulate(task, segment.begin, segment.end, to.count, to.first);
    });
}

} // namespace cprime
