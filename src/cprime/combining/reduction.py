"""Reduction of a Gaussian mixture to fewer components: greedy joins, then regrouping of all components.

A union of components is one Gaussian with the weight, mean and covariance of their sum ("merge of moments"). First,
pairs are joined one after the other; the pair is chosen by an upper bound of the increase of the Kullback-Leibler
divergence (Runnalls 2007). Then each component moves to the union from which its divergence is least, and the unions
are computed again, until no component moves (Goldberger & Roweis 2004). Each of these steps lowers
Σ_i N_i KL(f_i ‖ g_c(i)), where N_i is the weight of component f_i, and g_c(i) its union.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime.em.joins import sums_by
from cprime.kernels import Dense

_NEAR = 16  # Number of near components of each component; costs are computed only for joins with these.
# Maximum number of entries of covariance matrices that are computed at a time.
_VALUES = 2**20
_MOST_REGROUPS = 100

Doubles = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class WeightedGaussians:
    """Weighted Gaussian components.

    counts (n,): weights, positive    means (n, D) [data units]
    covariances: matrices (n, D, D), variances of each column (n, D), or one variance for all columns (n,) [data unit²]
    """

    counts: Doubles
    means: Doubles
    covariances: Doubles

    def __len__(self) -> int:
        return len(self.counts)

    def whiten(self) -> Doubles:
        """Return the means (n, D) in coordinates in which the weighted mean of all covariances is the identity."""
        mean = np.tensordot(self.counts / self.counts.sum(), self.covariances, axes=1)
        if mean.ndim < 2:
            return self.means / np.sqrt(mean)
        values, axes = np.linalg.eigh(mean)
        least = np.finfo(np.float64).eps * values[-1]
        return self.means @ (axes / np.sqrt(np.maximum(values, least)))

    def unite(self, groups: Ids, n_groups: int) -> Self:
        """Return one Gaussian for each group, with the weight, mean and covariance of the sum of its components.

        groups (n,): group of each component, from 0 to n_groups − 1; no group may be empty
        """
        counts = sums_by(groups, self.counts, n_groups)
        means = np.empty((n_groups, self.means.shape[1]))
        covariances = np.empty((n_groups, *self.covariances.shape[1:]))
        order = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[order], np.arange(n_groups + 1))
        for j in range(n_groups):
            members = order[bounds[j] : bounds[j + 1]]
            if len(members) == 1:  # a union of one component has exactly the parameters of this component
                means[j], covariances[j] = self.means[members[0]], self.covariances[members[0]]
                continue
            share = self.counts[members] / counts[j]
            means[j] = self.means[members[0]] + share @ (self.means[members] - self.means[members[0]])
            covariances[j] = np.tensordot(share, self.covariances[members], axes=1)
            covariances[j] += self._scatter(share, self.means[members] - means[j])
        return type(self)(counts, means, covariances)

    def _scatter(self, shares: Doubles, shifts: Doubles) -> Doubles:
        """Return Σ_k s_k d_k d_kᵀ for shares s (m,) and shifts d (m, D): a part of the covariance of a union.

        The union has m components, with shares s of its weight, and means that differ by d from its mean.
        The result has the form of one covariance: the matrix (D, D), its diagonal (D,), or the mean of the diagonal ().
        """
        if self.covariances.ndim == 3:
            return (shares[:, np.newaxis] * shifts).T @ shifts
        squares: Doubles = shares @ np.square(shifts)
        return squares if self.covariances.ndim == 2 else np.asarray(squares.mean())

    def log_determinants(self) -> Doubles:
        """Return log |Σ| of every component: (n,)."""
        return _log_determinants(self.covariances, self.means.shape[1])

    def join_costs(self, a: Ids, b: Ids, logs: Doubles) -> Doubles:
        """Return upper bounds of the increase of the divergence from the mixture by a union of two components: (m,).

        The bound is ½ [w log|Σ| − w_a log|Σ_a| − w_b log|Σ_b|] of Runnalls (2007), eq. (20), for w = w_a + w_b.
        w: weights    a, b (m,): indices of the components of each pair    logs (n,): log |Σ| of every component
        """
        D, shape = self.means.shape[1], self.covariances.shape[1:]
        one, two = self.counts[a], self.counts[b]
        both = one + two
        out = np.empty(len(a))
        step = max(1, _VALUES // max(D, int(np.prod(shape, dtype=np.int64))))
        for begin in range(0, len(a), step):
            part = slice(begin, begin + step)
            joined = self.joined_covariances(a[part], b[part], two[part] / both[part])
            out[part] = both[part] * _log_determinants(joined, D)
        return 0.5 * (out - one * logs[a] - two * logs[b])

    def joined_covariances(self, a: Ids, b: Ids, shares: Doubles) -> Doubles:
        """Return the covariances of the unions of m pairs of components.

        a, b (m,): indices of the components of each pair    shares (m,): weight of b divided by the weight of the union
        """
        share = shares.reshape(-1, *[1] * (self.covariances.ndim - 1))
        joined: Doubles = self.covariances[a] + share * (self.covariances[b] - self.covariances[a])
        joined += share * (1 - share) * _outer(self.means[b] - self.means[a], self.covariances.ndim - 1)
        return joined

    def divergences(self, others: "WeightedGaussians") -> Doubles:
        """Return the Kullback-Leibler divergences KL(f_i ‖ g_j) of components f_i from the m components g_j: (n, m)."""
        n, D = self.means.shape
        logs = others.log_determinants() - self.log_determinants()[:, np.newaxis]
        if self.covariances.ndim == 3:
            precisions = np.linalg.inv(others.covariances)
            traces = self.covariances.reshape(n, -1) @ precisions.reshape(len(others), -1).T
        else:
            precisions = 1 / others.covariances
            traces = self.covariances @ precisions.T if precisions.ndim == 2 else np.outer(self.covariances, precisions)
            traces *= 1 if precisions.ndim == 2 else D
        for j in range(len(others)):
            shift = self.means - others.means[j]
            scaled = shift @ precisions[j] if self.covariances.ndim == 3 else shift * precisions[j]
            traces[:, j] += np.einsum("nd,nd->n", scaled, shift)
        return 0.5 * (logs + traces - D)


def _outer(shifts: Doubles, ndim: int) -> Doubles:
    """Return d dᵀ for each shift d (m, D), a difference of two means that contributes to the covariance of their union.

    ndim: 2 for matrices (m, D, D), 1 for their diagonals (m, D), 0 for the means of their diagonals (m,)
    """
    if ndim == 2:
        return shifts[:, :, np.newaxis] * shifts[:, np.newaxis]
    squares = np.square(shifts)
    return squares if ndim == 1 else squares.mean(axis=1)


def _log_determinants(covariances: Doubles, D: int) -> Doubles:
    """Return log |Σ| (m,) of covariances Σ: matrices (m, D, D), variances of columns (m, D), or of all columns (m,)."""
    if covariances.ndim == 3:
        found: Doubles = np.linalg.slogdet(covariances)[1]
        return found
    logs = np.log(covariances)
    return D * logs if logs.ndim == 1 else logs.sum(axis=1)


def reduce(components: WeightedGaussians, n_groups: int) -> Ids:
    """Reduce n components to `n_groups` unions by greedy joins and regrouping; return each component's group (n,)."""
    return _regroup(components, _join(components, n_groups), n_groups)


