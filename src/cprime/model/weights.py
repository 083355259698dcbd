"""Weights π_c of components: free, or the same for all components."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Floats

Weights = NDArray[np.float64] | None  # π (C,), or None for 1/C each


@lru_cache
def log_equal(n_components: int) -> float:
    """Return log 1/C, the logarithm of each of C equal weights."""
    return -float(np.log(n_components))


def log_weights(weights: Weights, centers: Floats) -> NDArray[np.float64]:
    """Return log π_c (C,), where weights π_c are at least the smallest normal number of the centers' dtype.

    So the logarithm of the weight of a component without points is finite, too, and no later result becomes NaN.
    """
    if weights is None:
        return np.full(len(centers), -np.log(len(centers)))
    return np.log(np.maximum(weights, np.finfo(centers.dtype).tiny))


def new_weights(weights: Weights, counts: NDArray[np.float64]) -> Weights:
    """Return the new weights π_c = N_c / N (C,) of an M-step if weights are free, or None if they are equal.

    counts (C,): weight N_c of the points of each component, with sum N
    """
    return None if weights is None else counts / counts.sum()


def n_weights(weights: Weights) -> int:
    """Return the number of free parameters of the weights: C − 1 if they are free, otherwise 0."""
    return 0 if weights is None else len(weights) - 1
