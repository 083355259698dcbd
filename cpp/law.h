// Costs from squared distances: for Gaussians the sum with an offset, for t distributions a logarithm.
#pragma once
#include <algorithm>
#include <limits>

#include "kernels.h"
#include "simd.h"

namespace cprime::CPRIME_ISA {

// Degrees of freedom nu in the form that costs need, one per lane: 1 / nu and nu + D.
template <class T> struct Tails {
    typename simd<T>::vec inverse, power;
};

// Return the costs of t distributions at squared distances |A (x - m)|^2, which may exceed the range of the type.
template <class T>
inline typename simd<T>::vec t_cost(typename simd<T>::vec square, typename simd<T>::vec offset, const Tails<T> &tails) {
    using V = simd<T>;
    const auto most = V::fill(std::numeric_limits<T>::max() / 4), ratio = square * tails.inverse;
    return tails.power * V::log1p(ratio < most ? ratio : most) + offset;
}

// Return a lower bound of a t distribution's costs at squared distances no less than the given ones.
template <class T>
inline typename simd<T>::vec below_cost(const Gaussians<T> &gaussians, std::size_t c, typename simd<T>::vec square) {
    using V = simd<T>;
    const T dof = gaussians.dof[c];
    const auto most = V::fill(std::numeric_limits<T>::max() / 4), ratio = square * (1 / dof);
    return V::below_log1p(ratio < most ? ratio : most) * (dof + gaussians.means.D) + V::fill(gaussians.offsets[c]);
}

// Return the costs of component c for points at these squared distances, one per lane.
template <class T>
inline typename simd<T>::vec cost_at(const Gaussians<T> &gaussians, std::size_t c, typename simd<T>::vec square) {
    using V = simd<T>;
    if (!gaussians.dof)
        return square + gaussians.offsets[c];
    const T dof = gaussians.dof[c];
    return t_cost<T>(square, V::fill(gaussians.offsets[c]), {V::fill(1 / dof), V::fill(dof + gaussians.means.D)});
}

// Return the costs at squared distances, one per lane, of component at(i) in lane i < n; meaningless if at(i) is -1.
template <class T, class At>
inline typename simd<T>::vec costs_at(const Gaussians<T> &gaussians, At at, int n, typename simd<T>::vec square) {
    using V = simd<T>;
    alignas(64) T offsets[V::width] = {}, dof[V::width];
    std::fill_n(dof, V::width, T(1));
    for (int i = 0; i < n; ++i) {
        const std::int32_t c = std::max(at(i), 0);
        offsets[i] = gaussians.offsets[c];
        if (gaussians.dof)
            dof[i] = gaussians.dof[c];
    }
    if (!gaussians.dof)
        return square + V::load(offsets);
    return t_cost<T>(square, V::load(offsets), {T(1) / V::load(dof), V::load(dof) + T(gaussians.means.D)});
}

} // namespace cprime::CPRIME_ISA
