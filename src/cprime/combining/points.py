"""k-means of the centers of several models: the points are centers, their weights are sizes of clusters.

k-means is the limit of a mixture of Gaussians with one variance σ² (Lücke & Forster 2019). Each k-means model has a
known σ², so it is a density from which points can be drawn. Centers fitted to drawn points are closer to the centers
of a fit to all data than centers fitted to the centers of the models, because clusters of different models overlap.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime.combining.reduction import Doubles, Ids, in_order
from cprime.em.joins import sums_by
from cprime.estimators import KMeans
from cprime.kernels import Dense
from cprime.search import Auto

# A result of k clusters is a k-means of 1280 k points, which are drawn from the Gaussians that are combined.
_DRAWN = 1280
_MOST_VALUES = 2**25  # Maximum number of drawn points times dimensions, to limit memory.
# Least number of points drawn from each Gaussian. If even these exceed the limit of memory, the means take their place.
_LEAST_DRAWN = 4
_FIRST_PART = 4  # A first fit to one in so many of the drawn points saves iterations over all of them.
_STARTS = 4  # Number of initializations of k-means on the means of a mixture.


class DensityClusters(NamedTuple):
    """Clusters of n weighted points: centers (k, D), their weights (k,), and the index of each point's center (n,)."""

    centers: NDArray
    counts: Doubles
    nearest: Ids


def cluster_densities(
    points: NDArray, weights: Doubles, variances: Doubles, k: int, metric: str, seed: int, n_threads: int | None
) -> DensityClusters:
    """Return k clusters of a density, a weighted sum of spherical Gaussians, by k-means of points drawn from it.

    points (n, D): means of the Gaussians, at least k of them distinct    weights (n,): their weights, positive
    variances (n,): variance of a coordinate [data unit²]    metric: "euclidean" or "cosine"
    Every point is drawn together with its reflection about the mean of its Gaussian. So the center of a well separated
    cluster is exactly the mean of the Gaussians' means in it. If exactly k means are distinct, they are the centers.
    Means are sorted, so the result does not depend on their order. The clusters are ordered by the first mean (lowest
    index) that is nearest to their center.
    """
    distinct, of = np.unique(points, axis=0, return_inverse=True)
    of = of.reshape(-1)
    mass = sums_by(of, weights, len(distinct))
    if len(distinct) == k:
        centers, counts = distinct, mass
    else:
        spread = np.sqrt(sums_by(of, weights * variances, len(distinct)) / mass)
        drawn, copies = draw_points(distinct, spread, k, seed)
        fit = KMeans(k, metric=metric, search=Auto(certificate=0), random_state=seed, n_threads=n_threads)
        if few := 2 * (copies // (2 * _FIRST_PART)):
            fit.fit(drawn[: few * len(distinct)], sample_weight=np.tile(mass, few))
            fit.set_params(init=fit.cluster_centers_, jumps=False)
        fit.fit(drawn, sample_weight=np.tile(mass / copies, copies))
        centers, counts = fit.cluster_centers_.astype(points.dtype), fit.counts_
    nearest = Dense(distinct).nearest(centers)[0][of, 0].astype(np.int64)
    found = nearest[np.sort(np.unique(nearest, return_index=True)[1])]
    order = np.concatenate([found, np.setdiff1d(np.arange(k), found)])
    rank = np.empty(k, dtype=np.int64)
    rank[order] = np.arange(k)
    return DensityClusters(centers[order], counts[order], rank[nearest])


def draw_points(means: NDArray, deviations: Doubles, k: int, seed: int) -> tuple[NDArray, int]:
    """Draw the same number of points from each of n spherical Gaussians; return the points and this number.

    means (n, D)    deviations (n,): standard deviations [data units]    k: number of clusters that will be fitted
    The points (number · n, D) are ordered: first one point of every Gaussian, then a second one of every Gaussian, and
    so on. If memory allows only few points, the means are returned, with number 1.
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

    points (n, D), also equal ones; if at most k differ, equal points may be in different clusters    weights (n,) > 0
    k: number of clusters
    """
    distinct, of = np.unique(points, axis=0, return_inverse=True)
    of = of.reshape(-1)
    if len(distinct) <= k:
        return _enough(in_order(of), k)
    fit = KMeans(k, n_init=_STARTS, tol=0.0, search=Auto(certificate=0), random_state=seed, n_threads=n_threads)
    fit.fit(distinct, sample_weight=sums_by(of, weights, len(distinct)))
    return in_order(fit.labels_[of])


def _enough(groups: Ids, k: int) -> Ids:
    """Return the groups (n,) of n points after splits of groups of equal points, until there are k groups.

    A split takes the last point out of the largest group; this point becomes a group of its own.
    """
    groups = groups.copy()
    for j in range(int(groups.max()) + 1, k):
        sizes = np.bincount(groups)
        groups[np.flatnonzero(groups == sizes.argmax())[-1]] = j
    return in_order(groups)


def descend_points(points: Doubles, weights: Doubles, clusters: Ids, k: int, n_threads: int | None) -> Ids:
    """Return the clusters (n,) of points to which Lloyd's algorithm converges from the given `clusters` (n,).

    points (n, D)    weights (n,) > 0    k: number of clusters
    """
    means = mean_points(points, weights, clusters, k)
    fit = KMeans(k, init=means, search="full", jumps=False, tol=0.0, random_state=0, n_threads=n_threads)
    return fit.fit(points, sample_weight=weights).labels_.astype(np.int64)


def mean_points(points: Doubles, weights: Doubles, clusters: Ids, k: int) -> Doubles:
    """Return the weighted mean of each cluster's points: (k, D). The mean of equal points is exactly this point."""
    firsts = points[np.unique(clusters, return_index=True)[1]]
    shares = weights / sums_by(clusters, weights, k)[clusters]
    shifts = shares[:, np.newaxis] * (points - firsts[clusters])
    return firsts + np.column_stack([sums_by(clusters, column, k) for column in shifts.T])
