// Sums of all components over a piece of the rows, for components so few that all their sums lie near the processor.
#pragma once
#include "kernels.h"
#include "weighted_sums.h"

namespace cprime::CPRIME_ISA {

// Plain sums: a row is read once for all that it keeps.
template <class T>
inline void sum_rows(const TableSumsTask<T> &task, std::size_t begin, std::size_t end, double *count, double *first) {
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
            for (std::size_t k = 0; k < D; ++k)
                sum[k] += w * x[k];
        }
    }
}

// Moments by blocks of rows that stay near as well: within one, entries go by their component.
template <class T>
inline void sum_blocks(const TableSumsTask<T> &task, std::size_t begin, std::size_t end, double *count, double *first,
                       double *second) {
    constexpr std::size_t NEAR = 384 << 10; // bytes of a block
    const std::size_t D = task.X.D, H = task.H, C = task.C;
    const std::size_t most = std::max<std::size_t>(NEAR / (D * sizeof(T) + H * 16), 1);
    Scratch<std::uint32_t> place(C + 1);
    Scratch<const T *> rows(most * H);
    Scratch<T> weights(most * H);
    for (std::size_t top = begin; top < end; top += most) {
        answer_signals();
        const std::size_t bottom = std::min(end, top + most);
        std::fill_n(place.get(), C + 1, 0);
        for (std::size_t e = top * H; e < bottom * H; ++e)
            ++place[task.kept[e] + 1];
        for (std::size_t c = 0; c < C; ++c)
            place[c + 1] += place[c];
        for (std::size_t n = top; n < bottom; ++n) {
            const T *x = task.X[n];
            for (std::size_t byte = 0; byte < D * sizeof(T); byte += 64)
                __builtin_prefetch(reinterpret_cast<const char *>(x) + byte, 0, 2);
            const double share = task.sample_weight ? task.sample_weight[n] : 1.0;
            for (std::size_t e = n * H; e < (n + 1) * H; ++e) {
                const double w = task.responsibilities ? task.responsibilities[e] * share : share;
                const std::int32_t c = task.kept[e];
                const std::uint32_t to = place[c]++; // at last where the component after it begins
                rows[to] = x;
                weights[to] = static_cast<T>(w);
                count[c] += w;
            }
        }
        for (std::size_t c = 0, e = 0; c < C; ++c)
            while (e < place[c]) {
                const std::size_t n = std::min<std::size_t>(RUN, place[c] - e);
                add_run<T>(rows + e, weights + e, static_cast<int>(n), task.X.D, (*task.means)[c], first + c * D,
                           second + c * D);
                e += n;
            }
    }
}

template <class T>
inline void sum_table(const TableSumsTask<T> &task, std::size_t begin, std::size_t end, double *count, double *first,
                      double *second) {
    if (task.means)
        sum_blocks(task, begin, end, count, first, second);
    else
        sum_rows(task, begin, end, count, first);
}

} // namespace cprime::CPRIME_ISA
