"""Joins of clusters of components as the rules find them, and as a tree has them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Joins(NamedTuple):
    """Pairs of clusters in the order in which they become one.

    pairs (m, 2): a component of each of the two    changes (m,): what a join does to what the rule looks at
    """

    pairs: NDArray[np.int64]
    changes: NDArray[np.float64]

    def then(self, others: "Joins") -> "Joins":
        return Joins(np.concatenate([self.pairs, others.pairs]), np.concatenate([self.changes, others.changes]))


def sums_by(groups: NDArray[np.integer], values: NDArray, n_groups: int) -> NDArray[np.float64]:
    """The sum of the values (n,) of each group: (n_groups,)."""
    sums: Any = np.bincount(groups, weights=values, minlength=n_groups)
    return sums


def children_of(pairs: NDArray[np.int64], n_components: int) -> NDArray[np.int64]:
    """The clusters that each join is of, (m, 2), the lesser first: c < C is a component, C + i what join i has made."""
    parent = np.arange(n_components)  # towards a component that stands for its cluster
    node = np.arange(n_components)  # what a cluster is called, at the component that stands for it
    children = np.empty((len(pairs), 2), dtype=np.int64)
    for i, (a, b) in enumerate(pairs):
        a, b = _find(parent, a), _find(parent, b)
        children[i] = sorted((node[a], node[b]))
        parent[b] = a
        node[a] = n_components + i
    return children


def cluster_of(children: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """The cluster of each component after all joins but the last: (C,), by the least component of each."""
    C = len(children) + 1
    least = np.arange(2 * C - 1)  # of each node its least component
    for i, (a, b) in enumerate(children):
        least[C + i] = min(least[a], least[b])
    top = least.copy()
    for i in range(C - n_clusters - 1, -1, -1):  # from the last join down
        top[children[i]] = top[C + i]
    return np.unique(top[:C], return_inverse=True)[1]


def _find(parent: NDArray[np.int64], c: int) -> int:
    while parent[c] != c:
        parent[c] = parent[parent[c]]
        c = parent[c]
    return c
