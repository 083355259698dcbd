// Compiled once per instruction set, CPRIME_ISA naming it: the table of kernels of that set.
#include "kernels.h"

#include "accumulate.h"
#include "along.h"
#include "among.h"
#include "bounds.h"
#include "distances.h"
#include "expect.h"
#include "extent.h"
#include "gaussians.h"
#include "keep.h"
#include "moments.h"
#include "nearest.h"
#include "posterior.h"
#include "products.h"
#include "pull.h"
#include "reassign.h"
#include "sparse_local.h"
#include "sparse_sums.h"
#include "spread.h"
#include "table_sums.h"
#include "thin.h"
#include "two_nearest.h"
#include "walk.h"

namespace cprime::CPRIME_ISA {

template <class T> const Kernels<T> &table() {
    static const Kernels<T> kernels = {TILE_LANES<T>,
                                       TILE_ROWS,
                                       coarse_panel_size<T>,
                                       pack_panels<T>,
                                       nearest_rows<T>,
                                       nearest<T>,
                                       nearest_bounded<T>,
                                       improve<T>,
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
                                       nearest_among<T>,
                                       walk<T>,
                                       thin<T>,
                                       spread_out<T>,
                                       products<T>,
                                       gaussian_start<T>,
                                       best<T>,
                                       keep_best<T>,
                                       respond<T>,
                                       column_moments<T>,
                                       pull<T>,
                                       moments<T>,
                                       extent<T>,
                                       two_nearest<T>,
                                       add_rows<T>,
                                       halve<T>,
                                       &sparse_table<T>()};
    return kernels;
}
template const Kernels<float> &table<float>();
template const Kernels<double> &table<double>();

} // namespace cprime::CPRIME_ISA
