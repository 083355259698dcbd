"""Nearest of all components, distances to a few candidates, D² sampling, matrix products, and the range of values.

The components that the exact search `nearest` finds are the active sets K(n) of Corollary 1 of Lücke & Forster 2019. If
one component is found for each row, this is the assignment of k-means, eq. (9.2) of Bishop 2006. `potentials` computes
the error J after a center is added, for D² sampling (Arthur & Vassilvitskii 2007); `spread_out` is greedy D² sampling.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats, Measure


def nearest(
    X: CoreRows,
    components: Measure,
    n_kept: int = 1,
    *,
    hint: NDArray[np.int32] | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], Floats]:
    """Return the `n_kept` components of least cost for every row, sorted by (cost, id), and these costs.

    components: centers (C, D), whose costs are squared distances [data unit²], or Gaussians
    hint (n, H): components that are probably near, distinct in each row; affects the time, never the result
    ->  kept (n, H) int32, costs (n, H) of X's dtype, computed from differences
    """
    (means, *gaussians), n_kept = check.measure(components, X), check.count(n_kept, "n_kept")
    if n_kept > len(means):
        raise ValueError(f"n_kept must be between 1 and the number of components, {len(means)}, got {n_kept}")
    hint = check.array(hint, "hint", np.int32, len(X), n_kept)
    kept, costs = np.empty((len(X), n_kept), dtype=np.int32), np.empty((len(X), n_kept), dtype=X.dtype)
    if gaussians[0] is None:
        X.kernels.nearest(X.core, means, hint, kept, costs, resolve_threads(n_threads))
    else:
        X.kernels.best(X.core, means, *gaussians, kept, costs, resolve_threads(n_threads))
    return kept, costs


class AssignResult(NamedTuple):
    """Result of `assign`, the E-step of k-means, for n rows and C centers.

    kept (n, 1) int32: id of each row's nearest center    costs (n, 1): squared distances to these centers
    counts (C,), sums (C, D): Σ w_n and Σ w_n x_n over the rows x_n of each center, with weights w_n
    members (C,): number of rows of positive weight of each center    n_moved: number of such rows whose center changed
    """

    kept: NDArray[np.int32]
    costs: Floats
    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    members: NDArray[np.int64]
    n_moved: int


def assign(
    X: CoreRows,
    centers: Floats,
    before: NDArray[np.int32] | None = None,
    sample_weight: Floats | None = None,
    *,
    n_threads: int | None = None,
) -> AssignResult:
    """Find the nearest of all centers (C, D) for every row, and sum the rows of each center.

    Returns an `AssignResult`. If distances are equal, the center of lower id is taken.
    before (n, 1): ids of the rows' previous nearest centers, used only to count the rows whose center changed; None
    counts all rows    sample_weight (n,): weights of the rows, None for ones
    """
    centers = check.matrix(centers, "centers", X, 1)
    n, (C, D) = len(X), centers.shape
    weights = check.array(sample_weight, "sample_weight", np.float64, n)
    before = check.array(before, "before", np.int32, n, 1)
    kept, costs = np.empty((n, 1), dtype=np.int32), np.empty((n, 1), dtype=X.dtype)
    counts, sums, members = np.empty(C), np.empty((C, D)), np.empty(C, dtype=np.int64)
    outputs = kept, costs, counts, sums, members
    n_moved = X.kernels.assign(X.core, centers, before, weights, *outputs, resolve_threads(n_threads))
    return AssignResult(*outputs, n_moved)


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


def extent(X: CoreRows, origin: Floats | None = None, *, n_threads: int | None = None) -> tuple[float, float]:
    """Return the greatest |x_nk| and |x_nk − origin_k| over rows n and columns k of X [data unit]; 0, 0 if X is empty.

    By these numbers callers check that squared distances neither overflow nor underflow.
    If a number in X is infinite or NaN, the first result is infinite or NaN.    origin (D,): None means the first row
    """
    if not len(X) or not X.shape[1]:
        return 0.0, 0.0
    origin = check.array(X.first() if origin is None else origin, "origin", X.dtype, X.shape[1])
    return X.kernels.extent(X.core, origin, resolve_threads(n_threads))


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
