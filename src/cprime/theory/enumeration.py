"""Exact k-means of few rows by branch and bound, with a lower bound of J* that includes rounding errors.

Rows are assigned one after the other, each to one of the clusters so far or to a new one. A branch ends if its cost so
far plus the least cost of the remaining rows alone is not below the best cost. The least costs of the last m rows are
computed before, for increasing m, in the same way (Brusco, "A repetitive branch-and-bound procedure for minimum
within-cluster sums of squares partitioning", Psychometrika 71, 2006).
"""

from dataclasses import dataclass
from math import inf, sqrt
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from cprime.theory.mixtures import Floats
from cprime.theory.verified import UNIT

_PER_LOOK = 4096  # number of tried assignments of a row to a cluster between two readings of the clock


class _OutOfBudgetError(Exception):
    """Error that ends the search when the number of assignments or the time is used up."""


@dataclass
class _Budget:
    """Limits of the search: remaining number of assignments, and its end (a value of `time.monotonic`)."""

    remaining: int
    deadline: float

    def use_one(self) -> None:
        """Lower the remaining number of assignments by 1; raise `_OutOfBudgetError` if none is left or time is over."""
        self.remaining -= 1
        if self.remaining < 0 or (self.remaining % _PER_LOOK == 0 and monotonic() > self.deadline):
            raise _OutOfBudgetError


def best_partition(
    X: Floats, weights: Floats, labels: NDArray[np.intp], n_clusters: int, most: int, deadline: float
) -> tuple[float, NDArray[np.intp]] | None:
    """Return a lower bound of J*, equal to it up to rounding, and the labels (n,) of a best partition.

    J* is the least sum of weighted squared distances to the means of n_clusters clusters.
    The result is None if more than `most` assignments of a row to a cluster are necessary, or time is over.
    X (n, D): rows, taken as exact    weights (n,): positive    labels (n,): a good clustering
    deadline: end of the search, as a value of `time.monotonic`
    """
    order = _order(X, weights)
    rows, masses, known = X[order].tolist(), weights[order].tolist(), labels[order].tolist()
    n = len(rows)
    least = [0.0] * (n + 1)  # least[i]: least cost of a clustering of the rows i … n − 1 alone
    budget, found = _Budget(most, deadline), [0] * n
    try:
        for first in range(n - n_clusters - 1, -1, -1):
            least[first], found = _search(rows, masses, known, first, n_clusters, least, budget)
    except _OutOfBudgetError:
        return None
    if n <= n_clusters:
        found = list(range(n))
    best = np.empty(n, dtype=np.intp)
    best[order] = found
    return max(least[0] - 6 * _error(X, weights, least[0]), 0.0), best


def _order(X: Floats, weights: Floats) -> NDArray[np.intp]:
    """Return an order (n,) of the rows in which each row is far from the rows before it.

    Then the first assignments are expensive, so that the search ends early in most branches.
    """
    distances = weights * np.square(X - np.average(X, axis=0, weights=weights)).sum(axis=1)
    order = [int(distances.argmax())]
    distances = np.full(len(X), inf)
    while len(order) < len(X):
        distances = np.minimum(distances, np.square(X - X[order[-1]]).sum(axis=1))
        distances[order[-1]] = -inf
        order.append(int(distances.argmax()))
    return np.array(order)


def _cost(rows: list[list[float]], masses: list[float], labels: list[int]) -> float:
    """Return the cost of a clustering, Σ w ‖x − mean of cluster‖², computed with the same rounding as in the search.

    rows: points x    masses: weights w    labels: cluster of each point
    """
    total, means, sums = 0.0, dict[int, list[float]](), dict[int, float]()
    for x, w, c in zip(rows, masses, labels, strict=True):
        mean, mass = means.get(c, x), sums.get(c, 0.0)
        differences = [a - b for a, b in zip(x, mean, strict=True)]
        total += w * mass / (w + mass) * sum(d * d for d in differences)
        share = w / (mass + w)
        means[c], sums[c] = [m + share * d for m, d in zip(mean, differences, strict=True)], mass + w
    return total


def _search(
    rows: list[list[float]],
    masses: list[float],
    known: list[int],
    first: int,
    n_clusters: int,
    least: list[float],
    budget: _Budget,
) -> tuple[float, list[int]]:
    """Return the least cost of a clustering of the rows first … n − 1, and the labels of these rows.

    masses: weights of the n rows    known: labels of a good clustering of all rows
    least: for each i > first, the least cost of the rows i … n − 1 alone    budget: limits of the search
    """
    n = len(rows)
    best, found = _cost(rows[first:], masses[first:], known[first:]), known[first:]
    labels = [0] * (n - first)
    means: list[list[float]] = []
    sums: list[float] = []

    def assign(i: int, cost: float) -> None:
        """Try all clusters for row i and the rows after it, and store the best clustering in `best` and `found`.

        cost: cost of the clustering of the rows before i
        """
        nonlocal best, found
        if i == n:
            if cost < best:
                best, found = cost, labels.copy()
            return
        x, w = rows[i], masses[i]
        options = []
        for c, mean in enumerate(means):
            differences = [a - b for a, b in zip(x, mean, strict=True)]
            options.append((w * sums[c] / (w + sums[c]) * sum(d * d for d in differences), c, differences))
        options.sort(key=lambda option: option[0])
        # A row that is alone in a new cluster adds nothing to the cost.
        if len(means) < n_clusters and cost + least[i + 1] < best:
            budget.use_one()
            means.append(x)
            sums.append(w)
            labels[i - first] = len(means) - 1
            assign(i + 1, cost)
            means.pop()
            sums.pop()
        for rise, c, differences in options:
            if cost + rise + least[i + 1] >= best:
                return
            budget.use_one()
            mean, mass = means[c], sums[c]
            share = w / (mass + w)
            means[c], sums[c] = [m + share * d for m, d in zip(mean, differences, strict=True)], mass + w
            labels[i - first] = c
            assign(i + 1, cost + rise)
            means[c], sums[c] = mean, mass

    assign(first, 0.0)
    return best, found


def _error(X: Floats, weights: Floats, cost: float) -> float:
    """Return a bound of the rounding error in the computed cost of a partition of the rows X (n, D).

    A mean of at most n rows of length up to R has an error of at most s = (4 n + 16) u R, where u is the unit roundoff.
    So the increase w ‖x − mean‖² of the cost by a row has an error of at most 2 s w ‖x − mean‖ + s² w. The bound of
    the sum of these errors follows by the Cauchy-Schwarz inequality.
    """
    n, D = X.shape
    shift = (4 * n + 16) * UNIT * float(np.sqrt(np.square(X).sum(axis=1).max()))
    weight = 1.01 * float(weights.sum())
    return 2 * shift * sqrt(weight * cost) + shift * shift * weight + (D + 2 * n + 10) * UNIT * cost
