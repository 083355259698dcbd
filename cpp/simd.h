// Vectors of the instruction set for which this file is compiled. All names are in the namespace of their instruction
// set, so that the linker does not merge two builds of an inline function.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#if defined(__x86_64__) || defined(_M_X64)
#if !defined(__clang__)
#pragma GCC diagnostic push // GCC 12 makes undefined vectors by reading uninitialised ones
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif

namespace cprime::CPRIME_ISA {

#if defined(__AVX512F__) || defined(CPRIME_EMULATE_AVX512)
constexpr int VECTOR_BYTES = 64;
constexpr int TILE_ROWS = 12; // 12 x 2 accumulators, 2 loads and a broadcast: 27 of 32 registers
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32;
constexpr int TILE_ROWS = 6; // 15 of 16 registers
#else
constexpr int VECTOR_BYTES = 16;
constexpr int TILE_ROWS = 6;
#endif
constexpr int TILE_VECTORS = 2;

template <class T> struct integer_of;
template <> struct integer_of<float> {
    using type = std::uint32_t;
};
template <> struct integer_of<double> {
    using type = std::uint64_t;
};

template <class T> struct simd {
    static constexpr int width = VECTOR_BYTES / sizeof(T);
    typedef T vec __attribute__((vector_size(VECTOR_BYTES)));
    typedef T loose __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
    typedef typename integer_of<T>::type ints __attribute__((vector_size(VECTOR_BYTES)));

    static vec load(const T *p) { return *reinterpret_cast<const loose *>(p); }
    static void store(T *p, vec v) { *reinterpret_cast<loose *>(p) = v; }
    static vec fill(T x) { return x - vec{}; }
    static vec min(vec a, vec b) { return a < b ? a : b; }
    static vec max(vec a, vec b) { return a > b ? a : b; }

    // Load the first n < width elements, with zeros after them.
    static vec load_first(const T *p, int n) {
#if defined(__AVX512F__)
        if constexpr (sizeof(T) == 4)
            return (vec)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
        else
            return (vec)_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), p);
#elif defined(__AVX2__) && !defined(CPRIME_EMULATE_AVX512)
        alignas(32) static constexpr std::int32_t bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
        const int *first = bits + 8 - n * static_cast<int>(sizeof(T) / 4); // one set word per word to read
        const __m256i mask = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(first));
        if constexpr (sizeof(T) == 4)
            return (vec)_mm256_maskload_ps(p, mask);
        else
            return (vec)_mm256_maskload_pd(p, mask);
#else
        vec v{};
        for (int i = 0; i < n; ++i)
            v[i] = p[i];
        return v;
#endif
    }

    // Transpose: rows[i][j] becomes rows[j][i], in log2(width) rounds of exchanges between rows `step` apart.
    template <int step = 1> static void transpose(vec (&rows)[width]) {
#pragma GCC unroll 16
        for (int i = 0; i < width; ++i)
            if (!(i & step))
                exchange<step>(rows[i], rows[i + step], std::make_integer_sequence<int, width>());
        if constexpr (2 * step < width)
            transpose<2 * step>(rows);
    }

    template <int step, int... lane> static void exchange(vec &a, vec &b, std::integer_sequence<int, lane...>) {
        const vec low = __builtin_shufflevector(a, b, (lane & step ? width + lane - step : lane)...);
        b = __builtin_shufflevector(a, b, (lane & step ? width + lane : lane + step)...);
        a = low;
    }

    // Return a mask whose bit i is set unless a[i] > b[i]; it is set if they are unordered (NaN).
    static std::uint32_t mask_not_above(vec a, vec b) {
#if defined(__AVX512F__)
        if constexpr (sizeof(T) == 4)
            return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NGT_UQ);
        else
            return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_NGT_UQ);
#elif defined(__AVX2__) && !defined(CPRIME_EMULATE_AVX512)
        if constexpr (sizeof(T) == 4)
            return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_NGT_UQ)));
        else
            return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_NGT_UQ)));
#elif defined(__SSE2__) && !defined(CPRIME_EMULATE_AVX512)
        if constexpr (sizeof(T) == 4)
            return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_cmpngt_ps((__m128)a, (__m128)b)));
        else
            return static_cast<std::uint32_t>(_mm_movemask_pd(_mm_cmpngt_pd((__m128d)a, (__m128d)b)));
