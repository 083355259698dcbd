// Panels of centres as scores are made of them, and what rounding takes from scores and from squares.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// One of the panels.
template <class T> struct Panel {
    T *columns, *half_norm, *norm, *scale, *lost;
};

template <class T> inline Panel<T> panel_of(const Panels<T> &panels, int p, int D) {
    constexpr int L = TILE_LANES<T>;
    const std::size_t first = static_cast<std::size_t>(p) * L;
    return {panels.columns + first * (static_cast<std::size_t>(D) + 1), panels.half_norm + first, panels.norm + first,
            panels.scale + first, panels.lost + first};
}

// A bit for each of panel p's lanes that holds one of centres [begin, end).
template <class T> inline std::uint32_t lanes_within(int p, int begin, int end) {
    const int first = p * TILE_LANES<T>;
    return first_lanes(std::min(end - first, TILE_LANES<T>)) & ~first_lanes(std::max(begin - first, 0));
}

// Those of a panel's lanes that hold one of n centres.
template <class T> inline int lanes_used(std::size_t n, int p) {
    return static_cast<int>(std::min<std::size_t>(TILE_LANES<T>, n - static_cast<std::size_t>(p) * TILE_LANES<T>));
}

// What underflow takes at most from a sum of D products, also where subnormal numbers count as zeros.
template <class T> inline T underflow(int D) { return static_cast<T>(D + 12) * std::numeric_limits<T>::min(); }

// gamma: the rounding error of a score of D products, relative to |x||m| + |m|^2/2.
template <class T> inline T score_error(int D) {
    return static_cast<T>(D + 12) * std::numeric_limits<T>::epsilon() / 2 * T(1.05);
}

// The rounding error of a square that is measured, relative to it: sums of `square_parts`.
template <class T> inline T measuring_error(int D) {
    return static_cast<T>(D / (2 * simd<T>::width) + 12) * std::numeric_limits<T>::epsilon() / 2;
}

// Between distances and the squares that are measured of them: what the arithmetic takes, made up for.
template <class T> class Rounding {
  public:
    explicit Rounding(int D) : error_(score_error<T>(D)), least_(2 * std::sqrt(underflow<T>(D))) {}

    // No more than the distance of which this square, or a greater one, is measured.
    T low(T square) const {
        return std::sqrt(std::clamp(square, T(0), std::numeric_limits<T>::max())) * (1 - error_) - least_;
    }

    // Of whatever is farther than this a greater square is measured.
    T limit(T square) const { return std::sqrt(square) * (1 + error_) + least_; }

    static T down(T bound) { return bound * (1 - 2 * std::numeric_limits<T>::epsilon()); }

  private:
    T error_, least_; // a share, and what is lost where squares underflow
};

} // namespace cprime::CPRIME_ISA
