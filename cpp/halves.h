// Products of bfloat16 numbers on the processor's matrix unit (AMX): some twenty times the rate of the register tile,
// at 8 bits. Good for a screen: what is rounded away from each row is measured, so that the error has a bound.
#pragma once
#include <algorithm>
#include <cmath>

#include "simd.h"

#if defined(CPRIME_EMULATE_AMX)
#include "emulated_tiles.h"
#define CPRIME_HALVES 1
#elif defined(__AMX_BF16__)
#define CPRIME_HALVES 1
#else
#define CPRIME_HALVES 0
#endif

namespace cprime::CPRIME_ISA {

constexpr bool HAS_HALVES = CPRIME_HALVES;

using half = std::uint16_t;      // the upper 16 bits of a float
constexpr int HALF_ROWS = 16;    // rows of one tile
constexpr int HALF_COLUMNS = 32; // numbers of a row that one tile holds
constexpr int HALF_TILE = HALF_ROWS * HALF_COLUMNS;

inline int half_depth(int D) { return (D + HALF_COLUMNS - 1) / HALF_COLUMNS * HALF_COLUMNS; }

#if CPRIME_HALVES

// The numbers at these addresses are read next, by instructions of which GCC 12 does not say so: they have to be there.
inline void complete(const void *left, const void *right) { asm volatile("" : : "r"(left), "r"(right) : "memory"); }

// While one of these lives, this thread's eight tiles are 16 rows of 64 bytes each.
class MatrixUnit {
  public:
    MatrixUnit() {
        struct alignas(64) {
            std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
            std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        } const config;
        complete(&config, &config);
        _tile_loadconfig(&config);
    }
    ~MatrixUnit() { _tile_release(); }
    MatrixUnit(const MatrixUnit &) = delete;
    MatrixUnit &operator=(const MatrixUnit &) = delete;
};

constexpr float UP = 1.008f; // more than a half's rounding takes

inline half round_half(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<half>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float widen(half x) {
    const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}

// sign * (16 rows - shift), rounded, as depth / 32 tiles one behind the other; zeros for missing rows and columns.
// square[i] = |row_i - shift|^2, and lost[i] = |what rounding took from it|^2. `next(i)`: a row to fetch, or null.
template <class Row, class Next>
inline void round_rows(Row row, int n_rows, Next next, int D, int depth, const float *shift, float sign, half *tiles,
                       float *square, float *lost) {
    using V = simd<float>;
    for (int i = 0; i < HALF_ROWS; ++i) {
        half *out = tiles + i * HALF_COLUMNS;
        V::vec squares[2] = {}, residue[2] = {};
        const auto put = [&](V::vec v, int side) {
            const __m256i bits = (__m256i)_mm512_cvtneps_pbh((__m512)v);
            const V::vec rest = v - (V::vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16);
            squares[side] += v * v;
            residue[side] += rest * rest;
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + side * V::width), bits);
        };
        const float *x = i < n_rows ? row(i) : nullptr;
        if (const float *ahead = next(i))
            prefetch(ahead, D);
        int k = 0;
        for (; x && k + HALF_COLUMNS <= D; k += HALF_COLUMNS, out += HALF_TILE)
            for (int side = 0; side < 2; ++side)
                put((V::load(x + k + side * V::width) - V::load(shift + k + side * V::width)) * sign, side);
        for (; k < depth; k += HALF_COLUMNS, out += HALF_TILE)
            for (int side = 0; side < 2; ++side) {
                const int from = k + side * V::width, m = x ? std::clamp(D - from, 0, V::width) : 0;
                put(m ? (V::load_first(x + from, m) - V::load_first(shift + from, m)) * sign : V::vec{}, side);
            }
        square[i] = V::sum(squares[0] + squares[1]);
        lost[i] = x ? V::sum(residue[0] + residue[1]) + D * std::numeric_limits<float>::min() : 0; // may underflow
    }
}

constexpr auto FETCH_NOTHING = [](int) -> const float * { return nullptr; };

// One more column of a row that `round_rows` has written.
inline void set_half(half *tiles, int i, int k, half value) {
    tiles[k / HALF_COLUMNS * HALF_TILE + i * HALF_COLUMNS + k % HALF_COLUMNS] = value;
}

// Tiles of rows become tiles of columns, the right factor of a product: pairs of numbers change places.
inline void transpose_tiles(half *tiles, int depth) {
    using V = simd<float>;
    for (int t = 0; t < depth / HALF_COLUMNS; ++t) {
        float *tile = reinterpret_cast<float *>(tiles + t * HALF_TILE);
        V::vec part[V::width];
#pragma GCC unroll 16
        for (int i = 0; i < V::width; ++i)
            part[i] = V::load(tile + i * V::width);
        V::transpose(part);
#pragma GCC unroll 16
        for (int i = 0; i < V::width; ++i)
            V::store(tile + i * V::width, part[i]);
    }
}

// out (16 * n_left, stride): the products of n_left <= 2 groups of rows with n_right <= 2 groups of columns.
template <int n_left, int n_right>
inline void multiply(const half *left, const half *right, int depth, float *out, int stride) {
    const int group = depth * HALF_ROWS;
    complete(left, right);
    _tile_zero(0);
    if constexpr (n_right > 1)
        _tile_zero(1);
    if constexpr (n_left > 1)
        _tile_zero(2);
    if constexpr (n_left > 1 && n_right > 1)
        _tile_zero(3);
    for (int t = 0; t < depth / HALF_COLUMNS; ++t) {
        _tile_loadd(4, left + t * HALF_TILE, 64);
        _tile_loadd(6, right + t * HALF_TILE, 64);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (n_right > 1) {
            _tile_loadd(7, right + group + t * HALF_TILE, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (n_left > 1) {
            _tile_loadd(5, left + group + t * HALF_TILE, 64);
            _tile_dpbf16ps(2, 5, 6);
        }
        if constexpr (n_left > 1 && n_right > 1)
            _tile_dpbf16ps(3, 5, 7);
    }
    const int bytes = stride * static_cast<int>(sizeof(float));
    _tile_stored(0, out, bytes);
    if constexpr (n_right > 1)
        _tile_stored(1, out + 16, bytes);
    if constexpr (n_left > 1)
        _tile_stored(2, out + 16 * stride, bytes);
    if constexpr (n_left > 1 && n_right > 1)
        _tile_stored(3, out + 16 * stride + 16, bytes);
}

#endif

} // namespace cprime::CPRIME_ISA
