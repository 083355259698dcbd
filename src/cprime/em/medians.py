"""k-medians: assign points to the center of least L1 distance, and replace centers by medians, in turn."""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cprime.execution.block import Block
from cprime.kernels import Rows
from cprime.model.laplace import LaplaceCosts, median_of

_VALUES = 2**22  # largest number of distances that are computed at a time
HISTORY = np.dtype([("inertia", float), ("n_moved", np.int64), ("seconds", float)])


class Medians:
    """State of one start of k-medians.

    centers (C, D): the present medians    labels (N,): nearest center of each point at the last assignment, or None
    rows: a tuple for each iteration: J at its assignment, number of reassigned points, duration in seconds
    converged: whether the iterations have converged
    """

    def __init__(self, centers: NDArray) -> None:
        self.centers = centers
        self.labels: NDArray[np.int32] | None = None
        self.rows: list[tuple[float, int, float]] = []
        self.converged = False

    @property
    def inertia(self) -> float:
        """Return J at the last assignment of points: the weighted sum of their L1 distances to the nearest centers."""
        return self.rows[-1][0]


Callback = Callable[[Mapping[str, Any], Medians, bool], bool]  # arguments: history row, state, whether run is over


def improve(run: Medians, points: Block, max_iter: int, tol: float, callback: Callback | None = None) -> bool:
    """Alternate between assignments and medians until convergence or max_iter, and change the state `run` in place.

    Return whether the callback has ended the fit.
    points: rows (N, D) with their weights    tol: least share of J by which an iteration must lower it; 0 is none
    """
    X = points.X
    while not run.converged and len(run.rows) < max_iter:
        begin = perf_counter()
        labels, costs = nearest_by_l1(X, run.centers)
        J = points.weighted_sum(costs)
        moved = np.ones(len(X), dtype=bool) if run.labels is None else labels != run.labels
        n_moved = points.count(moved)
        small = bool(run.rows) and run.inertia - J <= tol * J and tol > 0
        run.labels, run.converged = labels, n_moved == 0 or small
        if not run.converged:
            run.centers = medians(X.dense(), labels, points.sample_weight, run.centers, X.observed)
        run.rows.append((J, n_moved, perf_counter() - begin))
        row = {"iteration": len(run.rows), "inertia": J, "n_moved": n_moved, "seconds": run.rows[-1][2]}
        over = run.converged or len(run.rows) == max_iter
        if callback is not None and callback(row | {"change": float(n_moved)}, run, over):
            return True
    return False


def nearest_by_l1(X: Rows, centers: NDArray) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the index of the center of least L1 distance to each row, and this distance, (n,) each.

    Columns in which the row has a missing value do not count in the distance.
    """
    labels, costs = np.empty(len(X), dtype=np.int32), np.empty(len(X))
    step = max(1, _VALUES // len(centers))
    for begin in range(0, len(X), step):
        distances = l1_distances(X[begin : begin + step], centers)
        labels[begin : begin + step] = distances.argmin(axis=1)
        costs[begin : begin + step] = distances.min(axis=1)
    return labels, costs


def l1_distances(X: Rows, centers: NDArray) -> NDArray[np.float64]:
    """Return the L1 distance of each row to each center over the columns that the row has, (n, C)."""
    if X.observed is None:
        return cdist(X.dense(), centers, "cityblock")
    C = len(centers)
    scaled = LaplaceCosts(centers, np.full((1, 1), 0.5), np.zeros(C))  # the cost is 4 times the distance
    return scaled.costs(X, np.tile(np.arange(C, dtype=np.int32), (len(X), 1))) / 4


def medians(
    X: NDArray, labels: NDArray, weights: NDArray | None, centers: NDArray, observed: NDArray[np.bool_] | None = None
) -> NDArray:
    """Return the medians of the rows of each cluster, (C, D).

    centers (C, D): present centers, which a cluster keeps in columns without a value of positive weight
    observed (n, D): mask of the values that are not missing, or None
    """
    out = centers.copy()
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(len(centers) + 1))
    weights = np.ones(len(X)) if weights is None else weights
    for c in range(len(centers)):
        rows = order[bounds[c] : bounds[c + 1]]
        rows = rows[weights[rows] > 0]
        if observed is None:
            out[c] = median_of(X[rows], weights[rows]) if len(rows) else centers[c]
        elif len(rows):
            mass = weights[rows, np.newaxis] * observed[rows]
            out[c] = np.where(mass.any(axis=0), median_of(X[rows], mass), centers[c])
    return out
