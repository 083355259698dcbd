"""The compiled kernels of general Gaussian mixtures, beside those of `native.py`; twins in `reference_gaussians.py`.

The cost of a component is −2 log p(c, x), as in (31) of Lücke & Forster: less is better.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import Floats
from cprime.kernels.native import median_origin
from cprime.kernels.native_local import Found, nearest_among

_SMALL, _SOME_ROWS = 2.0**-30, 64


class Gaussians(NamedTuple):
    """Components whose cost for a point x is offset_c + ‖A_c (x − μ_c)‖².

    means (C, D)    factors: A_c, its diagonal (C, D) or a lower triangle with zeros above (C, D, D)    offsets (C,);
    all of the dtype of the data.
    """

    means: Floats
    factors: Floats
    offsets: Floats


class Responses(NamedTuple):
    """What an exact E-step finds, see `respond`; of a row: label, log_sum, mean; of a component: the others."""

    labels: NDArray[np.int32]
    log_sum: NDArray[np.float64]
    mean: NDArray[np.float64]
    counts: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]


def _checked(X: Floats, gaussians: Gaussians) -> tuple[Floats, Gaussians]:
    X = check.matrix(X, "X")
    means = check.matrix(gaussians.means, "means", X)
    C, D = means.shape
    if not C:
        raise ValueError("means must have at least one row, got none")
    factors = check.contiguous(gaussians.factors, X.dtype)
    if factors.shape not in ((C, D), (C, D, D)):
        raise ValueError(f"factors must have shape ({C}, {D}) or ({C}, {D}, {D}), got {factors.shape}")
    offsets = check.contiguous(gaussians.offsets, X.dtype)
    if offsets.shape != (C,):
        raise ValueError(f"offsets must have shape ({C},), got {offsets.shape}")
    return X, Gaussians(means, factors, offsets)


def products(X: Floats, B: Floats, shift: Floats | None = None, *, n_threads: int | None = None) -> Floats:
    """(X − shift) Bᵀ for X (n, K), B (m, K) and shift (K,) or None: (n, m), the same bits for any number of threads."""
    X = check.matrix(X, "X")
    B = check.matrix(B, "B", X)
    if shift is not None:
        shift = check.contiguous(shift, X.dtype)
        if shift.shape != (X.shape[1],):
            raise ValueError(f"shift must have shape ({X.shape[1]},), got {shift.shape}")
    out = np.empty((len(X), len(B)), dtype=X.dtype)
    _core.products(X, B, shift, out, resolve_threads(n_threads))
    return out


def best(
    X: Floats, gaussians: Gaussians, n_kept: int = 1, *, n_threads: int | None = None
) -> tuple[NDArray[np.int32], Floats]:
    """The `n_kept` components of least cost for every row, by (cost, id): (n, H) int32, and their costs (n, H)."""
    X, gaussians = _checked(X, gaussians)
    n_kept = check.count(n_kept, "n_kept")
    if n_kept > len(gaussians.means):
        raise ValueError(f"n_kept must be between 1 and the number of means, {len(gaussians.means)}, got {n_kept}")
    kept, costs = np.empty((len(X), n_kept), dtype=np.int32), np.empty((len(X), n_kept), dtype=X.dtype)
    _core.best(X, *gaussians, median_origin(gaussians.means), kept, costs, resolve_threads(n_threads))
    return kept, costs


def keep_best(
    X: Floats,
    gaussians: Gaussians,
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    n_kept: int,
    *,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], Floats]:
    """One cluster-major partial E-step: the `n_kept` best in G(n) = K(n) ∪ G_c, c the first in K(n).

    lists (C, G) int32: neighbours without the component itself, −1 behind the last, previous (n, H′) int32: K(n), best
    first, −1 is no component  ->  kept (n, H) int32 by (cost, id), −1 where G(n) is smaller, costs (n, H), infinite
    there.
    """
    X, gaussians = _checked(X, gaussians)
    C = len(gaussians.means)
    n_kept = check.count(n_kept, "n_kept")
    lists = check.kept(lists, "lists", (C, check.width(lists, "lists")))
    previous = check.kept(previous, "previous", (len(X), max(1, check.width(previous, "previous"))))
    kept, costs = np.empty((len(X), n_kept), dtype=np.int32), np.empty((len(X), n_kept), dtype=X.dtype)
    try:
        _core.keep_best(X, *gaussians, lists, previous, kept, costs, resolve_threads(n_threads))
    except ValueError:
        check.refuse_components(C, -1, lists=lists, previous=previous)
        check.refuse_components(C, 0, previous=previous[:, :1])
        raise
    return kept, costs


def best_among(
    X: Floats,
    gaussians: Gaussians,
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    n_kept: int,
    extra: NDArray[np.int32] | None = None,
    *,
    evidence: bool = False,
    sample_weight: Floats | None = None,
    n_threads: int | None = None,
) -> Found:
    """As `nearest_among`, by costs: the `distances` of what is found are costs."""
    X, gaussians = _checked(X, gaussians)
    return nearest_among(
        X,
        gaussians.means,
        lists,
        previous,
        n_kept,
        extra,
        costs=gaussians[1:],
        evidence=evidence,
        sample_weight=sample_weight,
        n_threads=n_threads,
    )


def respond(
    X: Floats,
    gaussians: Gaussians,
    sample_weight: Floats | None = None,
    *,
    moments: bool = True,
    n_threads: int | None = None,
) -> Responses:
    """One exact E-step over all C components, in blocks that do not grow with N.

    With r_nc ∝ exp(−cost_nc/2), of every row: the label of least cost (n,), log Σ_c exp(−cost_nc/2) (n,), the mean cost
    Σ_c r_nc cost_nc (n,); of every component, if `moments` are wanted (else of no entries), all of weight w_n r_nc:
    counts (C,), first = Σ (x − μ_c) (C, D), second = Σ (x − μ_c)² (C, D), or Σ (x − μ_c)(x − μ_c)ᵀ (C, D, D) for
    factors of that shape.
    """
    X, gaussians = _checked(X, gaussians)
    weights, unit = check.scaled_weights(sample_weight, len(X))
    C, D = gaussians.means.shape
    units = _units(X, gaussians.means) if moments and gaussians.factors.ndim == 2 else None
    if units is not None:
        X, gaussians = X * units, Gaussians(gaussians.means * units, gaussians.factors / units, gaussians.offsets)
    labels, (log_sum, mean) = np.empty(len(X), dtype=np.int32), np.empty((2, len(X)))
    counts, first, second = np.zeros(C), np.zeros((C, D)), np.zeros(gaussians.factors.shape)
    if not moments:
        counts, first, second = np.empty(0), np.empty((0, D)), np.empty((0, D))
    sums = (counts, first, second) if moments else (None, None, None)
    _core.respond(
        X,
        *gaussians,
        median_origin(gaussians.means),
        weights,
        labels,
        log_sum,
        mean,
        sums[0],
        sums[1],
        sums[2],
        None,
        resolve_threads(n_threads),
    )
    for found in (counts, first, second):
        found *= unit
    if units is not None:
        first, second = first / units, second / np.square(units, dtype=np.float64)
    return Responses(labels, log_sum, mean, counts, first, _symmetric(second))


def responsibilities(X: Floats, gaussians: Gaussians, *, n_threads: int | None = None) -> NDArray[np.float64]:
    """r_nc ∝ exp(−cost_nc/2) of every row over all components: (n, C)."""
    X, gaussians = _checked(X, gaussians)
    labels, (log_sum, mean) = np.empty(len(X), dtype=np.int32), np.empty((2, len(X)))
    out = np.empty((len(X), len(gaussians.means)))
    origin = median_origin(gaussians.means)
    _core.respond(X, *gaussians, origin, None, labels, log_sum, mean, None, None, None, out, resolve_threads(n_threads))
    out /= out.sum(axis=1, keepdims=True)  # what single precision has left of the sum of 1
    return out


def moments(
    X: Floats,
    means: Floats,
    kept: NDArray[np.int32],
    responsibilities: NDArray[np.float64] | None = None,
    sample_weight: Floats | None = None,
    *,
    full: bool,
    n_threads: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Sums over the kept components about given means, with weights w_n q_nc: counts (C,), first and second moments.

    kept (n, H) int32    responsibilities (n, H), or None for ones    ->    Σ w q (C,), Σ w q (x − μ_c) (C, D), and
    Σ w q (x − μ_c)² (C, D) or, if `full`, Σ w q (x − μ_c)(x − μ_c)ᵀ (C, D, D), all float64.
    """
    X = check.matrix(X, "X")
    means = check.matrix(means, "means", X)
    if not len(means):
        raise ValueError("means must have at least one row, got none")
    kept = check.kept(kept, "kept", (len(X), check.width(kept, "kept")))
    if responsibilities is not None:
        responsibilities = check.contiguous(responsibilities, np.float64)
        if responsibilities.shape != kept.shape:
            raise ValueError(f"responsibilities must have shape {kept.shape}, got {responsibilities.shape}")
    weights = check.weights(sample_weight, len(X))
    units = None if full else _units(X, means)
    if units is not None:
        X, means = X * units, means * units
    C, D = means.shape
    sums = np.zeros(C), np.zeros((C, D)), np.zeros((C, D, D) if full else (C, D))
    try:
        _core.moments(X, means, kept, responsibilities, weights, *sums, resolve_threads(n_threads))
    except ValueError:
        check.refuse_components(C, 0, kept=kept)
        raise
    if units is not None:
        return sums[0], sums[1] / units, sums[2] / np.square(units, dtype=np.float64)
    return sums[0], sums[1], _symmetric(sums[2])


def _units(X: Floats, means: Floats) -> Floats | None:
    """Powers of two (D,) by which to multiply columns whose numbers, by the means and some rows, are so small that
    float32 does not hold their squares; None where there are none.
    """
    if X.dtype != np.float32:
        return None
    some = X[:: max(1, len(X) // _SOME_ROWS)]
    largest = np.maximum(np.abs(means).max(axis=0), np.abs(some).max(axis=0, initial=0))
    small = (largest > 0) & (largest < _SMALL)
    if not small.any():
        return None
    return np.ldexp(np.float32(1), np.where(small, -np.frexp(largest)[1], 0))


def _symmetric(second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mirrors the lower triangles of (C, D, D) in place; leaves (C, D) as it is."""
    if second.ndim == 3:
        for k in range(second.shape[1]):
            second[:, k, k + 1 :] = second[:, k + 1 :, k]
    return second
