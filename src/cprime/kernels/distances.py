"""Squared distances of rows to a few candidates, D² sampling, matrix products, and the range of the values in rows.

D² sampling (Arthur & Vassilvitskii 2007) uses the error J after a center is added, and greedy choices within groups.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats, costs_of


def distances(
    X: CoreRows,
    candidates: Floats,
    current: Floats | None = None,
    *,
    out: Floats | None = None,
    n_threads: int | None = None,
) -> Floats:
    """Return min(‖x_n − candidate_l‖², current_n) for L candidates and all n rows of X: (L, n) of X's dtype.

    candidates (L, D): centers    current (n,): upper limit of the result for each row, None for no limit
    out: C-contiguous array of this shape and dtype to which the result is written, or None
    """
    candidates = check.matrix(candidates, "candidates", X)
    current = check.array(current, "current", X.dtype, len(X))
    out = check.output(out, "out", X.dtype, len(candidates), len(X))
    X.kernels.distances(X.core, candidates, current, out, resolve_threads(n_threads))
    return out


def distances_twin(X: Floats, candidates: Floats, current: Floats | None, out: Floats, n_threads: int) -> None:
    """Write squared distances of n rows to L candidates, limited by `current`, to `out` (L, n); computed in NumPy."""
    out[:] = costs_of(X, candidates).T.astype(X.dtype)
    if current is not None:
        np.minimum(out, current, out=out)


def potentials(
    squares: Floats,
    closest: Floats,
    sample_weight: Floats | None = None,
    *,
    candidates: NDArray[np.int64] | None = None,
    n_threads: int | None = None,
    kernels: Any = _core,
) -> NDArray[np.float64]:
    """Return for each candidate l the error J_l = Σ_n w_n min(squares_ln, closest_n) if l is the next center.

    w are the weights of points.
    squares (L, n): squared distances of points to candidates
    closest (n,): squared distance of each point to the nearest of the centers chosen so far
    candidates (m,) int64: indices of the rows of `squares` to use, None for all L
    ->  errors (m,) or (L,)
    """
    squares = check.contiguous(squares)
    if squares.ndim != 2 or squares.dtype not in (np.float32, np.float64):
        raise TypeError(f"squares must be a matrix of float32 or float64, got {squares.dtype} of {squares.ndim} axes")
    L, n = squares.shape
    closest = check.array(closest, "closest", squares.dtype, n)
    candidates = check.array(candidates, "candidates", np.int64, -1)
    if candidates is not None and candidates.size and (candidates.min() < 0 or candidates.max() >= L):
        raise ValueError(f"candidates must be rows of squares, 0 to {L - 1}, got {candidates}")
    weights = check.array(sample_weight, "sample_weight", np.float64, n)
    out = np.empty(L if candidates is None else len(candidates))
    kernels.potentials(squares, candidates, closest, weights, out, resolve_threads(n_threads))
    return out


def potentials_twin(
    squares: Floats,
    candidates: NDArray | None,
    closest: Floats,
    sample_weight: NDArray | None,
    out: NDArray,
    n_threads: int,
) -> None:
    """Compute for each candidate the error J if it is the next center, in NumPy; write the errors to `out` (m,)."""
    least = np.minimum(squares if candidates is None else squares[candidates], closest).astype(np.float64)
    out[:] = least @ (np.ones(len(closest)) if sample_weight is None else sample_weight)


def spread_out(
    candidates: CoreRows,
    offsets: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_chosen: NDArray[np.int64],
    uniform: NDArray[np.float64],
    *,
    n_threads: int | None = None,
) -> NDArray[np.int64]:
    """Choose rows far from each other within each group of rows, by greedy D² sampling.

    For each choice, several trial rows of the group are drawn with probabilities proportional to weight · squared
    distance to the nearest row chosen so far. The trial row that lowers the sum of weighted squared distances most is
    chosen.
    candidates (m, D): rows; group g has the rows offsets[g] … offsets[g + 1] − 1    offsets (n_groups + 1,)
    weights (m,): weights of the rows    n_chosen (n_groups,): number of rows to choose from each group
    uniform (Σ n_chosen, trials): random numbers in [0, 1), one row for each choice, one number for each trial row
    ->  indices (Σ n_chosen,) of the chosen rows, group by group, counted from the first row of the group
    """
    n_chosen = check.array(n_chosen, "n_chosen", np.int64, -1)
    offsets = check.array(offsets, "offsets", np.int64, len(n_chosen) + 1)
    weights = check.array(weights, "weights", np.float64, len(candidates))
    sizes = np.diff(offsets)
    if offsets[0] != 0 or offsets[-1] != len(candidates) or (sizes < 0).any():
        raise ValueError(f"offsets must rise from 0 to {len(candidates)} in {len(n_chosen)} steps, got {offsets}")
    if ((n_chosen < 0) | (n_chosen > sizes)).any():
        raise ValueError(f"n_chosen must be between 0 and the sizes of the groups, {sizes}, got {n_chosen}")
    uniform = check.array(uniform, "uniform", np.float64, int(n_chosen.sum()), -1)
    if uniform.shape[1] < 1:
        raise ValueError(f"uniform must have shape ({n_chosen.sum()}, at least 1), got {uniform.shape}")
    chosen = np.empty(len(uniform), dtype=np.int64)
    threads = resolve_threads(n_threads)
    candidates.kernels.spread_out(candidates.core, offsets, weights, n_chosen, uniform, chosen, threads)
    return chosen


def spread_out_twin(
    candidates: Floats,
    offsets: NDArray,
    weights: NDArray,
    n_chosen: NDArray,
    uniform: NDArray,
    out: NDArray,
    n_threads: int,
) -> None:
    """Choose rows by greedy D² sampling in NumPy, group by group and choice by choice; write their indices to `out`."""
    chosen: list[int] = []
    for g, n in enumerate(n_chosen):
        rows, mass = (a[offsets[g] : offsets[g + 1]] for a in (candidates, weights))
        squared = costs_of(rows, rows).astype(rows.dtype)
        closest, taken = np.full(len(rows), np.inf), []
        for i in range(n):
            cumulative = np.cumsum(mass * closest if i else mass)
            if not cumulative[-1] > 0:
                taken += [j for j in range(len(rows)) if j not in taken][: n - i]
                break
            drawn = np.searchsorted(cumulative, np.asarray(uniform[len(chosen) + i] * cumulative[-1]), "right")
            tried = np.minimum(drawn, len(rows) - 1)
            best = tried[np.minimum(closest, squared[tried]).dot(mass).argmin()]
            taken.append(best)
            closest = np.minimum(closest, squared[best])
        chosen += taken
    out[:] = chosen


def extent(X: CoreRows, origin: Floats | None = None, *, n_threads: int | None = None) -> tuple[float, float]:
    """Return the greatest |x_nk| and |x_nk − origin_k| over rows n and columns k of X [data unit]; 0, 0 if X is empty.

    If a number in X is infinite or NaN, the first result is infinite or NaN.    origin (D,): None means the first row
    """
    if not len(X) or not X.shape[1]:
        return 0.0, 0.0
    origin = check.array(X.first() if origin is None else origin, "origin", X.dtype, X.shape[1])
    return X.kernels.extent(X.core, origin, resolve_threads(n_threads))


def extent_twin(X: Floats, origin: Floats, n_threads: int) -> tuple[float, float]:
    """Return the greatest |x_nk| and |x_nk − origin_k| over rows n and columns k of X, computed in NumPy."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.abs(X).max()), float(np.fmax.reduce(np.abs(X - origin), axis=None))


def products(
    X: CoreRows, B: Floats, shift: Floats | None = None, *, out: Floats | None = None, n_threads: int | None = None
) -> NDArray[np.floating]:
    """Return the matrix product (X − shift) Bᵀ (n, m) for B (m, D) and shift (D,) or None.

    The result is bit-identical for any number of threads.

    out: C-contiguous array of this shape and of X's dtype to which the result is written, or None
    """
    B = check.matrix(B, "B", X)
    shift = check.array(shift, "shift", X.dtype, X.shape[1])
    out = check.output(out, "out", X.dtype, len(X), len(B))
    X.kernels.products(X.core, B, shift, out, resolve_threads(n_threads))
    return out


def products_twin(X: Floats, B: Floats, shift: Floats | None, out: Floats, n_threads: int) -> None:
    """Compute the products (X − shift) Bᵀ in NumPy, in float64, and write them to `out`."""
    rows = np.ascontiguousarray(X, dtype=np.float64) - (0 if shift is None else shift)
    out[:] = rows @ np.ascontiguousarray(B, dtype=np.float64).T
