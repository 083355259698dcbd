// Rows in coarse (low-precision) numbers, of which a processor multiplies several times as many per cycle as floats.
// Coarse numbers can screen candidates: the rounding error of each row is measured, so the error of a product has a
// bound. Rows are stored in tiles of 16 rows of 64 bytes: the left factor of a product by rows, the right factor by
// columns, four bytes at a time.
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

constexpr std::size_t FEW_CENTERS = 256; // for so few centers, a search with one row per lane is faster

#if CPRIME_COARSE

#if defined(CPRIME_HALVES)
using coarse = std::uint16_t; // a bfloat16: the upper half of a float
#else
using coarse = std::int8_t; // in units of 1/127 of the row's largest number
#endif
constexpr int COARSE_ROWS = 16; // rows of one tile
constexpr int COARSE_COLUMNS = 64 / sizeof(coarse);
constexpr int COARSE_TILE = COARSE_ROWS * COARSE_COLUMNS;
constexpr float UP = 1.008f; // factor that exceeds the rounding error of a bound

inline int coarse_depth(int D) { return (D + COARSE_COLUMNS - 1) / COARSE_COLUMNS * COARSE_COLUMNS; }

// Properties of the rows of a tile.
struct CoarseRows {
    alignas(64) float square[COARSE_ROWS]; // |row - shift|^2
    float lost[COARSE_ROWS];               // |rounding error of the row|^2
    float scale[COARSE_ROWS];              // row - shift is about scale times its coarse numbers
    std::int32_t start[COARSE_ROWS];       // initial value of the row's products as a left factor
};

constexpr auto FETCH_NOTHING = [](int) { return Ahead{}; };

// Transpose the four-byte words of a tile; `flip` is combined with each word by exclusive or.
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
