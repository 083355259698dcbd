"""k-medoids: the C points of least Σ_n w_n min_c V(x_n, μ_c), whatever the dissimilarity V (B 9.6).

Two ways to lower the sum, both written from the published descriptions:

- `swap`: FasterPAM (Schubert & Rousseeuw, *Fast and eager k-medoids clustering*, Information Systems 101, 2021). Every
  point is tried as a medoid in turn, against all medoids at once: what each removal costs and what the point gains are
  sums over the points, by their nearest and second nearest medoid. The best exchange is made at once if it lowers the
  sum. It ends where no single exchange does: an optimum of PAM (Kaufman & Rousseeuw 1990).
- `alternate`: points go to their nearest medoid, then each cluster to its own best point, N_c² evaluations (B 9.6).

A matrix V (N, N) has in V[n, j] what it costs point n to be represented by point j; columns are read, so Fortran order
is the fast one. Weights multiply the cost of a point; a point without weight is no candidate. Sums are float64.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances

from cprime.kernels import Dense, Floats

logger = logging.getLogger("cprime")

Weights = NDArray[np.float64]
Places = NDArray[np.intp]

EUCLIDEAN = ("euclidean", "l2", "sqeuclidean")
_BLOCK = 2**21  # numbers in a block of columns
_EPS = float(np.finfo(np.float64).eps)


@dataclass
class Fit:
    """Where a run stands.

    medoids (C,): positions    objectives: Σ_n w_n min_c V at the start and after every iteration
    n_swaps: medoids that were replaced, over all iterations    stopped: by the callback
    begun: when the iteration began [s]
    """

    medoids: Places
    objectives: list[float]
    n_swaps: int = 0
    converged: bool = False
    stopped: bool = False
    begun: float = field(default_factory=perf_counter)


Callback = Callable[[Mapping[str, Any], Fit, bool], bool]  # of a row, where the run stands, and whether it ends there


def dissimilarities(
    X: Floats, Y: Floats, metric: str | Callable, params: dict[str, Any], n_threads: int | None = None
) -> Floats:
    """V(x_n, y_j), (n, m): Euclidean ones from differences, others as scikit-learn's `pairwise_distances` has them."""
    if metric in EUCLIDEAN and not params:
        squared = Dense(X).distances(Y, n_threads=n_threads).T
        return squared if metric == "sqeuclidean" else np.sqrt(squared, out=squared)
    return pairwise_distances(X, Y, metric=metric, **params)


def by_columns(V: Floats) -> Floats:
    """The same matrix, in Fortran order if it is symmetric; no copy is made."""
    step = max(1, _BLOCK // len(V))
    begins = range(0, len(V), step)
    if V.flags.f_contiguous or not all(np.array_equal(V[b : b + step], V[:, b : b + step].T) for b in begins):
        return V
    return V.T


def _blocks(V: Floats, rows: Places | None, columns: Places) -> Iterator[NDArray[np.float64]]:
    """Some columns after others, and V of the rows and these columns in float64."""
    step = max(1, _BLOCK // (len(V) if rows is None else len(rows)))
    for begin in range(0, len(columns), step):
        part = columns[begin : begin + step]
        yield (V[:, part] if rows is None else V[np.ix_(rows, part)]).astype(np.float64)


def totals(V: Floats, weights: Weights, columns: Places, rows: Places | None = None) -> NDArray[np.float64]:
    """Σ_n w_n V[n, j] over all rows or some, for each of the columns j."""
    of_rows = weights if rows is None else weights[rows]
    return np.concatenate([(of_rows[:, np.newaxis] * block).sum(axis=0) for block in _blocks(V, rows, columns)])


def build(V: Floats, n_clusters: int, weights: Weights) -> Places:
    """PAM's BUILD: the best single medoid, then one after another the one that lowers the sum most.

    What each point would gain is brought up to date only for the points whose nearest medoid has changed, which makes
    it about O(N² log C).
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
    """Σ_n w_n (max(before_n − V[n, j], 0) − max(after_n − V[n, j], 0)) over some rows, for each of the columns j."""
    w, high, low = (values[rows, np.newaxis] for values in (weights, before, after))
    parts = [(w * (high - np.clip(block, low, high))).sum(axis=0) for block in _blocks(V, rows, columns)]
    return np.concatenate(parts)


class Neighbors:
    """Of every point the nearest medoid, the second nearest, and what they cost: (N,) each."""

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
        """Puts a candidate, whose costs (N,) are given, in the place of a component's medoid."""
        self.medoids[component] = candidate
        lost = (self.first == component) | (self.second == component)
        best = ~lost & (costs < self.to_first)
        better = ~lost & ~best & (costs < self.to_second)
        self.second[best], self.to_second[best] = self.first[best], self.to_first[best]
        self.first[best], self.to_first[best] = component, costs[best]
        self.second[better], self.to_second[better] = component, costs[better]
        self._find(np.flatnonzero(lost))

    def total(self, weights: Weights) -> float:
        """Σ_n w_n min_c V."""
        return float((weights * self.to_first).sum())


def swap(V: Floats, medoids: Places, weights: Weights, max_iter: int, callback: Callback | None = None) -> Fit:
    """FasterPAM from given medoids, at most `max_iter` times through all points. O(N²) a time.

    callback: told of every iteration; True ends the run
    """
    candidates = np.flatnonzero(weights)
    if len(medoids) == 1:  # no second nearest: the best one is known at once
        fit = Fit(medoids, [_total(V, medoids, weights)], converged=True)
        fit.medoids = candidates[[totals(V, weights, candidates).argmin()]]
        _record(fit, _total(V, fit.medoids, weights), int(fit.medoids[0] != medoids[0]), max_iter, callback)
        return fit
    C, near = len(medoids), Neighbors(V, medoids)
    fit = Fit(near.medoids, [near.total(weights)])
    removal = np.bincount(near.first, weights * (near.to_second - near.to_first), C)
    since = 0  # candidates tried since the last exchange
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


def alternate(V: Floats, medoids: Places, weights: Weights, max_iter: int, callback: Callback | None = None) -> Fit:
    """Assignments and medoids in turn from given medoids, until no medoid moves. O(NC + Σ_c N_c²) a time.

    callback: told of every iteration; True ends the run
    """
    fit = Fit(medoids.copy(), [_total(V, medoids, weights)])
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
    """Σ_n w_n min_c V."""
    return float((weights * V[:, medoids].min(axis=1)).sum())


def _record(fit: Fit, total: float, n_swaps: int, max_iter: int, callback: Callback | None) -> None:
    """An iteration, to the fit, the log and the callback."""
    fit.objectives.append(total)
    fit.n_swaps += n_swaps
    n = len(fit.objectives) - 1
    logger.info("iteration %d: sum of dissimilarities %.6g, %d swaps", n, total, fit.n_swaps, extra={"iteration": n})
    if callback is not None:
        row = {"iteration": n, "objective": total, "n_swaps": n_swaps, "seconds": perf_counter() - fit.begun}
        fit.stopped = callback({**row, "change": float(n_swaps)}, fit, fit.converged or n == max_iter)
    fit.begun = perf_counter()
