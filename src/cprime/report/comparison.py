"""Comparison of two models on the same rows: flows between clusters, agreement, squared error J, and free energy F."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from sklearn.metrics import adjusted_rand_score

from cprime.report.evidence import ReportData, log_sum

_MOST = 12  # Maximum number of clusters of each model that are drawn individually.
_SAME = 0.9  # Two clusters of different models count as the same if the Jaccard index of their rows is at least this.


@dataclass(frozen=True)
class Comparison:
    """Comparison of two models on the same rows.

    flows (a, b): weight of the rows that are in a cluster of the first model and in a cluster of the second one
    left (a,), right (b,): cluster of each row and of each column of `flows`; a last entry −1 means all other clusters
    n_left, n_right: numbers of clusters of the models    rand: adjusted Rand index of the examined rows
    same: number of clusters that both models have    error: J per row of both models
    free_energy: F of both models [nats per point], None if one of them has no densities
    """

    flows: NDArray[np.float64]
    left: list[int]
    right: list[int]
    n_left: int
    n_right: int
    rand: float
    same: int
    error: tuple[float, float]
    free_energy: tuple[float, float] | None


def comparison(first: ReportData, second: ReportData) -> Comparison:
    """Return the comparison of two models, whose results for the same rows are `first` and `second`."""
    a, b, weight = first.labels, second.labels, first.weight
    table = coo_array((weight, (a, b)), shape=(first.n_clusters, second.n_clusters)).tocsr()
    rows, columns = first.weights_by_cluster, second.weights_by_cluster
    both = table.tocoo()
    i, j = both.coords
    same = int(np.count_nonzero(both.data >= _SAME * (rows[i] + columns[j] - both.data)))
    left, right = _largest(rows), _largest(columns)
    flows = np.zeros((len(left), len(right)))
    np.add.at(flows, (_places(left, len(rows))[i], _places(right, len(columns))[j]), both.data)
    untangled = _beside(flows, right)
    flows, right = flows[:, untangled], [right[k] for k in untangled]
    bounds = _free_energy(first), _free_energy(second)
    return Comparison(
        flows,
        left,
        right,
        first.n_clusters,
        second.n_clusters,
        float(adjusted_rand_score(a, b)),
        same,
        (_error(first), _error(second)),
        None if bounds[0] is None or bounds[1] is None else (bounds[0], bounds[1]),
    )


def _largest(weights: NDArray[np.float64]) -> list[int]:
    """Return the indices of at most 13 clusters, by decreasing weight; −1 at the end means all other clusters.

    weights (C,): weight of each cluster
    """
    order = np.argsort(-weights, kind="stable")
    if len(weights) <= _MOST + 1:
        return [int(c) for c in order]
    return [*(int(c) for c in order[:_MOST]), -1]


def _places(chosen: list[int], n: int) -> NDArray[np.intp]:
    """Return the position (n,) of each of n clusters in the list `chosen`; that of clusters not in it is the last."""
    out = np.full(n, len(chosen) - 1, dtype=np.intp)
    for place, c in enumerate(chosen):
        if c >= 0:
            out[c] = place
    return out


def _beside(flows: NDArray[np.float64], right: list[int]) -> list[int]:
    """Return an order (b,) of the second model's clusters in which few flows cross in the drawing.

    Clusters of the first model are drawn on the left, those of the second model on the right. The latter are sorted by
    the mean position of the former clusters to which their rows belong.
    flows (a, b): weights of the rows    right (b,): cluster indices; −1, for all other clusters, stays last
    """
    total = flows.sum(axis=0)
    middle = np.arange(len(flows)) @ flows / np.where(total > 0, total, 1)
    return sorted(range(len(right)), key=lambda k: (right[k] < 0, middle[k]))


def _error(evidence: ReportData) -> float:
    squared = evidence.squared_distances
    if evidence.scale_free:
        squared = np.square(evidence.X - evidence.centers[evidence.labels]).sum(axis=1)
    return float(np.average(squared, weights=evidence.weight))


def _free_energy(evidence: ReportData) -> float | None:
    if evidence.best is None:
        return None
    bound = log_sum(evidence.best.log_joint[:, : evidence.estimator.n_active_])
    return float(np.average(bound, weights=evidence.weight))
