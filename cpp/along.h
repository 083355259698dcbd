// Projections of points onto a direction of their component.
#pragma once
#include <algorithm>

#include "kernels.h"
#include "points.h"
#include "simd.h"

namespace cprime::CPRIME_ISA {

// Compute the projections out[n] = (x_n - m_c) v_c of rows [begin, end); c is the label of row n, m_c the center and
// v_c the direction of component c.
template <class T>
inline void along(const Points<T> &X, const Rows<T> &centers, const Rows<T> &directions, const std::int32_t *labels,
                  double *out, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    constexpr int W = V::width;
    const int D = X.D;
    for_each_row(X, begin, end, [&](std::size_t n, const T *x) {
        const T *m = centers[labels[n]], *v = directions[labels[n]];
        typename V::vec a{}, b{};
        int k = 0;
        for (; k + 2 * W <= D; k += 2 * W) {
            a += (V::load(x + k) - V::load(m + k)) * V::load(v + k);
            b += (V::load(x + k + W) - V::load(m + k + W)) * V::load(v + k + W);
        }
        for (; k < D; k += W) {
            const int left = std::min(W, D - k);
            a += (V::load_first(x + k, left) - V::load_first(m + k, left)) * V::load_first(v + k, left);
        }
        out[n] = V::sum(a + b);
    });
}

} // namespace cprime::CPRIME_ISA
