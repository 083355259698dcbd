"""Start centers for a fit: by adding centers to an existing fit, or by exchanging centers to leave a local optimum."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cprime.execution import Data, rows_of
from cprime.kernels import Dense, Rows, potentials
from cprime.seeding.kmeans_plusplus import cumulative_mass
from cprime.seeding.random_rows import choose_random_rows
from cprime.seeding.sampling import draw
from cprime.selection.bisection import Cell, cells, principal_halves

_SAMPLE = 2**17  # for data read from files, the number of rows in memory from which start centers are improved


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
    does (Arthur & Vassilvitskii 2007). X (n, D), an array or sparse rows, centers (C, D) -> (C + n_more, D)
    """
    closest = X.nearest(centers, n_threads=n_threads)[1][:, 0]
    added = [centers]
    for left in range(n_more, 0, -1):
        cumulative = cumulative_mass(closest, weights)
        if not cumulative[-1] > 0:
            return np.concatenate([*added, X[choose_random_rows(X, left, weights, rng)].dense()])
        drawn = draw(cumulative, rng.uniform(size=2 + int(math.log(len(centers) + n_more))))
        candidates = X[drawn].dense()
        distances = X.distances(candidates, closest, n_threads=n_threads)
        best = int(potentials(distances, closest, weights, n_threads=n_threads).argmin())
        added.append(candidates[best : best + 1])
        closest = distances[best].copy()
    return np.concatenate(added)


def exchanged(X: Rows, centers: NDArray, weights: NDArray[np.float64], labels: NDArray) -> NDArray | None:
    """Return centers after a merge of two clusters and a split of another one, or None if J would not fall.

    J is the sum of squared distances to the nearest center. The pair whose union raises J least is merged, and the
    cluster whose split lowers J most is split. X (n, D), centers (C, D), labels (n,)

    The exchange corrects local optima in which two centers share one cluster while two other clusters share one center
    (Ueda et al. 2000). The objective here is J, which determines the free energy by eq. (15) of Lücke & Forster.
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
