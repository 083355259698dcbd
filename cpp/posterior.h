// Row-wise softmax of scaled values, their log-sum-exp, and the mean of the values.
#pragma once
#include <cmath>

#include "kernels.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Compute softmax, log-sum-exp and mean of rows [begin, end), in batches, so that exponentials fill vectors even if a
// row has few values.
template <class T>
inline void posterior(const T *values, double scale, int H, double *responsibilities, double *log_sum, double *mean,
                      std::size_t begin, std::size_t end) {
    using V = simd<double>;
    const std::size_t batch = std::max<std::size_t>(256 / H, 1);
    const std::size_t size = batch * H;
    Scratch<double> e(size + V::width);
    std::fill_n(e.get(), size + V::width, 0.0);
    for (std::size_t first = begin; first < end; first += batch) {
        const std::size_t n = std::min(batch, end - first);
        const T *rows = values + first * H;
        // The difference of two values is scaled, instead of subtracting scaled values. With a fused multiply-add, the
        // difference of two equal products need not be 0, because only one of the products is rounded.
        for (std::size_t i = 0; i < n; ++i) {
            const T *row = rows + i * H;
            T best = row[0];
            for (int h = 1; h < H; ++h)
                best = scale * row[h] > scale * best ? row[h] : best;
            for (int h = 0; h < H; ++h)
                e[i * H + h] = scale * (static_cast<double>(row[h]) - static_cast<double>(best));
            log_sum[first + i] = scale * best;
        }
        for (std::size_t k = 0; k < n * H; k += V::width)
            V::store(e + k, V::exp(V::load(e + k)));
        for (std::size_t i = 0; i < n; ++i) {
            const T *row = rows + i * H;
            const double *of = e + i * H;
            double total = 0, weighted = 0;
            for (int h = 0; h < H; ++h) {
                total += of[h];
                weighted += of[h] > 0 ? of[h] * static_cast<double>(row[h]) : 0;
            }
            double *r = responsibilities + (first + i) * H;
            for (int h = 0; h < H; ++h)
                r[h] = of[h] / total;
            log_sum[first + i] += std::log(total);
            mean[first + i] = weighted / total;
        }
    }
}

} // namespace cprime::CPRIME_ISA
