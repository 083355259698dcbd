// Table of the kernels for an instruction set with coarse numbers, which CPRIME_ISA names. The single-precision kernels
// that use coarse numbers are compiled for it; all others are those of AVX-512 without them.
#include "kernels.h"

#include "bounds.h"
#include "cells.h"
#include "nearest.h"
#include "reassign.h"
#include "top_k.h"

namespace cprime {

namespace avx512f {
template <class T> const Kernels<T> &table();
extern template const Kernels<float> &table<float>();
extern template const Kernels<double> &table<double>();
} // namespace avx512f

namespace CPRIME_ISA {

template <class T> const Kernels<T> &table();

template <> const Kernels<float> &table<float>() {
    static const Kernels<float> kernels = [] {
        Kernels<float> own = avx512f::table<float>();
        own.coarse_panel_size = coarse_panel_size<float>;
        own.pack_panels = pack_panels<float>;
        own.nearest_rows = nearest_rows<float>;
        own.nearest = nearest_of_piece<float>;
        own.nearest_bounded = nearest_bounded<float>;
        own.find_in_cells = Slotted<find_in_cells<float>>::run;
        own.reassign = reassign<float>;
        own.top_k = top_k<float>;
        return own;
    }();
    return kernels;
}

template <> const Kernels<double> &table<double>() { return avx512f::table<double>(); }

} // namespace CPRIME_ISA

} // namespace cprime
