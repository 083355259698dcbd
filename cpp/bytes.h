// Coarse (low-precision) numbers for a processor that sums products of bytes (AVX512-VNNI): integers from -127 to 127
// times a scale of the row. Four times as many of them are multiplied per cycle as floats.
#pragma once
#include <algorithm>
#include <cmath>

#include "coarse_tiles.h"

namespace cprime::CPRIME_ISA {

constexpr int MOST_COARSE = 1 << 16;  // most columns of rows whose sums of products do not overflow
constexpr int LEAST_D_OF_PANELS = 16; // least D for coarse numbers in a search among all centers
constexpr int LEAST_D_OF_LISTS = 64;  // least D in a search of candidate lists for one center (C' = 1)
constexpr int LEAST_D_OF_KEPT = 128;  // least D in a search of candidate lists for several centers

// Return whether it saves time to exclude most of C centers by products of coarse numbers. If there are few centers,
// products at full precision take less time than the rounding of rows to coarse numbers.
inline bool worth_rounding(std::size_t C, int H, int D) { return C * D > 16384 && (H != 1 || C > FEW_CENTERS); }

struct CoarseUnit {
    CoarseUnit() {} // sums of products of bytes need no set-up of the processor
};

typedef std::int32_t int_words __attribute__((vector_size(VECTOR_BYTES)));

// Return, for each 32-bit word, sum + the dot product of the word's four unsigned bytes and four given signed bytes.
inline int_words add_products(int_words sum, int_words bytes, std::int32_t signed_bytes) {
#if defined(CPRIME_EMULATE_VNNI)
    for (int shift = 0; shift < 32; shift += 8)
        sum += (bytes >> shift & 255) * static_cast<std::int8_t>(signed_bytes >> shift);
    return sum;
#else
    return (int_words)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)bytes, _mm512_set1_epi32(signed_bytes));
#endif
}

// Write the lowest byte of each 32-bit word to `out`, one after the other.
inline void store_last_bytes(coarse *out, int_words words) {
#if defined(CPRIME_EMULATE_VNNI)
    for (int i = 0; i < VECTOR_BYTES / 4; ++i)
        out[i] = static_cast<coarse>(words[i]);
#else
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out), _mm512_cvtepi32_epi8((__m512i)words));
#endif
}

// Round sign * (x - shift) of 16 rows x to coarse numbers and write them as consecutive tiles, with zeros for missing
// rows and columns up to a multiple of four. next(i) returns the memory of a row to prefetch, or none.
template <class Row, class Next>
inline void round_rows(Row row, int n_rows, Next next, int D, const float *shift, float sign, coarse *tiles,
                       CoarseRows &rows) {
    using V = simd<float>;
    using vec = V::vec;
    static_assert(V::width == COARSE_ROWS);
    constexpr float LARGEST = 127,
                    WHOLE = 12582912; // 1.5 * 2^23: the lowest byte of its sum with a number is that number, rounded
    constexpr float LEAST = 1e-30f, MOST = std::numeric_limits<float>::max();
    const float *address[COARSE_ROWS];
    vec part[COARSE_ROWS], most[COARSE_ROWS]; // one vector per row
    // Call see(j, v) for the vectors v of x - shift, numbered by j.
    const auto each = [&](const float *x, auto see) {
        const int n_whole = D / V::width, rest = D % V::width;
        for (int j = 0; j < n_whole; ++j)
            see(j, V::load(x + j * V::width) - V::load(shift + j * V::width));
        if (rest)
            see(n_whole, V::load_first(x + n_whole * V::width, rest) - V::load_first(shift + n_whole * V::width, rest));
    };
    for (int i = 0; i < COARSE_ROWS; ++i) {
        address[i] = i < n_rows ? row(i) : nullptr;
        vec square{}, highest{}, lowest{};
        if (address[i])
            each(address[i], [&](int, vec v) {
                highest = V::max(highest, v);
                lowest = V::min(lowest, v);
                square += v * v;
            });
        part[i] = square;
        most[i] = V::max(highest, -lowest);
    }
    V::store(rows.square, V::sums(part));
    const vec largest = V::joined(most, [](vec a, vec b) { return V::max(a, b); }), none{};
    const auto fits = (largest > LEAST) & (largest < MOST);
    alignas(64) float steps[COARSE_ROWS];
    V::store(rows.scale, fits ? largest / LARGEST : none);
    V::store(steps, fits ? sign * LARGEST / largest : none); // factors from data to coarse numbers
    vec sums[COARSE_ROWS];
    for (int i = 0; i < COARSE_ROWS; ++i) {
        const Ahead ahead = next(i);
        fetch(ahead);
        const float step = steps[i], scale = sign * rows.scale[i];
        coarse *out = tiles + i * COARSE_COLUMNS;
        vec lost{}, sum{};
        const auto put = [&](int j, vec v) {
            const vec shifted = v * step + WHOLE, whole = shifted - WHOLE, rest = v - whole * scale;
            lost += rest * rest;
            sum += whole;
            const int k = j * V::width;
            store_last_bytes(out + k / COARSE_COLUMNS * COARSE_TILE + k % COARSE_COLUMNS, (int_words)shifted);
        };
        if (address[i] && step != 0)
            each(address[i], put);
        else
            for (int j = 0; j * V::width < D; ++j)
                put(j, none);
        part[i] = lost;
        sums[i] = sum;
    }
    const vec underflow = V::fill(D * std::numeric_limits<float>::min());
    V::store(rows.lost, largest < MOST ? V::sums(part) + underflow : V::fill(INFINITY));
    const vec total = V::sums(sums);
    for (int i = 0; i < COARSE_ROWS; ++i)
        rows.start[i] = -128 * static_cast<int>(total[i]);
}

