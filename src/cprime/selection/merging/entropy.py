"""Joins of components that lower the entropy of the assignment most: Baudry, Raftery, Celeux, Lo & Gottardo (2010).

With t_nk the share of point n in cluster k, the sum of those of its components, the entropy is
−Σ_n w_n Σ_k t_nk log t_nk, and to join j and k lowers it by

    G_jk = Σ_n w_n g(t_nj, t_nk),    g(s, t) = s log((s + t)/s) + t log((s + t)/t) ≥ 0,

to which only points with a share in both contribute. g rises in s and is concave, so after a join of i and j

    G_ij,k = G_ik + G_jk + Σ_n w_n [g(t_ni + t_nj, t_nk) − g(t_ni, t_nk) − g(t_nj, t_nk)],
    max(G_ik, G_jk) ≤ G_ij,k ≤ G_ik + G_jk:

the correction is of the points that have shares in both i and j alone, nothing cancels, and whoever had i or j for its
best partner has the union for it from then on. So best partners are kept up to date without looking for any anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import xlogy

from cprime.selection.merging.joins import Joins, sums_by

LEAST_SHARE = 1e-300  # less is nothing: ratios of shares are finite
_VALUES = 2**21  # shares, or pairs of them, at a time


@dataclass(frozen=True)
class Shares:
    """Points with a share in several components: ids (n, H), shares (n, H), zero where there is none, weights (n,)."""

    ids: NDArray[np.int32]
    shares: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def entropy(self) -> float:
        """−Σ_n w_n Σ_h t_nh log t_nh, in nats."""
        total = 0.0
        step = max(1, _VALUES // self.ids.shape[1])
        for begin in range(0, len(self.ids), step):
            rows = slice(begin, begin + step)
            total -= float((self.weights[rows] * xlogy(self.shares[rows], self.shares[rows]).sum(axis=1)).sum())
        return total


def gain(s: NDArray[np.float64], t: NDArray[np.float64]) -> NDArray[np.float64]:
    """g(s, t) of positive shares."""
    return s * np.log1p(t / s) + t * np.log1p(s / t)


def entropy_joins(points: Shares, n_components: int) -> Joins:
    """Joins by the greatest gain, which is their change, until no two clusters have a point in common."""
    clusters = _Clusters(points, n_components)
    found = list(clusters.joined())
    pairs = np.array([pair for pair, _ in found], dtype=np.int64).reshape(-1, 2)
    return Joins(pairs, np.array([change for _, change in found], dtype=np.float64))


class _Clusters:
    """Clusters of components, each called by one of them; what changes while they are joined.

    of (C,): the cluster of each component
    shares (n, H): where components of a point meet in a cluster one slot has all
    entries: the places in `shares` that each cluster has, in pieces
    low, high, gains (P,): G of each pair of components that have a point in common. Of those that have become pairs of
    the same clusters one stands for all, and the others are no longer `alive`.
    pairs: the numbers of each cluster's pairs, dead ones among them
    best, partner (C,): the greatest gain of each cluster, −1 where it has gone, and with whom
    """

    def __init__(self, points: Shares, n_components: int) -> None:
        C = n_components
        self.ids, self.shares, self.weights = points.ids, points.shares.copy(), points.weights
        self.of = np.arange(C)
        places = np.flatnonzero(self.shares.ravel() > 0)
        owner = self.ids.ravel()[places]
        self.n_entries = np.bincount(owner, minlength=C)
        self.entries = [[piece] for piece in _grouped(places, owner, self.n_entries)]

        gains = _pair_gains(points, C).tocoo()
        self.low, self.high, self.gains = gains.coords[0], gains.coords[1], gains.data
        self.alive = np.ones(len(self.gains), dtype=bool)
        ends, numbers = np.concatenate([self.low, self.high]), np.tile(np.arange(len(self.gains)), 2)
        self.pairs = _grouped(numbers, ends, np.bincount(ends, minlength=C))

        self.best, self.partner = np.zeros(C), np.full(C, C)
        for mine in (self.low, self.high):
            np.maximum.at(self.best, mine, self.gains)
        for mine, other in ((self.low, self.high), (self.high, self.low)):
            greatest = self.gains == self.best[mine]
            np.minimum.at(self.partner, mine[greatest], other[greatest])

    def joined(self) -> Iterator[tuple[tuple[int, int], float]]:
        """Joins the best pair again and again, and says which and its gain."""
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
        """Cluster b, which has fewer entries, becomes part of a."""
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
        one = np.empty(C, dtype=np.int64)  # the number that stands for all of the same other cluster
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
        """Adds the shares of b to those of a; what G_ab,k is more than G_ak + G_bk, for every k: (C,)."""
        H = self.shares.shape[1]
        places = np.concatenate(self.entries[b])
        rows = places // H
        clusters, shares = self.of[self.ids[rows]], self.shares[rows]
        in_a = (clusters == a) & (shares > 0)
        both = in_a.any(axis=1)
        self.entries[a].append(places[~both])
        self.n_entries[a] += len(self.entries[a][-1])
        self.entries[b] = []
        if not both.any():
            return np.zeros(len(self.of))
        rows, places, clusters, shares, in_a = rows[both], places[both], clusters[both], shares[both], in_a[both]
        s, t = shares[in_a], self.shares.flat[places]
        self.shares[rows, in_a.argmax(axis=1)] = s + t
        self.shares.flat[places] = 0.0
        shares[in_a | (clusters == b)] = 0.0
        row, slot = np.nonzero(shares)
        s, t, u = s[row], t[row], shares[row, slot]
        more = self.weights[rows[row]] * (gain(s + t, u) - gain(s, u) - gain(t, u))
        return sums_by(clusters[row, slot], more, len(self.of))


def _grouped(values: NDArray, groups: NDArray, counts: NDArray) -> list[NDArray]:
    """The values of each group, in their order."""
    return np.split(values[np.argsort(groups, kind="stable")], np.cumsum(counts)[:-1])


def _pair_gains(points: Shares, n_components: int) -> csr_array:
    """G of all pairs that have a point in common, above the diagonal: (C, C)."""
    total = csr_array((n_components, n_components), dtype=np.float64)
    one, other = np.triu_indices(points.ids.shape[1], 1)
    step = max(1, _VALUES // max(1, len(one)))
    for begin in range(0, len(points.ids), step):
        rows = slice(begin, begin + step)
        ids, shares, weights = points.ids[rows], points.shares[rows], points.weights[rows]
        s, t = shares[:, one], shares[:, other]
        row, pair = np.nonzero((s > 0) & (t > 0))
        a, b = ids[row, one[pair]], ids[row, other[pair]]
        values = weights[row] * gain(s[row, pair], t[row, pair])
        total = total + csr_array((values, (np.minimum(a, b), np.maximum(a, b))), shape=total.shape)
    return total
