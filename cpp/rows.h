// Rows as arguments of kernels: centers and similar rows in the type of the arithmetic, points in that or a narrower
// type.
#pragma once
#include "inlined.h"

#include <cstddef>
#include <cstdint>

namespace cprime {

// n rows of D numbers, `stride` numbers apart.
template <class T> struct Rows {
    const T *data;
    std::ptrdiff_t stride;
    std::size_t n;
    int D;
    CPRIME_INLINED const T *operator[](std::size_t i) const { return data + static_cast<std::ptrdiff_t>(i) * stride; }
};

// How the numbers of rows are stored: in the type of the arithmetic, as bytes, or as 16-bit floats (IEEE half, and
// bfloat16, the upper half of a float32). Rows that are in the type of the arithmetic but in another order, `ordered`,
// are read as those of the narrower types: they are copied a few at a time.
enum class Stored : std::uint8_t { own, uint8, int8, half, bhalf, ordered };

template <class T> struct Points;

// Ring of slots with the converted rows that a kernel has read last.
template <class T> struct Slots {
    const T *(*read)(Slots &, const Points<T> &, std::size_t);
    T *numbers;
    std::size_t step; // numbers from one slot to the next
    std::size_t last; // the row that was read last, which is in slot `turn`
    int n, turn;
};

// n rows of D numbers, which may be stored in a narrower type and in another order: the data points, while centers are
// `Rows`. A converted row remains valid until as many others have been read as there are slots.
template <class T> struct Points {
    const char *data = nullptr;
    std::ptrdiff_t stride = 0; // bytes
    std::size_t n = 0;
    int D = 0;
    Stored stored = Stored::own;
    const std::int64_t *order = nullptr; // (n,) position at which each row is stored, or null; only for converted rows
    const T *lengths = nullptr;          // divisors of the stored rows, or null; only for converted rows
    Slots<T> *slots = nullptr;           // only for converted rows, while a kernel runs

    Points() = default;
    CPRIME_INLINED Points(const Rows<T> &rows)
        : data(reinterpret_cast<const char *>(rows.data)), stride(rows.stride * std::ptrdiff_t(sizeof(T))), n(rows.n),
          D(rows.D) {}

    CPRIME_INLINED const T *operator[](std::size_t i) const {
        if (__builtin_expect(slots != nullptr, 0))
            return slots->read(*slots, *this, i);
        return reinterpret_cast<const T *>(data + static_cast<std::ptrdiff_t>(i) * stride);
    }
    // Return the bytes of a number, and of a row, as they are stored.
    CPRIME_INLINED std::size_t number_bytes() const {
        if (stored == Stored::own || stored == Stored::ordered)
            return sizeof(T);
        return stored == Stored::uint8 || stored == Stored::int8 ? 1 : 2;
    }
    CPRIME_INLINED std::size_t row_bytes() const { return static_cast<std::size_t>(D) * number_bytes(); }
    // Return the position at which row i is stored, and its address.
    CPRIME_INLINED std::size_t place(std::size_t i) const { return order ? static_cast<std::size_t>(order[i]) : i; }
    CPRIME_INLINED const char *address(std::size_t i) const {
        return data + static_cast<std::ptrdiff_t>(place(i)) * stride;
    }
    // Return the `count` rows from `first` on.
    CPRIME_INLINED Points from(std::size_t first, std::size_t count) const {
        Points some = *this;
        some.n = count;
        if (order) {
            some.order += first;
            return some;
        }
        some.data += static_cast<std::ptrdiff_t>(first) * stride;
        if (lengths)
            some.lengths += first;
        return some;
    }
};

} // namespace cprime
