// Weighted count and sum of one component's points, added in the given order and in double precision.
#pragma once
#include "kernels.h"
#include "points.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

template <class T> inline void add_weighted(const T *__restrict x, double weight, int D, double *__restrict sum) {
    for (int k = 0; k < D; ++k)
        sum[k] += weight * static_cast<double>(x[k]);
}

template <class T>
inline void accumulate(const AccumulateTask<T> &task, std::size_t begin, std::size_t end, double *count,
                       double *__restrict sum) {
    const int D = task.X.D;
    const int H = task.H;
    const auto row = [&](std::size_t e) -> std::size_t {
        const std::size_t n = task.entries[e] / H;
        return task.rows ? task.rows[n] : n;
    };
    double total = 0;
    for_each_of(task.X, row, begin, end, task.n_entries, [&](std::size_t e, std::size_t n, const T *x) {
        const double weight = (task.responsibilities ? task.responsibilities[task.entries[e]] : 1.0) *
                              (task.sample_weight ? task.sample_weight[n] : 1.0);
        total += weight;
        add_weighted(x, weight, D, sum);
    });
    *count += total;
}

} // namespace cprime::CPRIME_ISA
