// The instruction sets for which kernels are compiled, and the best one that this processor supports.
#pragma once
#if defined(__x86_64__) && !defined(_WIN32) // clang-cl's libraries lack the functions that query the processor
#define CPRIME_ASKS_PROCESSOR 1
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace cprime {

enum class Isa { baseline, avx2, avx512f, avx512, amx }; // avx512: with VNNI, which processors have since 2019
constexpr const char *ISA_NAMES[] = {"baseline", "avx2", "avx512f", "avx512", "amx"};

#if CPRIME_ASKS_PROCESSOR
// Return whether there is AVX2 with FMA and the conversion of halves (F16C), which all processors with AVX2 have. F16C
// is read from CPUID, because compilers have no name for it.
inline bool has_avx2() {
    __builtin_cpu_init();
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c >> 29 & 1);
}

inline bool has_avx512f() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

// Return whether there is a matrix unit for bfloat16, and the system lets this process use its registers.
inline bool has_matrix_unit() {
#if defined(__linux__)
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) || !(d >> 24 & 1))
        return false;
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a >> 5 & 1)) // AVX512-BF16
        return false;
    constexpr long REQUEST = 0x1023, TILE_DATA = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return false;
#endif
}
#endif

// Return the best instruction set that this processor and its operating system support.
inline Isa isa_of_processor() {
#if CPRIME_ASKS_PROCESSOR
    if (!has_avx2())
        return Isa::baseline;
    if (!has_avx512f())
        return Isa::avx2;
    if (!__builtin_cpu_supports("avx512vnni"))
        return Isa::avx512f;
    return has_matrix_unit() ? Isa::amx : Isa::avx512;
#else
    return Isa::baseline;
#endif
}

} // namespace cprime
