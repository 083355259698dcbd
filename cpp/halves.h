// Coarse (low-precision) numbers for a processor with a matrix unit (AMX): bfloat16, of which some twenty times as many
// are multiplied per cycle as floats.
#pragma once
#include <algorithm>
#include <cmath>

#include "coarse_tiles.h"
#if defined(CPRIME_EMULATE_AMX)
#include "emulated_tiles.h"
#endif

namespace cprime::CPRIME_ISA {

// Force the compiler to complete all writes to these addresses. Tile instructions read them next, which GCC 12 does not
// take into account.
inline void complete(const void *left, const void *right) { asm volatile("" : : "r"(left), "r"(right) : "memory"); }

constexpr int MOST_COARSE = std::numeric_limits<int>::max();
constexpr int LEAST_D_OF_PANELS = 8; // for smaller D, the register tile is as fast
constexpr int LEAST_D_OF_LISTS = 1;
constexpr int LEAST_D_OF_KEPT = 1;

// Return whether it saves time to exclude most of C centers by products of coarse numbers. If there are few centers,
// products at full precision take less time than the rounding of rows to coarse numbers.
inline bool worth_rounding(std::size_t C, int H, int D) { return H != 1 || C * D > 4096; }

// Guard: while an instance exists, its thread's eight tile registers have 16 rows of 64 bytes each.
class CoarseUnit {
  public:
    CoarseUnit() {
        struct alignas(64) {
            std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
            std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        } const config;
        complete(&config, &config);
        _tile_loadconfig(&config);
    }
    ~CoarseUnit() { _tile_release(); }
    CoarseUnit(const CoarseUnit &) = delete;
    CoarseUnit &operator=(const CoarseUnit &) = delete;
};

inline coarse round_half(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<coarse>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float widen(coarse x) {
    const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}

// Round sign * (x - shift) of 16 rows x to bfloat16 and write them as consecutive tiles, with zeros for missing rows
// and columns. next(i) returns the memory of a row to prefetch, or none.
template <class Row, class Next>
inline void round_rows(Row row, int n_rows, Next next, int D, const float *shift, float sign, coarse *tiles,
                       CoarseRows &rows) {
    using V = simd<float>;
    const int depth = coarse_depth(D);
    for (int i = 0; i < COARSE_ROWS; ++i) {
        coarse *out = tiles + i * COARSE_COLUMNS;
        V::vec squares[2] = {}, residue[2] = {};
        const auto put = [&](V::vec v, int side) {
            const __m256i bits = (__m256i)_mm512_cvtneps_pbh((__m512)v);
            const V::vec rest = v - (V::vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16);
            squares[side] += v * v;
            residue[side] += rest * rest;
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + side * V::width), bits);
        };
        const float *x = i < n_rows ? row(i) : nullptr;
        const Ahead ahead = next(i);
        fetch(ahead);
        int k = 0;
        for (; x && k + COARSE_COLUMNS <= D; k += COARSE_COLUMNS, out += COARSE_TILE)
            for (int side = 0; side < 2; ++side)
                put((V::load(x + k + side * V::width) - V::load(shift + k + side * V::width)) * sign, side);
        for (; k < depth; k += COARSE_COLUMNS, out += COARSE_TILE)
            for (int side = 0; side < 2; ++side) {
                const int from = k + side * V::width, m = x ? std::clamp(D - from, 0, V::width) : 0;
                put(m ? (V::load_first(x + from, m) - V::load_first(shift + from, m)) * sign : V::vec{}, side);
            }
        rows.square[i] = V::sum(squares[0] + squares[1]);
        // The last term bounds the loss if squares underflow.
        rows.lost[i] = x ? V::sum(residue[0] + residue[1]) + D * std::numeric_limits<float>::min() : 0;
        rows.scale[i] = 1;
    }
}

// Set column k of row i, which `round_rows` has written.
inline void set_half(coarse *tiles, int i, int k, coarse value) {
    tiles[k / COARSE_COLUMNS * COARSE_TILE + i * COARSE_COLUMNS + k % COARSE_COLUMNS] = value;
}

// Transpose tiles of rows to tiles of columns, the right factor of a product.
inline void make_columns(coarse *tiles, int D) {
    for (int k = 0; k < D; k += COARSE_COLUMNS)
        transpose_words(tiles + k / COARSE_COLUMNS * COARSE_TILE);
}

// Compute the products, over D coarse numbers, of n_left <= 2 tiles of rows and n_right <= 2 tiles of columns, and
// write them to out (16 * n_left, stride).
template <int n_left, int n_right>
inline void multiply(const coarse *left, const CoarseRows *, const coarse *right, int D, float *out, int stride) {
    const int depth = coarse_depth(D), group = depth * COARSE_ROWS;
    complete(left, right);
    _tile_zero(0);
    if constexpr (n_right > 1)
        _tile_zero(1);
    if constexpr (n_left > 1)
        _tile_zero(2);
    if constexpr (n_left > 1 && n_right > 1)
        _tile_zero(3);
    for (int t = 0; t < depth / COARSE_COLUMNS; ++t) {
        _tile_loadd(4, left + t * COARSE_TILE, 64);
        _tile_loadd(6, right + t * COARSE_TILE, 64);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (n_right > 1) {
            _tile_loadd(7, right + group + t * COARSE_TILE, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (n_left > 1) {
            _tile_loadd(5, left + group + t * COARSE_TILE, 64);
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

} // namespace cprime::CPRIME_ISA
