"""What a result is worth, computed here and exactly: J or the log-likelihood over all centers, never a peer's own."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from benchmarks.peers import Fitted
from cprime import kernels

_BLOCK = 1 << 24  # numbers of a block of distances


def inertia(X: NDArray[np.float32], centers: NDArray) -> float:
    """J = Σ_n min_c ‖x_n − μ_c‖², from differences in the data's precision, summed in double."""
    return float(kernels.nearest(X, centers)[1].sum(dtype=np.float64))


def log_likelihood(X: NDArray, weights: NDArray, means: NDArray, variances: NDArray) -> float:
    """1/N Σ_n log Σ_c π_c N(x_n; μ_c, σ_c² I) in nats.

    Where all components have one weight and one variance, distances are those of `kernels`; otherwise they come from
    products of double precision about the mean of the data.
    """
    D = X.shape[1]
    if np.ptp(variances) == 0 and np.ptp(weights) == 0:
        sums = kernels.log_sum_exp(X, np.ascontiguousarray(means, dtype=X.dtype), float(variances[0]))
        return float(sums.mean() + np.log(weights[0]) - 0.5 * D * np.log(2 * math.pi * variances[0]))
    shift = X.mean(axis=0, dtype=np.float64)
    means = means.astype(np.float64) - shift
    with np.errstate(divide="ignore"):  # a weight may be 0
        constant = np.log(weights) - 0.5 * D * np.log(2 * math.pi * variances)
    total = 0.0
    step = max(1, _BLOCK // len(means))
    for start in range(0, len(X), step):
        rows = X[start : start + step] - shift
        squared = np.einsum("ij,ij->i", rows, rows)[:, np.newaxis] - 2 * rows @ means.T
        squared += np.einsum("ij,ij->i", means, means)
        total += float(logsumexp(constant - 0.5 * np.maximum(squared, 0) / variances, axis=1).sum())
    return total / len(X)


def judge(X: NDArray[np.float32], n_clusters: int, fitted: Fitted) -> float:
    """The figure of merit of a fit: J, or the mean log-likelihood of a mixture.

    Raises AssertionError where what came back is not what was asked for.
    """
    centers = np.ascontiguousarray(fitted.centers, dtype=np.float32)
    assert centers.shape == (n_clusters, X.shape[1]), f"{centers.shape} are the centers of {n_clusters} clusters"
    assert np.isfinite(centers).all(), "centers that are not finite"
    if fitted.weights is None:
        return inertia(X, centers)
    assert fitted.variances is not None
    assert np.isclose(fitted.weights.sum(), 1, atol=1e-4), f"weights that sum to {fitted.weights.sum()}"
    assert (fitted.variances > 0).all(), "variances that are not positive"
    return log_likelihood(X, fitted.weights, fitted.centers, fitted.variances)