// Transpose tiles of rows to tiles of columns, the right factor of a product. The bytes become unsigned by adding 128.
inline void make_columns(coarse *tiles, int D) {
    for (int k = 0; k < D; k += COARSE_COLUMNS)
        transpose_words<0x80808080>(tiles + k / COARSE_COLUMNS * COARSE_TILE);
}

// Compute the products, over D coarse numbers, of n_left <= 2 tiles of rows and n_right <= 2 tiles of columns, and
// write them to out (16 * n_left, stride). The sums begin with `start` of the rows, which compensates for the 128 that
// were added to the columns.
template <int n_left, int n_right>
inline void multiply(const coarse *left, const CoarseRows *rows, const coarse *right, int D, float *out, int stride) {
    constexpr int R = n_right > 1 ? 8 : 16; // rows at a time: their 16 sums leave as many registers for the factors
    const int size = coarse_depth(D) * COARSE_ROWS, n_words = (D + 3) / 4;
    for (int first = 0; first < n_left * COARSE_ROWS; first += R) {
        const int t = first / COARSE_ROWS, i0 = first % COARSE_ROWS;
        int_words sum[R][n_right];
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
            for (int j = 0; j < n_right; ++j)
                sum[i][j] = rows[t].start[i0 + i] - int_words{};
        const coarse *a = left + t * size + i0 * COARSE_COLUMNS, *b = right;
        for (int begin = 0; begin < n_words; begin += COARSE_COLUMNS / 4, a += COARSE_TILE, b += COARSE_TILE)
            for (int k = 0; k < std::min(COARSE_COLUMNS / 4, n_words - begin); ++k) {
                int_words column[n_right];
#pragma GCC unroll 2
                for (int j = 0; j < n_right; ++j)
                    std::memcpy(&column[j], b + j * size + k * VECTOR_BYTES, VECTOR_BYTES);
#pragma GCC unroll 16
                for (int i = 0; i < R; ++i) {
                    std::int32_t word;
                    std::memcpy(&word, a + i * COARSE_COLUMNS + 4 * k, sizeof word);
#pragma GCC unroll 2
                    for (int j = 0; j < n_right; ++j)
                        sum[i][j] = add_products(sum[i][j], column[j], word);
                }
            }
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
            for (int j = 0; j < n_right; ++j)
                simd<float>::store(out + static_cast<std::size_t>(first + i) * stride + j * COARSE_ROWS,
                                   __builtin_convertvector(sum[i][j], simd<float>::vec));
    }
}

} // namespace cprime::CPRIME_ISA
