// Row-wise softmax and log-sum-exp.
#pragma once
#include <cmath>

#include "kernels.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

template <class T>
inline void posterior(const T *log_joint, int H, double *responsibilities, double *log_sum, std::size_t begin,
                      std::size_t end) {
    using V = simd<double>;
    constexpr int W = V::width;
    for (std::size_t n = begin; n < end; ++n) {
        const T *row = log_joint + n * H;
        double *r = responsibilities + n * H;
        double highest = row[0];
        for (int h = 1; h < H; ++h)
            highest = row[h] > highest ? row[h] : highest;
        double total = 0;
        for (int h = 0; h < H; h += W) {
            const int m = H - h < W ? H - h : W;
            alignas(64) double chunk[W] = {};
            for (int i = 0; i < m; ++i)
                chunk[i] = static_cast<double>(row[h + i]) - highest;
            V::store(chunk, V::exp(V::load(chunk)));
            for (int i = 0; i < m; ++i) {
                r[h + i] = chunk[i];
                total += chunk[i];
            }
        }
        for (int h = 0; h < H; ++h)
            r[h] /= total;
        log_sum[n] = highest + std::log(total);
    }
}

} // namespace cprime::CPRIME_ISA
