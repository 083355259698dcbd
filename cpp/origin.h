// What products are made relative to.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "rows.h"

namespace cprime {

// The sampled rows' middle numbers: of n numbers of a column the one that n / 2 others come before, and what is no
// number comes last.
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

// The same without branches: bit by bit, for some columns at a time, by counting the numbers below, as integers that
// are in their order.
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

// An origin that keeps products small, a function of the centres alone: their median, far ones having no say.
template <class T> std::vector<T> median_of(const Rows<T> &centers) {
    const std::size_t step = (centers.n + 255) / 256, n = (centers.n + step - 1) / step;
    std::vector<T> median(centers.D);
    middle_of(Rows<T>{centers.data, centers.stride * static_cast<std::ptrdiff_t>(step), n, centers.D}, median.data());
    return median;
}

} // namespace cprime
