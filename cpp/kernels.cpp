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
#include "points.h"
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
                                       nearest_of_piece<T>,
                                       Slotted<nearest_bounded<T>>::run,
                                       Slotted<improve<T>>::run,
                                       Slotted<distances<T>>::run,
                                       potential<T>,
                                       Slotted<own_distances<T>>::run,
                                       pack_tiles<T>,
                                       posterior<T>,
                                       Slotted<accumulate<T>, 2>::run,
                                       sum_table<T>,
                                       Slotted<along<T>>::run,
                                       pack_columns<T>,
                                       Slotted<expect<T>>::run,
                                       Slotted<log_sum_exp<T>>::run,
                                       maximise<T>,
                                       Slotted<reassign<T>>::run,
                                       Slotted<keep<T>>::run,
                                       Slotted<nearest_among<T>>::run,
                                       Slotted<walk<T>>::run,
                                       thin<T>,
                                       Slotted<spread_out<T>>::run,
                                       Slotted<products<T>>::run,
                                       gaussian_start<T>,
                                       Slotted<best<T>>::run,
                                       Slotted<keep_best<T>>::run,
                                       Slotted<respond<T>>::run,
                                       Slotted<column_moments<T>, 2 * RUN + 2>::run,
                                       pull<T>,
                                       Slotted<moments<T>, 2 * RUN + 2>::run,
                                       Slotted<extent<T>, 2>::run,
                                       Slotted<two_nearest<T>>::run,
                                       Slotted<add_rows<T>, 2>::run,
                                       Slotted<halve<T>, 2>::run,
                                       &sparse_table<T>()};
    return kernels;
}
template const Kernels<float> &table<float>();
template const Kernels<double> &table<double>();

} // namespace cprime::CPRIME_ISA
