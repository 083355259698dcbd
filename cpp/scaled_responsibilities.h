// Weights q u of rows for the t distributions in their active sets (q: responsibility, u: the distribution's weight of
// the row, small for far rows), and sums for the M-step of the degrees of freedom.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels.h"
#include "simd.h"

namespace cprime::CPRIME_ISA {

// Compute q u of rows [begin, end) from costs, where u = (nu + D) / (nu + d2) = (1 + D / nu) exp(-(cost - offset) / (nu
// + D)).
template <class T> inline void scaled_responsibilities(const ScaledResponsibilitiesTask<T> &task, std::size_t begin,
                                                       std::size_t end, double *tails) {
    using V = simd<double>;
    constexpr std::size_t BATCH = 256;
    constexpr double MOST = 1e4; // greatest log(1 + d2 / nu)
    const std::size_t C = task.C, H = task.H;
    Scratch<double> most(C), log_most(C), powers(C);
    for (std::size_t c = 0; c < C; ++c) {
        const double ratio = task.D / static_cast<double>(task.dof[c]);
        most[c] = 1 + ratio;
        log_most[c] = std::log1p(ratio);
        powers[c] = 1 / (static_cast<double>(task.dof[c]) + task.D);
    }
    alignas(64) double logs[BATCH] = {}, fallen[BATCH];
    for (std::size_t first = begin * H; first < end * H; first += BATCH) {
        const std::size_t n = std::min(BATCH, end * H - first);
        for (std::size_t i = 0; i < n; ++i) {
            const std::int32_t c = task.kept[first + i];
            const double over = static_cast<double>(task.costs[first + i]) - static_cast<double>(task.offsets[c]);
            logs[i] = std::clamp(over * powers[c], 0.0, MOST);
        }
        for (std::size_t i = 0; i < n; i += V::width)
            V::store(fallen + i, V::exp(-V::load(logs + i)));
        for (std::size_t i = 0; i < n; ++i) {
            const std::int32_t c = task.kept[first + i];
            const double q = task.responsibilities ? task.responsibilities[first + i] : 1.0;
            const double share = task.sample_weight ? q * task.sample_weight[(first + i) / H] : q;
            task.scaled[first + i] = q * most[c] * fallen[i];
            tails[c] += share;
            tails[C + c] += share * (log_most[c] - logs[i]);
        }
    }
}

} // namespace cprime::CPRIME_ISA
