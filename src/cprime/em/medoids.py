"""k-medoids: find C points μ_c, the medoids, that minimize Σ_n w_n min_c V(x_n, μ_c), for any dissimilarity V.

The objective is eq. (9.6) of Bishop, *Pattern Recognition and Machine Learning*.

Two algorithms lower the sum, both written from the published descriptions:

- `swap`: FasterPAM (Schubert & Rousseeuw, *Fast and eager k-medoids clustering*, Information Systems 101, 2021). Each
  point in turn is tried as a replacement of every medoid at once: the increase by removing a medoid and the decrease by
  adding the point are sums over points, computed from their nearest and second nearest medoids. The best exchange is
  made immediately if it lowers the objective. The algorithm ends when no single exchange lowers it, which is an optimum
  of PAM (Kaufman & Rousseeuw 1990).
- `alternate`: assign points to their nearest medoid, then choose each cluster's best point as medoid, with N_c²
  evaluations in a cluster of N_c points.

In a matrix V (N, N), V[n, j] is the cost of representing point n by point j. The algorithms read columns of V, so
Fortran order is fastest. The weight w_n multiplies the cost of point n; a point of zero weight cannot become a medoid.
Sums are float64.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances

from cprime._utils.messages import iteration_level
from cprime.kernels import Dense, Floats

logger = logging.getLogger("cprime")

Weights = NDArray[np.float64]
Places = NDArray[np.intp]

EUCLIDEAN = ("euclidean", "l2", "sqeuclidean")
_BLOCK = 2**21  # number of dissimilarities in a block of columns of V; blocks are processed one by one, to limit memory
_EPS = float(np.finfo(np.float64).eps)


@dataclass
class MedoidsRun:
    """State of a run of k-medoids.

    medoids (C,): row indices of the points that represent the clusters
    objectives: Σ_n w_n min_c V at the start and after every iteration, with dissimilarities V to the medoids
    n_swaps: number of replaced medoids, over all iterations    stopped: whether the callback ended the run
    begun: start time of the current iteration [s]    seconds: time of all iterations before it [s]
    """

    medoids: Places
    objectives: list[float]
    n_swaps: int = 0
    converged: bool = False
    stopped: bool = False
    begun: float = field(default_factory=perf_counter)
    seconds: float = 0.0


Callback = Callable[[Mapping[str, Any], MedoidsRun, bool], bool]  # arguments: history row, state, whether run is over


def dissimilarities(
    X: Floats, Y: Floats, metric: str | Callable, params: dict[str, Any], n_threads: int | None = None
) -> Floats:
    """Return the dissimilarity of each of n rows of X and each of m rows of Y: (n, m).

    Euclidean distances are computed from differences, all others by scikit-learn's `pairwise_distances`.
    metric: name or function of two rows    params: further arguments of the metric
    """
    if metric in EUCLIDEAN and not params:
        squared = Dense(X).distances(Y, n_threads=n_threads).T
        return squared if metric == "sqeuclidean" else np.sqrt(squared, out=squared)
    return pairwise_distances(X, Y, metric=metric, **params)


def by_columns(V: Floats) -> Floats:
    """Return the dissimilarities V (N, N) in a memory order in which columns are read fast, if V is symmetric.

    The result is then a transposed view, not a copy. If V is not symmetric, it is returned unchanged.
    """
    step = max(1, _BLOCK // len(V))
    begins = range(0, len(V), step)
    if V.flags.f_contiguous or not all(np.array_equal(V[b : b + step], V[:, b : b + step].T) for b in begins):
        return V
    return V.T


def _blocks(V: Floats, rows: Places | None, columns: Places) -> Iterator[NDArray[np.float64]]:
    """Yield the entries of V at the given rows (None: all) and columns in float64, one block of columns at a time."""
    step = max(1, _BLOCK // (len(V) if rows is None else len(rows)))
    for begin in range(0, len(columns), step):
        part = columns[begin : begin + step]
        yield (V[:, part] if rows is None else V[np.ix_(rows, part)]).astype(np.float64)


def totals(V: Floats, weights: Weights, columns: Places, rows: Places | None = None) -> NDArray[np.float64]:
    """Return Σ_n w_n V[n, j] for each of the `columns` j: the cost of points if point j is their only medoid.

    V (N, N): dissimilarities    rows: the points n of the sum; None is all
    """
    of_rows = weights if rows is None else weights[rows]
    return np.concatenate([(of_rows[:, np.newaxis] * block).sum(axis=0) for block in _blocks(V, rows, columns)])


def build(V: Floats, n_clusters: int, weights: Weights) -> Places:
    """Choose medoids by PAM's BUILD: the best single medoid, then repeatedly the point that lowers the total cost most.

    Returns row indices (C,).    V (N, N): dissimilarities    weights (N,)
    After each choice, the gains of candidates are updated only from the points whose nearest medoid has changed, so the
    time is about O(N² log C).
    """
    candidates = np.flatnonzero(weights)
    best = int(candidates[totals(V, weights, candidates).argmin()])
    medoids, nearest = [best], V[:, best].astype(np.float64)
    gains = _gains(V, weights, candidates, np.arange(len(V)), nearest, np.full(len(V), -np.inf))
    gains[candidates == best] = -np.inf
    while len(medoids) < n_clusters:
        place = int(gains.argmax())
        medoids.append(int(candidates[place]))
        before, nearest = nearest, np.minimum(nearest, V[:, medoids[-1]])
        changed = np.flatnonzero((nearest < before) & (weights > 0))
        if len(changed):
            gains -= _gains(V, weights, candidates, changed, before, nearest)
        gains[place] = -np.inf
    return np.array(medoids, dtype=np.intp)


def _gains(
    V: Floats, weights: Weights, columns: Places, rows: Places, before: NDArray[np.float64], after: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return for each candidate medoid j how much its gain falls because a new medoid has lowered the cost of points.

    The gain of j is Σ_n w_n max(cost_n − V[n, j], 0) over the points n, with dissimilarities V (N, N).
    columns: the candidates    rows: the points whose cost has changed    before, after (N,): costs of all points
    """
    w, high, low = (values[rows, np.newaxis] for values in (weights, before, after))
    parts = [(w * (high - np.clip(block, low, high))).sum(axis=0) for block in _blocks(V, rows, columns)]
    return np.concatenate(parts)


