// Software emulation of the matrix unit: the AVX512-BF16 and AMX instructions that halves.h uses. It serves AVX2
// processors that lack them, and sanitizers, which do not check the memory that these instructions access. It follows
// Intel's manual, volume 2, exactly. If an instruction would raise an exception, the process is aborted with a message.
#pragma once
#include <cstdio>
#include <cstdlib>

#include "simd.h"

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _mm512_slli_epi32

namespace cprime::CPRIME_ISA {

constexpr int TILES = 8, MOST_ROWS = 16, MOST_BYTES = 64;

// State of the matrix unit in one thread.
struct TileRegisters {
    bool configured = false;
    std::uint16_t bytes[TILES];
    std::uint8_t rows[TILES];
    alignas(64) std::uint8_t data[TILES][MOST_ROWS][MOST_BYTES];
};

inline TileRegisters &tile_registers() {
    thread_local TileRegisters registers;
    return registers;
}

inline void tile_require(bool holds, const char *what) {
    if (holds)
        return;
    std::fprintf(stderr, "emulated tiles: %s\n", what);
    std::abort();
}

inline TileRegisters &registers_with(int tile) {
    TileRegisters &unit = tile_registers();
    tile_require(unit.configured, "an instruction without a configuration");
    tile_require(tile >= 0 && tile < TILES && unit.rows[tile], "a tile that is not configured");
    return unit;
}

inline void _tile_loadconfig(const void *config) {
    std::uint8_t given[64];
    std::memcpy(given, config, sizeof given);
    TileRegisters &unit = tile_registers();
    tile_require(given[0] == 1, "a palette other than 1");
    for (int i = 2; i < 16; ++i)
        tile_require(!given[i], "a reserved byte of the configuration that is not zero");
    for (int tile = 0; tile < 16; ++tile) {
        std::uint16_t bytes;
        std::memcpy(&bytes, given + 16 + 2 * tile, sizeof bytes);
        const std::uint8_t rows = given[48 + tile];
        tile_require(bytes <= MOST_BYTES && rows <= MOST_ROWS, "a tile of more than 16 rows of 64 bytes");
        tile_require(!bytes == !rows && (tile < TILES || !rows), "a tile of no rows or no bytes, or more than 8");
        if (tile < TILES) {
            unit.bytes[tile] = bytes;
            unit.rows[tile] = rows;
        }
    }
    std::memset(unit.data, 0, sizeof unit.data);
    unit.configured = true;
}

inline void _tile_release() { tile_registers().configured = false; }

inline void _tile_zero(int tile) {
    auto &data = registers_with(tile).data[tile];
    std::memset(data, 0, sizeof data);
}

inline void _tile_loadd(int tile, const void *from, std::ptrdiff_t stride) {
    TileRegisters &unit = registers_with(tile);
    _tile_zero(tile);
    for (int i = 0; i < unit.rows[tile]; ++i)
        std::memcpy(unit.data[tile][i], static_cast<const std::uint8_t *>(from) + i * stride, unit.bytes[tile]);
}

inline void _tile_stored(int tile, void *to, std::ptrdiff_t stride) {
    const TileRegisters &unit = registers_with(tile);
    for (int i = 0; i < unit.rows[tile]; ++i)
        std::memcpy(static_cast<std::uint8_t *>(to) + i * stride, unit.data[tile][i], unit.bytes[tile]);
}

// Return x with subnormal numbers replaced by zeros of their sign.
inline __m256 flush(__m256 x) {
    const __m256 sign = _mm256_set1_ps(-0.0f), least = _mm256_set1_ps(std::numeric_limits<float>::min());
    return _mm256_and_ps(x, _mm256_or_ps(_mm256_cmp_ps(_mm256_andnot_ps(sign, x), least, _CMP_NLT_UQ), sign));
}

// Add sum_k left[m][2k] right[k][2n] to to[m][n]; the sum over 2k+1 and 2n+1 is separate and added last. The factors
// are bfloat16, the sums float.
inline void _tile_dpbf16ps(int to, int left, int right) {
    registers_with(left);
    registers_with(right);
    TileRegisters &unit = registers_with(to);
    tile_require(to != left && to != right && left != right, "a product of a tile and itself");
    tile_require(unit.bytes[to] % 4 == 0 && unit.bytes[left] % 4 == 0 && unit.bytes[to] == unit.bytes[right] &&
                     unit.rows[to] == unit.rows[left] && unit.rows[right] == unit.bytes[left] / 4,
                 "a product of tiles that do not fit");
    const auto widened = [](__m256i pairs, int odd) { // every second bfloat16 as a float
        const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000));
        return flush(_mm256_castsi256_ps(odd ? _mm256_and_si256(pairs, upper) : _mm256_slli_epi32(pairs, 16)));
    };
    for (int m = 0; m < unit.rows[to]; ++m) {
        __m256 sum[2][2] = {}; // [first or second of a pair][columns 0 to 7 or 8 to 15]
        for (int k = 0; k < unit.rows[right]; ++k) {
            int pair;
            std::memcpy(&pair, unit.data[left][m] + 4 * k, sizeof pair);
            for (int side = 0; side < 2; ++side) {
                const auto *row = reinterpret_cast<const __m256i *>(unit.data[right][k]) + side;
                for (int odd = 0; odd < 2; ++odd)
                    sum[odd][side] = flush(_mm256_fmadd_ps(widened(_mm256_set1_epi32(pair), odd),
                                                           widened(_mm256_load_si256(row), odd), sum[odd][side]));
            }
        }
        for (int side = 0; side < 2; ++side) {
            float *out = reinterpret_cast<float *>(unit.data[to][m]) + 8 * side;
            const __m256 pairs = flush(_mm256_add_ps(sum[0][side], sum[1][side]));
            _mm256_store_ps(out, flush(_mm256_add_ps(flush(_mm256_load_ps(out)), pairs)));
        }
    }
}

// Return sixteen floats rounded to bfloat16: ties to even, subnormal numbers become zero, NaN stays NaN.
inline __m256i _mm512_cvtneps_pbh(__m512 numbers) {
    std::uint16_t out[16];
    for (int i = 0; i < 16; ++i) {
        const float x = numbers[i];
        std::uint32_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        const std::uint32_t magnitude = bits & 0x7fffffff;
        if (magnitude > 0x7f800000)
            bits |= 0x400000;
        else if (magnitude < 0x800000)
            bits &= 0x80000000;
        else
            bits += 0x7fff + (bits >> 16 & 1);
        out[i] = static_cast<std::uint16_t>(bits >> 16);
    }
    __m256i halves;
    std::memcpy(&halves, out, sizeof halves);
    return halves;
}

inline __m512i _mm512_cvtepu16_epi32(__m256i halves) {
    std::uint16_t in[16];
    std::memcpy(in, &halves, sizeof in);
    std::uint32_t out[16];
    for (int i = 0; i < 16; ++i)
        out[i] = in[i];
    __m512i wide;
    std::memcpy(&wide, out, sizeof wide);
    return wide;
}

inline __m512i _mm512_slli_epi32(__m512i wide, unsigned n) {
    typedef std::uint32_t lanes __attribute__((vector_size(64)));
    return (__m512i)((lanes)wide << n);
}

} // namespace cprime::CPRIME_ISA
