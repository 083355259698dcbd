"""Exact search of the nearest of all components for every row.

The components found are the active sets K(n) of Corollary 1 of Lücke & Forster 2019. If one component is found for each
row, this is the assignment of k-means, eq. (9.2) of Bishop 2006.
"""

import numpy as np
from numpy.typing import NDArray

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
    measure = check.measure(components, X)
    C = len(measure[0])
    n_kept = check.count(n_kept, "n_kept")
    if n_kept > C:
        raise ValueError(f"n_kept must be between 1 and the number of components, {C}, got {n_kept}")
    shape = (len(X), n_kept)
    if hint is not None:
        hint = check.kept(hint, "hint", shape)
    kept, costs = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=X.dtype)
    X.kernels.nearest(X.core, measure, hint, kept, costs, resolve_threads(n_threads))
    return kept, costs


def nearest_twin(X: Floats, measure: tuple, hint: NDArray | None, kept: NDArray, costs: Floats, n_threads: int) -> None:
    """Find the components of least cost for every row in NumPy, by sorting all costs.

    Components are written to `kept` (n, H), and their costs to `costs` (n, H).
    """
    every = costs_of(X, *measure).astype(X.dtype)
    kept[:] = np.argsort(every, axis=1, kind="stable")[:, : kept.shape[1]]
    costs[:] = np.take_along_axis(every, kept, axis=1)
