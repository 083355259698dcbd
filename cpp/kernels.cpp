// Table of all kernels, compiled once for each instruction set, which CPRIME_ISA names.
#include "kernels.h"

#include "accumulate.h"
#include "along.h"
#include "bounds.h"
#include "cells.h"
#include "distances.h"
#include "expect.h"
#include "extent.h"
#include "factors.h"
#include "gaussians.h"
#include "list_search.h"
#include "moments.h"
#include "nearest.h"
#include "normalized.h"
#include "points.h"
#include "posterior.h"
#include "products.h"
#include "reassign.h"
#include "scaled_responsibilities.h"
#include "sparse_local.h"
#include "sparse_sums.h"
#include "spread.h"
#include "table_sums.h"
#include "top_k.h"
#include "two_nearest.h"

namespace cprime::CPRIME_ISA {

template <class T> const Kernels<T> &table() {
    static const Kernels<T> kernels = {
        .lanes = TILE_LANES<T>,
        .tile_rows = TILE_ROWS,
        .coarse_panel_size = coarse_panel_size<T>,
        .pack_panels = pack_panels<T>,
        .nearest_rows = nearest_rows<T>,
        .nearest = nearest_of_piece<T>,
        .nearest_bounded = nearest_bounded<T>,
        .find_in_cells = Slotted<find_in_cells<T>>::run,
        .distances = distances<T>,
        .potential = potential<T>,
        .own_distances = own_distances<T>,
        .pack_tiles = pack_tiles<T>,
        .posterior = posterior<T>,
        .accumulate = accumulate<T>,
        .sum_table = sum_table<T>,
        .along = along<T>,
        .pack_columns = pack_columns<T>,
        .expect = expect<T>,
        .log_sum_exp = log_sum_exp<T>,
        .maximise = maximise<T>,
        .reassign = reassign<T>,
        .top_k = top_k<T>,
        .best_in_lists = Slotted<best_in_lists<T>>::run,
        .spread_out = spread_out<T>,
        .products = products<T>,
        .gaussian_start = gaussian_start<T>,
        .best = best<T>,
        .top_k_gaussians = top_k_gaussians<T>,
        .respond = respond<T>,
        .column_moments = Slotted<column_moments<T>, 2 * RUN + 2>::run,
        .scaled_responsibilities = scaled_responsibilities<T>,
        .moments = Slotted<moments<T>, 2 * RUN + 2>::run,
        .factor_costs = factor_costs<T>,
        .top_k_factors = top_k_factors<T>,
        .factor_moments = Slotted<factor_moments<T>, 2 * RUN + 2>::run,
        .extent = extent<T>,
        .normalized = normalized<T>,
        .two_nearest = two_nearest<T>,
        .halve = Slotted<halve<T, Points<T>>, 2>::run,
        .widen = widen_rows<T>,
        .sparse = &sparse_table<T>(),
    };
    return kernels;
}
template const Kernels<float> &table<float>();
template const Kernels<double> &table<double>();

} // namespace cprime::CPRIME_ISA
