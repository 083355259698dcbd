"""E-step of k-means in one call: the nearest center of every row, and the sums of weights and rows of each center."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats


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
    centers, weights = check.centers(centers, X), check.weights(sample_weight, len(X))
    n, (C, D) = len(X), centers.shape
    if before is not None:
        before = check.kept(before, "before", (n, 1))
    kept, costs = np.empty((n, 1), dtype=np.int32), np.empty((n, 1), dtype=X.dtype)
    counts, sums, members = np.empty(C), np.empty((C, D)), np.empty(C, dtype=np.int64)
    outputs = kept, costs, counts, sums, members
    n_moved = X.kernels.assign(X.core, centers, before, weights, *outputs, resolve_threads(n_threads))
    return AssignResult(*outputs, n_moved)
