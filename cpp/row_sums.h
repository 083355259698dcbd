// Sums by rows instead of by components: a row is read once for all that it keeps. For components so few that all their
// sums lie near the processor.
#pragma once
#include "kernels.h"
#include "signals.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

template <class T>
inline void sum_rows(const RowSumsTask<T> &task, std::size_t begin, std::size_t end, double *count, double *first,
                     double *second) {
    const std::size_t D = task.X.D, H = task.H;
    Scratch<double> row(D);
    for (std::size_t n = begin; n < end; ++n) {
        answer_signals_at(n);
        const T *from = task.X[n];
        double *__restrict x = row;
        for (std::size_t k = 0; k < D; ++k)
            x[k] = static_cast<double>(from[k]);
        const double share = task.sample_weight ? task.sample_weight[n] : 1.0;
        for (std::size_t e = n * H; e < (n + 1) * H; ++e) {
            const double w = task.responsibilities ? task.responsibilities[e] * share : share;
            if (w == 0)
                continue;
            const std::size_t c = task.kept[e];
            double *__restrict sum = first + c * D;
            count[c] += w;
            if (!task.means) {
                for (std::size_t k = 0; k < D; ++k)
                    sum[k] += w * x[k];
                continue;
            }
            const T *__restrict m = (*task.means)[c];
            double *__restrict square = second + c * D;
            for (std::size_t k = 0; k < D; ++k) {
                const double d = x[k] - static_cast<double>(m[k]);
                sum[k] += w * d;
                square[k] += w * d * d;
            }
        }
    }
}

} // namespace cprime::CPRIME_ISA
