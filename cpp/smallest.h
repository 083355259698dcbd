// Smallest of a few values: sorting of the nearest candidates, and an upper bound of the H-th smallest value.
#pragma once
#include <algorithm>
#include <bit>
#include <numeric>

#include "simd.h"

namespace cprime::CPRIME_ISA {

template <class T> struct Candidate {
    T square; // squared distance
    std::int32_t id;
};

constexpr auto nearer = [](const auto &a, const auto &b) {
    return a.square < b.square || (a.square == b.square && a.id < b.id);
};

// Sort the H nearest of n candidates to the front by insertion, which is fast if they are almost sorted or if H is
// small.
template <class T> inline void sort_inserting(Candidate<T> *found, int H, int n) {
    for (int i = 1; i < n; ++i) {
        const Candidate<T> entry = found[i];
        int place = std::min(i, H);
        if (i >= H && !nearer(entry, found[H - 1]))
            continue;
        for (; place > 0 && nearer(entry, found[place - 1]); --place)
            found[place] = found[place - 1];
        found[place] = entry;
    }
}

// Sort n candidates by square, without comparisons: a radix sort by the four bytes of the squares, which are >= 0, so
// their bits have the order of their values.
inline void sort_by_bytes(Candidate<float> *found, int n) {
    constexpr int BYTES = 4, VALUES = 256;
    std::int32_t places[BYTES][VALUES] = {};
    const auto byte = [](const Candidate<float> &c, int b) {
        return std::bit_cast<std::uint32_t>(c.square) >> 8 * b & 255;
    };
    for (int i = 0; i < n; ++i)
        for (int b = 0; b < BYTES; ++b)
            ++places[b][byte(found[i], b)];
    Scratch<Candidate<float>> other(n);
    Candidate<float> *from = found, *to = other;
    for (int b = 0; b < BYTES; ++b) {
        std::int32_t *place = places[b];
        if (place[byte(from[0], b)] == n) // all have the same byte
            continue;
        std::exclusive_scan(place, place + VALUES, place, 0);
        for (int i = 0; i < n; ++i)
            to[place[byte(from[i], b)]++] = from[i];
        std::swap(from, to);
    }
    if (from != found)
        std::copy_n(from, n, found);
}

// Sort the H nearest of n candidates to the front, by (square, id).
template <class T> inline void sort_nearest(Candidate<T> *found, int H, int n) {
    constexpr int FEW = 16, MANY = 64;
    if constexpr (sizeof(T) == sizeof(float))
        if (2 * H > n && n >= MANY) {
            sort_by_bytes(found, n);
            return sort_inserting(found, n, n); // sorts equal squares by id
        }
    if (H > FEW) {
        2 * H > n ? std::sort(found, found + n, nearer) : std::partial_sort(found, found + H, found + n, nearer);
        return;
    }
    sort_inserting(found, H, n);
}

// Return a value no less than the H-th smallest of n >= H values, and not much greater. Infinity is written after the
// values, up to the end of the last vector.
template <class T> inline T above_smallest(T *values, int n, int H) {
    using V = simd<T>;
    constexpr T infinity = std::numeric_limits<T>::infinity();
    for (int i = n; i % V::width; ++i)
        values[i] = infinity;
    auto smallest = V::fill(infinity), greatest = V::fill(-infinity);
    for (int i = 0; i < n; i += V::width) {
        const auto v = V::load(values + i);
        smallest = V::min(smallest, v);
        greatest = V::max(greatest, v == infinity ? V::fill(-infinity) : v);
    }
    T low = V::lowest(smallest), high = -V::lowest(-greatest);
    constexpr int STEPS = 20;
    int within = n;
    for (int step = 0; step < STEPS && within > H + H / 16; ++step) {
        const T middle = low / 2 + high / 2;
        if (!(low < middle && middle < high))
            break;
        int count = 0;
        for (int i = 0; i < n; i += V::width)
            count += __builtin_popcount(V::mask_not_above(V::load(values + i), V::fill(middle)));
        if (count >= H) {
            within = count;
            high = middle;
        } else {
            low = middle;
        }
    }
    if (within - H <= (n - H) / 2)
        return high;
    Scratch<T> sorted(n); // because the values are too unevenly distributed
    std::copy_n(values, n, sorted.get());
    std::nth_element(sorted.get(), sorted + H - 1, sorted + n);
    return sorted[H - 1];
}

} // namespace cprime::CPRIME_ISA
