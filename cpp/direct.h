// The nearest of few centres in few dimensions: measured from differences at once, with rows as lanes.
//
// What is measured is bit for bit `squared_distance`: where that adds the lanes of a vector in some order, this adds,
// in the same one, vectors of as many rows. The number of dimensions is known to the compiler, so nothing is left of
// the loops over them.
#pragma once
#include <algorithm>
#include <limits>

#include "kernels.h"
#include "points.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Lane `lane` of `square_parts` of a centre, for rows that lie in the lanes of D columns.
template <class T, int D, int lane>
[[gnu::always_inline]] inline typename simd<T>::vec part_of_rows(const typename simd<T>::vec *columns,
                                                                 const T *center) {
    using V = simd<T>;
    constexpr int W = V::width, PAIRS = D / (2 * W) * 2 * W;
    typename V::vec a{}, b{};
    const auto add = [&](int k, typename V::vec &to) {
        const auto p = columns[k] - V::fill(center[k]);
        to += p * p;
    };
    for (int k = 0; k < PAIRS; k += 2 * W) {
        add(k + lane, a);
        add(k + W + lane, b);
    }
    if constexpr (PAIRS + W <= D) {
        add(PAIRS + lane, a);
        if constexpr (PAIRS + W + lane < D)
            add(PAIRS + W + lane, b);
    } else if constexpr (PAIRS + lane < D) {
        add(PAIRS + lane, b);
    }
    return a + b;
}

// What `simd::sum` has in a lane once it has added those that are `step` apart and farther.
template <class T, int D, int lane = 0, int step = 1>
[[gnu::always_inline]] inline typename simd<T>::vec sum_of_rows(const typename simd<T>::vec *columns, const T *center) {
    if constexpr (step == simd<T>::width) {
        return part_of_rows<T, D, lane>(columns, center);
    } else {
        const auto sum = sum_of_rows<T, D, lane, 2 * step>(columns, center);
        if constexpr (lane + step < D)
            return sum + sum_of_rows<T, D, lane + step, 2 * step>(columns, center);
        else
            return sum; // squares are no negative zeros
    }
}

template <class T, int D> inline void nearest_directly(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    constexpr int W = V::width;
    const int C = static_cast<int>(task.centers.n);
    const Rows<T> X = stored_as_read(task.X);
    typename V::vec columns[D];
    for (std::size_t first = begin; first < end; first += W) {
        const int n = static_cast<int>(std::min<std::size_t>(W, end - first));
        for (int i = 0; i < W; ++i) {
            const T *row = X[first + std::min(i, n - 1)];
            for (int k = 0; k < D; ++k)
                columns[k][i] = row[k];
        }
        auto least = V::fill(std::numeric_limits<T>::infinity());
        typename V::ints id{};
        for (int c = 0; c < C; ++c) {
            const auto square = sum_of_rows<T, D>(columns, task.centers[c]);
            const auto below = square < least; // of equal ones the first, and nothing that is no number
            least = below ? square : least;
            id = below ? typename V::ints{} + static_cast<typename integer_of<T>::type>(c) : id;
        }
        for (int i = 0; i < n; ++i) {
            task.kept[first + i] = static_cast<std::int32_t>(id[i]);
            task.distances[first + i] = least[i];
        }
    }
}

// The same, of as many dimensions as the task has: 1 to DIRECT_FEATURES.
template <class T, int D = 1>
inline void nearest_directly_in(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    if (task.X.D == D)
        nearest_directly<T, D>(task, begin, end);
    else if constexpr (D < DIRECT_FEATURES)
        nearest_directly_in<T, D + 1>(task, begin, end);
}

} // namespace cprime::CPRIME_ISA
