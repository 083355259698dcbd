"""Weighted k-means of the centers of several models: the points are centers, their weights are sizes of clusters."""

import numpy as np
from numpy.typing import NDArray

from cprime.combining.reduction import Doubles, Ids, in_order
from cprime.estimators import KMeans
from cprime.selection.merging.joins import sums_by

_FEW = 2**24  # up to this number of evaluations per iteration, k-means is started several times
_STARTS = 4


def cluster_points(
    points: Doubles, weights: Doubles, n_clusters: int, metric: str, seed: int, n_threads: int | None
) -> Ids:
    """Return the cluster of each point (n,), numbered in the order of the first point of each cluster.

    points (n, D), at least n_clusters of them distinct    weights (n,), positive    metric: "euclidean" or "cosine"
    Equal points are one point of k-means, and points are sorted, so that the result does not depend on their order.
    """
    distinct, of = np.unique(points, axis=0, return_inverse=True)
    of = of.reshape(-1)
    if len(distinct) <= n_clusters:
        return in_order(of)
    n_init = _STARTS if len(distinct) * n_clusters <= _FEW else 1
    fit = KMeans(n_clusters, metric=metric, n_init=n_init, tol=0.0, random_state=seed, n_threads=n_threads)
    fit.fit(distinct, sample_weight=sums_by(of, weights, len(distinct)))
    return in_order(fit.labels_[of])


def descend_points(points: Doubles, weights: Doubles, clusters: Ids, n_clusters: int, n_threads: int | None) -> Ids:
    """Return the clusters (n,) to which Lloyd's algorithm converges from given ones; arguments as in cluster_points."""
    means = mean_points(points, weights, clusters, n_clusters)
    fit = KMeans(n_clusters, init=means, search="full", exchange=False, tol=0.0, random_state=0, n_threads=n_threads)
    return fit.fit(points, sample_weight=weights).labels_.astype(np.int64)


def mean_points(points: Doubles, weights: Doubles, clusters: Ids, n_clusters: int) -> Doubles:
    """Return the weighted mean of the points of each cluster: (n_clusters, D). Equal points have exactly that mean."""
    firsts = points[np.unique(clusters, return_index=True)[1]]
    shares = weights / sums_by(clusters, weights, n_clusters)[clusters]
    shifts = shares[:, np.newaxis] * (points - firsts[clusters])
    return firsts + np.column_stack([sums_by(clusters, column, n_clusters) for column in shifts.T])


def scatter_of(points: Doubles, weights: Doubles, centers: NDArray, clusters: Ids) -> float:
    """Return Σ w ‖x − μ‖² for points x (n, D) of weights w (n,) about the centers μ (C, D) of their clusters (n,)."""
    return float(weights @ np.square(points - centers[clusters]).sum(axis=1))
