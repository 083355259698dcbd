"""Greedy joins of components to clusters: each join is the one that lowers the entropy of the assignment most.

Method of Baudry, Raftery, Celeux, Lo & Gottardo (2010). The share t_nk of point n in cluster k is the sum of the
responsibilities of the cluster's components, which are truncated to the C′ best components of the point and sum to 1.
They are not truncated again after a join. The entropy is −Σ_n w_n Σ_k t_nk log t_nk, and joining j and k lowers it by

    G_jk = Σ_n w_n g(t_nj, t_nk),    g(s, t) = s log((s + t)/s) + t log((s + t)/t) ≥ 0,

to which only points with a share in both contribute. g is increasing and concave in s, so after a join of i and j

    G_ij,k = G_ik + G_jk − Σ_n w_n h(t_ni, t_nj, t_nk),    max(G_ik, G_jk) ≤ G_ij,k ≤ G_ik + G_jk,
    h(s, t, u) = g(s, u) + g(t, u) − g(s + t, u)
               = s log(1 + tu/(sv)) + t log(1 + su/(tv)) + u log(1 + st/(uv)) ≥ 0,    v = s + t + u.

The correction h involves only points that have shares in both i and j. The best partner of a cluster is the one whose
join lowers the entropy most. If it was i or j, it is the union of both afterwards. So the best partners are updated
without a new search.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import xlogy

from cprime.em.joins import Joins, sums_by
from cprime.kernels import grouped_order

LEAST_SHARE = 1e-300  # Smaller shares count as zero, so that ratios of shares are finite.
_VALUES = 2**21  # Number of shares, or of pairs of shares, that are processed at a time.


@dataclass(frozen=True)
class SharedPoints:
    """Points with positive responsibilities of at least two of their H best components.

    ids (n, H): indices of these components    shares (n, H): the responsibilities, 0 for unused columns
    weights (n,): sample weights
    """

    ids: NDArray[np.int32]
    shares: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def entropy(self) -> float:
        """Return the entropy of the assignment, −Σ_n w_n Σ_h t_nh log t_nh, with responsibilities t, in nats."""
        total = 0.0
        step = max(1, _VALUES // self.ids.shape[1])
        for begin in range(0, len(self.ids), step):
            rows = slice(begin, begin + step)
            total -= float((self.weights[rows] * xlogy(self.shares[rows], self.shares[rows]).sum(axis=1)).sum())
        return total


def gain(s: NDArray[np.float64], t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return g(s, t) = s log((s + t)/s) + t log((s + t)/t) for the shares s, t > 0 of a point in two clusters.

    If these clusters are joined, the entropy of the assignment falls by g times the weight of the point.
    """
    return s * np.log1p(t / s) + t * np.log1p(s / t)


