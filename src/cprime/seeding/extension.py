"""Starting centers for a fit with more clusters: those of an existing fit, and further ones by D² sampling."""

import math

import numpy as np
from numpy.typing import NDArray

from cprime.execution import Data, local, rows_of
from cprime.kernels import Rows, potentials
from cprime.seeding.kmeans_plusplus import cumulative_mass
from cprime.seeding.random_rows import draw_rows
from cprime.seeding.sampling import draw

_SAMPLE = 2**17  # for data in files, maximum number of rows that are read into memory to choose centers from


def rows_in_memory(
    data: Data, rng: np.random.RandomState
) -> tuple[Rows, NDArray[np.float64], NDArray[np.int64] | slice]:
    """Return rows from which starting centers can be found, their weights (n,), and their indices in the data.

    These are all rows if the data are in memory, or at most 2¹⁷ random rows if the data are read from files.
    """
    whole = data.whole()
    if whole is not None:
        X, weights = whole
        return X, np.ones(len(X)) if weights is None else weights, slice(None)
    rows = np.arange(data.n_points)
    if data.n_points > _SAMPLE:
        n = data.n_weighted
        rows = rows_of(data, np.sort(rng.choice(n, min(n, _SAMPLE), replace=False)))
    taken = data.take(rows)
    return taken.X, np.ones(len(rows)) if taken.sample_weight is None else taken.sample_weight, rows


def extended(
    X: Rows,
    centers: NDArray,
    n_more: int,
    weights: NDArray[np.float64],
    rng: np.random.RandomState,
    n_threads: int | None,
) -> NDArray:
    """Add n_more rows of X to the centers by D² sampling; each new center is the best of several draws.

    D² sampling draws a row with a probability proportional to its squared distance to the nearest center, as k-means++
    does (Arthur & Vassilvitskii 2007).
    X (n, D): dense or sparse rows    centers (C, D)    weights (n,): weights of the rows
    Returns the old centers followed by the new ones: (C + n_more, D).
    """
    closest = X.nearest(centers, n_threads=n_threads)[1][:, 0]
    added = [centers]
    for left in range(n_more, 0, -1):
        cumulative = cumulative_mass(closest, weights)
        if not cumulative[-1] > 0:
            return np.concatenate([*added, X[draw_rows(local(X, weights), left, rng)].dense()])
        drawn = draw(cumulative, rng.uniform(size=2 + int(math.log(len(centers) + n_more))))
        candidates = X[drawn].dense()
        distances = X.distances(candidates, closest, n_threads=n_threads)
        best = int(potentials(distances, closest, weights, n_threads=n_threads).argmin())
        added.append(candidates[best : best + 1])
        closest = distances[best].copy()
    return np.concatenate(added)
