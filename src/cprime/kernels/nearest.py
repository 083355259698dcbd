"""Exact search of the nearest of all components for every row, the E-step of k-means, and changes of active sets.

The components found are the active sets K(n) of Corollary 1 of Lücke & Forster 2019. If one component is found for each
row, this is the assignment of k-means, eq. (9.2) of Bishop 2006.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats, Measure, costs_of


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
    measure, n_kept = check.measure(components, X), check.count(n_kept, "n_kept")
    if n_kept > len(measure[0]):
        raise ValueError(f"n_kept must be between 1 and the number of components, {len(measure[0])}, got {n_kept}")
    hint = check.array(hint, "hint", np.int32, len(X), n_kept)
    kept, costs = np.empty((len(X), n_kept), dtype=np.int32), np.empty((len(X), n_kept), dtype=X.dtype)
    if len(measure) == 1:
        X.kernels.nearest(X.core, *measure, hint, kept, costs, resolve_threads(n_threads))
    else:
        X.kernels.best(X.core, *measure, kept, costs, resolve_threads(n_threads))
    return kept, costs


def best_twin(
    X: Floats,
    means: Floats,
    factors: Floats | None,
    offsets: Floats | None,
    dof: Floats | None,
    kept: NDArray,
    costs: Floats,
    n_threads: int,
) -> None:
    """Find the components of least cost for every row in NumPy, by sorting all costs.

    Components are written to `kept` (n, H), and their costs to `costs` (n, H).
    """
    every = costs_of(X, means, factors, offsets, dof).astype(X.dtype)
    kept[:] = np.argsort(every, axis=1, kind="stable")[:, : kept.shape[1]]
    costs[:] = np.take_along_axis(every, kept, axis=1)


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
    counts all rows.
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


def assign_by_parts(
    kernels: Any,
    X: Any,
    centers: Any,
    before: Any,
    sample_weight: Any,
    kept: Any,
    costs: Any,
    counts: Any,
    sums: Any,
    members: Any,
    n_threads: int,
) -> int:
    """Compute the E-step of k-means by two kernels one after the other: `nearest`, then `accumulate`.

    The results are written to these arrays: kept (n, 1), nearest centers; costs (n, 1), squared distances to them; and
    for each center counts (C,), sum of weights; sums (C, D), sum of weighted rows; members (C,), number of rows of
    positive weight.
    before (n, 1): previous nearest centers, or None    sample_weight (n,): weights, or None
    Returns the number of rows of positive weight whose nearest center changed; None for `before` counts all rows.
    """
    kernels.nearest(X, centers, before, kept, costs, n_threads)
    kernels.accumulate(X, kept, None, sample_weight, None, counts, sums, False, n_threads)
    heavy = np.ones(len(kept), dtype=bool) if sample_weight is None else sample_weight > 0
    members[:] = np.bincount(kept[heavy, 0], minlength=len(centers))
    return int(np.count_nonzero(heavy if before is None else heavy & (kept != before)[:, 0]))


def changed(
    after: NDArray[np.int32],
    before: NDArray[np.int32],
    n_columns: int | None = None,
    *,
    n_threads: int | None = None,
    kernels: Any = _core,
) -> NDArray[np.bool_]:
    """Return the mask (n,) of points whose components (active sets) have changed.

    after (n, H), before (n, H') int32: components of each point
    n_columns: number of columns to compare; None compares all, which requires H = H'
    """
    after = check.array(after, "after", np.int32, -1, -1)
    n, H = after.shape
    before = check.array(before, "before", np.int32, n, H if n_columns is None else -1)
    n_columns, most = H if n_columns is None else check.count(n_columns, "n_columns"), min(H, before.shape[1])
    if n_columns > most:
        raise ValueError(f"n_columns must be at most {most}, the columns of both, got {n_columns}")
    out = np.empty(len(after), dtype=bool)
    kernels.changed(after, before, n_columns, out, resolve_threads(n_threads))
    return out


def changed_twin(after: NDArray, before: NDArray, n_columns: int, out: NDArray, n_threads: int) -> None:
    """Compare the first `n_columns` columns of two arrays in NumPy; write the mask (n,) of unequal rows to `out`."""
    out[:] = (after[:, :n_columns] != before[:, :n_columns]).any(axis=1)
