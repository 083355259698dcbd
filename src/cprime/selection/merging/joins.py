"""Joins of clusters in three forms: pairs found by a merging rule, nodes of a tree, and clusters after a cut."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Joins(NamedTuple):
    """Pairs of clusters in the order in which they are joined.

    pairs (m, 2): one component of each of the two clusters    changes (m,): change of the rule's objective by each join
    """

    pairs: NDArray[np.int64]
    changes: NDArray[np.float64]

    def then(self, others: "Joins") -> "Joins":
        return Joins(np.concatenate([self.pairs, others.pairs]), np.concatenate([self.changes, others.changes]))


def sums_by(groups: NDArray[np.integer], values: NDArray, n_groups: int) -> NDArray[np.float64]:
    """Return the sum of the values (n,) in each group: (n_groups,)."""
    sums: Any = np.bincount(groups, weights=values, minlength=n_groups)
    return sums


def children_of(pairs: NDArray[np.int64], n_components: int) -> NDArray[np.int64]:
    """Return the two nodes of each join, (m, 2), the smaller first: c < C is a component, C + i the union of join i."""
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