#else
        const auto m = ~(a > b);
        std::uint32_t bits = 0;
        for (int i = 0; i < width; ++i)
            bits |= static_cast<std::uint32_t>(m[i] & 1) << i;
        return bits;
#endif
    }

    // Return whether any lane of a comparison is true.
    template <class Mask> static bool any(Mask m) {
#if defined(__AVX512F__)
        return _mm512_test_epi32_mask((__m512i)m, (__m512i)m) != 0;
#elif defined(__AVX2__) && !defined(CPRIME_EMULATE_AVX512)
        return !_mm256_testz_si256((__m256i)m, (__m256i)m);
#elif defined(__SSE2__) && !defined(CPRIME_EMULATE_AVX512)
        return _mm_movemask_epi8((__m128i)m) != 0;
#else
        typename integer_of<T>::type bits = 0;
        for (int i = 0; i < width; ++i)
            bits |= static_cast<typename integer_of<T>::type>(m[i]);
        return bits != 0;
#endif
    }

    static T sum(vec v) { // pairwise, the same order for every call
#if defined(__AVX512F__)
        if constexpr (sizeof(T) == 4)
            return _mm512_reduce_add_ps((__m512)v);
        else
            return _mm512_reduce_add_pd((__m512d)v);
#endif
        return folded(v, [](vec a, vec b) { return a + b; });
    }

    // Reduce a vector to one number by op: combine the halves of the vector, then the halves of the result, and so on.
    template <int step = width / 2, class Op> [[gnu::always_inline]] static T folded(vec v, Op op) {
        v = op(v, turned<step>(v, std::make_integer_sequence<int, width>()));
        if constexpr (step > 1)
            return folded<step / 2>(v, op);
        else
            return v[0];
    }
    template <int step, int... lane> static vec turned(vec v, std::integer_sequence<int, lane...>) {
        return __builtin_shufflevector(v, v, ((lane + step) % width)...);
    }

    // Return a vector whose lane i is the i-th of `width` vectors, reduced to one number by op: its halves are
    // combined, then the halves of the result, and so on, as in `sum`. The given vectors are overwritten.
    template <int step = width / 2, class Op> [[gnu::always_inline]] static vec joined(vec (&of)[width], Op op) {
#pragma GCC unroll 16
        for (int i = 0; i < step; ++i) {
            exchange<step>(of[i], of[i + step], std::make_integer_sequence<int, width>());
            of[i] = op(of[i], of[i + step]);
        }
        if constexpr (step > 1)
            return joined<step / 2>(of, op);
        else
            return of[0];
    }

    // Return the sums of `width` vectors, bit-identical to `sum`; the given vectors are overwritten.
    static vec sums(vec (&of)[width]) {
        return joined(of, [](vec a, vec b) { return a + b; });
    }

    static T lowest(vec v) {
#if defined(__AVX512F__)
        if constexpr (sizeof(T) == 4)
            return _mm512_reduce_min_ps((__m512)v);
        else
            return _mm512_reduce_min_pd((__m512d)v);
#endif
        return folded(v, [](vec a, vec b) { return b < a ? b : a; });
    }

    // Return e^x for x <= 0 to a few ulp (Cody-Waite reduction, Taylor polynomial); 0 if the result would be subnormal.
    static vec exp(vec x) {
        constexpr bool single = sizeof(T) == 4;
        constexpr T lowest = single ? T(-87.0) : T(-708.0);
        constexpr T magic = single ? T(12582912.0) : T(6755399441055744.0); // 1.5 * 2^(mantissa bits)
        constexpr int mantissa = single ? 23 : 52;
        constexpr T ln2_high = single ? T(0.693145751953125) : T(0.693147180369123816490);
        constexpr T ln2_low = single ? T(1.42860682030941723212e-6) : T(1.90821492927058770002e-10);
        const vec shifted = x * T(1.44269504088896340736) + magic;
        const vec n = shifted - magic;
        const vec r = (x - n * ln2_high) - n * ln2_low;
        constexpr int degree = single ? 7 : 13;
        constexpr double inverse_factorial[] = {
            1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
            1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
        vec p = fill(T(inverse_factorial[degree]));
        for (int i = degree - 1; i >= 0; --i)
            p = p * r + T(inverse_factorial[i]);
        // The integer n, shifted to the bits of the exponent. It is unsigned, because it overflows for x far below
        // `lowest`, where the result is 0.
        const ints exponent = ((ints)shifted - (ints)fill(magic)) << mantissa;
        const vec result = (vec)((ints)p + exponent);
        return x < lowest ? vec{} : result;
    }

    // Return a lower bound of log(1 + x) for 0 <= x <= max / 4, at most 9 % too small for x > 1. Between powers of two
    // the logarithm lies above its chord, and the exponent bits followed by the mantissa bits are that chord.
    static vec below_log1p(vec x) {
        constexpr bool single = sizeof(T) == 4;
        constexpr int dropped =
            single ? 8 : 32; // bits that are dropped, so that the remaining bits plus 2^mantissa are exact
        constexpr T unit = single ? T(1.0 / (1 << 15)) : T(1.0 / (1 << 20));
        const ints magic = (ints)fill(single ? T(8388608.0) : T(4503599627370496.0)); // 2^mantissa
        const ints bits = ((ints)(x + T(1)) - (ints)fill(T(1))) >> dropped;
        return ((vec)(bits | magic) - (vec)magic) * (unit * T(0.693)); // below ln 2 by more than the rounding error
    }

    // Return log(1 + x) for 0 <= x <= max / 4 to a few ulp: 1 + x = 2^k (1 + f) with 1 + f between sqrt(1/2) and
    // sqrt(2), and log(1 + f) is the series of 2 atanh(f / (2 + f)).
    static vec log1p(vec x) {
        constexpr bool single = sizeof(T) == 4;
        constexpr int mantissa = single ? 23 : 52;
        const ints one = (ints)fill(T(1)), root = (ints)fill(T(0.70710678118654752440));
        const ints magic = (ints)fill(single ? T(8388608.0) : T(4503599627370496.0)); // 2^mantissa
        const ints k = ((ints)(x + T(1)) - root) >> mantissa;
        const vec exponent = (vec)(k | magic) - (vec)magic, scale = (vec)(one - (k << mantissa));
        const vec f = x * scale + (scale - T(1)); // includes what rounding 1 + x loses
        const vec s = f / (f + T(2)), square = s * s;
        constexpr int degree = single ? 5 : 11;
        vec p = fill(T(1.0 / (2 * degree + 1)));
        for (int i = degree - 1; i >= 0; --i)
            p = p * square + T(1.0 / (2 * i + 1));
        constexpr T ln2_high = single ? T(0.693145751953125) : T(0.693147180369123816490);
        constexpr T ln2_low = single ? T(1.42860682030941723212e-6) : T(1.90821492927058770002e-10);
        return exponent * ln2_high + (exponent * ln2_low + T(2) * s * p);
    }
};

