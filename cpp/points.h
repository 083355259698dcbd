// Rows that are stored in fewer bits than the arithmetic has, converted where they are read: one by one into slots near
// the processor, or a piece of them at once.
#pragma once
#include <cstring>

#include "kernels.h"
#include "simd.h"

namespace cprime::CPRIME_ISA {

// Halves by integers: that of a subnormal one is so many times 2^-24, so no conversion meets a subnormal number.
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

template <class T> inline void widen_halves(const std::uint16_t *__restrict in, T *__restrict out, std::size_t count) {
    std::size_t k = 0;
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == sizeof(float))
        for (; k + 16 <= count; k += 16)
            _mm512_storeu_ps(out + k, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(in + k))));
#endif
    for (; k < count; ++k)
        out[k] = static_cast<T>(from_half(in[k]));
}

// `count` numbers that lie side by side.
template <class T> inline void widen(Stored stored, const char *from, T *__restrict out, std::size_t count) {
    const auto each = [&](auto number, auto convert) {
        const auto *__restrict in = reinterpret_cast<const decltype(number) *>(from);
        for (std::size_t k = 0; k < count; ++k)
            out[k] = static_cast<T>(convert(in[k]));
    };
    switch (stored) {
    case Stored::uint8:
        return each(std::uint8_t(), [](std::uint8_t x) { return static_cast<float>(x); });
    case Stored::int8:
        return each(std::int8_t(), [](std::int8_t x) { return static_cast<float>(x); });
    case Stored::half:
        return widen_halves(reinterpret_cast<const std::uint16_t *>(from), out, count);
    case Stored::bhalf:
        return each(std::uint16_t(), from_bhalf);
    case Stored::own:
        std::memcpy(out, from, count * sizeof(T));
    }
}

template <class T> inline void widen_row(const Points<T> &X, std::size_t i, T *__restrict out) {
    widen(X.stored, X.address(i), out, static_cast<std::size_t>(X.D));
    if (!X.lengths)
        return;
    const T length = X.lengths[X.place(i)];
    for (int k = 0; k < X.D; ++k)
        out[k] /= length;
}

// Rows [begin, end), one behind the other in `out`.
template <class T> inline void widen_rows(const Points<T> &X, std::size_t begin, std::size_t end, T *out) {
    const auto D = static_cast<std::size_t>(X.D);
    if (!X.order && !X.lengths && X.stride == static_cast<std::ptrdiff_t>(D) * bytes_of(X.stored))
        return widen(X.stored, X.address(begin), out, (end - begin) * D);
    for (std::size_t i = begin; i < end; ++i, out += D)
        widen_row(X, i, out);
}

// Rows that are stored as the arithmetic has them.
template <class T> inline Rows<T> stored_as_read(const Points<T> &X) {
    return {reinterpret_cast<const T *>(X.data), X.stride / static_cast<std::ptrdiff_t>(sizeof(T)), X.n, X.D};
}

// Where some rows are that have been converted; nothing where they need not be.
template <class T> class Wide {
  public:
    Wide(const Points<T> &X, std::size_t n)
        : numbers_(X.stored == Stored::own ? 0 : n * static_cast<std::size_t>(X.D)) {}
    operator T *() const { return numbers_; }

  private:
    Scratch<T> numbers_;
};

// Rows [begin, end), which lie in `wide` where they have to be converted.
template <class T>
inline Rows<T> rows_of(const Points<T> &X, std::size_t begin, std::size_t end, const Wide<T> &wide) {
    if (X.stored == Stored::own)
        return stored_as_read(X.from(begin, end - begin));
    T *out = wide;
    widen_rows(X, begin, end, out);
    return {out, X.D, end - begin, X.D};
}

// A row as it is stored.
template <class T> inline Ahead stored_row(const Points<T> &X, std::size_t i) {
    const std::size_t size = X.stored == Stored::own ? sizeof(T) : static_cast<std::size_t>(bytes_of(X.stored));
    return {X.address(i), static_cast<std::size_t>(X.D) * size};
}

template <int locality = 3, class T> [[gnu::always_inline]] inline void fetch(const Points<T> &X, std::size_t i) {
    const Ahead row = stored_row(X, i);
    prefetch<locality>(row.at, row.bytes);
}

template <class T> inline const T *read_into_slot(Slots<T> &slots, const Points<T> &X, std::size_t i) {
    if (slots.last != i) {
        slots.last = i;
        slots.turn = slots.turn + 1 == slots.n ? 0 : slots.turn + 1;
        widen_row(X, i, slots.numbers + static_cast<std::size_t>(slots.turn) * slots.step);
    }
    return slots.numbers + static_cast<std::size_t>(slots.turn) * slots.step;
}

// The addresses of n rows, number(i) being the i-th, in `out`.
template <class T, class Number> inline void addresses(const Points<T> &X, Number number, int n, const T **out) {
    if (X.slots)
        for (int i = 0; i < n; ++i)
            out[i] = X.slots->read(*X.slots, X, number(i));
    else
        for (int i = 0; i < n; ++i)
            out[i] = reinterpret_cast<const T *>(X.data + static_cast<std::ptrdiff_t>(number(i)) * X.stride);
}

// Most rows whose addresses a kernel holds at the same time, with some to spare.
constexpr int SLOTS = 48;

template <class T> Points<T> &points_of(Points<T> &X) { return X; }
template <class T> const Points<T> &points_of(const Points<T> &X) { return X; }
template <class Task> auto points_of(Task &task) -> decltype((task.X)) { return task.X; }
template <class Task> auto points_of(Task &task) -> decltype((task.nearest.X)) { return task.nearest.X; }

// A kernel, `n` of whose rows may be in use at the same time: what is not stored as the arithmetic has it is read
// through as many slots.
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
        Slots<T> slots{read_into_slot<T>, numbers, step, X.n, n, 0}; // X.n is no row
        X.slots = &slots;
        return kernel(own, more...);
    }
};

} // namespace cprime::CPRIME_ISA
