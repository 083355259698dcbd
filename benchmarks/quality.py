"""Exact evaluation of results: J or the log-likelihood over all centers, never the value reported by a peer."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from benchmarks.peers import Fitted
from cprime.kernels import Dense

_BLOCK = 1 << 24  # numbers in a block of rows or distances


def inertia(X: NDArray, centers: NDArray) -> float:
    """Return J = Σ_n min_c ‖x_n − μ_c‖²: differences in the data's precision, at least single; sums in double."""
    return sum(_squares(rows, centers) for rows in _pieces(X))


def mean_cosine(X: NDArray, centers: NDArray) -> float:
    """Return 1/N Σ_n max_c cos(x_n, μ_c); rows and centers may have any length except 0."""
    directions = _unit(centers.astype(np.float64)).astype(np.float32)
    return 1 - sum(_squares(_unit(rows), directions) for rows in _pieces(X)) / (2 * len(X))


def _squares(X: NDArray, centers: NDArray) -> float:
    return float(Dense(X).nearest(centers)[1].sum(dtype=np.float64))


def _pieces(X: NDArray) -> Iterator[NDArray]:
    """Yield the rows in pieces, as float32 if they are stored in a narrower type."""
    step = max(1, _BLOCK // X.shape[1])
    for begin in range(0, len(X), step):
        yield X[begin : begin + step].astype(np.result_type(X, np.float32), copy=False)


def _unit(X: NDArray) -> NDArray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def log_likelihood(X: NDArray, weights: NDArray, means: NDArray, covariances: NDArray) -> float:
    """Return 1/N Σ_n log Σ_c π_c N(x_n; μ_c, Σ_c) [nats]; covariances (C,), (C, D) or (C, D, D).

    It is computed in double precision: by matrix products about the mean of the data or, for covariance matrices,
    component by component.
    """
    D = X.shape[1]
    shift = X.mean(axis=0, dtype=np.float64)
    means = means.astype(np.float64) - shift
    if covariances.ndim == 3:
        factors = np.linalg.inv(np.linalg.cholesky(covariances.astype(np.float64)))
        log_determinants = -2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    else:
        variances = np.broadcast_to(covariances.reshape(len(means), -1), means.shape).astype(np.float64)
        log_determinants = np.log(variances).sum(axis=1)
    with np.errstate(divide="ignore"):  # a weight may be 0
        constant = np.log(weights) - 0.5 * (D * np.log(2 * math.pi) + log_determinants)
    total = 0.0
    step = max(1, _BLOCK // max(len(means), D))
    for start in range(0, len(X), step):
        rows = X[start : start + step] - shift
        if covariances.ndim == 3:
            squared = np.empty((len(rows), len(means)))
            for c, (mean, factor) in enumerate(zip(means, factors, strict=True)):
                squared[:, c] = np.square((rows - mean) @ factor.T).sum(axis=1)
        else:
            squared = np.square(rows) @ (1 / variances).T - 2 * rows @ (means / variances).T
            squared += (np.square(means) / variances).sum(axis=1)
        total += float(logsumexp(constant - 0.5 * np.maximum(squared, 0), axis=1).sum())
    return total / len(X)


def judge(X: NDArray, n_clusters: int, fitted: Fitted) -> float:
    """Return the figure of merit of a fit: J, or the mean log-likelihood of a mixture.

    Raises AssertionError if the result has a wrong shape or is not finite.
    """
    centers = np.ascontiguousarray(fitted.centers, dtype=np.float32)
    assert centers.shape == (n_clusters, X.shape[1]), f"{centers.shape} are the centers of {n_clusters} clusters"
    assert np.isfinite(centers).all(), "centers that are not finite"
    if fitted.weights is None:
        return inertia(X, centers)
    assert fitted.covariances is not None
    assert np.isclose(fitted.weights.sum(), 1, atol=1e-4), f"weights that sum to {fitted.weights.sum()}"
    least = np.linalg.eigvalsh(fitted.covariances) if fitted.covariances.ndim == 3 else fitted.covariances
    assert (least > 0).all(), "variances that are not positive"
    return log_likelihood(X, fitted.weights, fitted.centers, fitted.covariances)
