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

_PER_LOOK = 4096  # assignments between looks at the clock


class _OutOfBudgetError(Exception):
    """Raised when the number of assignments or the time is used up."""


@dataclass
class _Budget:
    """Remaining number of assignments, and the time (of `time.monotonic`) at which the search ends."""

    remaining: int
    deadline: float

    def use_one(self) -> None:
        """Count an assignment; raise `_OutOfBudgetError` if there are none left or time is over."""
        self.remaining -= 1
        if self.remaining < 0 or (self.remaining % _PER_LOOK == 0 and monotonic() > self.deadline):
            raise _OutOfBudgetError


def best_partition(
    X: Floats, weights: Floats, labels: NDArray[np.intp], n_clusters: int, most: int, deadline: float
) -> tuple[float, NDArray[np.intp]] | None:
    """Return a lower bound of J*, equal to it up to rounding, and the labels (n,) of a best partition.

    The result is None if more than `most` assignments of a row to a cluster are necessary, or time is over.
    X (n, D): taken as exact    weights (n,): positive    labels (n,): a good clustering
    deadline: a value of `time.monotonic`
    """
    order = _order(X, weights)
    rows, masses, known = X[order].tolist(), weights[order].tolist(), labels[order].tolist()
    n = len(rows)
    least = [0.0] * (n + 1)  # least[i]: least cost of the rows i … n − 1 alone
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
    """Return an order (n,) of the rows in which early assignments are expensive: each is far from those before it."""
    distances = weights * np.square(X - np.average(X, axis=0, weights=weights)).sum(axis=1)
    order = [int(distances.argmax())]
    distances = np.full(len(X), inf)
    while len(order) < len(X):
        distances = np.minimum(distances, np.square(X - X[order[-1]]).sum(axis=1))
        distances[order[-1]] = -inf
        order.append(int(distances.argmax()))
    return np.array(order)


def _cost(rows: list[list[float]], masses: list[float], labels: list[int]) -> float:
    """Return the cost of a clustering, in the arithmetic of the search."""
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
    """Return the least cost of the rows first … n − 1, and the label of each of them.

    known: labels of a good clustering of all rows
    """
    n = len(rows)
    best, found = _cost(rows[first:], masses[first:], known[first:]), known[first:]
    labels = [0] * (n - first)
    means: list[list[float]] = []
    sums: list[float] = []

    def assign(i: int, cost: float) -> None:
        """Try all clusters for row i and the rows after it; `cost` is that of the rows before it."""
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
        if len(means) < n_clusters and cost + least[i + 1] < best:  # a new cluster costs nothing
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
    """Return a bound of the rounding error of the cost of a partition of about this cost.

    A mean of at most n rows of length up to R has an error of at most s = (4 n + 16) u R. So the increase w ‖x − mean‖²
    of the cost by a row has an error of 2 s w ‖x − mean‖ + s² w, and the sum of all follows by Cauchy and Schwarz.
    """
    n, D = X.shape
    shift = (4 * n + 16) * UNIT * float(np.sqrt(np.square(X).sum(axis=1).max()))
    weight = 1.01 * float(weights.sum())
    return 2 * shift * sqrt(weight * cost) + shift * shift * weight + (D + 2 * n + 10) * UNIT * cost
