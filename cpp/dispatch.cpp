// Selects, once, the best instruction set that this processor and its operating system support.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#if defined(CPRIME_HAS_AVX2) || defined(CPRIME_EMULATE)
#include <cpuid.h>
#endif
#if defined(CPRIME_HAS_AMX) && !defined(CPRIME_EMULATE)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernels.h"

namespace cprime {

#define CPRIME_DECLARE(isa)                                                                                            \
    namespace isa {                                                                                                    \
    template <class T> const Kernels<T> &table();                                                                      \
    extern template const Kernels<float> &table<float>();                                                              \
    extern template const Kernels<double> &table<double>();                                                            \
    }
CPRIME_DECLARE(baseline)
#if defined(CPRIME_HAS_AVX2)
CPRIME_DECLARE(avx2)
#endif
#if defined(CPRIME_HAS_AVX512F)
CPRIME_DECLARE(avx512f)
#endif
#if defined(CPRIME_HAS_AVX512)
CPRIME_DECLARE(avx512)
#endif
#if defined(CPRIME_HAS_AMX)
CPRIME_DECLARE(amx)
#endif

namespace {

enum class Isa { baseline, avx2, avx512f, avx512, amx }; // avx512: with VNNI, which processors have since 2019
constexpr const char *NAMES[] = {"baseline", "avx2", "avx512f", "avx512", "amx"};

#if defined(CPRIME_HAS_AVX2) || defined(CPRIME_EMULATE)
// Return whether there is AVX2 with FMA and the conversion of halves (F16C), which all processors with AVX2 have. F16C
// is read from CPUID, because compilers have no name for it.
bool has_avx2() {
    __builtin_cpu_init();
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c >> 29 & 1);
}
#endif

#if defined(CPRIME_HAS_AMX) && !defined(CPRIME_EMULATE)
// Return whether there is a matrix unit for bfloat16, and the system lets this process use its registers.
bool has_matrix_unit() {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) || !(d >> 24 & 1))
        return false;
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a >> 5 & 1)) // AVX512-BF16
        return false;
    constexpr long REQUEST = 0x1023, TILE_DATA = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}
#endif

// Return the best instruction set, or a lower one that the environment variable CPRIME_ISA names, so that each can be
// tested on one machine.
Isa choose() {
    Isa best = Isa::baseline;
#if defined(CPRIME_EMULATE) // software emulation, which needs AVX2
    if (has_avx2())
        best = Isa::amx;
#else
#if defined(CPRIME_HAS_AVX2)
    if (has_avx2())
        best = Isa::avx2;
#endif
#if defined(CPRIME_HAS_AVX512F)
    if (best == Isa::avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        best = Isa::avx512f;
#endif
#if defined(CPRIME_HAS_AVX512)
    if (best == Isa::avx512f && __builtin_cpu_supports("avx512vnni"))
        best = Isa::avx512;
#endif
#if defined(CPRIME_HAS_AMX)
    if (best == Isa::avx512 && has_matrix_unit())
        best = Isa::amx;
#endif
#endif
    if (const char *wanted = std::getenv("CPRIME_ISA"))
        for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512f, Isa::avx512})
            if (std::strcmp(wanted, NAMES[static_cast<int>(isa)]) == 0)
                best = std::min(best, isa);
    return best;
}

Isa chosen() {
    static const Isa isa = choose();
    return isa;
}

} // namespace

template <class T> const Kernels<T> &kernels() {
    switch (chosen()) {
#if defined(CPRIME_HAS_AMX)
    case Isa::amx:
        return amx::table<T>();
#endif
#if defined(CPRIME_HAS_AVX512F)
    case Isa::avx512f:
        return avx512f::table<T>();
#endif
#if defined(CPRIME_HAS_AVX512)
    case Isa::avx512:
        return avx512::table<T>();
#endif
#if defined(CPRIME_HAS_AVX2)
    case Isa::avx2:
        return avx2::table<T>();
#endif
    default:
        return baseline::table<T>();
    }
}
template const Kernels<float> &kernels<float>();
template const Kernels<double> &kernels<double>();

const char *instruction_set() { return NAMES[static_cast<int>(chosen())]; }

} // namespace cprime
