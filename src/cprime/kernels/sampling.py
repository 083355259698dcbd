"""D² sampling (Arthur & Vassilvitskii 2007): the error J after a center is added, and greedy choices within groups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.compiled import _core
from cprime.kernels.measures import Floats, costs_of


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
    closest = check.contiguous(closest, squares.dtype)
    if closest.shape != (n,):
        raise ValueError(f"closest must have shape ({n},), got {closest.shape}")
    if candidates is not None:
        candidates = check.positions(candidates, "candidates")
        if candidates.size and (candidates.min() < 0 or candidates.max() >= L):
            raise ValueError(f"candidates must be rows of squares, 0 to {L - 1}, got {candidates}")
    weights = check.weights(sample_weight, n)
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
    offsets, n_chosen = check.positions(offsets, "offsets"), check.positions(n_chosen, "n_chosen")
    weights = check.vector(weights, "weights", len(candidates))
    sizes = np.diff(offsets)
    if len(offsets) != len(n_chosen) + 1 or offsets[0] != 0 or offsets[-1] != len(candidates) or (sizes < 0).any():
        raise ValueError(f"offsets must rise from 0 to {len(candidates)} in {len(n_chosen)} steps, got {offsets}")
    if ((n_chosen < 0) | (n_chosen > sizes)).any():
        raise ValueError(f"n_chosen must be between 0 and the sizes of the groups, {sizes}, got {n_chosen}")
    uniform = check.contiguous(uniform, np.float64)
    if uniform.ndim != 2 or len(uniform) != n_chosen.sum() or uniform.shape[1] < 1:
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
