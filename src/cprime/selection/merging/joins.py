"""Joins of clusters as pairs found by a merging rule, as nodes of a tree, or as clusters after a cut; where to cut.

`drop` finds the first join that removes clearly less entropy than the joins before it. Components of one cluster
overlap throughout, so the entropy removed changes little from join to join: about as a power of the number n of
clusters. Distinct clusters overlap only in their tails, so the first join across clusters removes less by a factor. For
each join, compute how far the log of the removed entropy lies below the minimum so far, per unit of log n. Compare this
slope with the mean of the absolute slopes of the m joins before. If the slopes were exponentially distributed, one
would exceed r times that mean with probability (1 + r/m)^−m, and any one in a tree of C − 1 joins with at most C times
that probability.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sums_by(groups: NDArray[np.integer], values: NDArray, n_groups: int) -> NDArray[np.float64]:
    """Return the sum of the values (n,) in each group: (n_groups,)."""
    sums: Any = np.bincount(groups, weights=values, minlength=n_groups)
    return sums


def children_of(pairs: NDArray[np.int64], n_components: int) -> NDArray[np.int64]:
    """Return the two nodes of each join, (m, 2), smaller first: c < C is a component, C + i the result of join i."""
    parent = np.arange(n_components)  # union-find parent: leads to the component that represents the cluster
    node = np.arange(n_components)  # tree node of a cluster, stored at its representative component
    children = np.empty((len(pairs), 2), dtype=np.int64)
    for i, (a, b) in enumerate(pairs):
        a, b = _find(parent, a), _find(parent, b)
        children[i] = sorted((node[a], node[b]))
        parent[b] = a
        node[a] = n_components + i
    return children


def cluster_of(children: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """Return the cluster of each component, (C,), if the tree is cut at n_clusters.

    Clusters are numbered in the order of their smallest component indices.
    """
    C = len(children) + 1
    least = np.arange(2 * C - 1)  # smallest component index in each node
    for i, (a, b) in enumerate(children):
        least[C + i] = min(least[a], least[b])
    top = least.copy()
    for i in range(C - n_clusters - 1, -1, -1):  # from the last join to the first
        top[children[i]] = top[C + i]
    return np.unique(top[:C], return_inverse=True)[1]


def _find(parent: NDArray[np.int64], c: int) -> int:
    while parent[c] != c:
        parent[c] = parent[parent[c]]
        c = parent[c]
    return c


LEAST_SLOPES = 5


def drop(removed: NDArray[np.float64], entropy: float, alpha: float) -> int | None:
    """Return the number of clusters before the first join that removes too little entropy at significance `alpha`.

    Return None if there is no such join.
    removed (C − 1,): entropy removed by each join of C components; values below the rounding error of the total
    `entropy` are replaced by this error
    """
    C = len(removed) + 1
    if not entropy > 0:
        return None
    logs = np.log(np.maximum(removed, np.finfo(np.float64).eps * entropy))
    sizes = np.log(np.arange(C, 1, -1))  # number of clusters before each join
    steps = -np.diff(sizes)
    slopes = np.abs(np.diff(logs)) / steps
    falls = (np.minimum.accumulate(logs)[:-1] - logs[1:]) / steps
    before = np.arange(1, len(slopes))  # number of joins before each tested join; the first join is not tested
    usual = np.cumsum(slopes)[:-1] / before
    limits = usual * before * ((C / alpha) ** (1 / before) - 1)
    found = np.flatnonzero((falls[1:] > limits) & (before >= LEAST_SLOPES))
    return None if not len(found) else int(C - 2 - found[0])
