// Compiled once per instruction set, CPRIME_ISA naming it: the table of kernels of that set.
#include "kernels.h"

#include "accumulate.h"
#include "along.h"
#include "among.h"
#include "bounds.h"
#include "cells.h"
#include "distances.h"
#include "expect.h"
#include "extent.h"
#include "factors.h"
#include "gaussians.h"
#include "keep.h"
#include "moments.h"
#include "nearest.h"
#include "normalized.h"
#include "points.h"
#include "posterior.h"
#include "products.h"
#include "pull.h"
#include "reassign.h"
#include "sparse_local.h"
#include "sparse_sums.h"
#include "spread.h"
#include "table_sums.h"
#include "two_nearest.h"

namespace cprime::CPRIME_ISA {

template <class T> const Kernels<T> &table() {
    static const Kernels<T> kernels = {TILE_LANES<T>,
                                       TILE_ROWS,
                                       coarse_panel_size<T>,
                                       pack_panels<T>,
                                       nearest_rows<T>,
                                       nearest_of_piece<T>,
                                       nearest_bounded<T>,
                                       Slotted<find_in_cells<T>>::run,
                                       distances<T>,
                                       potential<T>,
                                       own_distances<T>,
                                       pack_tiles<T>,
                                       posterior<T>,
                                       accumulate<T>,
                                       sum_table<T>,
                                       along<T>,
                                       pack_columns<T>,
                                       expect<T>,
                                       log_sum_exp<T>,
                                       maximise<T>,
                                       reassign<T>,
                                       keep<T>,
                                       Slotted<nearest_among<T>>::run,
                                       spread_out<T>,
                                       products<T>,
                                       gaussian_start<T>,
                                       best<T>,
                                       keep_best<T>,
                                       respond<T>,
                                       Slotted<column_moments<T>, 2 * RUN + 2>::run,
                                       pull<T>,
                                       Slotted<moments<T>, 2 * RUN + 2>::run,
                                       factor_costs<T>,
                                       keep_factors<T>,
                                       Slotted<factor_moments<T>, 2 * RUN + 2>::run,
                                       extent<T>,
                                       normalized<T>,
                                       two_nearest<T>,
                                       add_rows<T>,
                                       Slotted<halve<T>, 2>::run,
                                       widen_rows<T>,
                                       &sparse_table<T>()};
    return kernels;
}
template const Kernels<float> &table<float>();
template const Kernels<double> &table<double>();

} // namespace cprime::CPRIME_ISA
