// Rows in coarse numbers, of which the processor multiplies several times as many in a cycle as of floats: good for a
// screen, since what is rounded away from each row is measured, so that the error of a product has a bound. They lie in
// tiles of 16 rows of 64 bytes: the left factor of a product by rows, the right one by columns, four bytes at a time.
#pragma once
#include "simd.h"

#if defined(CPRIME_EMULATE_AMX) || defined(__AMX_BF16__)
#define CPRIME_HALVES 1
#elif defined(CPRIME_EMULATE_VNNI) || defined(__AVX512VNNI__)
#define CPRIME_BYTES 1
#endif
#if defined(CPRIME_HALVES) || defined(CPRIME_BYTES)
#define CPRIME_COARSE 1
#else
#define CPRIME_COARSE 0
#endif

namespace cprime::CPRIME_ISA {

constexpr std::size_t FEW_CENTERS = 256; // of which the nearest is found sooner with rows as lanes

#if CPRIME_COARSE

#if defined(CPRIME_HALVES)
using coarse = std::uint16_t; // a bfloat16: the upper half of a float
#else
using coarse = std::int8_t; // a share of the row's largest number
#endif
constexpr int COARSE_ROWS = 16; // rows of one tile
constexpr int COARSE_COLUMNS = 64 / sizeof(coarse);
constexpr int COARSE_TILE = COARSE_ROWS * COARSE_COLUMNS;
constexpr float UP = 1.008f; // more than what rounding takes from a bound

inline int coarse_depth(int D) { return (D + COARSE_COLUMNS - 1) / COARSE_COLUMNS * COARSE_COLUMNS; }

// Of the rows of a tile.
struct CoarseRows {
    alignas(64) float square[COARSE_ROWS]; // |row - shift|^2
    float lost[COARSE_ROWS];               // |what rounding has taken from it|^2
    float scale[COARSE_ROWS];              // row - shift is about this times its coarse numbers
    std::int32_t start[COARSE_ROWS];       // of its products, as a left factor
};

constexpr auto FETCH_NOTHING = [](int) { return Ahead{}; };

// The rows of four-byte words of a tile become columns; `flip` is added to each without a carry.
template <std::uint32_t flip = 0> inline void transpose_words(coarse *tile) {
    using V = simd<float>;
    float *words = reinterpret_cast<float *>(tile);
    V::vec part[V::width];
#pragma GCC unroll 16
    for (int i = 0; i < V::width; ++i)
        part[i] = V::load(words + i * V::width);
    V::transpose(part);
#pragma GCC unroll 16
    for (int i = 0; i < V::width; ++i)
        V::store(words + i * V::width, (V::vec)((V::ints)part[i] ^ flip));
}

#endif

} // namespace cprime::CPRIME_ISA
