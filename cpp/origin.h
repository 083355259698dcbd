// Origin relative to which products are computed.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "rows.h"

namespace cprime {

// Compute the median of each column of the sampled rows: of n sorted numbers, the one that n / 2 others precede. NaN is
// sorted last.
inline void middle_of(const Rows<double> &sample, double *out) {
    const auto below = [](double a, double b) { return a < b || (a == a && b != b); };
    std::vector<double> column(sample.n);
    for (int k = 0; k < sample.D; ++k) {
        for (std::size_t i = 0; i < sample.n; ++i)
            column[i] = sample[i][k];
        std::nth_element(column.begin(), column.begin() + sample.n / 2, column.end(), below);
        out[k] = column[sample.n / 2];
    }
}

// Compute the median of each column without branches, for some columns at a time: the bits of the median are found one
// by one, by counting smaller numbers. Numbers are compared as integers that have the same order.
inline void middle_of(const Rows<float> &sample, float *out) {
    constexpr int COLUMNS = 8;
    constexpr std::int32_t LEAST = std::numeric_limits<std::int32_t>::min(), MOST = ~LEAST;
    const auto flipped = [](std::int32_t bits) { return bits < 0 ? bits ^ MOST : bits; };
    std::vector<std::int32_t> keys(sample.n * COLUMNS);
    for (int first = 0; first < sample.D; first += COLUMNS) {
        const int width = std::min(COLUMNS, sample.D - first);
        for (std::size_t i = 0; i < sample.n; ++i)
            for (int k = 0; k < width; ++k) {
                const float x = sample[i][first + k];
                std::int32_t bits;
                std::memcpy(&bits, &x, sizeof bits);
                keys[i * COLUMNS + k] = x == x ? flipped(bits) : MOST;
            }
        std::int32_t found[COLUMNS];
        std::fill_n(found, COLUMNS, LEAST);
        for (int bit = 31; bit >= 0; --bit) {
            std::int32_t next[COLUMNS], below[COLUMNS] = {};
            for (int k = 0; k < COLUMNS; ++k)
                next[k] = static_cast<std::int32_t>(static_cast<std::uint32_t>(found[k]) + (std::uint32_t(1) << bit));
            for (std::size_t i = 0; i < sample.n; ++i)
                for (int k = 0; k < COLUMNS; ++k)
                    below[k] += keys[i * COLUMNS + k] < next[k];
            for (int k = 0; k < COLUMNS; ++k)
                found[k] = below[k] <= static_cast<std::int32_t>(sample.n / 2) ? next[k] : found[k];
        }
        for (int k = 0; k < width; ++k) {
            const std::int32_t bits = flipped(found[k]);
            std::memcpy(out + first + k, &bits, sizeof bits);
        }
    }
}

// Return an origin that makes products small: the median of the centers, which a few distant centers do not affect.
template <class T> std::vector<T> median_of(const Rows<T> &centers) {
    const std::size_t step = (centers.n + 255) / 256, n = (centers.n + step - 1) / step;
    std::vector<T> median(centers.D);
    middle_of(Rows<T>{centers.data, centers.stride * static_cast<std::ptrdiff_t>(step), n, centers.D}, median.data());
    return median;
}

} // namespace cprime
