"""Weights of components: free, or the same for all."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Floats

Weights = NDArray[np.float64] | None  # π (C,), or None for 1/C each


@lru_cache
def log_equal(n_components: int) -> float:
    """log 1/C."""
    return -float(np.log(n_components))


def log_weights(weights: Weights, centers: Floats) -> NDArray[np.float64]:
    """log π_c (C,); those below what the centers' type tells from 0, as fits return them, are that.

    So a component without points has one too, and nothing above it turns into NaN.
    """
    if weights is None:
        return np.full(len(centers), -np.log(len(centers)))
    return np.log(np.maximum(weights, np.finfo(centers.dtype).tiny))


def new_weights(weights: Weights, counts: NDArray[np.float64]) -> Weights:
    """π_c = N_c / N where weights are free [E]; equal ones stay."""
    return None if weights is None else counts / counts.sum()


def n_weights(weights: Weights) -> int:
    """Free parameters of the weights."""
    return 0 if weights is None else len(weights) - 1
