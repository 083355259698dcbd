"""The E-step of a k-means in one call: the nearest center of every row, and what each center wins."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats


class Won(NamedTuple):
    """kept (n, 1) int32, costs (n, 1): as `nearest` finds them    counts (C,), sums (C, D): as `accumulate` makes them

    members (C,): rows of positive weight    n_moved: those that have another center than before
    """

    kept: NDArray[np.int32]
    costs: Floats
    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    members: NDArray[np.int64]
    n_moved: int


def win(
    X: CoreRows,
    centers: Floats,
    before: NDArray[np.int32] | None = None,
    sample_weight: Floats | None = None,
    *,
    n_threads: int | None = None,
) -> Won:
    """The nearest of all centers (C, D) for every row, ties going to the lower id, and sums by winner.

    before (n, 1): the centers that rows had, of which those that move are told; None where all move. What is found does
    not depend on them.
    """
    centers, weights = check.centers(centers, X), check.weights(sample_weight, len(X))
    n, (C, D) = len(X), centers.shape
    if before is not None:
        before = check.kept(before, "before", (n, 1))
    kept, costs = np.empty((n, 1), dtype=np.int32), np.empty((n, 1), dtype=X.dtype)
    counts, sums, members = np.empty(C), np.empty((C, D)), np.empty(C, dtype=np.int64)
    outputs = kept, costs, counts, sums, members
    n_moved = X.kernels.win(X.core, centers, before, weights, *outputs, resolve_threads(n_threads))
    return Won(*outputs, n_moved)
