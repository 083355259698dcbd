"""k-means of the centers of several models: the points are centers, their weights are sizes of clusters.

k-means is the limit of a mixture of Gaussians with a common variance σ² (Lücke & Forster 2019). The density of this
mixture has a known σ² for each model, so points can be drawn from it. Centers that are fitted to such points are closer
to those of all data than centers that are fitted to centers, because clusters of different models overlap.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime.combining.reduction import Doubles, Ids, in_order
from cprime.em.joins import sums_by
from cprime.estimators import KMeans
from cprime.kernels import Dense

_DRAWN = 1280  # number of points drawn for each cluster of the result
_MOST_VALUES = 2**25  # most values of all drawn points
_LEAST_DRAWN = 4  # least number of points drawn for each center; if they are too many, none are drawn
_STARTS = 4  # number of starts of k-means on the means of a mixture


class Clusters(NamedTuple):
    """Clusters of weighted points: centers (k, D) and their weights (k,), and the center nearest to each point (n,)."""

    centers: NDArray
    counts: Doubles
    nearest: Ids


def cluster_densities(
    points: NDArray, weights: Doubles, variances: Doubles, k: int, metric: str, seed: int, n_threads: int | None
) -> Clusters:
    """Return clusters of the density that is a sum of spherical Gaussians, by k-means of points drawn from it.

    points (n, D): means of the Gaussians, at least k of them distinct    weights (n,): their weights, positive
    variances (n,): variance of a coordinate [data unit²]    metric: "euclidean" or "cosine"
    Every point is drawn together with its reflection about the mean. So the center of a cluster that is well separated
    is exactly the mean of the means in it. If exactly k means are distinct, they are the centers. Means are sorted, so
    the result does not depend on their order. The order of the clusters is that of the first mean nearest to them.
    """
    distinct, of = np.unique(points, axis=0, return_inverse=True)
    of = of.reshape(-1)
    mass = sums_by(of, weights, len(distinct))
    if len(distinct) == k:
        centers, counts = distinct, mass
    else:
        spread = np.sqrt(sums_by(of, weights * variances, len(distinct)) / mass)
        drawn, copies = draw_points(distinct, spread, k, seed)
        fit = KMeans(k, metric=metric, certificate=0, random_state=seed, n_threads=n_threads)
        fit.fit(drawn, sample_weight=np.tile(mass / copies, copies))
        centers, counts = fit.cluster_centers_.astype(points.dtype), fit.counts_
    nearest = Dense(distinct).nearest(centers)[0][of, 0].astype(np.int64)
    found = nearest[np.sort(np.unique(nearest, return_index=True)[1])]
    order = np.concatenate([found, np.setdiff1d(np.arange(k), found)])
    rank = np.empty(k, dtype=np.int64)
    rank[order] = np.arange(k)
    return Clusters(centers[order], counts[order], rank[nearest])


def draw_points(means: NDArray, deviations: Doubles, k: int, seed: int) -> tuple[NDArray, int]:
    """Return points drawn from spherical Gaussians, the same number for each, and this number.

    means (n, D)    deviations (n,): standard deviations [data units]    k: number of clusters that will be fitted
    The points (n · number, D) contain one point for each Gaussian, then the next one for each, and so on. If these are
    too many, the means are returned, with number 1.
    """
    n, D = means.shape
    copies = 2 * (min(max(-(-_DRAWN * k // n), _LEAST_DRAWN), _MOST_VALUES // (n * D)) // 2)
    if copies < _LEAST_DRAWN:
        return means, 1
    generator, points = Key(seed).generator(Purpose.COMBINING), np.empty((copies, n, D), means.dtype)
    for i in range(0, copies, 2):
        shifts = generator.standard_normal((n, D))
        shifts *= deviations[:, np.newaxis]
        points[i], points[i + 1] = means + shifts, means - shifts
    return points.reshape(-1, D), copies


def cluster_points(points: Doubles, weights: Doubles, k: int, seed: int, n_threads: int | None) -> Ids:
    """Return clusters (n,) of weighted points by k-means, numbered in the order of their first points.

    points (n, D): may be equal    weights (n,), positive
    """
    distinct, of = np.unique(points, axis=0, return_inverse=True)
    of = of.reshape(-1)
    if len(distinct) <= k:
        return _enough(in_order(of), k)
    fit = KMeans(k, n_init=_STARTS, tol=0.0, certificate=0, random_state=seed, n_threads=n_threads)
    fit.fit(distinct, sample_weight=sums_by(of, weights, len(distinct)))
    return in_order(fit.labels_[of])


def _enough(groups: Ids, k: int) -> Ids:
    """Return groups (n,) of which some are divided, so that there are k: the last of equal points become groups."""
    groups = groups.copy()
    for j in range(int(groups.max()) + 1, k):
        sizes = np.bincount(groups)
        groups[np.flatnonzero(groups == sizes.argmax())[-1]] = j
    return in_order(groups)


def descend_points(points: Doubles, weights: Doubles, clusters: Ids, k: int, n_threads: int | None) -> Ids:
    """Return the clusters (n,) to which Lloyd's algorithm converges from given ones; arguments as in cluster_points."""
    means = mean_points(points, weights, clusters, k)
    fit = KMeans(k, init=means, search="full", exchange=False, tol=0.0, random_state=0, n_threads=n_threads)
    return fit.fit(points, sample_weight=weights).labels_.astype(np.int64)


def mean_points(points: Doubles, weights: Doubles, clusters: Ids, k: int) -> Doubles:
    """Return the weighted mean of the points of each cluster: (k, D). The mean of equal points is exactly the point."""
    firsts = points[np.unique(clusters, return_index=True)[1]]
    shares = weights / sums_by(clusters, weights, k)[clusters]
    shifts = shares[:, np.newaxis] * (points - firsts[clusters])
    return firsts + np.column_stack([sums_by(clusters, column, k) for column in shifts.T])
