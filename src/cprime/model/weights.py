"""Weights of components: free, or the same for all."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Floats

Weights = NDArray[np.float64] | None  # π (C,), or None for 1/C each


@lru_cache
def log_equal(n_components: int) -> float:
    """Return log 1/C."""
    return -float(np.log(n_components))


def log_weights(weights: Weights, centers: Floats) -> NDArray[np.float64]:
    """Return log π_c (C,), with π_c at least the smallest normal number of the centers' dtype, that of fitted weights.

    So the logarithm is finite for a component without points too, and no later result becomes NaN.
    """
    if weights is None:
        return np.full(len(centers), -np.log(len(centers)))
    return np.log(np.maximum(weights, np.finfo(centers.dtype).tiny))


def new_weights(weights: Weights, counts: NDArray[np.float64]) -> Weights:
    """Return π_c = N_c / N if weights are free [E]; None for equal weights stays None."""
    return None if weights is None else counts / counts.sum()


def n_weights(weights: Weights) -> int:
    """Return the number of free parameters of the weights."""
    return 0 if weights is None else len(weights) - 1