// Load numbers of either precision as a vector of doubles.
template <class T> inline simd<double>::vec load_wide(const T *p) {
    if constexpr (sizeof(T) == sizeof(double)) {
        return simd<double>::load(p);
    } else {
#if defined(__AVX512F__)
        return (simd<double>::vec)_mm512_cvtps_pd(_mm256_loadu_ps(p)); // compilers split this into two halves
#endif
        typedef T half __attribute__((vector_size(VECTOR_BYTES / 2), aligned(sizeof(T)), may_alias));
        return __builtin_convertvector(*reinterpret_cast<const half *>(p), simd<double>::vec);
    }
}

// Prefetch n numbers, because rows may be scattered in memory; locality: argument of __builtin_prefetch. Compilers
// remove calls of a function that only prefetches, as if it had no effect. The empty asm statement prevents that.
template <int locality = 3, class T> [[gnu::always_inline]] inline void prefetch(const T *p, std::size_t n) {
    asm volatile("");
    for (std::size_t byte = 0; byte < n * sizeof(T); byte += 64)
        __builtin_prefetch(reinterpret_cast<const char *>(p) + byte, 0, locality);
}

// Memory (address and number of bytes) to prefetch, perhaps none.
struct Ahead {
    const char *at = nullptr;
    std::size_t bytes = 0;
};