class Neighbors:
    """Nearest and second nearest medoid of each of N points (first, second), and their costs (to_first, to_second).

    All four are (N,).    V (N, N): dissimilarities    medoids (C,): row indices
    """

    def __init__(self, V: Floats, medoids: Places):
        self.V, self.medoids = V, medoids.copy()
        self.first, self.second = np.empty((2, len(V)), dtype=np.intp)
        self.to_first, self.to_second = np.empty((2, len(V)))
        self._find(np.arange(len(V)))

    def _find(self, rows: Places) -> None:
        costs = self.V[np.ix_(rows, self.medoids)].astype(np.float64)
        two = np.argpartition(costs, 1, axis=1)[:, :2]
        pair = np.take_along_axis(costs, two, axis=1)
        swapped = pair[:, 0] > pair[:, 1]
        two[swapped], pair[swapped] = two[swapped, ::-1], pair[swapped, ::-1]
        self.first[rows], self.second[rows] = two.T
        self.to_first[rows], self.to_second[rows] = pair.T

    def exchange(self, component: int, candidate: int, costs: NDArray[np.float64]) -> None:
        """Replace the medoid of cluster `component` by the point `candidate`, and update all arrays in place.

        costs (N,): dissimilarities of all points to the new medoid
        """
        self.medoids[component] = candidate
        lost = (self.first == component) | (self.second == component)
        best = ~lost & (costs < self.to_first)
        better = ~lost & ~best & (costs < self.to_second)
        self.second[best], self.to_second[best] = self.first[best], self.to_first[best]
        self.first[best], self.to_first[best] = component, costs[best]
        self.second[better], self.to_second[better] = component, costs[better]
        self._find(np.flatnonzero(lost))

    def total(self, weights: Weights) -> float:
        """Return the weighted sum of the points' dissimilarities to their nearest medoids, the objective."""
        return float((weights * self.to_first).sum())


