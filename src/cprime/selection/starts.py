"""Initial centers for a new fit that leaves a local optimum: those of an existing fit after a merge and a split."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Dense, Rows
from cprime.selection.bisection import Cell, cells, principal_halves


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
