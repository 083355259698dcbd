"""NumPy twins of the kernels of general Gaussian mixtures; see `reference.py`.

The cost of a component is offset_c + ‖A_c (x − μ_c)‖², −2 log p(c, x) as in (31) of Lücke & Forster.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import arguments as check
from cprime.kernels.native_gaussians import Gaussians, Responses
from cprime.kernels.native_local import Found
from cprime.kernels.reference_local import check_ids, check_range, gaussian_costs, nearest_among


def products(X: NDArray, B: NDArray, shift: NDArray | None = None, *, n_threads: int | None = None) -> NDArray:
    """Give (X − shift) Bᵀ.

    X (n, K), B (m, K), shift (K,) or None for zeros, all of one dtype T     returns (n, m) T
    """
    check.matrix(X, "X")
    check.matrix(B, "B", X)
    if shift is not None and np.shape(shift) != (X.shape[1],):
        raise ValueError(f"shift has shape {np.shape(shift)}, expected ({X.shape[1]},).")
    rows = np.ascontiguousarray(X, dtype=np.float64) - (0 if shift is None else shift)
    return (rows @ np.ascontiguousarray(B, dtype=np.float64).T).astype(X.dtype)


def best(X: NDArray, gaussians: Gaussians, n_kept: int = 1, *, n_threads: int | None = None) -> tuple[NDArray, NDArray]:
    """Find the n_kept components of least cost of each row (K(n) of L 31).

    returns kept (n, n_kept) int32, ordered by (cost, id), and costs (n, n_kept) of X's dtype
    """
    cost = _costs(X, gaussians).astype(X.dtype)
    if not 1 <= n_kept <= cost.shape[1]:
        raise ValueError(f"n_kept={n_kept} should be between 1 and the number of means, {cost.shape[1]}.")
    kept = np.argsort(cost, axis=1, kind="stable")[:, :n_kept]
    return kept.astype(np.int32), np.take_along_axis(cost, kept, axis=1)


def keep_best(
    X: NDArray,
    gaussians: Gaussians,
    lists: NDArray,
    previous: NDArray,
    n_kept: int,
    *,
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Do a partial E-step: the n_kept best in G(n) = K(n) ∪ G_c, c the first in K(n).

    lists (C, G) int32, of which what is behind the first −1 is not read; previous (n, H′) int32: K(n), best first
    returns kept (n, n_kept) int32 by (cost, id), −1 where G(n) is smaller, and costs (n, n_kept), infinite there
    """
    _check(X, gaussians)
    C = len(gaussians.means)
    check_ids("lists", lists, C, -1, C)
    check_ids("previous", previous, len(X), -1, C)
    check.count(previous.shape[1], "previous' width")
    check_range("previous", previous[:, 0], 0, C)
    offered = np.where(np.minimum.accumulate(lists >= 0, axis=1), lists, -1)[previous[:, 0]]
    found = best_among(X, gaussians, np.empty((C, 0), dtype=np.int32), previous, n_kept, offered)
    return found.kept, found.distances


def best_among(
    X: NDArray,
    gaussians: Gaussians,
    lists: NDArray,
    previous: NDArray,
    n_kept: int,
    extra: NDArray | None = None,
    *,
    evidence: bool = False,
    sample_weight: NDArray | None = None,
    n_threads: int | None = None,
) -> Found:
    """Do a partial E-step as `nearest_among`, by costs."""
    _check(X, gaussians)
    return nearest_among(
        X,
        gaussians.means,
        lists,
        previous,
        n_kept,
        extra,
        costs=(gaussians.factors, gaussians.offsets),
        evidence=evidence,
        sample_weight=sample_weight,
    )


