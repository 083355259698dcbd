// Floating-point mode of a thread: rounding, treatment of subnormal numbers, and traps.
#pragma once

#if defined(__SSE2_MATH__) || defined(_M_X64)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace cprime {

// A stored floating-point mode (Arithmetic) also contains the flags of the exceptions that have occurred.
#if defined(__SSE2_MATH__) || defined(_M_X64)
using Arithmetic = unsigned;
inline Arithmetic arithmetic() { return _mm_getcsr(); }
inline void set_arithmetic(const Arithmetic &mode) { _mm_setcsr(mode); }
inline void set_standard_arithmetic() { _mm_setcsr(0x1f80); } // all exceptions are masked, all other bits are zero
#else
using Arithmetic = std::fenv_t;
inline Arithmetic arithmetic() {
    Arithmetic mode;
    std::fegetenv(&mode);
    return mode;
}
inline void set_arithmetic(const Arithmetic &mode) { std::fesetenv(&mode); }
inline void set_standard_arithmetic() { std::fesetenv(FE_DFL_ENV); }
#endif

// Guard: while an instance exists, its thread rounds to nearest, does not flush subnormal numbers and does not trap.
// Another library may have set another mode: a library built with -ffast-math flushes subnormals to zero in the thread
// that loads it.
class StandardArithmetic {
  public:
    StandardArithmetic() : before_(arithmetic()) { set_standard_arithmetic(); }
    ~StandardArithmetic() { set_arithmetic(before_); }
    StandardArithmetic(const StandardArithmetic &) = delete;
    StandardArithmetic &operator=(const StandardArithmetic &) = delete;

  private:
    Arithmetic before_;
};

} // namespace cprime