def swap(V: Floats, medoids: Places, weights: Weights, max_iter: int, callback: Callback | None = None) -> MedoidsRun:
    """Run FasterPAM from given medoids, with at most `max_iter` passes over all points, and return the final state.

    A pass tries each point as a replacement of a medoid and takes O(N²) time.

    V (N, N): dissimilarities    medoids (C,): row indices    callback: called after every pass; True ends the run
    """
    candidates = np.flatnonzero(weights)
    if len(medoids) == 1:  # there is no second nearest medoid; the best medoid is found directly
        fit = MedoidsRun(medoids, [_total(V, medoids, weights)], converged=True)
        fit.medoids = candidates[[totals(V, weights, candidates).argmin()]]
        _record(fit, _total(V, fit.medoids, weights), int(fit.medoids[0] != medoids[0]), max_iter, callback)
        return fit
    C, near = len(medoids), Neighbors(V, medoids)
    fit = MedoidsRun(near.medoids, [near.total(weights)])
    removal = np.bincount(near.first, weights * (near.to_second - near.to_first), C)
    since = 0  # candidates tried since the last exchange; the search ends if none of them lowers the objective
    while not fit.converged and not fit.stopped and len(fit.objectives) <= max_iter:
        n_swaps = 0
        rounding = len(V) * _EPS * float((weights * np.abs(near.to_first)).sum())
        for candidate in candidates:
            if since == len(candidates):
                break
            since += 1
            costs = V[:, candidate].astype(np.float64)
            gain = float((weights * np.minimum(costs - near.to_first, 0)).sum())
            kept = np.clip(costs, near.to_first, near.to_second) - near.to_second
            change = gain + removal + np.bincount(near.first, weights * kept, C)
            component = int(change.argmin())
            if change[component] >= -rounding or candidate in near.medoids:
                continue
            near.exchange(component, int(candidate), costs)
            removal = np.bincount(near.first, weights * (near.to_second - near.to_first), C)
            since, n_swaps = 0, n_swaps + 1
        fit.converged = since == len(candidates)
        _record(fit, near.total(weights), n_swaps, max_iter, callback)
    return fit


def alternate(
    V: Floats, medoids: Places, weights: Weights, max_iter: int, callback: Callback | None = None
) -> MedoidsRun:
    """Alternate between assigning points and choosing the best medoid of each cluster until no medoid changes.

    Returns the final state. An iteration takes O(NC + Σ_c N_c²) time for clusters of N_c points.

    V (N, N): dissimilarities    medoids (C,): row indices at the start
    callback: called after every iteration; True ends the run
    """
    fit = MedoidsRun(medoids.copy(), [_total(V, medoids, weights)])
    while not fit.converged and not fit.stopped and len(fit.objectives) <= max_iter:
        winners = V[:, fit.medoids].argmin(axis=1)
        before = fit.medoids.copy()
        for component, medoid in enumerate(before):
            members = np.flatnonzero((winners == component) & (weights > 0))
            if not len(members):
                continue
            sums = totals(V, weights, members, members)
            rounding = len(members) * _EPS * float(np.abs(sums).max())
            if sums.min() < totals(V, weights, np.array([medoid]), members)[0] - rounding:
                fit.medoids[component] = members[sums.argmin()]
        n_moved = int(np.count_nonzero(fit.medoids != before))
        fit.converged = n_moved == 0
        _record(fit, _total(V, fit.medoids, weights), n_moved, max_iter, callback)
    return fit


def _total(V: Floats, medoids: Places, weights: Weights) -> float:
    """Return the weighted sum of the points' dissimilarities V (N, N) to their nearest medoids."""
    return float((weights * V[:, medoids].min(axis=1)).sum())


def _record(fit: MedoidsRun, total: float, n_swaps: int, max_iter: int, callback: Callback | None) -> None:
    """Add an iteration to the state `fit` of a k-medoids run and to the log, and call the callback.

    total: objective after the iteration    n_swaps: number of medoids that the iteration replaced
    """
    fit.objectives.append(total)
    fit.n_swaps += n_swaps
    n = len(fit.objectives) - 1
    seconds = perf_counter() - fit.begun
    level, line = iteration_level(fit.seconds, seconds), "iteration %d: sum of dissimilarities %.6g, %d swaps"
    logger.log(level, line, n, total, fit.n_swaps, extra={"iteration": n})
    if callback is not None:
        row = {"iteration": n, "objective": total, "n_swaps": n_swaps, "seconds": seconds}
        fit.stopped = callback({**row, "change": float(n_swaps)}, fit, fit.converged or n == max_iter)
    fit.seconds, fit.begun = fit.seconds + seconds, perf_counter()
