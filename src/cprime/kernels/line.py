"""Exact k-means in one dimension: the optimal division of sorted values into runs (clusters of consecutive values)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.measures import Floats


def cut_line(
    values: Floats, weights: Floats, n_clusters: int, *, n_threads: int | None = None, kernels: Any = _core
) -> NDArray[np.int64]:
    """Return the start indices of C runs r of sorted values x_n for which Σ_r Σ_{n∈r} w_n (x_n − mean_r)² is minimal.

    A run is a cluster of consecutive values.
    values (n,): x_n [data unit], strictly ascending    weights (n,): w_n > 0    n_clusters: C, 1 … n
    ->  starts (C,) int64, ascending, the first is 0
    The search minimizes cost + λ · (number of runs) for about ten penalties λ, until the number of runs is C.
    This takes O(n log n) time for each λ, and 110 bytes of memory per value, independent of C.
    """
    values = check.array(values, "values", np.float64, -1)
    weights = check.array(weights, "weights", np.float64, len(values))
    if not (np.isfinite(values).all() and (values[1:] > values[:-1]).all()):
        raise ValueError("values must be finite and rise strictly")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("weights must be > 0 and finite")
    n_clusters = check.count(n_clusters, "n_clusters")
    if n_clusters > len(values):
        raise ValueError(f"n_clusters must be at most the number of values, {len(values)}, got {n_clusters}")
    starts = np.empty(n_clusters, dtype=np.int64)
    kernels.cut_line(values, weights, starts, resolve_threads(n_threads))
    return starts
