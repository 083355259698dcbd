// Selects, once, the best instruction set that this processor and its operating system support.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "kernels.h"
#include "processor.h"

namespace cprime {

#define CPRIME_DECLARE(isa)                                                                                            \
    namespace isa {                                                                                                    \
    template <class T> const Kernels<T> &table();                                                                      \
    extern template const Kernels<float> &table<float>();                                                              \
    extern template const Kernels<double> &table<double>();                                                            \
    }
#if !defined(CPRIME_WITHOUT_BASELINE)
CPRIME_DECLARE(baseline)
#endif
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

// Return whether this library has the kernels of an instruction set.
bool is_compiled(Isa isa) {
    switch (isa) {
#if defined(CPRIME_HAS_AMX)
    case Isa::amx:
        return true;
#endif
#if defined(CPRIME_HAS_AVX512)
    case Isa::avx512:
        return true;
#endif
#if defined(CPRIME_HAS_AVX512F)
    case Isa::avx512f:
        return true;
#endif
#if defined(CPRIME_HAS_AVX2)
    case Isa::avx2:
        return true;
#endif
#if !defined(CPRIME_WITHOUT_BASELINE)
    case Isa::baseline:
        return true;
#endif
    default:
        return false;
    }
}

// Return the best instruction set of this processor, or a lower one that the environment variable CPRIME_ISA names, so
// that each can be tested on one machine. If its kernels are not compiled, the next lower set that has kernels is
// taken; a library that was compiled for one processor may have none, and then the next higher one is.
Isa choose() {
#if defined(CPRIME_EMULATE) // software emulation of all sets, which needs AVX2
    const Isa best = isa_of_processor() >= Isa::avx2 ? Isa::amx : Isa::baseline;
#else
    const Isa best = isa_of_processor();
#endif
    Isa wanted = best;
    if (const char *name = std::getenv("CPRIME_ISA"))
        for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512f, Isa::avx512})
            if (std::strcmp(name, ISA_NAMES[static_cast<int>(isa)]) == 0)
                wanted = std::min(best, isa);
    for (int i = static_cast<int>(wanted); i >= 0; --i)
        if (is_compiled(static_cast<Isa>(i)))
            return static_cast<Isa>(i);
    for (int i = static_cast<int>(wanted); i <= static_cast<int>(best); ++i)
        if (is_compiled(static_cast<Isa>(i)))
            return static_cast<Isa>(i);
    throw std::runtime_error("cprime was compiled for another processor; compile it again for this one");
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
#if !defined(CPRIME_WITHOUT_BASELINE)
    case Isa::baseline:
        return baseline::table<T>();
#endif
    default: // `chosen` returns only sets that are compiled
        std::abort();
    }
}
template const Kernels<float> &kernels<float>();
template const Kernels<double> &kernels<double>();

const char *instruction_set() { return ISA_NAMES[static_cast<int>(chosen())]; }

} // namespace cprime
