// Conversion of rows from a narrower stored type when they are read: a piece of consecutive rows at once, a few rows at
// any positions at a time, or one by one into slots that stay in the cache.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels.h"
#include "simd.h"

namespace cprime::CPRIME_ISA {

// Convert an IEEE half by integer operations. A subnormal half is an integer times 2^-24, so that no subnormal float
// occurs.
inline float from_half(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16, rest = half & 0x7fffu;
    const float small = static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f;
    std::uint32_t bits, tiny;
    std::memcpy(&tiny, &small, sizeof tiny);
    bits = (rest << 13) + (rest < 0x7c00u ? 112u << 23 : 224u << 23); // infinity and NaN have the greatest exponent
    bits = (rest < 0x0400u ? tiny : bits) | sign;
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}

inline float from_bhalf(std::uint16_t half) {
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}

#if defined(__AVX512BW__) && defined(__AVX512VL__)
// Load sixteen numbers. Those that the mask excludes are not accessed, and become zeros.
template <Stored stored> inline __m512 wide_vector(const void *from, __mmask16 mask) {
    if constexpr (stored == Stored::uint8)
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from)));
    else if constexpr (stored == Stored::int8)
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, from)));
    else if constexpr (stored == Stored::half)
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
    else
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16));
}
#endif

// Convert `count` contiguous numbers.
template <Stored stored, class T> inline void widen_as(const char *from, T *__restrict out, std::size_t count) {
    if constexpr (stored == Stored::ordered) {
        std::memcpy(out, from, count * sizeof(T));
        return;
    }
    using Number = std::conditional_t<stored == Stored::uint8, std::uint8_t,
                                      std::conditional_t<stored == Stored::int8, std::int8_t, std::uint16_t>>;
    const auto *__restrict in = reinterpret_cast<const Number *>(from);
    std::size_t k = 0;
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    if constexpr (sizeof(T) == sizeof(float)) {
        for (; k + 16 <= count; k += 16)
            _mm512_storeu_ps(out + k, wide_vector<stored>(in + k, 0xffff));
        if (k < count) {
            const auto mask = static_cast<__mmask16>((1u << (count - k)) - 1);
            _mm512_mask_storeu_ps(out + k, mask, wide_vector<stored>(in + k, mask));
        }
        return;
    }
#elif defined(__F16C__)
    if constexpr (stored == Stored::half && sizeof(T) == sizeof(float))
        for (; k + 8 <= count; k += 8)
            _mm256_storeu_ps(out + k, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(in + k))));
#endif
    for (; k < count; ++k)
        if constexpr (stored == Stored::half)
            out[k] = static_cast<T>(from_half(in[k]));
        else if constexpr (stored == Stored::bhalf)
            out[k] = static_cast<T>(from_bhalf(in[k]));
        else
            out[k] = static_cast<T>(in[k]);
}

// Call use(type) with a type that encodes how numbers are stored.
template <class Use> inline auto of_type(Stored stored, Use use) {
    switch (stored) {
    case Stored::uint8:
        return use(std::integral_constant<Stored, Stored::uint8>());
    case Stored::int8:
        return use(std::integral_constant<Stored, Stored::int8>());
    case Stored::half:
        return use(std::integral_constant<Stored, Stored::half>());
    case Stored::ordered:
        return use(std::integral_constant<Stored, Stored::ordered>());
    default:
        return use(std::integral_constant<Stored, Stored::bhalf>());
    }
}

template <Stored stored, class T> inline void widen_row(const Points<T> &X, std::size_t i, T *__restrict out) {
    widen_as<stored>(X.address(i), out, static_cast<std::size_t>(X.D));
    if (!X.lengths)
        return;
    const T length = X.lengths[X.place(i)];
    for (int k = 0; k < X.D; ++k)
        out[k] /= length;
}

// Return the memory of a row as it is stored.
template <class T> inline Ahead stored_row(const Points<T> &X, std::size_t i) { return {X.address(i), X.row_bytes()}; }

