// Rows divided by their lengths.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels.h"
#include "simd.h"

namespace cprime::CPRIME_ISA {

// Return |x|^2 in double precision. Several sums hide the latency of additions.
template <class T> inline double squared_length(const T *x, int D) {
    using W = simd<double>;
    constexpr int STEP = 4 * W::width;
    typename W::vec sums[4] = {};
    double rest = 0;
    int k = 0;
    for (; k + STEP <= D; k += STEP)
        for (int i = 0; i < 4; ++i) {
            const auto part = load_wide(x + k + i * W::width);
            sums[i] += part * part;
        }
    for (; k < D; ++k)
        rest += static_cast<double>(x[k]) * x[k];
    return W::sum((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

template <class T> inline void divide(T *x, int D, T divisor) {
    using V = simd<T>;
    int k = 0;
    for (; k + V::width <= D; k += V::width)
        V::store(x + k, V::load(x + k) / divisor);
    for (; k < D; ++k)
        x[k] /= divisor;
}

// Divide rows [begin, end) of an order (null: the order of X) by their lengths. A row shorter than `least`, a power of
// two, is divided by `least` first, so that its squares do not underflow. A row of zeros is unchanged, and its length
// is 0.
template <class T>
inline void normalized(const Rows<T> &X, const std::int64_t *order, T least, T *out, double *lengths, std::size_t begin,
                       std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        T *row = out + i * static_cast<std::size_t>(X.D); // a copy in the cache, because it is read twice more
        std::copy_n(X[order ? static_cast<std::size_t>(order[i]) : i], X.D, row);
        double length = std::sqrt(squared_length(row, X.D)), scale = 1;
        if (length < least) {
            divide(row, X.D, least);
            scale = least;
            length = std::sqrt(squared_length(row, X.D));
        }
        lengths[i] = length * scale;
        if (length != 0)
            divide(row, X.D, static_cast<T>(length));
    }
}

} // namespace cprime::CPRIME_ISA
