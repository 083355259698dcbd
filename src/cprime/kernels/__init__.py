"""The hot loops, compiled, each beside a NumPy twin in `reference*.py` that a contract suite holds it to.

Rows, which come first, may be sparse ones (`sparse.Sparse`) wherever squared distances to centers are meant.
"""

from cprime.kernels import native, native_bounds, native_local, native_sparse
from cprime.kernels.native import (
    accumulate,
    along,
    expect_all,
    instruction_set,
    means,
    min_distances,
    nearest,
    posterior,
    potentials,
    spread_out,
)
from cprime.kernels.native_bounds import Bounds, Moves
from cprime.kernels.native_gaussians import (
    Gaussians,
    Responses,
    best,
    best_among,
    keep_best,
    moments,
    products,
    respond,
    responsibilities,
)
from cprime.kernels.native_line import cut_line
from cprime.kernels.native_local import (
    CenterCells,
    Evidence,
    Found,
    Walked,
    changed,
    grouped_order,
    keep_nearest,
    nearest_among,
    reassign,
    thin,
    walk,
)
from cprime.kernels.sparse import of_rows

extent = of_rows(native.extent, native_sparse.extent)
gather = of_rows(native_local.gather, native_sparse.gather)
log_sum_exp = of_rows(native.log_sum_exp, native_sparse.log_sum_exp)
nearest_bounded = of_rows(native_bounds.nearest_bounded, native_sparse.nearest_bounded)
projected = of_rows(native.projected, native_sparse.projected)
squares = of_rows(native.squares, native_sparse.squares)

__all__ = [
    "Bounds",
    "CenterCells",
    "Evidence",
    "Found",
    "Gaussians",
    "Moves",
    "Responses",
    "Walked",
    "accumulate",
    "along",
    "best",
    "best_among",
    "changed",
    "cut_line",
    "expect_all",
    "extent",
    "gather",
    "grouped_order",
    "instruction_set",
    "keep_best",
    "keep_nearest",
    "log_sum_exp",
    "means",
    "min_distances",
    "moments",
    "nearest",
    "nearest_among",
    "nearest_bounded",
    "posterior",
    "potentials",
    "products",
    "projected",
    "reassign",
    "respond",
    "responsibilities",
    "spread_out",
    "squares",
    "thin",
    "walk",
]