template <int locality = 3, class T> [[gnu::always_inline]] inline void fetch(const Points<T> &X, std::size_t i) {
    fetch<locality>(stored_row(X, i));
}

// Return how many rows ahead to prefetch: narrow rows arrive fast if many of them are requested at once.
template <class T> inline std::size_t rows_ahead(const Points<T> &X) {
    return std::clamp<std::size_t>(8192 / std::max<std::size_t>(X.row_bytes(), 1), 8, 32);
}

// Convert rows [begin, end) to consecutive rows of `out`. The rows after them are prefetched, because they are likely
// next.
template <class T> inline void widen_rows(const Points<T> &X, std::size_t begin, std::size_t end, T *out) {
    const auto D = static_cast<std::size_t>(X.D);
    const std::size_t ahead = rows_ahead(X);
    const bool dense = !X.order && !X.lengths && X.stride == static_cast<std::ptrdiff_t>(X.row_bytes());
    of_type(X.stored, [&](auto stored) {
        if (dense)
            return widen_as<stored>(X.address(begin), out, (end - begin) * D);
        for (std::size_t i = begin; i < end; ++i) {
            if (i + ahead < X.n) // because rows may be scattered in memory
                fetch(X, i + ahead);
            widen_row<stored>(X, i, out + (i - begin) * D);
        }
    });
}

// Return rows that are stored in the type of the arithmetic, without conversion.
template <class T> inline Rows<T> stored_as_read(const Points<T> &X) {
    return {reinterpret_cast<const T *>(X.data), X.stride / static_cast<std::ptrdiff_t>(sizeof(T)), X.n, X.D};
}

// Memory for some converted rows; empty if no conversion is needed.
template <class T> class Wide {
  public:
    Wide(const Points<T> &X, std::size_t n)
        : numbers_(X.stored == Stored::own ? 0 : n * static_cast<std::size_t>(X.D)) {}
    operator T *() const { return numbers_; }

  private:
    Scratch<T> numbers_;
};

// Return rows [begin, end), converted into `wide` if necessary.
template <class T>
inline Rows<T> rows_of(const Points<T> &X, std::size_t begin, std::size_t end, const Wide<T> &wide) {
    if (X.stored == Stored::own)
        return stored_as_read(X.from(begin, end - begin));
    T *out = wide;
    widen_rows(X, begin, end, out);
    return {out, X.D, end - begin, X.D};
}

// Return how many of n rows to convert at a time, so that they stay in the cache; n if no conversion is needed.
template <class T> inline std::size_t rows_near(const Points<T> &X, std::size_t n) {
    return X.stored == Stored::own ? n : std::clamp<std::size_t>(4096 / std::max(X.D, 1), 1, 64);
}

// Call use(i, x) for rows x of [begin, end), which are converted in pieces.
template <class T, class Use>
[[gnu::always_inline]] inline void for_each_row(const Points<T> &X, std::size_t begin, std::size_t end, Use use) {
    const std::size_t step = rows_near(X, end - begin);
    const Wide<T> wide(X, step);
    for (std::size_t first = begin; first < end; first += step) {
        const std::size_t last = std::min(end, first + step);
        const Rows<T> rows = rows_of(X, first, last, wide);
        for (std::size_t i = first; i < last; ++i)
            use(i, rows[i - first]);
    }
}

// Memory for a few converted rows at any positions; empty if no conversion is needed.
template <class T> class Gathered {
  public:
    Gathered(const Points<T> &X, std::size_t most)
        : step_((static_cast<std::size_t>(X.D) + 15) / 16 * 16), numbers_(X.stored == Stored::own ? 0 : most * step_) {}

    // Write the addresses of n rows to `out`; number(i) is the number of the i-th row. Converted rows are stored at
    // places from `first` on.
    template <class Number>
    void read(const Points<T> &X, Number number, int n, const T **out, std::size_t first = 0) const {
        if (X.stored == Stored::own) {
            for (int i = 0; i < n; ++i)
                out[i] = reinterpret_cast<const T *>(X.data + static_cast<std::ptrdiff_t>(number(i)) * X.stride);
            return;
        }
        T *to = numbers_ + first * step_;
        of_type(X.stored, [&](auto stored) {
            for (int i = 0; i < n; ++i, to += step_) {
                widen_row<stored>(X, number(i), to);
                out[i] = to;
            }
        });
    }

  private:
    std::size_t step_; // numbers per row, whole vectors
    Scratch<T> numbers_;
};

