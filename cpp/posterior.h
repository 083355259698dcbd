// Row-wise softmax of scaled values, log-sum-exp of these, and the mean of the values.
#pragma once
#include <cmath>

#include "kernels.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

template <class T>
inline void posterior(const T *values, double scale, int H, double *responsibilities, double *log_sum, double *mean,
                      std::size_t begin, std::size_t end) {
    using V = simd<double>;
    constexpr int W = V::width;
    for (std::size_t n = begin; n < end; ++n) {
        const T *row = values + n * H;
        double *r = responsibilities + n * H;
        // Differences are scaled, not products compared: one that is rounded does not cancel with one that is fused.
        T best = row[0];
        for (int h = 1; h < H; ++h)
            best = scale * row[h] > scale * best ? row[h] : best;
        double total = 0, weighted = 0;
        for (int h = 0; h < H; h += W) {
            const int m = H - h < W ? H - h : W;
            alignas(64) double chunk[W] = {};
            for (int i = 0; i < m; ++i)
                chunk[i] = scale * (static_cast<double>(row[h + i]) - static_cast<double>(best));
            V::store(chunk, V::exp(V::load(chunk)));
            for (int i = 0; i < m; ++i) {
                r[h + i] = chunk[i];
                total += chunk[i];
                weighted += chunk[i] > 0 ? chunk[i] * static_cast<double>(row[h + i]) : 0;
            }
        }
        for (int h = 0; h < H; ++h)
            r[h] /= total;
        log_sum[n] = scale * best + std::log(total);
        mean[n] = weighted / total;
    }
}

} // namespace cprime::CPRIME_ISA
