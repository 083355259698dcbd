"""The hot loops, compiled, each beside a NumPy twin in `reference*.py` that a contract suite holds it to."""

from cprime.kernels.native import (
    accumulate,
    along,
    expect_all,
    extent,
    instruction_set,
    log_sum_exp,
    means,
    min_distances,
    nearest,
    posterior,
    spread_out,
)
from cprime.kernels.native_bounds import Bounds, Moves, nearest_bounded
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
from cprime.kernels.native_local import Found, evidence, gather, grouped_order, keep_nearest, nearest_among, reassign

__all__ = [
    "Bounds",
    "Found",
    "Gaussians",
    "Moves",
    "Responses",
    "accumulate",
    "along",
    "best",
    "best_among",
    "cut_line",
    "evidence",
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
    "products",
    "reassign",
    "respond",
    "responsibilities",
    "spread_out",
]
