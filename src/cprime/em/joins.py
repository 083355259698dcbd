"""Hierarchical clustering of centers by Ward's method (1963), which joins the pair that raises the error J least.

The module also contains the tree of these joins, and the clusters that a cut of the tree gives.

Replacing two centers μ, ν of weights v, w by their mean raises J by v w/(v + w) ‖μ − ν‖², the cost of the join. The
cost of joining a union with a third cluster is never below the lower cost of its two parts. So two centers that are
each other's cheapest partners can be joined at once. They are found along a chain of cheapest partners (Murtagh 1983),
and the joins are sorted by cost at the end. This takes O(C²) evaluations of costs and O(C) memory.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_VALUES = 2**20  # number of coordinate differences computed at a time, to limit memory


class Joins(NamedTuple):
    """Pairs of clusters in the order in which they are joined.

    pairs (m, 2): for each join, the index of one component in each of the two clusters
    changes (m,): change of the objective (entropy, or error J) that each join causes
    """

    pairs: NDArray[np.int64]
    changes: NDArray[np.float64]

    def then(self, others: "Joins") -> "Joins":
        return Joins(np.concatenate([self.pairs, others.pairs]), np.concatenate([self.changes, others.changes]))


def ward_joins(centers: NDArray[np.float64], weights: NDArray[np.float64]) -> Joins:
    """Return the C − 1 joins by which Ward's method combines centers (C, D) of weights (C,) into one cluster.

    The field `changes` of the result has the increases of the error J. A center of weight 0 is first joined to the
    nearest center of positive weight, at no cost.
    """
    light, heavy = np.flatnonzero(weights <= 0), np.flatnonzero(weights > 0)
    if len(light) and len(heavy):
        hosts = heavy[_nearest(centers[light], centers[heavy])]
        free = Joins(np.column_stack([hosts, light]), np.zeros(len(light)))
        rest = ward_joins(centers[heavy], weights[heavy])
        return free.then(Joins(heavy[rest.pairs], rest.changes))
    # If all centers have weight 0, equal weights are used instead.
    if len(light):
        weights = np.ones(len(centers))
    pairs, changes = _chained(centers, weights)
    order = np.argsort(changes, kind="stable")
    return Joins(pairs[order], changes[order])


def _nearest(points: NDArray[np.float64], centers: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the index of the nearest of the centers (m, D) for each point (n, D): (n,)."""
    found = np.empty(len(points), dtype=np.intp)
    step = max(1, _VALUES // centers.size)
    for i in range(0, len(points), step):
        differences = points[i : i + step, np.newaxis] - centers
        found[i : i + step] = np.square(differences).sum(axis=2).argmin(axis=1)
    return found


def _chained(centers: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray]:
    """Return all joins of Ward's method for C centers of positive weights, in the order in which they are found.

    They are found along a chain of cheapest partners, so they are not sorted by cost.
    Returns pairs (C − 1, 2), the index of one center in each of the two clusters, and increases of J (C − 1,).
    """
    m, w, names = centers.copy(), weights.copy(), np.arange(len(centers))
    pairs, changes = np.empty((len(centers) - 1, 2), dtype=np.int64), np.empty(len(centers) - 1)
    chain: list[int] = []
    for n in range(len(pairs)):
        if not chain:
            chain = [int(w.argmax())]
        while True:
            i = chain[-1]
            costs = np.square(m - m[i]).sum(axis=1)
            # The rounded cost of a join is the same for (i, j) and (j, i), so costs do not increase along the chain.
            costs *= w * w[i] / (w + w[i])
            costs[i] = np.inf
            costs[w == 0] = np.inf  # exclude centers that were joined to another one
            j = int(costs.argmin())
            if len(chain) > 1 and costs[chain[-2]] <= costs[j]:
                j = chain[-2]
                break
            chain.append(j)
        del chain[-2:]
        if i in chain or j in chain:  # equal costs can close the chain to a loop, so start a new chain
            chain = []
        pairs[n], changes[n] = (names[i], names[j]), costs[j]
        m[i] += (m[j] - m[i]) * (w[j] / (w[i] + w[j]))
        w[i] += w[j]
        w[j] = 0.0
        left = np.flatnonzero(w > 0)
        if 2 * len(left) <= len(w):
            chain = np.searchsorted(left, chain).tolist()
            m, w, names = m[left], w[left], names[left]
    return pairs, changes


def sums_by(groups: NDArray[np.integer], values: NDArray, n_groups: int) -> NDArray[np.float64]:
    """Return the sums (n_groups,) of the values in each group; groups (n,): group of each of the values (n,)."""
    sums: Any = np.bincount(groups, weights=values, minlength=n_groups)
    return sums


def children_of(pairs: NDArray[np.int64], n_components: int) -> NDArray[np.int64]:
    """Return the tree of m joins: the two nodes that each join combines, smaller number first, (m, 2).

    pairs (m, 2): for each join, one component in each of the two clusters
    A node c < C is component c, and node C + i is the result of join i.
    """
    # From each component a path of parents leads to the component that represents its cluster.
    parent = np.arange(n_components)
    # node[a] is the tree's node of the cluster that component a represents.
    node = np.arange(n_components)
    children = np.empty((len(pairs), 2), dtype=np.int64)
    for i, (a, b) in enumerate(pairs):
        a, b = _find(parent, a), _find(parent, b)
        children[i] = sorted((node[a], node[b]))
        parent[b] = a
        node[a] = n_components + i
    return children


def cluster_of(children: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """Return the number of each component's cluster, (C,), after a cut of the tree into `n_clusters` clusters.

    Clusters are numbered from 0 in the order of their smallest component indices.
    children (C − 1, 2): the tree, as `children_of` returns it
    """
    C = len(children) + 1
    least = np.arange(2 * C - 1)  # smallest component index in each node of the tree
    for i, (a, b) in enumerate(children):
        least[C + i] = min(least[a], least[b])
    top = least.copy()
    for i in range(C - n_clusters - 1, -1, -1):  # the joins before the cut, the last one first
        top[children[i]] = top[C + i]
    return np.unique(top[:C], return_inverse=True)[1]


def _find(parent: NDArray[np.int64], c: int) -> int:
    while parent[c] != c:
        parent[c] = parent[parent[c]]
        c = parent[c]
    return c
