// Panels of centers for scores, and bounds of the rounding errors of scores and of squared distances.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// One panel of packed centers.
template <class T> struct Panel {
    T *columns, *half_norm, *norm, *scale, *lost;
};

template <class T> inline Panel<T> panel_of(const Panels<T> &panels, int p, int D) {
    constexpr int L = TILE_LANES<T>;
    const std::size_t first = static_cast<std::size_t>(p) * L;
    return {panels.columns + first * (static_cast<std::size_t>(D) + 1), panels.half_norm + first, panels.norm + first,
            panels.scale + first, panels.lost + first};
}

// Return a mask with a bit for each lane of panel p that holds one of centers [begin, end).
template <class T> inline std::uint32_t lanes_within(int p, int begin, int end) {
    const int first = p * TILE_LANES<T>;
    return first_lanes(std::min(end - first, TILE_LANES<T>)) & ~first_lanes(std::max(begin - first, 0));
}

// Return how many lanes of panel p hold one of n centers.
template <class T> inline int lanes_used(std::size_t n, int p) {
    return static_cast<int>(std::min<std::size_t>(TILE_LANES<T>, n - static_cast<std::size_t>(p) * TILE_LANES<T>));
}

// Return the greatest loss by underflow in a sum of D products, valid also if subnormal numbers are flushed to zero.
template <class T> inline T underflow(int D) { return static_cast<T>(D + 12) * std::numeric_limits<T>::min(); }

// Return gamma: the rounding error of a score of D products, relative to |x||m| + |m|^2/2.
template <class T> inline T score_error(int D) {
    return static_cast<T>(D + 12) * std::numeric_limits<T>::epsilon() / 2 * T(1.05);
}

// Return the relative rounding error of a squared distance that is the sum of `square_parts`.
template <class T> inline T measuring_error(int D) {
    return static_cast<T>(D / (2 * simd<T>::width) + 12) * std::numeric_limits<T>::epsilon() / 2;
}

// Bounds of distances from computed squared distances, and the reverse, which include rounding errors.
template <class T> class Rounding {
  public:
    explicit Rounding(int D) : error_(score_error<T>(D)), least_(2 * std::sqrt(underflow<T>(D))) {}

    // Return a lower bound of all distances whose computed square is `square` or greater.
    T low(T square) const {
        return std::sqrt(std::clamp(square, T(0), std::numeric_limits<T>::max())) * (1 - error_) - least_;
    }

    // Return a distance such that every greater distance has a greater computed square.
    T limit(T square) const { return std::sqrt(square) * (1 + error_) + least_; }

    static T down(T bound) { return bound * (1 - 2 * std::numeric_limits<T>::epsilon()); }

  private:
    T error_, least_; // relative error, and absolute error if squares underflow
};

} // namespace cprime::CPRIME_ISA
