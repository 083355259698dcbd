// Picks, once, the best instruction set that this processor and its operating system have.
#include <cstdlib>
#include <cstring>

#include "kernels.h"

namespace cprime {

#define CPRIME_DECLARE(isa)                                                                                            \
    namespace isa {                                                                                                    \
    template <class T> const Kernels<T> &table();                                                                      \
    extern template const Kernels<float> &table<float>();                                                              \
    extern template const Kernels<double> &table<double>();                                                            \
    }
CPRIME_DECLARE(baseline)
#if defined(__x86_64__)
CPRIME_DECLARE(avx2)
CPRIME_DECLARE(avx512)
#endif

namespace {

enum class Isa { baseline, avx2, avx512 };

// CPRIME_ISA in the environment asks for a lower set than the best one, so that each can be tested on one machine.
Isa choose() {
    Isa best = Isa::baseline;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        best = Isa::avx2;
    if (best == Isa::avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        best = Isa::avx512;
    if (const char *wanted = std::getenv("CPRIME_ISA")) {
        if (std::strcmp(wanted, "baseline") == 0)
            best = Isa::baseline;
        else if (std::strcmp(wanted, "avx2") == 0 && best == Isa::avx512)
            best = Isa::avx2;
    }
#endif
    return best;
}

Isa chosen() {
    static const Isa isa = choose();
    return isa;
}

} // namespace

template <class T> const Kernels<T> &kernels() {
    switch (chosen()) {
#if defined(__x86_64__)
    case Isa::avx512:
        return avx512::table<T>();
    case Isa::avx2:
        return avx2::table<T>();
#endif
    default:
        return baseline::table<T>();
    }
}
template const Kernels<float> &kernels<float>();
template const Kernels<double> &kernels<double>();

const char *instruction_set() {
    constexpr const char *names[] = {"baseline", "avx2", "avx512"};
    return names[static_cast<int>(chosen())];
}

} // namespace cprime