def excess(s: NDArray[np.float64], t: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return h = g(s, u) + g(t, u) − g(s + t, u) for shares s, t, u > 0 of a point, where g is the function `gain`.

    After a join of the clusters with the shares s and t, their gains with a third cluster (share u) are one gain, which
    is their sum minus h.
    """
    total = s + t + u
    return s * np.log1p(t / s * (u / total)) + t * np.log1p(s / t * (u / total)) + u * np.log1p(s / u * (t / total))


def entropy_joins(points: SharedPoints, n_components: int) -> Joins:
    """Join the two clusters whose union lowers the entropy most, until no point has shares in two clusters.

    Returns `Joins`: the pairs (m, 2) in their order, and as `changes` (m,) the decreases of the entropy [nats].
    """
    clusters = _Clusters(points, n_components)
    found = list(clusters.joined())
    pairs = np.array([pair for pair, _ in found], dtype=np.int64).reshape(-1, 2)
    return Joins(pairs, np.array([change for _, change in found], dtype=np.float64))


class _Clusters:
    """State of the clusters while they are joined; each cluster is identified by one of its components.

    of (C,): the cluster of each component
    clusters, shares (n, H): the clusters in which a point has shares, and these shares; −1 and 0 for unused columns. If
    two clusters of a point are joined, one column gets the sum of both shares
    entries: for each cluster, a list of arrays with the flat indices of its shares in `shares`
    low, high, gains (P,): the two components of each pair with shares of the same point, and the decrease of entropy by
    their join. If joins turn several pairs into pairs of the same two clusters, one represents all of them
    alive (P,): False for the pairs that another pair represents
    pairs: for each cluster, the indices of its pairs, including those that are not alive
    best (C,): for each cluster, the greatest decrease of entropy by a join, −1 if it was joined to another one
    partner (C,): the cluster whose join causes this decrease
    """

    def __init__(self, points: SharedPoints, n_components: int) -> None:
        C = n_components
        self.shares, self.weights = points.shares.copy(), points.weights
        self.clusters = np.where(self.shares > 0, points.ids, np.int32(-1))
        self.of = np.arange(C)
        places = np.flatnonzero(self.shares.ravel() > 0)
        owner = self.clusters.ravel()[places]
        self.n_entries = np.bincount(owner, minlength=C)
        self.entries = [[piece] for piece in _grouped(places, owner, self.n_entries)]

        gains = _pair_gains(points, C).tocoo()
        self.low, self.high, self.gains = gains.coords[0], gains.coords[1], gains.data
        self.alive = np.ones(len(self.gains), dtype=bool)
        ends, numbers = np.concatenate([self.low, self.high]).astype(np.int32), np.tile(np.arange(len(self.gains)), 2)
        self.pairs = _grouped(numbers, ends, np.bincount(ends, minlength=C))

        self.best, self.partner = np.zeros(C), np.full(C, C)
        for mine in (self.low, self.high):
            np.maximum.at(self.best, mine, self.gains)
        for mine, other in ((self.low, self.high), (self.high, self.low)):
            greatest = self.gains == self.best[mine]
            np.minimum.at(self.partner, mine[greatest], other[greatest])

    def joined(self) -> Iterator[tuple[tuple[int, int], float]]:
        """Join the pair whose union lowers the entropy most, again and again.

        Yields each pair (a, b) and the decrease of entropy, and ends if no union lowers the entropy.
        """
        for _ in range(len(self.of) - 1):
            a = int(self.best.argmax())
            b, change = int(self.partner[a]), float(self.best[a])
            if not change > 0:
                return
            if self.n_entries[a] < self.n_entries[b]:
                a, b = b, a
            self._join(a, b)
            yield (a, b), change

    def _join(self, a: int, b: int) -> None:
        """Merge cluster b into cluster a in place, and update all pairs with a or b.

        Cluster a should have shares of at least as many points as b, because the shares of b are moved.
        """
        corrections = self._corrections(a, b)
        self.of[self.of == b] = a
        numbers = np.concatenate([self.pairs[a], self.pairs[b]])
        numbers = numbers[self.alive[numbers]]
        others = self.of[self.low[numbers]] + self.of[self.high[numbers]] - a
        self.alive[numbers] = False
        apart = others != a
        numbers, others = numbers[apart], others[apart]

        C = len(self.of)
        gains = sums_by(others, self.gains[numbers], C) + corrections
        one = np.empty(C, dtype=np.int64)  # For each other cluster: index of one of its pairs with the joined clusters.
        one[others] = numbers
        others = others[one[others] == numbers]
        numbers, gains = one[others], gains[others]
        self.alive[numbers], self.gains[numbers] = True, gains
        self.pairs[a], self.pairs[b] = numbers, numbers[:0]

        self.best[b], self.best[a], self.partner[a] = -1.0, 0.0, C
        if len(gains):
            self.best[a] = gains.max()
            self.partner[a] = others[gains == self.best[a]].min()
        theirs = self.partner[others]
        better = (gains > self.best[others]) | (theirs == a) | (theirs == b)
        self.best[others[better]], self.partner[others[better]] = gains[better], a

    def _corrections(self, a: int, b: int) -> NDArray[np.float64]:
        """Move the shares of points from cluster b to a, and return a correction for each cluster k: (C,).

        The correction is G_ab,k − (G_ak + G_bk), where G_jk is the decrease of entropy by a join of clusters j and k,
        and ab is the union of a and b.
        """
        H = self.shares.shape[1]
        places = np.concatenate(self.entries[b])
        rows = places // H
        clusters = self.clusters.take(rows, axis=0)
        in_a = np.flatnonzero(clusters == a)  # Flat indices of shares in cluster a, at most one in each row.
        both = in_a // H
        self.entries[a].append(np.delete(places, both))
        self.n_entries[a] += len(self.entries[a][-1])
        self.entries[b] = []
        self.clusters.flat[places] = a
        if not len(both):
            return np.zeros(len(self.of))
        slots = in_a % H
        clusters, rows, places = clusters.take(both, axis=0), rows[both], places[both]
        shares = self.shares.take(rows, axis=0)
        index = np.arange(len(both))
        s, t = shares[index, slots], shares[index, places % H]
        self.shares[rows, slots] = s + t
        self.shares.flat[places], self.clusters.flat[places] = 0.0, -1
        clusters[index, slots] = clusters[index, places % H] = -1
        third = np.flatnonzero(clusters >= 0)
        row = third // H
        more = self.weights[rows][row] * excess(s[row], t[row], shares.ravel()[third])
        return -sums_by(clusters.ravel()[third], more, len(self.of))


def _grouped(values: NDArray, groups: NDArray[np.int32], counts: NDArray) -> list[NDArray]:
    """Return one array for each group with the group's values in their original order.

    groups (n,): group of each value    counts: number of values of each group
    """
    return np.split(values[grouped_order(groups, len(counts))], np.cumsum(counts)[:-1])


def _pair_gains(points: SharedPoints, n_components: int) -> csr_array:
    """Return the decrease of entropy by the join of each pair of components that share a point.

    Two components share a point if both have a positive responsibility for it. The result is a sparse, upper triangular
    matrix (C, C).
    """
    total = csr_array((n_components, n_components), dtype=np.float64)
    H = points.ids.shape[1]
    # So few values are sorted at a time that two component ids and the index of a value fit in the 63 bits of its key.
    most = min(_VALUES, 1 << (63 - 2 * n_components.bit_length()))
    step = max(1, most // max(1, H * (H - 1) // 2))
    for begin in range(0, len(points.ids) if H > 1 else 0, step):
        rows = slice(begin, begin + step)
        ids, shares = (np.ascontiguousarray(of[rows].T) for of in (points.ids, points.shares))
        weights = points.weights[rows]
        found = [_gains_beside(ids[h], ids[h + 1 :], shares[h], shares[h + 1 :], weights) for h in range(H - 1)]
        low, high, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        total = total + _summed(low, high, values, n_components)
    return total


def _gains_beside(
    ids: NDArray, others: NDArray, s: NDArray, t: NDArray, weights: NDArray
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Return pairs of one component of each point with m others, and the decrease of entropy by their join.

    The result is three arrays: smaller id, greater id, and the decrease w g(s, t) at this point, with g as in `gain`.
    Each array has one entry for each pair of positive shares.
    ids, s (n,): a component of each point and its share    others, t (m, n): other components and their shares
    weights (n,): weights w of the points
    """
    both = (s > 0) & (t > 0)
    low, high = np.minimum(ids, others), np.maximum(ids, others)
    if both.all():
        return low.ravel(), high.ravel(), (weights * gain(s, t)).ravel()
    s, weights = (np.broadcast_to(of, t.shape)[both] for of in (s, weights))
    return low[both], high[both], weights * gain(s, t[both])


def _summed(low: NDArray, high: NDArray, values: NDArray, n_components: int) -> csr_array:
    """Return the sum of the values of each pair of components (low, high), as a sparse matrix (C, C).

    Values are sorted by int64 numbers whose high bits are the pair and whose low bits are the index of the value. This
    is faster than sorting pairs, and the values of a pair are added in their original order.
    """
    C, bits = n_components, len(values).bit_length()
    keys = np.sort((low.astype(np.int64) * C + high) << bits | np.arange(len(values)))
    values, keys = values[keys & (1 << bits) - 1], keys >> bits
    new = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(values, first) if len(first) else values
    row, column = np.divmod(keys[first], C)
    begins = np.searchsorted(row, np.arange(C + 1))
    return csr_array((sums, column, begins), shape=(C, C))
