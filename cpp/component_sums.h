// Sums over the rows of each component, and over all rows.
#pragma once
#include <algorithm>
#include <vector>

#include "grouping.h"
#include "kernels.h"

namespace cprime {

constexpr std::size_t SUMMED = 8192; // entries of a segment of a component, which are summed one after the other

// Return the sum of w v over n numbers v, in double precision; weights may be null, for ones. Blocks and partial sums
// keep the rounding error small.
template <class T> double weighted_sum(const T *values, const double *weights, std::size_t n) {
    constexpr std::size_t LANES = 8, BLOCK = 4096;
    double total = 0;
    for (std::size_t begin = 0; begin < n; begin += BLOCK) {
        const std::size_t end = std::min(n, begin + BLOCK);
        double sums[LANES] = {};
        std::size_t i = begin;
        for (; i + LANES <= end; i += LANES)
            for (std::size_t j = 0; j < LANES; ++j)
                sums[j] += (weights ? weights[i + j] : 1.0) * static_cast<double>(values[i + j]);
        for (std::size_t j = 0; i + j < end; ++j)
            sums[j] += (weights ? weights[i + j] : 1.0) * static_cast<double>(values[i + j]);
        total += ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    }
    return total;
}

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
    sum_segments(segments(begin, SUMMED), out, 1, n_threads, [&](const Segment &segment, Part, const Sums &to) {
        kernels<T>().accumulate(task, segment.begin, segment.end, to.count, to.first);
    });
}

} // namespace cprime