// Call use(e, n, x) for e in [begin, end) in order, where x is row n = number(e). The rows of the next entries, of all
// n_entries, are prefetched.
template <class T, class Number, class Use>
[[gnu::always_inline]] inline void for_each_of(const Points<T> &X, Number number, std::size_t begin, std::size_t end,
                                               std::size_t n_entries, Use use) {
    constexpr std::size_t STEP = 8;
    const auto coming = [&](std::size_t e) { return e < n_entries ? stored_row(X, number(e)) : Ahead{}; };
    if (X.stored == Stored::own) {
        const Rows<T> rows = stored_as_read(X);
        for (std::size_t e = begin; e < end; ++e) {
            fetch(coming(e + STEP));
            const std::size_t n = number(e);
            use(e, n, rows[n]);
        }
        return;
    }
    const std::size_t ahead = rows_ahead(X);
    const Gathered<T> gathered(X, STEP);
    const T *rows[STEP];
    for (std::size_t first = begin; first < end; first += STEP) {
        const std::size_t n = std::min(STEP, end - first);
        for (std::size_t i = 0; i < n; ++i)
            fetch(coming(first + ahead + i));
        gathered.read(X, [&](int i) { return number(first + static_cast<std::size_t>(i)); }, static_cast<int>(n), rows);
        for (std::size_t i = 0; i < n; ++i)
            use(first + i, number(first + i), rows[i]);
    }
}

template <Stored stored, class T>
inline const T *read_into_slot(Slots<T> &slots, const Points<T> &X, std::size_t i) {
    if (slots.last != i) {
        slots.last = i;
        slots.turn = slots.turn + 1 == slots.n ? 0 : slots.turn + 1;
        widen_row<stored>(X, i, slots.numbers + static_cast<std::size_t>(slots.turn) * slots.step);
    }
    return slots.numbers + static_cast<std::size_t>(slots.turn) * slots.step;
}

// Greatest number of rows whose addresses a kernel holds at the same time, with some to spare.
constexpr int SLOTS = 48;

template <class T> Points<T> &points_of(Points<T> &X) { return X; }
template <class T> const Points<T> &points_of(const Points<T> &X) { return X; }
template <class Task> auto points_of(Task &task) -> decltype((task.X)) { return task.X; }
template <class Task> auto points_of(Task &task) -> decltype((task.nearest.X)) { return task.nearest.X; }

// A kernel that uses at most `n` rows at the same time. Rows of a narrower stored type are converted, when the kernel
// reads them, into as many slots.
template <auto kernel, int n = SLOTS> struct Slotted;
template <class Result, class Task, class... More, Result (*kernel)(const Task &, More...), int n>
struct Slotted<kernel, n> {
    static Result run(const Task &task, More... more) {
        if (points_of(task).stored == Stored::own)
            return kernel(task, more...);
        return converting(task, more...);
    }

  private:
    template <class T> static T number(const Points<T> &);
    [[gnu::noinline]] static Result converting(const Task &task, More... more) {
        Task own = task;
        auto &X = points_of(own);
        using T = decltype(number(X));
        const std::size_t step = (static_cast<std::size_t>(X.D) + 15) / 16 * 16;
        Scratch<T> numbers(step * n);
        const auto read = of_type(X.stored, [](auto stored) { return read_into_slot<stored, T>; });
        Slots<T> slots{read, numbers, step, X.n, n, 0}; // X.n: no row has been read
        X.slots = &slots;
        return kernel(own, more...);
    }
};

} // namespace cprime::CPRIME_ISA
