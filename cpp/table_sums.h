// Sums of all components over a piece of the rows, for so few components that all their sums stay in the cache. Rows
// are processed in blocks that also stay in the cache; within a block, entries are grouped by component.
#pragma once
#include "points.h"
#include "signals.h"
#include "weighted_sums.h"

namespace cprime::CPRIME_ISA {

template <bool moments, class T>
inline void sum_blocks(const TableSumsTask<T> &task, std::size_t begin, std::size_t end, double *count, double *first,
                       double *second) {
    constexpr std::size_t NEAR = 384 << 10; // bytes of a block
    const std::size_t D = task.X.D, H = task.H, C = task.C;
    const std::size_t most = std::max<std::size_t>(NEAR / (D * sizeof(T) + H * 16), 1);
    Scratch<std::uint32_t> place(C + 1);
    Scratch<const T *> rows(most * H);
    Scratch<double> weights(most * H);
    const Wide<T> wide(task.X, most);
    for (std::size_t top = begin; top < end; top += most) {
        answer_signals();
        const std::size_t bottom = std::min(end, top + most);
        std::fill_n(place.get(), C + 1, 0);
        for (std::size_t e = top * H; e < bottom * H; ++e)
            ++place[task.kept[e] + 1];
        for (std::size_t c = 0; c < C; ++c)
            place[c + 1] += place[c];
        const Rows<T> X = rows_of(task.X, top, bottom, wide);
        for (std::size_t n = top; n < bottom; ++n) {
            const T *x = X[n - top];
            prefetch<2>(x, D);
            const double share = task.sample_weight ? task.sample_weight[n] : 1.0;
            for (std::size_t e = n * H; e < (n + 1) * H; ++e) {
                const double w = task.responsibilities ? task.responsibilities[e] * share : share;
                const std::int32_t c = task.kept[e];
                const std::uint32_t to = place[c]++; // at the end, place[c] is where the next component begins
                rows[to] = x;
                weights[to] = w;
                count[c] += w;
            }
        }
        for (std::size_t c = 0, e = 0; c < C; ++c)
            while (e < place[c]) {
                const std::size_t n = std::min<std::size_t>(RUN, place[c] - e);
                const Run<T> run{rows + e, weights + e, static_cast<int>(n), task.X.D,
                                 moments ? (*task.means)[c] : nullptr};
                add_run<moments>(run, first + c * D, moments ? second + c * D : nullptr);
                e += n;
            }
    }
}

template <class T>
inline void sum_table(const TableSumsTask<T> &task, std::size_t begin, std::size_t end, double *count, double *first,
                      double *second) {
    const auto sum = task.means ? sum_blocks<true, T> : sum_blocks<false, T>;
    sum(task, begin, end, count, first, second);
}

} // namespace cprime::CPRIME_ISA
