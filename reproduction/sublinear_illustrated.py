"""The clusters of the illustrations of Forster & Lücke (figures 1, B.1 and B.2), and partial E-steps of one point.

The centers lie on a grid of 7 × 7, 4√2 standard deviations apart, and stand for clusters of variance 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cprime.plots.search_space import SearchStep

SIDE, SPACING = 7, 4 * 2**0.5
N_ACTIVE, N_NEIGHBORS = 3, 5  # C′ and G of the source's illustrations
# The source gives no coordinates. This start has lists without common clusters, and takes the source's four E-steps.
START = (8, 11, 30)
POINT = np.array([4.3, 3.85]) * SPACING


def grid() -> NDArray[np.float64]:
    """Return the centers (49, 2), row by row."""
    x, y = np.meshgrid(np.arange(SIDE), np.arange(SIDE))
    return SPACING * np.column_stack([x.ravel(), y.ravel()]).astype(np.float64)


def exact_lists(centers: NDArray, n_neighbors: int = N_NEIGHBORS) -> NDArray[np.intp]:
    """Return the `n_neighbors` nearest centers of each center (C, G), itself first, of equal ones the lower index."""
    return np.argsort(cdist(centers, centers).round(9), axis=1, kind="stable")[:, :n_neighbors]


def inner(centers: NDArray) -> NDArray[np.intp]:
    """Return the centers that are not at the border of the grid."""
    return np.flatnonzero(((centers > 0) & (centers < (SIDE - 1) * SPACING)).all(axis=1))


def partial_steps(point: NDArray, centers: NDArray, lists: NDArray, kept: NDArray) -> list[SearchStep]:
    """Return the partial E-steps of a point (2,) from an active set K, up to the first one that does not change K.

    lists (C, G): neighbor list of each center
    """
    distances = cdist(point[np.newaxis], centers)[0]
    steps: list[SearchStep] = []
    while True:
        space = np.union1d(kept, lists[kept])
        steps.append(SearchStep(kept, space))
        best = np.sort(space[np.argsort(distances[space], kind="stable")[: len(kept)]])
        if np.array_equal(best, np.sort(kept)):
            return steps
        kept = best


def distance_sums(point: NDArray, centers: NDArray, steps: list[SearchStep]) -> list[float]:
    """Return the sum of the distances of a point to its active set, by E-step."""
    return [float(cdist(point[np.newaxis], centers[step.kept]).sum()) for step in steps]