def respond(
    X: NDArray,
    gaussians: Gaussians,
    sample_weight: NDArray | None = None,
    *,
    moments: bool = True,
    n_threads: int | None = None,
) -> Responses:
    """Do one exact E-step over all components: r_nc ∝ exp(−cost_nc / 2).

    returns, of each row, the label of least cost (n,) int32, log Σ_c exp(−cost_nc / 2) (n,) and Σ_c r_nc cost_nc (n,);
    of each component, if moments are wanted and else empty, Σ_n w_n r_nc (C,), Σ_n w_n r_nc (x_n − μ_c) (C, D), and
    Σ_n w_n r_nc (x_n − μ_c)² (C, D) or Σ_n w_n r_nc (x_n − μ_c)(x_n − μ_c)ᵀ (C, D, D), as the factors are; float64
    """
    cost = _costs(X, gaussians)
    n, D = X.shape
    weights = check.weights(sample_weight, n)
    r, log_sum = _softmax(cost)
    mean = (r * np.where(r > 0, cost, 0)).sum(axis=1)
    sums = np.empty(0), np.empty((0, D)), np.empty((0, D))
    if moments:
        w = r if weights is None else weights[:, None] * r
        sums = _moments(X, gaussians.means, w, full=gaussians.factors.ndim == 3)
    return Responses(cost.astype(X.dtype).argmin(axis=1).astype(np.int32), log_sum, mean, *sums)


def responsibilities(X: NDArray, gaussians: Gaussians, *, n_threads: int | None = None) -> NDArray:
    """Give r_nc ∝ exp(−cost_nc / 2) over all components, (n, C) float64."""
    return _softmax(_costs(X, gaussians))[0]


def moments(
    X: NDArray,
    means: NDArray,
    kept: NDArray,
    responsibilities: NDArray | None = None,
    sample_weight: NDArray | None = None,
    *,
    full: bool,
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray, NDArray]:
    """Sum the kept components' moments about given means, with weights w_n q_nc.

    kept (n, H) int32, repetitions allowed; responsibilities (n, H), of any sign, or None for ones
    returns, float64: Σ w q (C,), Σ w q (x − μ_c) (C, D), and Σ w q (x − μ_c)² (C, D) or, if full, of
    (x − μ_c)(x − μ_c)ᵀ (C, D, D)
    """
    check.matrix(X, "X")
    check.matrix(means, "means", X)
    check_ids("kept", kept, len(X), 0, len(means))
    q = np.ones(kept.shape) if responsibilities is None else responsibilities
    if q.shape != kept.shape:
        raise ValueError(f"responsibilities has shape {q.shape}, expected {kept.shape}.")
    weights = check.weights(sample_weight, len(X))
    w = np.zeros((len(X), len(means)))
    for h in range(kept.shape[1]):
        w[np.arange(len(X)), kept[:, h]] += q[:, h]
    return _moments(X, means, w if weights is None else weights[:, None] * w, full)


def _moments(X: NDArray, means: NDArray, w: NDArray, full: bool) -> tuple[NDArray, NDArray, NDArray]:
    """Moments about the means of points with weights w (n, C)."""
    rows = np.ascontiguousarray(X, dtype=np.float64)
    differences = [rows - mean for mean in means.astype(np.float64)]
    first = np.array([w[:, c] @ d for c, d in enumerate(differences)])
    if full:
        return w.sum(axis=0), first, np.array([(w[:, c, None] * d).T @ d for c, d in enumerate(differences)])
    return w.sum(axis=0), first, np.array([w[:, c] @ np.square(d) for c, d in enumerate(differences)])


def _softmax(cost: NDArray) -> tuple[NDArray, NDArray]:
    """exp(−cost / 2), normalised to sum 1 over each row, and the logarithm of that sum."""
    least = cost.min(axis=1, keepdims=True)
    share = np.exp((least - cost) / 2)
    total = share.sum(axis=1, keepdims=True)
    return share / total, (np.log(total) - least / 2)[:, 0]


def _costs(X: NDArray, gaussians: Gaussians) -> NDArray:
    """Costs of all components, (n, C) float64."""
    _check(X, gaussians)
    return gaussian_costs(X, *gaussians)


def _check(X: NDArray, gaussians: Gaussians) -> None:
    """Require arrays of one number of features, one factor and one offset a component."""
    check.matrix(X, "X")
    check.matrix(gaussians.means, "means", X)
    C, D = gaussians.means.shape
    if not C:
        raise ValueError("means has no row, expected at least one.")
    if gaussians.factors.shape not in ((C, D), (C, D, D)):
        raise ValueError(f"factors has shape {gaussians.factors.shape}, expected ({C}, {D}) or ({C}, {D}, {D}).")
    if gaussians.offsets.shape != (C,):
        raise ValueError(f"offsets has shape {gaussians.offsets.shape}, expected ({C},).")
