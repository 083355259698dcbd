"""The hot loops, compiled, each beside a NumPy twin in `reference.py` that a contract suite holds it to."""

from cprime.kernels.native import (
    Found,
    accumulate,
    expect_all,
    gather,
    grouped_order,
    instruction_set,
    keep_nearest,
    log_sum_exp,
    means,
    min_distances,
    nearest,
    nearest_among,
    posterior,
    reassign,
    spread_out,
)

__all__ = [
    "Found",
    "accumulate",
    "expect_all",
    "gather",
    "grouped_order",
    "instruction_set",
    "keep_nearest",
    "log_sum_exp",
    "means",
    "min_distances",
    "nearest",
    "nearest_among",
    "posterior",
    "reassign",
    "spread_out",
]
