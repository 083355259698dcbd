// Cost of one Gaussian component for one point, and the constant terms ("starts") A_c (origin - m_c) of components, for
// points relative to an origin.
#pragma once
#include <limits>

#include "kernels.h"
#include "law.h"
#include "signals.h"
#include "simd.h"

namespace cprime::CPRIME_ISA {

template <class T> inline T dot(const T *a, const T *b, int n) {
    using V = simd<T>;
    typename V::vec sum{};
    int k = 0;
    for (; k + V::width <= n; k += V::width)
        sum += V::load(a + k) * V::load(b + k);
    if (k < n)
        sum += V::load_first(a + k, n - k) * V::load_first(b + k, n - k);
    return V::sum(sum);
}

// Compute the start of component c, A_c (origin - m_c), (D,): A_c (x - m_c) is the start plus A_c (x - origin). Returns
// whether rounding of these two terms may change a squared distance too much, so that it has to be computed from x -
// m_c. Each term is rounded to eps of its size, which matters if the origin is some 2^-12 / eps standard deviations
// from the mean.
template <class T> inline bool gaussian_start(const Gaussians<T> &gaussians, std::size_t c, const T *origin, T *out) {
    constexpr T LEAST = T(1) / 4096 / std::numeric_limits<T>::epsilon();
    const int D = gaussians.means.D;
    const T *A = gaussians.factor(c), *m = gaussians.means[c];
    if (gaussians.full) {
        Scratch<T> shift(D);
        for (int k = 0; k < D; ++k)
            shift[k] = origin[k] - m[k];
        for (int j = 0; j < D; ++j)
            out[j] = dot(A + static_cast<std::size_t>(j) * D, shift.get(), j + 1);
    } else {
        for (int k = 0; k < D; ++k)
            out[k] = A[k] * (origin[k] - m[k]);
    }
    return dot(out, out, D) > LEAST * LEAST;
}

// Return parts of |A (x - m)|^2, one per lane, for a diagonal A.
template <class T> inline typename simd<T>::vec scaled_square_parts(const T *x, const T *m, const T *A, int D) {
    using V = simd<T>;
    constexpr int W = V::width;
    typename V::vec sum{};
    int k = 0;
    for (; k + W <= D; k += W) {
        const auto t = (V::load(x + k) - V::load(m + k)) * V::load(A + k);
        sum += t * t;
    }
    if (k < D) {
        const int n = D - k;
        const auto t = (V::load_first(x + k, n) - V::load_first(m + k, n)) * V::load_first(A + k, n);
        sum += t * t;
    }
    return sum;
}

// Return |A (x - m)|^2 of component c for one point.
template <class T> inline T gaussian_square(const Gaussians<T> &gaussians, std::size_t c, const T *x) {
    using V = simd<T>;
    const int D = gaussians.means.D;
    const T *A = gaussians.factor(c), *m = gaussians.means[c];
    T total = 0;
    if (gaussians.full) {
        if (D >= 256)
            answer_signals();
        Scratch<T> d(D);
        for (int k = 0; k < D; ++k)
            d[k] = x[k] - m[k];
        for (int j = 0; j < D; ++j) {
            const T y = dot(A + static_cast<std::size_t>(j) * D, d.get(), j + 1);
            total += y * y;
        }
    } else {
        total = V::sum(scaled_square_parts(x, m, A, D));
    }
    return total;
}

// Return the cost of component c for one point.
template <class T> inline T gaussian_cost(const Gaussians<T> &gaussians, std::size_t c, const T *x) {
    return cost_at(gaussians, c, simd<T>::fill(gaussian_square(gaussians, c, x)))[0];
}

} // namespace cprime::CPRIME_ISA
