// Search for the nearest of few centers in few dimensions, or of very few centers: all distances are computed from
// differences. In few dimensions, each vector lane is a row.
//
// Computed distances are bit-identical to `squared_distance`. That function adds the lanes of a vector in a fixed
// order; this code, in which a lane is a row, adds vectors in the same order. The number of dimensions is a template
// parameter, so the compiler unrolls all loops over dimensions.
#pragma once
#include <algorithm>
#include <limits>
#include <utility>

#include "kernels.h"
#include "points.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Return the part of the squared distances that `square_parts` has in its lane `lane`, for a center and several rows.
// The coordinates of the rows are in D vectors, with one row per lane.
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

// Return for several rows what `simd::sum` of one row has in its lane `lane` after it has added lanes that are `step`
// or more apart.
template <class T, int D, int lane = 0, int step = 1>
[[gnu::always_inline]] inline typename simd<T>::vec sum_of_rows(const typename simd<T>::vec *columns, const T *center) {
    if constexpr (step == simd<T>::width) {
        return part_of_rows<T, D, lane>(columns, center);
    } else {
        const auto sum = sum_of_rows<T, D, lane, 2 * step>(columns, center);
        if constexpr (lane + step < D)
            return sum + sum_of_rows<T, D, lane + step, 2 * step>(columns, center);
        else
            return sum; // adding +0 changes nothing: squares are not -0
    }
}

// Write the nearest centers of the n rows from `first` on, and their squared distances. square_of(center) returns the
// squared distances of a center to these rows, one row per lane.
template <class T, class SquareOf>
[[gnu::always_inline]] inline void store_least(const NearestTask<T> &task, std::size_t first, int n,
                                               SquareOf square_of) {
    using V = simd<T>;
    auto least = V::fill(std::numeric_limits<T>::infinity());
    typename V::ints id{};
    for (int c = 0; c < static_cast<int>(task.centers.n); ++c) {
        const auto square = square_of(task.centers[c]);
        const auto below = square < least; // of equal distances the first counts; NaN never does
        least = below ? square : least;
        id = below ? typename V::ints{} + static_cast<typename integer_of<T>::type>(c) : id;
    }
    for (int i = 0; i < n; ++i) {
        task.kept[first + i] = static_cast<std::int32_t>(id[i]);
        task.distances[first + i] = least[i];
    }
}

template <class T, int D> inline void nearest_directly(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    constexpr int W = V::width;
    const Rows<T> X = stored_as_read(task.X);
    typename V::vec columns[D];
    for (std::size_t first = begin; first < end; first += W) {
        const int n = static_cast<int>(std::min<std::size_t>(W, end - first));
        for (int i = 0; i < W; ++i) {
            const T *row = X[first + std::min(i, n - 1)];
            for (int k = 0; k < D; ++k)
                columns[k][i] = row[k];
        }
        store_least(task, first, n, [&](const T *center) { return sum_of_rows<T, D>(columns, center); });
    }
}

// The same in more dimensions, for very few centers: the lanes of a vector are coordinates of a row, and then rows.
template <class T> inline void nearest_of_very_few(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    const Rows<T> X = stored_as_read(task.X);
    for (std::size_t first = begin; first < end; first += V::width) {
        const int n = static_cast<int>(std::min<std::size_t>(V::width, end - first));
        store_least(task, first, n, [&](const T *center) {
            return squared_distances<T>([&](int i) { return std::pair(X[first + i], center); }, n, task.X.D);
        });
    }
}

// Call nearest_directly for the task's number of dimensions, if it is at most DIRECT_FEATURES.
template <class T, int D = 1>
inline void nearest_directly_in(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    if (task.X.D == D)
        nearest_directly<T, D>(task, begin, end);
    else if constexpr (D < DIRECT_FEATURES)
        nearest_directly_in<T, D + 1>(task, begin, end);
    else
        nearest_of_very_few(task, begin, end);
}

} // namespace cprime::CPRIME_ISA
