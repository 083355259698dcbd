// Largest absolute value of rows, and their largest distance from an origin in any coordinate.
#pragma once
#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "points.h"
#include "simd.h"

namespace cprime::CPRIME_ISA {

// Compute the greatest |x| of rows [begin, end), infinite or NaN if one of them is, and the greatest |x - origin|.
template <class T>
inline void extent(const Points<T> &X, const T *origin, std::size_t begin, std::size_t end, T *largest, T *spread) {
    using V = simd<T>;
    using ints = typename V::ints;
    const ints magnitude = (ints)V::fill(T(-0.0)) ^ ~ints{}; // clears the sign; as integers, NaN exceeds infinity
    ints most{};
    typename V::vec farthest{};
    for_each_row(X, begin, end, [&](std::size_t, const T *row) {
        for (int k = 0; k < X.D; k += V::width) {
            const int m = std::min(V::width, X.D - k);
            const auto read = [&](const T *p) { return m == V::width ? V::load(p + k) : V::load_first(p + k, m); };
            const auto x = read(row);
            const ints size = (ints)x & magnitude;
            most = size > most ? size : most;
            farthest = V::max(farthest, (typename V::vec)((ints)(x - read(origin)) & magnitude));
        }
    });
    T sizes[V::width], distances[V::width];
    std::memcpy(sizes, &most, sizeof sizes);
    V::store(distances, farthest);
    const auto above = [](T a, T b) { return !(a <= b); };
    *largest = 0;
    *spread = 0;
    for (int i = 0; i < V::width; ++i) {
        if (*largest == *largest && above(sizes[i], *largest))
            *largest = sizes[i];
        *spread = std::max(*spread, distances[i]);
    }
}

} // namespace cprime::CPRIME_ISA
