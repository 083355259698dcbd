"""What results must be, by NumPy in float64: nearest centers, sums of squares, densities, cuts of a line.

Tolerances follow from the arithmetic: a squared distance of D terms from differences is right to (D + 4) units in the
last place of the data's type, a Gaussian's cost to what its factor makes of the rounding of points and means.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def squared_distances(X: Floats, centers: Floats) -> Floats:
    """(n, C), from differences."""
    out = np.empty((len(X), len(centers)))
    with np.errstate(over="ignore", under="ignore"):
        for c, center in enumerate(centers):
            difference = X - center
            out[:, c] = np.einsum("nd,nd->n", difference, difference)
    return out


def distance_error(D: int, dtype: Any) -> tuple[float, float]:
    """Relative and absolute error of a squared distance in `dtype`; the absolute one is that of underflow."""
    info = np.finfo(dtype)
    return 4 * (D + 4) * float(info.eps), 4 * D * float(info.tiny)


def unit(X: Floats) -> Floats:
    """Rows of length 1."""
    X = X / np.abs(X).max(axis=1, keepdims=True)
    return X / np.sqrt(np.einsum("nd,nd->n", X, X))[:, np.newaxis]


def least_of_a_line(x: Floats, w: Floats, C: int) -> float:
    """The least J of C runs of sorted values: dynamic programming over all cuts, O(C N²)."""
    order = np.argsort(x)
    x, w = x[order] - x.min(), w[order]
    n = len(x)
    cost = np.full((n, n + 1), np.inf)  # of the run [i, j)
    weight, mean, spread = np.zeros(n), np.zeros(n), np.zeros(n)
    for j in range(n):  # every run that ends before j takes one value more (Welford)
        weight[: j + 1] += w[j]
        share = np.divide(w[j], weight[: j + 1], out=np.zeros(j + 1), where=weight[: j + 1] > 0)
        away = x[j] - mean[: j + 1]
        mean[: j + 1] += share * away
        spread[: j + 1] += w[j] * away * (x[j] - mean[: j + 1])
        cost[: j + 1, j + 1] = spread[: j + 1]
    best = cost[0]
    for _ in range(C - 1):
        best = np.minimum(best, (best[:n, np.newaxis] + cost).min(axis=0))
    return float(best[n])


def center_slip(mixture: Any, dtype: Any) -> Floats:
    """By how many standard deviations sums and rounding in `dtype` may move each mean: (C,)."""
    means = np.abs(mixture.means_.astype(np.float64)) * 4 * float(np.finfo(dtype).eps)
    with np.errstate(all="ignore"):
        return np.array([np.linalg.norm(mean @ np.abs(P)) for mean, P in zip(means, factors(mixture), strict=True)])


def factors(mixture: Any) -> Floats:
    """Upper triangles P (C, D, D), P Pᵀ the precision, of a fitted mixture."""
    C, D = mixture.means_.shape
    if hasattr(mixture, "factors_"):
        loadings = mixture.factors_.astype(np.float64)
        covariances = loadings @ loadings.transpose(0, 2, 1)
        covariances[:, np.arange(D), np.arange(D)] += mixture.noise_variances_
        return np.linalg.inv(np.linalg.cholesky(covariances)).transpose(0, 2, 1)
    P, kind = np.asarray(mixture.precisions_cholesky_, dtype=np.float64), mixture.covariance_type_
    if kind == "full":
        return P
    if kind == "tied":
        return np.broadcast_to(P, (C, D, D))
    diagonals = {"diag": lambda: P, "spherical": lambda: P[:, np.newaxis], "tied_spherical": lambda: P}[kind]()
    out = np.zeros((C, D, D))
    out[:, np.arange(D), np.arange(D)] = np.broadcast_to(diagonals, (C, D))
    return out


def log_densities(mixture: Any, X: Floats, dtype: Any) -> tuple[Floats, Floats]:
    """log π_c p(x | c) of a fitted mixture (n, C), and bounds of what rounding in `dtype` may do to each."""
    means = mixture.means_.astype(np.float64)
    weights = np.maximum(mixture.weights_, np.finfo(mixture.means_.dtype).tiny)  # components without points have that
    P, (C, D) = factors(mixture), means.shape
    logs, errors = np.empty((len(X), C)), np.empty((len(X), C))
    eps = 8 * float(np.finfo(dtype).eps) * (D + 8)
    with np.errstate(all="ignore"):
        extent = np.ptp(X, axis=0) + np.abs(means - X[0]).max(axis=0)
        for c in range(C):
            y = (X - means[c]) @ P[c]
            scale = np.log(weights[c]) + np.log(np.diagonal(P[c])).sum() - D / 2 * np.log(2 * np.pi)
            cost = np.einsum("nd,nd->n", y, y)
            slip = eps * np.linalg.norm(extent @ np.abs(P[c]))
            logs[:, c] = scale - cost / 2
            errors[:, c] = np.sqrt(cost) * slip + slip**2 + eps * (np.abs(scale) + cost)
    return logs, np.fmin(np.nan_to_num(errors, nan=1e290), 1e290)


def log_sum(logs: Floats) -> Floats:
    """log Σ exp of rows."""
    most = logs.max(axis=1)
    with np.errstate(under="ignore", invalid="ignore"):
        return most + np.log(np.exp(logs - most[:, np.newaxis]).sum(axis=1))
