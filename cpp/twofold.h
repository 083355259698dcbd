// Numbers of twice the precision: a double, and the rounding error of that double (Dekker 1971; Knuth, TAOCP 2, 4.2.2).
// This file must not be compiled with -ffast-math.
#pragma once
#include "inlined.h"

#include <cmath>

namespace cprime {

struct Twofold {
    double high = 0, low = 0; // |low| is at most half a unit in the last place of high
};

CPRIME_INLINED Twofold exact_sum(double a, double b) {
    const double sum = a + b, part = sum - a;
    return {sum, (a - (sum - part)) + (b - part)};
}

CPRIME_INLINED Twofold exact_product(double a, double b) {
    const double product = a * b;
#if defined(FP_FAST_FMA)
    return {product, std::fma(a, b, -product)};
#else
    constexpr double SPLIT = 134217729; // 2^27 + 1 splits a number into halves whose products are exact
    const double p = SPLIT * a, q = SPLIT * b;
    const double a_high = p - (p - a), a_low = a - a_high, b_high = q - (q - b), b_low = b - b_high;
    return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
#endif
}

CPRIME_INLINED Twofold renormalised(double high, double low) {
    const double sum = high + low;
    return {sum, low - (sum - high)};
}

CPRIME_INLINED Twofold operator+(Twofold a, Twofold b) {
    const Twofold sum = exact_sum(a.high, b.high);
    return renormalised(sum.high, sum.low + (a.low + b.low));
}

CPRIME_INLINED Twofold operator-(Twofold a, Twofold b) { return a + Twofold{-b.high, -b.low}; }

CPRIME_INLINED Twofold operator*(Twofold a, Twofold b) {
    const Twofold product = exact_product(a.high, b.high);
    return renormalised(product.high, product.low + (a.high * b.low + a.low * b.high));
}

CPRIME_INLINED Twofold operator/(Twofold a, Twofold b) {
    const double quotient = a.high / b.high;
    const Twofold rest = a - Twofold{quotient, 0} * b;
    return renormalised(quotient, rest.high / b.high);
}

} // namespace cprime
