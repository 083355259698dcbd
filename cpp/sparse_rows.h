// Squared distances of sparse rows to dense ones, as accurate as from differences.
//
// |x - m|^2 is the sum of (x_k - m_k)^2 over the entries of x, plus the part of |m|^2 from all other columns. The first
// is a sum of squares, the second a difference of sums in twofold precision, so nothing cancels, for any origin.
#pragma once
#include <algorithm>
#include <cmath>

#include "simd.h"
#include "sparse.h"

namespace cprime::CPRIME_ISA {

constexpr int TWOFOLD_LANES = 8;    // independent sums
constexpr double NOTHING = 0x1p-80; // share of |m|^2 below which a difference from it is rounding error

// Sums of squares in twofold precision.
struct Squares {
    double high[TWOFOLD_LANES] = {}, low[TWOFOLD_LANES] = {};

    template <class T> void add(int lane, T m) {
        const double wide = static_cast<double>(m);
        const Twofold square = sizeof(T) == sizeof(float) ? Twofold{wide * wide, 0} : exact_product(wide, wide);
        const Twofold sum = exact_sum(high[lane], square.high);
        high[lane] = sum.high;
        low[lane] += sum.low + square.low;
    }
    Twofold total() const {
        Twofold sum{};
        for (int j = 0; j < TWOFOLD_LANES; ++j)
            sum = sum + renormalised(high[j], low[j]);
        return sum;
    }
};

template <class T> inline Twofold square_of(const T *m, int D) {
    constexpr int L = TWOFOLD_LANES;
    Squares squares;
    int k = 0;
    for (; k + L <= D; k += L)
        for (int j = 0; j < L; ++j)
            squares.add(j, m[k + j]);
    for (int j = 0; k + j < D; ++j)
        squares.add(j, m[k + j]);
    return squares.total();
}

template <class T> inline void squares(const Rows<T> &centers, Twofold *out, std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c)
        out[c] = square_of(centers[c], centers.D);
}

// Return |x|^2 in double precision.
template <class T> inline double square_of(const SparseRow<T> &x) {
    double sum[4] = {};
    for (std::int64_t k = 0; k < x.length; ++k)
        sum[k % 4] += static_cast<double>(x.values[k]) * static_cast<double>(x.values[k]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Return |x - m|^2; square: |m|^2.
template <class T> inline T measured(const SparseRow<T> &x, const T *m, Twofold square) {
    constexpr int L = TWOFOLD_LANES;
    Squares held;
    double differences[L] = {};
    const auto add = [&](std::int64_t k, int j) {
        const T there = m[x.columns[k + j]];
        const T difference = x.values[k + j] - there;
        differences[j] += static_cast<double>(difference) * static_cast<double>(difference);
        held.add(j, there);
    };
    std::int64_t k = 0;
    for (; k + L <= x.length; k += L)
        for (int j = 0; j < L; ++j)
            add(k, j);
    for (int j = 0; k + j < x.length; ++j)
        add(k, j);
    double sum = 0;
    for (int j = 0; j < L; ++j)
        sum += differences[j];
    const double left = (square - held.total()).high;
    return comparable(static_cast<T>(left > NOTHING * square.high ? sum + left : sum));
}

// Bound of the rounding error of a row's scores |m|^2 / 2 - x m: share (|x||m| + |m|^2 / 2) + least.
template <class T> struct SparseRowBound {
    T square, norm, share, least;

    explicit SparseRowBound(const SparseRow<T> &x) {
        constexpr T ulp = std::numeric_limits<T>::epsilon();
        const double exact = square_of(x);
        const T length = static_cast<T>(x.length);
        square = static_cast<T>(exact);
        norm = static_cast<T>(std::sqrt(exact)) * (1 + 4 * ulp);
        share = (length + 12) * ulp / 2 * T(1.05);
        // errors of |x|^2 and of squared distances, which are compared in type T
        least = (length + 12) * ulp * square + (length + 12) * std::numeric_limits<T>::min();
    }
};

// Candidates of one row: a few components whose scores may be the least.
template <class T> class SparseScreen {
  public:
    static constexpr int CAPACITY = 16;

    void open(T bar) {
        bar_ = bar;
        count_ = 0;
    }
    T bar() const { return bar_; }
    void narrow(T bar) { bar_ = std::min(bar_, bar); }
    void add(T low, std::int32_t id) {
        if (count_ == CAPACITY)
            close();
        if (count_ < CAPACITY)
            found_[count_++] = {low, id};
        else
            count_ = CAPACITY + 1;
    }
    // Remove excluded candidates, and leave the others in order; return false if there were more than fit.
    bool close() {
        if (count_ > CAPACITY)
            return false;
        int left = 0;
        for (int i = 0; i < count_; ++i)
            if (!(found_[i].low > bar_))
                found_[left++] = found_[i];
        count_ = left;
        return true;
    }
    int size() const { return count_; }
    std::int32_t operator[](int i) const { return found_[i].id; }

  private:
    struct Found {
        T low;
        std::int32_t id;
    };
    T bar_;
    int count_;
    Found found_[CAPACITY];
};

// Compute scores: `start` minus the products of a sparse row with N vectors of packed centers.
template <int N, class T>
inline void sparse_scores(const T *values, const std::int32_t *places, std::int64_t length, const T *columns,
                          const T *start, typename simd<T>::vec (&score)[N]) {
    using V = simd<T>;
    constexpr int W = V::width;
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v)
        score[v] = V::load(start + v * W);
    for (std::int64_t k = 0; k < length; ++k) {
        const T *column = columns + static_cast<std::size_t>(places[k]) * (N * W);
        const auto x = V::fill(values[k]);
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v)
            score[v] -= x * V::load(column + v * W);
    }
}

} // namespace cprime::CPRIME_ISA