def in_order(groups: NDArray[np.integer]) -> Ids:
    """Return groups (n,) with new numbers 0, 1, …, in the order in which the groups first occur."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[group]


def _regroup(components: WeightedGaussians, groups: Ids, n_groups: int) -> Ids:
    """Move each component to the union from which its divergence is least, until none moves; return the groups (n,).

    A union is never left empty. groups (n,): the group of each component at the start
    """
    rows = np.arange(len(components))
    for _ in range(_MOST_REGROUPS if n_groups > 1 else 0):
        divergences = components.divergences(components.unite(groups, n_groups))
        now = divergences[rows, groups]
        best = divergences.argmin(axis=1)
        new = np.where(divergences[rows, best] < now - 1e-9 * (1 + np.abs(now)), best, groups)
        for j in np.flatnonzero(np.bincount(new, minlength=n_groups) == 0):
            left = np.flatnonzero(groups == j)
            new[left[np.argmax(components.counts[left])]] = j
        if (new == groups).all():
            break
        groups = new
    return groups


def _join(components: WeightedGaussians, n_groups: int) -> Ids:
    """Join pairs of components until `n_groups` unions are left, and return the group of each of n components: (n,).

    Each step joins the near pair of components or unions whose replacement by one Gaussian costs least; costs of pairs
    with the new union are computed anew.
    """
    n = len(components)
    joins = _Joins(components)
    for _ in range(n - n_groups):
        joins.join_cheapest()
    roots = np.arange(n)
    # Joins (i, into) are read from the last to the first, so that the final union of `into` is known when i gets it.
    for i, into in reversed(joins.pairs):
        roots[i] = roots[into]
    return in_order(roots)


class _Joins:
    """State of greedy joins: the components that are left, their near components, and a heap of the costs of pairs.

    A union is stored at the index of one of its two components, whose version (number of joins) then increases. Entries
    of the heap have the versions of both components, so that outdated costs are recognized.
    """

    def __init__(self, components: WeightedGaussians) -> None:
        self.of = WeightedGaussians(components.counts.copy(), components.means.copy(), components.covariances.copy())
        self.logs = components.log_determinants()
        self.whitened = components.whiten()
        self.is_left = np.ones(len(components), dtype=bool)
        self.version = [0] * len(components)
        # Joins (i, j) in the order in which they were made. The union of i and j is stored at index j.
        self.pairs: list[tuple[int, int]] = []
        self._find_near()

    def _find_near(self) -> None:
        """Find near components of each component that is left; make a new heap with the costs of these pairs."""
        ids = np.flatnonzero(self.is_left)
        points = np.ascontiguousarray(self.whitened[ids])
        found = Dense(points).nearest(points, min(_NEAR + 1, len(ids)))[0]
        a, b = np.repeat(ids, found.shape[1]), ids[found].ravel()
        pairs = np.unique(np.column_stack([np.minimum(a, b), np.maximum(a, b)])[a != b], axis=0)
        self.near: dict[int, set[int]] = {int(i): set() for i in ids}
        for i, j in pairs.tolist():
            self.near[i].add(j)
            self.near[j].add(i)
        self.heap = list(self._costs(pairs[:, 0], pairs[:, 1]))
        heapq.heapify(self.heap)

    def _costs(self, a: Ids, b: Ids) -> Iterator[tuple[float, int, int, int, int]]:
        """Yield an entry of the heap for each pair of components a, b (m,): cost, both indices, and their versions."""
        for cost, i, j in zip(self.of.join_costs(a, b, self.logs).tolist(), a.tolist(), b.tolist(), strict=True):
            yield cost, i, j, self.version[i], self.version[j]

    def join_cheapest(self) -> None:
        """Unite the pair of components of least cost, and add the costs of joins with the union to the heap.

        If the heap is empty, near pairs of the components that are left are searched first.
        """
        while True:
            if not self.heap:
                self._find_near()
            _, i, j, version, other = heapq.heappop(self.heap)
            if self.is_left[i] and self.is_left[j] and (version, other) == (self.version[i], self.version[j]):
                break
        self._unite(i, j)
        candidates = np.array(sorted(self.near[i]), dtype=np.int64)
        # A union has the near components of both of its parts. Only the nearest are kept, to limit the number of costs.
        if len(candidates) > 2 * _NEAR:
            distances = np.square(self.whitened[candidates] - self.whitened[i]).sum(axis=1)
            order = np.argsort(distances, kind="stable")
            for other in candidates[order[2 * _NEAR :]].tolist():
                self.near[i].discard(other)
                self.near[other].discard(i)
            candidates = np.sort(candidates[order[: 2 * _NEAR]])
        if len(candidates):
            first, second = np.minimum(candidates, i), np.maximum(candidates, i)
            for entry in self._costs(first, second):
                heapq.heappush(self.heap, entry)

    def _unite(self, i: int, j: int) -> None:
        """Replace component i by the union of i and j, in place, and remove j.

        The near components of j become near components of the union.
        """
        one, two = float(self.of.counts[i]), float(self.of.counts[j])
        share, shift = two / (one + two), self.of.means[j] - self.of.means[i]
        covariances = self.of.covariances
        covariances[i] = self.of.joined_covariances(np.array([i]), np.array([j]), np.array([share]))[0]
        self.of.means[i] += share * shift
        self.whitened[i] += share * (self.whitened[j] - self.whitened[i])
        self.of.counts[i] = one + two
        self.logs[i] = _log_determinants(covariances[i : i + 1], len(shift))[0]
        self.is_left[j] = False
        self.version[i] += 1
        self.pairs.append((j, i))
        for other in self.near.pop(j) - {i}:
            self.near[other].discard(j)
            self.near[other].add(i)
            self.near[i].add(other)
        self.near[i].discard(j)
