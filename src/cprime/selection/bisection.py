"""Points of clusters: splits in two, by k-means or by a plane orthogonal to the principal direction, and merges."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.number_types import LEAST
from cprime.estimators import KMeans
from cprime.kernels import Dense, Rows


class Cell(NamedTuple):
    """Points (n, D) of one cluster, with their positive weights (n,) float64."""

    points: Rows
    weights: NDArray[np.float64]

    @property
    def weight(self) -> float:
        return float(self.weights.sum())

    @property
    def mean(self) -> NDArray[np.float64]:
        """Return the weighted mean of the points: (D,) in data units."""
        one = np.zeros((len(self.points), 1), dtype=np.int32)
        return self.points.accumulate(one, None, self.weights, n_components=1)[1][0] / self.weight

    @property
    def is_one(self) -> bool:
        """Return whether all points coincide, so that the cluster cannot be split.

        Points count as coincident if all their coordinates differ from those of the first point by less than the
        smallest difference whose squares do not underflow in sums of their data type (`LEAST`).
        """
        return self.points.extent()[1] < LEAST[self.points.dtype]

    def part(self, rows: NDArray) -> Self:
        return type(self)(self.points[rows], self.weights[rows])


def cells(X: Rows, weights: NDArray[np.float64], labels: NDArray, n_clusters: int) -> list[Cell]:
    """Return a `Cell` (points with weights) for each cluster, with its rows of X in their order.

    labels (n,): cluster of each row    weights (n,): weight of each row
    """
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(n_clusters + 1))
    return [Cell(X[order[begin:end]], weights[order[begin:end]]) for begin, end in pairwise(bounds)]


def union(parts: Sequence[Cell]) -> Cell:
    """Return one cell (points with weights) that contains the points of all the given cells."""
    return Cell(
        Dense(np.concatenate([part.points.dense() for part in parts])), np.concatenate([part.weights for part in parts])
    )


def principal(cell: Cell) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Return the mean m (D,) of a cluster, the largest eigenvalue λ of its covariance, and its eigenvector v (D,)."""
    mean = cell.mean
    variance, direction = cell.points.principal(cell.weights, mean)
    # The sign of an eigenvector is arbitrary, so its entry of largest magnitude is made positive.
    direction = direction * np.copysign(1.0, direction[np.abs(direction).argmax()])
    return mean, max(variance, 0.0), direction


def principal_halves(cell: Cell) -> tuple[Cell, Cell] | None:
    """Divide a cluster by a plane; return the cells on either side of it, or None if one of them is empty.

    The plane passes through the mean and is orthogonal to the principal direction (direction of largest variance).
    """
    mean, _, direction = principal(cell)
    above = cell.points.projected(direction, mean) > 0
    return None if above.all() or not above.any() else (cell.part(~above), cell.part(above))


def distinct(cell: Cell) -> NDArray[np.intp]:
    """Return the rank (n,), from 0, of each point of a cluster along one fixed random direction.

    Equal points share a rank. The number of different ranks is the number of different points, and points of even and
    of odd rank are two random halves of the cluster.
    """
    direction = np.random.RandomState(0).standard_normal(cell.points.shape[1])
    return np.unique(cell.points.projected(direction), return_inverse=True)[1]


def bisect(cell: Cell, n_threads: int | None) -> list[Cell]:
    """Split a cluster by k-means with two centers; return a list of the two parts.

    The initial centers are m ± v √(2λ/π), with the mean m and the largest eigenvalue λ of the covariance with its
    eigenvector v: the means of the two halves of a Gaussian (Hamerly & Elkan 2004, section 3). If the points coincide
    or cannot be divided, the list contains only the cluster itself.
    """
    if cell.is_one:
        return [cell]
    mean, variance, direction = principal(cell)
    reach = math.sqrt(2 * variance / math.pi) * direction
    start = np.array([mean - reach, mean + reach], dtype=cell.points.dtype)
    if (start[0] == start[1]).all():
        return [cell]
    labels = (
        KMeans(2, init=start, search="full", n_threads=n_threads).fit(cell.points.given(), None, cell.weights).labels_
    )
    halves = [cell.part(labels == label) for label in (0, 1)]
    return halves if all(len(half.points) for half in halves) else [cell]


def exchanged(X: Rows, centers: NDArray, weights: NDArray[np.float64], labels: NDArray) -> NDArray | None:
    """Return centers after a merge of two clusters and a split of another one, or None if J would not fall.

    J is the sum of squared distances to the nearest center. The pair whose union raises J least is merged, and the
    cluster whose split lowers J most is split. This corrects local optima in which two centers share one cluster while
    two other clusters share one center (Ueda et al. 2000). The objective is J here, and J determines the free energy by
    eq. (15) of Lücke & Forster.

    X (n, D)    centers (C, D)    weights (n,)    labels (n,): cluster of each point
    """
    clusters = cells(X, weights, labels, len(centers))
    halves = [principal_halves(cluster) if len(cluster.points) > 1 else None for cluster in clusters]
    gains = np.array([0.0 if pair is None else float(join_cost(pair)[0, 1]) for pair in halves])
    split = int(gains.argmax())
    parts = halves[split]
    if parts is None:
        return None
    costs = join_cost(clusters)
    costs[split] = costs[:, split] = np.inf
    np.fill_diagonal(costs, np.inf)
    a, b = (int(c) for c in np.unravel_index(costs.argmin(), costs.shape))
    if not costs[a, b] < gains[split]:
        return None
    changed = centers.copy()
    joined = [cluster for cluster in (clusters[a], clusters[b]) if len(cluster.points)]
    if joined:
        shares = np.array([cluster.weight for cluster in joined])
        changed[a] = np.einsum("k,kd->d", shares / shares.sum(), [cluster.mean for cluster in joined])
    changed[[b, split]] = parts[0].mean, parts[1].mean
    return changed


def join_cost(clusters: Sequence[Cell]) -> NDArray[np.float64]:
    """Return N_a N_b / (N_a + N_b) ‖m_a − m_b‖², the increase of J by a merge of clusters a and b: (C, C).

    N_a is the weight of cluster a, m_a its mean, J the sum of squared distances. The cost is 0 if a cluster is empty.
    """
    counts = np.array([cluster.weight for cluster in clusters])
    means = np.array(
        [cluster.mean if len(cluster.points) else np.zeros(cluster.points.shape[1]) for cluster in clusters]
    )
    totals = counts[:, None] + counts
    shrunk = np.divide(counts[:, None] * counts, totals, out=np.zeros(totals.shape), where=totals > 0)
    return shrunk * Dense(means).distances(means, n_threads=1)
