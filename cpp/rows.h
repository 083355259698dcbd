// Rows as kernels see them: centres and their like in the type of the arithmetic, points in that or a narrower one.
#pragma once
#include "inlined.h"

#include <cstddef>
#include <cstdint>

namespace cprime {

// N rows of D numbers, `stride` apart.
template <class T> struct Rows {
    const T *data;
    std::ptrdiff_t stride;
    std::size_t n;
    int D;
    CPRIME_INLINED const T *operator[](std::size_t i) const { return data + static_cast<std::ptrdiff_t>(i) * stride; }
};

// How the numbers of rows are stored: as the arithmetic has them, as bytes, or as floats of 16 bits (of IEEE 754, and
// the upper halves of float32).
enum class Stored : std::uint8_t { own, uint8, int8, half, bhalf };

CPRIME_INLINED int bytes_of(Stored stored) { return stored == Stored::uint8 || stored == Stored::int8 ? 1 : 2; }

template <class T> struct Points;

// Where a kernel has the rows that it has asked for last, converted.
template <class T> struct Slots {
    const T *(*read)(Slots &, const Points<T> &, std::size_t);
    T *numbers;
    std::size_t step; // from one slot to the next
    std::size_t last; // the row that was read last, which is in slot `turn`
    int n, turn;
};

// N rows of D numbers that may be stored otherwise, and lie in another order: the rows of data, where centres are
// `Rows`. A row that has to be converted is there until as many others as there are slots have been read.
template <class T> struct Points {
    const char *data = nullptr;
    std::ptrdiff_t stride = 0; // bytes
    std::size_t n = 0;
    int D = 0;
    Stored stored = Stored::own;
    const std::int64_t *order = nullptr; // (n,) which row each is, or null; of what is converted
    const T *lengths = nullptr;          // of what is converted, by which rows as they are stored are divided; or null
    Slots<T> *slots = nullptr;           // of what is converted, while a kernel runs

    Points() = default;
    CPRIME_INLINED Points(const Rows<T> &rows)
        : data(reinterpret_cast<const char *>(rows.data)), stride(rows.stride * std::ptrdiff_t(sizeof(T))), n(rows.n),
          D(rows.D) {}

    CPRIME_INLINED const T *operator[](std::size_t i) const {
        if (__builtin_expect(slots != nullptr, 0))
            return slots->read(*slots, *this, i);
        return reinterpret_cast<const T *>(data + static_cast<std::ptrdiff_t>(i) * stride);
    }
    // As the how manieth row i is stored, and where.
    CPRIME_INLINED std::size_t place(std::size_t i) const { return order ? static_cast<std::size_t>(order[i]) : i; }
    CPRIME_INLINED const char *address(std::size_t i) const {
        return data + static_cast<std::ptrdiff_t>(place(i)) * stride;
    }
    // `count` rows from `first` on.
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
