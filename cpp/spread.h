// Greedy D² sampling (k-means++) among a few candidates.
#pragma once
#include <algorithm>

#include "kernels.h"
#include "points.h"
#include "signals.h"
#include "simd.h"

namespace cprime::CPRIME_ISA {

// Choose n_chosen of the candidates. Each is the best of n_trials that are drawn with probability proportional to
// weight x distance² to the nearest chosen one; uniform (n_chosen, n_trials) are random numbers in [0, 1). If all
// remaining candidates are copies of chosen ones, the first of them are chosen. from(i) returns a function that
// computes the squared distance of candidate i to the j-th.
template <class T, class From>
inline void spread_among(std::size_t m, From from, const double *weights, const double *uniform, int n_trials,
                         std::size_t n_chosen, std::int64_t *chosen) {
    Scratch<double> cumulative(m);
    Scratch<T> closest(m), trial(m), best(m);
    std::fill_n(closest.get(), m, std::numeric_limits<T>::max());
    for (std::size_t i = 0; i < n_chosen; ++i) {
        double total = 0;
        for (std::size_t j = 0; j < m; ++j)
            cumulative[j] = total += i ? weights[j] * static_cast<double>(closest[j]) : weights[j];
        if (!(total > 0)) {
            std::sort(chosen, chosen + i);
            std::size_t left = i;
            for (std::int64_t j = 0; left < n_chosen; ++j)
                if (!std::binary_search(chosen, chosen + i, j))
                    chosen[left++] = j;
            return;
        }
        double least = 0;
        for (int t = 0; t < n_trials; ++t) {
            answer_signals();
            const double target = uniform[i * n_trials + t] * total;
            const std::size_t tried =
                std::min<std::size_t>(std::upper_bound(cumulative.get(), cumulative + m, target) - cumulative, m - 1);
            const auto squared = from(tried);
            double mass = 0;
            for (std::size_t j = 0; j < m; ++j) {
                trial[j] = std::min(closest[j], squared(j));
                mass += weights[j] * static_cast<double>(trial[j]);
            }
            if (t == 0 || mass < least) {
                least = mass;
                chosen[i] = static_cast<std::int64_t>(tried);
                std::copy_n(trial.get(), m, best.get());
            }
        }
        std::copy_n(best.get(), m, closest.get());
    }
}

template <class T>
inline void spread_out(const Points<T> &candidates, const double *weights, const double *uniform, int n_trials,
                       std::size_t n_chosen, std::int64_t *chosen) {
    const Wide<T> wide(candidates, candidates.n); // converted once, because each row is read many times
    const Rows<T> x = rows_of(candidates, 0, candidates.n, wide);
    const auto from = [&](std::size_t i) {
        return [&x, i](std::size_t j) { return squared_distance(x[j], x[i], x.D); };
    };
    spread_among<T>(candidates.n, from, weights, uniform, n_trials, n_chosen, chosen);
}

} // namespace cprime::CPRIME_ISA