template <int locality = 3> [[gnu::always_inline]] inline void fetch(const Ahead &some) {
    prefetch<locality>(some.at, some.bytes);
    if (some.bytes) // the memory may begin within a cache line
        __builtin_prefetch(some.at + some.bytes - 1, 0, locality);
}

// Return the squared distance, or infinity if it is NaN, so that distances can be ordered.
template <class T> inline T comparable(T square) {
    return square == square ? square : std::numeric_limits<T>::infinity();
}

// Return parts, one per lane, of |x - m|^2 over D elements, from differences: relative error of order D ulp for any
// origin.
template <class T> inline typename simd<T>::vec square_parts(const T *x, const T *m, int D) {
    using V = simd<T>;
    constexpr int W = V::width;
    typename V::vec a{}, b{};
    int k = 0;
    for (; k + 2 * W <= D; k += 2 * W) {
        const auto p = V::load(x + k) - V::load(m + k);
        const auto q = V::load(x + k + W) - V::load(m + k + W);
        a += p * p;
        b += q * q;
    }
    if (k + W <= D) {
        const auto p = V::load(x + k) - V::load(m + k);
        a += p * p;
        k += W;
    }
    if (k < D) {
        const auto p = V::load_first(x + k, D - k) - V::load_first(m + k, D - k);
        b += p * p;
    }
    return a + b;
}

template <class T> inline T squared_distance(const T *x, const T *m, int D) {
    return simd<T>::sum(square_parts(x, m, D));
}

// Return squared distances of n <= width pairs of rows, bit-identical to `squared_distance`; pair(i) returns the
// addresses of both rows.
template <class T, class Pair> inline typename simd<T>::vec squared_distances(Pair pair, int n, int D) {
    typename simd<T>::vec parts[simd<T>::width];
    for (int i = 0; i < n; ++i) {
        const auto [x, m] = pair(i);
        parts[i] = square_parts<T>(x, m, D);
    }
    for (int i = n; i < simd<T>::width; ++i)
        parts[i] = typename simd<T>::vec{};
    return simd<T>::sums(parts);
}

// Memory of one thread, from which scratch arrays are allocated as from a stack, so that allocating small ones takes
// almost no time.
class Arena {
  public:
    static Arena &of_thread() {
        thread_local Arena arena;
        return arena;
    }
    ~Arena() { ::operator delete(data_, std::align_val_t(64)); }

    // Allocate memory; return null if there is no room.
    char *take(std::size_t bytes) {
        if (!data_)
            data_ = static_cast<char *>(::operator new(SIZE, std::align_val_t(64)));
        if (bytes > SIZE - used_)
            return nullptr;
        char *p = data_ + used_;
        used_ += bytes;
        return p;
    }
    void give_back(std::size_t bytes) { used_ -= bytes; }

  private:
    static constexpr std::size_t SIZE = std::size_t(1) << 20;
    char *data_ = nullptr;
    std::size_t used_ = 0;
};

#if defined(__SANITIZE_ADDRESS__)
constexpr bool ARENAS = false; // every array has its exact size, so that accesses beyond it are found
#else
constexpr bool ARENAS = true;
#endif

// Scratch array, aligned to vectors, which is freed at the end of its scope.
template <class T> class Scratch {
  public:
    explicit Scratch(std::size_t n)
        : bytes_(ARENAS ? (n * sizeof(T) + 64) / 64 * 64 : n * sizeof(T)),
          data_(ARENAS ? Arena::of_thread().take(bytes_) : nullptr) {
        if (!data_) {
            own_ = true;
            data_ = static_cast<char *>(::operator new(bytes_, std::align_val_t(64)));
        }
    }
    ~Scratch() {
        if (own_)
            ::operator delete(data_, std::align_val_t(64));
        else
            Arena::of_thread().give_back(bytes_);
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    operator T *() const { return get(); }
    T *get() const { return reinterpret_cast<T *>(data_); }

  private:
    std::size_t bytes_;
    char *data_;
    bool own_ = false;
};

} // namespace cprime::CPRIME_ISA
