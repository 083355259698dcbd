"""Layout of the cluster map: neighboring clusters are placed together, and circles do not overlap.

Few clusters are placed by their distances (metric multidimensional scaling by majorization: de Leeuw 1977). Many
clusters are placed by their nearest neighbors: forces of t-SNE (van der Maaten & Hinton 2008), with attraction only
between neighbors, starting from the principal plane. Then overlapping circles are moved apart.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from cprime.neighbors import exact_lists

_FEW = 60
_NEIGHBORS = 12
_STEPS = 120
_EARLY = 40  # Number of first steps of t-SNE, in which attraction between neighbors is stronger.
_MAJORISATIONS = 120
_APART = 150  # Maximum number of steps in which overlapping circles are moved apart.
_RANKS = 0.25  # Positions are weighted means of coordinates and their ranks; this is the weight of the rank.
# Coordinates are clipped to the interval of their 1 % and 99 % quantiles, extended by this fraction of its length.
_BEYOND = 0.1
_MARGIN = 8.0  # Least distance between circles and the edge of the sheet.
_COVERED = 0.3  # Fraction of the area of the sheet that all circles cover.
_LARGEST = 0.16  # Largest radius, divided by the height of the sheet.
_ROWS = 250  # Number of centers whose forces are computed at a time.


def layout(
    centers: NDArray[np.float64], sizes: NDArray[np.float64], width: float, height: float
) -> NDArray[np.float64]:
    """Return x, y and radius of a circle for each cluster on a sheet of size width × height: (C, 3).

    The areas of the circles are proportional to the sizes. Radii have a lower limit, so that every circle is visible.
    centers (C, D): centers, in units in which their distances are meaningful    sizes (C,): sizes of the clusters
    """
    C = len(centers)
    with threadpool_limits(1, user_api="blas"):  # one thread of BLAS is faster for many small products
        plane = _principal(centers)
        if C > 2:
            plane = _by_distances(centers, plane) if C <= _FEW else _by_neighbors(centers, plane)
        plane = _principal(plane)
    share = np.sqrt(np.maximum(sizes, 0) / max(sizes.sum(), np.finfo(float).tiny))
    scale = min(np.sqrt(_COVERED * width * height / np.pi), _LARGEST * height / max(share.max(), 1e-9))
    radii = np.maximum(scale * share, min(3.0, 0.2 * np.sqrt(width * height / C)))
    return _spread_out(_fitted(plane, radii, width, height), radii, width, height)


def _principal(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points projected on their principal plane, (C, 2), the axis of larger variance first.

    Signs are such that the third moment along each axis is not negative. Equal points are placed on a circle.
    """
    centred = points - points.mean(axis=0)
    _, values, axes = np.linalg.svd(centred, full_matrices=False)
    plane = centred @ axes[:2].T
    if plane.shape[1] < 2:
        plane = np.column_stack([plane, np.zeros(len(plane))])
    if len(values) == 0 or not np.any(values):
        angle = np.arange(len(points)) * 2.399963
        return np.column_stack([np.cos(angle), np.sin(angle)])
    return plane * np.where((plane**3).sum(axis=0) < 0, -1.0, 1.0)


def _by_distances(centers: NDArray[np.float64], plane: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return positions (C, 2) in the plane whose distances are near those of the centers (C, D), by least squares.

    plane (C, 2): initial positions
    """
    target, C = cdist(centers, centers), len(centers)
    for _ in range(_MAJORISATIONS):
        found = cdist(plane, plane)
        ratio = np.divide(target, found, out=np.zeros_like(target), where=found > 1e-12)
        plane = (ratio.sum(axis=1)[:, np.newaxis] * plane - ratio @ plane) / C
    return plane


def _by_neighbors(centers: NDArray[np.float64], plane: NDArray[np.float64]) -> NDArray[np.float64]:
    attraction = _attraction(centers)
    place = (plane / max(plane[:, 0].std(), np.finfo(float).tiny) * 1e-2).astype(np.float32)
    C, step = len(place), np.zeros_like(place)
    rate, gain = C / 6, np.ones_like(place)
    for i in range(_STEPS):
        pull, push, total = _forces(attraction, place)
        strength = 12.0 if i < _EARLY else 1.0
        slope = strength * pull - push / np.float32(total)
        gain = np.maximum(np.where(np.sign(slope) == np.sign(step), gain * 0.8, gain + 0.2), 0.01)
        step = ((0.5 if i < _EARLY else 0.8) * step - rate * gain * slope).astype(np.float32)
        place = place + step
        place -= place.mean(axis=0)
    return place.astype(np.float64)


def _attraction(centers: NDArray[np.float64]) -> coo_array:
    """Return weights p (C, C) of pairs of neighboring centers, symmetric, with sum 1.

    For each center, the weights of the neighbors at distance d are proportional to exp(−d²/mean d²). The two weights of
    a pair are averaged.
    """
    lists = exact_lists(np.ascontiguousarray(centers), min(_NEIGHBORS, len(centers) - 1) + 1)
    C, k = lists.shape
    squared = np.square(centers[:, np.newaxis] - centers[lists]).sum(axis=2)
    p = np.exp(-(squared - squared[:, :1]) / np.maximum(squared.mean(axis=1, keepdims=True), np.finfo(float).tiny))
    p /= p.sum(axis=1, keepdims=True)
    one = coo_array((p.ravel(), (np.repeat(np.arange(C), k), lists.ravel())), shape=(C, C))
    return ((one + one.T) / (2 * C)).tocoo()


def _forces(p: coo_array, place: NDArray[np.float32]) -> tuple[NDArray, NDArray, float]:
    """Return the terms of the gradient of t-SNE at positions y (C, 2), `place`, for weights p (C, C) of pairs.

    They are attractions Σ_j p_ij q_ij (y_i − y_j) (C, 2), repulsions Σ_j q_ij² (y_i − y_j) (C, 2), and the normalizer
    Σ_{i≠j} q_ij, with q_ij = 1/(1 + ‖y_i − y_j‖²).
    """
    i, j = p.coords
    difference = place[i] - place[j]
    near = (p.data / (1 + np.square(difference).sum(axis=1)))[:, np.newaxis] * difference
    pull = np.column_stack([np.bincount(i, near[:, axis], len(place)) for axis in (0, 1)])
    squares, push, total = np.square(place).sum(axis=1), np.empty_like(place), 0.0
    for begin in range(0, len(place), _ROWS):
        part = slice(begin, begin + _ROWS)
        q = place[part] @ (-2 * place.T)
        q += squares
        q += (1 + squares[part])[:, np.newaxis]
        np.maximum(q, 1, out=q)
        np.reciprocal(q, out=q)
        total += float(q.sum()) - len(q)
        np.square(q, out=q)
        push[part] = q.sum(axis=1)[:, np.newaxis] * place[part] - q @ place
    return pull, push, max(total, np.finfo(float).tiny)


def _fitted(plane: NDArray, radii: NDArray, width: float, height: float) -> NDArray[np.float64]:
    """Return positions (C, 2) of circles that fill a sheet of size width × height along each axis.

    A position is the weighted mean of a coordinate and its rank, so that outliers compress the others less.
    plane (C, 2): coordinates    radii (C,): radii of the circles
    """
    low, high = np.quantile(plane, (0.01, 0.99), axis=0)
    beyond = _BEYOND * (high - low)
    plane = np.clip(plane, low - beyond, high + beyond) if len(plane) > _FEW else plane
    low, high = plane.min(axis=0), plane.max(axis=0)
    extent = high - low
    share = (plane - low) / np.where(extent > 1e-9 * extent.max(), extent, 1)
    order = np.argsort(np.argsort(plane, axis=0, kind="stable"), axis=0) / max(len(plane) - 1, 1)
    share = np.where(extent > 1e-9 * extent.max(), (1 - _RANKS) * share + _RANKS * order, 0.5)
    share = 0.5 + (share - 0.5) * min(1.0, 0.5 + len(plane) / 40)  # few clusters are placed near the middle
    least = radii[:, np.newaxis] + _MARGIN
    return least + share * (np.array([width, height]) - 2 * least)


def _spread_out(place: NDArray, radii: NDArray, width: float, height: float) -> NDArray[np.float64]:
    """Return x, y and radius of each circle (C, 3), after overlapping circles are moved apart within the sheet.

    place (C, 2): initial positions    radii (C,): radii; larger circles are moved less
    """
    place = place + 1e-3 * np.random.default_rng(0).standard_normal(place.shape)
    least = radii[:, np.newaxis] + _MARGIN
    most = np.array([width, height]) - least
    mass, reach = radii**2, 2 * radii.max() + 2
    large = radii > np.quantile(radii, 0.98)
    small_reach = 2 * radii[~large].max() + 2 if (~large).any() else 0.0
    for _ in range(_APART):
        pairs = [cKDTree(place).query_pairs(small_reach, output_type="ndarray")]
        tree = cKDTree(place)
        for a in np.flatnonzero(large):
            others = np.asarray(tree.query_ball_point(place[a], reach / 2 + radii[a]), dtype=np.intp)
            pairs.append(np.column_stack([np.full(len(others), a), others])[others != a])
        i, j = np.unique(np.sort(np.concatenate(pairs).astype(np.intp), axis=1), axis=0).T
        difference = place[i] - place[j]
        distance = np.maximum(np.sqrt(np.square(difference).sum(axis=1)), 1e-9)
        lack = radii[i] + radii[j] + 1 - distance
        near = lack > 0
        if not near.any():
            break
        i, j, lack = i[near], j[near], lack[near]
        push = (lack / distance[near])[:, np.newaxis] * difference[near] * 0.6
        share = (mass[j] / (mass[i] + mass[j]))[:, np.newaxis]
        for axis in (0, 1):
            place[:, axis] += np.bincount(i, (push * share)[:, axis], len(place))
            place[:, axis] -= np.bincount(j, (push * (1 - share))[:, axis], len(place))
        place = np.clip(place, least, most)
    return np.column_stack([place, radii])
