"""Components as searches use them: objects that compute the costs of components for points, and neighbor lists.

A model family only has to define the costs of candidate components for given rows. From this, the base class
`Components` provides all methods that searches need. Centers and Gaussians use faster kernels instead. This module
depends on no model and on no search. A lower cost is better. A component is not in its own neighbor list.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Dense, Floats, GaussianParameters, Measure, Rows, SearchResult
from cprime.kernels.offered import among_offered, least_offered

# Costs of Gaussians are scaled down if numbers that are squared in them exceed this, so that sums do not overflow.
_SQUARED_SUMS = 2.0**480
# Up to this number C of components, neighbor lists are computed from all C² distances or costs; for more components
# this would take too long, and lists are found by approximate searches.
EXACT_LISTS = 32768
# Number of neighbor lists that are processed at a time, to limit memory.
_BLOCK = 65536
# Number of distances or costs that are computed at a time, to limit memory.
_BLOCK_VALUES = 2**24
# If lists contain all C components, and C exceeds eight times this number, only this number of first entries of a list
# are sorted by distance, to save time.
_FIRST = 33
# `refined_lists` evaluates the neighbors of this number of a component's nearest neighbors.
_EXPANDED = 32

Ids = NDArray[np.int32]


class Components:
    """Base class of C components (centers or densities) with centers (C, D). A subclass defines the method `costs`.

    squared_distances: whether costs are the squared distances of points to centers
    steady: whether costs are squared distances, and M-steps do not change the space in which they are computed
    scattered: whether the best component of a point may be far from the components in its active set. This is so for
    subspaces that intersect.
    snapshot: arrays of the parameters that determine the costs, one row for each component. The method `changed`
    compares them with later parameters. An empty tuple means that all components may change.
    """

    squared_distances: ClassVar[bool] = False
    steady: bool = False
    scattered: ClassVar[bool] = False
    centers: Floats
    snapshot: tuple[NDArray, ...] = ()

    def costs(self, points: Rows, ids: Ids) -> Floats:
        """Return the costs of m components for each point, in the points' dtype: (n, m).

        ids (n, m): indices of these components
        """
        raise TypeError(f"{type(self).__name__} must say what components cost points.")

    def forget(self) -> None:
        """Delete cached arrays that are as large as the parameters; they are computed again if needed."""

    def best(self, points: Rows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        """Return the ids (n, H) int32 of the H = n_kept best of all components for every point, and their costs (n, H).

        The components of a point are sorted by (cost, id).

        hint (n, H): probably good components, which may speed up the search
        """
        every = np.arange(len(self.centers), dtype=np.int32)
        return least_offered(self.costs, points, np.broadcast_to(every, (len(points), len(every))), n_kept)[:2]

    def reassign(
        self,
        points: Rows,
        lists: Ids,
        winners: Ids,
        sample_weight: NDArray[np.float64] | None = None,
        active: NDArray[np.bool_] | None = None,
        known: Floats | None = None,
    ) -> tuple[Ids, Floats]:
        """Return the best component of every point among its current one and this one's neighbors, and its cost.

        Both results have shape (n,).
        winners (n,): current component of each point    lists (C, G): G neighbors of each component, padded with −1
        sample_weight (n,): weights of the points, or None
        active (C,): mask of components whose points are compared; all other points keep their component and cost. None
        compares all.    known (n,): current costs of the points, needed with `active`
        """
        kept, costs = self.top_k(points, lists, winners[:, np.newaxis], 1)
        return kept[:, 0], costs[:, 0]

    def top_k(self, points: Rows, lists: Ids, previous: Ids, n_kept: int) -> tuple[Ids, Floats]:
        """Return the n_kept best of each point's candidate components: ids and costs, (n, n_kept) each.

        Candidates of a point are its previous active set, and the neighbor list of the first component in this set.
        previous (n, H): previous active sets    lists (C, G): G neighbors of each component, padded with −1
        """
        listed = np.where(np.minimum.accumulate(lists >= 0, axis=1), lists, np.int32(-1))[previous[:, 0]]
        return least_offered(self.costs, points, np.column_stack([previous, listed]), n_kept)[:2]

    def search_lists(
        self,
        points: Rows,
        lists: Ids,
        previous: Ids,
        n_kept: int,
        extra: Ids | None = None,
        evidence: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> SearchResult:
        """Return a `SearchResult` with the n_kept best of each point's candidate components and their costs.

        Candidates of a point are its previous active set, the neighbor lists of all components in this set, and the
        point's extra candidates.
        previous (n, H): previous active sets    lists (C, G): G neighbors of each component, padded with −1
        extra (n, E): further candidates, or None
        evidence: whether the result has sums of distances, for the mean distances in eq. (8) of Forster & Lücke 2018
        sample_weight (n,): weights of the points in these sums, or None
        """
        return among_offered(self.costs, points, lists, previous, n_kept, extra, evidence, sample_weight)

    def lists(self, n_neighbors: int, previous: Ids | None = None) -> Ids:
        """Return neighbor lists: for each component, ids of the nearest other components, nearest first.

        The shape is (C, min(n_neighbors, C) − 1), because n_neighbors counts the component itself.
        previous: neighbor lists that the last call returned, which can speed up the search, or None
        """
        return exact_lists(self.centers, n_neighbors, previous)

    def changed(self, before: tuple[NDArray, ...]) -> NDArray[np.bool_]:
        """Return the mask (C,) of components whose costs may have changed since the snapshot `before` of parameters."""
        C, now = len(self.centers), self.snapshot
        if not now or len(before) != len(now):
            return np.ones(C, dtype=bool)
        changed = np.zeros(C, dtype=bool)
        for new, old in zip(now, before, strict=True):
            changed |= (new != old).reshape(C, -1).any(axis=1)
        return changed


class KernelComponents(Components):
    """Base class of components whose costs are computed by compiled kernels.

    measure: parameters of the components as kernels take them: centers (C, D), or Gaussians
    """

    measure: Measure

    def best(self, points: Rows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        return points.nearest(self.measure, n_kept, hint=hint)

    def top_k(self, points: Rows, lists: Ids, previous: Ids, n_kept: int) -> tuple[Ids, Floats]:
        return points.top_k(self.measure, lists, previous, n_kept)

    def search_lists(
        self,
        points: Rows,
        lists: Ids,
        previous: Ids,
        n_kept: int,
        extra: Ids | None = None,
        evidence: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> SearchResult:
        return points.search_lists(
            self.measure, lists, previous, n_kept, extra, evidence=evidence, sample_weight=sample_weight
        )


class Centers(KernelComponents):
    """Centers (C, D) as components. The cost of a center for a point is the squared distance between the two.

    inside, outside (C,): factors >= 0 of squared distances in `reassign` (for exchange steps): of a center for its own
    points, and for all other points. None for no factors.
    """

    squared_distances: ClassVar[bool] = True

    def __init__(
        self, centers: Floats, inside: Floats | None = None, outside: Floats | None = None, steady: bool = True
    ):
        self.centers = self.measure = centers
        self.inside, self.outside, self.steady = inside, outside, steady
        self.snapshot = (centers,) if inside is None or outside is None else (centers, inside, outside)

    def reassign(
        self,
        points: Rows,
        lists: Ids,
        winners: Ids,
        sample_weight: NDArray[np.float64] | None = None,
        active: NDArray[np.bool_] | None = None,
        known: Floats | None = None,
    ) -> tuple[Ids, Floats]:
        """Return each point's best center by squared distance times factor, and the squared distance to it: (n,) each.

        Arguments are those of `Components.reassign`. With factors, only a limited share of a center's points may be
        reassigned to a center that is farther away. Points of weight 0 do not count in this share, and get the nearest
        center.
        """
        factors = self.inside, self.outside
        if self.inside is None or sample_weight is None or (sample_weight > 0).all():
            return points.reassign(self.centers, lists, winners, *factors, active=active, known=known)
        labels, costs = points.reassign(self.centers, lists, winners)
        heavy = sample_weight > 0
        known = None if known is None else known[heavy]
        labels[heavy], costs[heavy] = points[heavy].reassign(
            self.centers, lists, winners[heavy], *factors, active=active, known=known
        )
        return labels, costs


class GaussianCosts(KernelComponents):
    """Gaussians with individual covariances. The cost of component c for point x is −2 log p(c, x) up to a constant.

    This is eq. (31) of Lücke & Forster 2019.

    covariances: variances (C, D) or covariance matrices (C, D, D)
    """

    def __init__(self, gaussians: GaussianParameters, covariances: NDArray[np.float64]):
        self.measure = self.gaussians = gaussians
        self.centers = gaussians.means
        self.covariances = covariances

    def lists(self, n_neighbors: int, previous: Ids | None = None) -> Ids:
        """Return neighbor lists: for each component c, other components c̃ of least mean cost for points drawn from c.

        The result has ids (C, min(n_neighbors, C) − 1), least mean cost first; c is not in its own list.
        The mean cost has a closed form, KL(c‖c̃) − log π_c̃ up to constants (KL: Kullback-Leibler divergence, π:
        weights), and is computed for all C² pairs. For more than 32,768 components, neighbors are found by distances of
        means instead, starting from the lists `previous` if given.
        """
        C = len(self.centers)
        if C > EXACT_LISTS:
            if previous is None:
                return exact_lists(self.centers, n_neighbors)
            return refined_lists(self.centers, previous, n_neighbors)[0]
        left, right = self.mean_costs()
        return least_lists(lambda begin, end: Dense(left[begin:end]).products(right), C, n_neighbors)

    def mean_costs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return L and R of C rows: L Rᵀ (C, C) has the mean costs of each component's points under all components.

        Both are finite, because costs that would overflow are scaled down.
        """
        C, means = len(self.centers), self.centers.astype(np.float64)
        means -= means.mean(axis=0)
        factors, offsets = self.gaussians.factors.astype(np.float64), self.gaussians.offsets
        reach = np.abs(factors).max() * max(np.abs(means).max(), np.abs(self.covariances).max() ** 0.5)
        # Costs are multiplied by a power of two, so that their sums do not overflow. This does not change their order.
        if reach > _SQUARED_SUMS:
            shrink = 2.0 ** -np.ceil(np.log2(reach / _SQUARED_SUMS))
            factors, offsets = factors * shrink, offsets * shrink**2
        if factors.ndim == 3:
            precisions = np.matmul(factors.transpose(0, 2, 1), factors)
            moments = self.covariances + means[:, :, np.newaxis] * means[:, np.newaxis]
            pulls = np.einsum("cij,cj->ci", precisions, means)
        else:
            precisions = np.square(factors)
            moments = self.covariances + np.square(means)
            pulls = precisions * means
        constants = offsets + (pulls * means).sum(axis=1)
        left = np.column_stack([moments.reshape(C, -1), means, np.ones(C)])
        return left, np.column_stack([precisions.reshape(C, -1), -2 * pulls, constants])


def without_self(lists: NDArray[np.int32], first: int = 0) -> NDArray[np.int32]:
    """Return neighbor lists (m, G − 1) from `lists` (m, G): each component is removed from its own list.

    From a list that does not contain its own component, the last entry is removed. Entries −1 (none) are at the end.
    first: id of the component to which the first row belongs
    """
    out = np.empty((len(lists), max(lists.shape[1] - 1, 0)), dtype=np.int32)
    ids = np.arange(first, first + len(lists), dtype=np.int32)[:, np.newaxis]
    for begin in range(0, len(lists), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        own = lists[rows] == ids[rows]
        if (own.sum(axis=1) == 1).all() and (lists[rows] >= 0).all():  # faster than the general case
            out[rows] = lists[rows][~own].reshape(out[rows].shape)
            continue
        order = np.argsort(np.where(own, np.int8(2), lists[rows] < 0), axis=1, kind="stable")
        out[rows] = np.take_along_axis(np.where(own, np.int32(-1), lists[rows]), order, axis=1)[:, :-1]
    return out


def with_self(lists: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return neighbor lists (C, G) with each component prepended to its own list: the sets G_c of Forster & Lücke 2018.

    lists (C, G − 1): neighbors of each component
    """
    return np.column_stack([np.arange(len(lists), dtype=np.int32), lists])


def put_first(lists: NDArray[np.int32], rows: NDArray, ids: NDArray[np.int32]) -> None:
    """Insert component ids[i] at the front of the neighbor list lists[rows[i]] and remove the last entry, in place.

    A list is not changed if it already contains this component, or if it is the component's own list. If a row occurs
    several times, its components are inserted one after the other.
    """
    while len(rows):
        _, first = np.unique(rows, return_index=True)
        there, one = rows[first], ids[first]
        new = (lists[there] != one[:, np.newaxis]).all(axis=1) & (there != one)
        lists[there[new]] = np.column_stack([one[new], lists[there[new], :-1]])
        rows, ids = np.delete(rows, first), np.delete(ids, first)


def exact_lists(centers: Floats, n_neighbors: int, previous: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    """Return ids of the nearest other components of each component, nearest first: (C, min(n_neighbors, C) − 1).

    All C² distances between centers are computed. This is the update of lists in Algorithm 1 of Forster & Lücke 2018.
    If lists contain all components, and these are more than 264, only the 33 nearest ones of each list, the component
    itself included, are sorted by distance; the others are sorted by id.
    previous: earlier lists, which affect only the time, or None
    """
    C, n = len(centers), min(n_neighbors, len(centers))
    H = _FIRST if n == C > 8 * _FIRST else n
    given = previous is not None and previous.shape[1] == n - 1 and not (previous < 0).any()
    hint = with_self(previous[:, : H - 1]) if given and previous is not None else None
    kept = Dense(centers).nearest(centers, H, hint=hint)[0]
    if n > H:
        others = np.ones((C, C), dtype=bool)
        np.put_along_axis(others, kept, False, axis=1)
        kept = np.column_stack([kept, np.nonzero(others)[1].reshape(C, n - H).astype(np.int32)])
    return without_self(kept)


def refined_lists(centers: Floats, lists: NDArray[np.int32], n_neighbors: int) -> tuple[NDArray[np.int32], int]:
    """Return new neighbor lists: the nearest among each component's present neighbors and their neighbors.

    lists (C, G − 1): ids of the G − 1 current neighbors of each component, without the component itself
    Returns ids (C, min(n_neighbors, C) − 1), and the number of evaluated distances between two components. This takes
    at most O(C G² D) time.
    """
    n_distances = 0
    n = min(n_neighbors, len(centers))
    expanded = np.ascontiguousarray(lists[:, :_EXPANDED])
    ids = np.arange(len(lists), dtype=np.int32)
    out = np.empty((len(lists), n - 1), dtype=np.int32)
    for begin in range(0, len(lists), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        rest = np.ascontiguousarray(lists[rows, _EXPANDED:])
        near = np.column_stack([ids[rows], expanded[rows]])
        found = Dense(centers[rows]).search_lists(centers, expanded, near, n, rest)
        out[rows] = without_self(found.kept, begin)
        n_distances += int(found.counts.sum(dtype=np.int64)) - len(found.counts)  # without those of equal components
    return out, n_distances


def least_lists(values: Callable[[int, int], NDArray], n_components: int, n_neighbors: int) -> NDArray[np.int32]:
    """Return for each component c the other components of least value in row c of a (C, C) table.

    values: function that computes the rows [begin, end) of the table
    Returns ids (C, min(n_neighbors, C) − 1), those of least value first.
    """
    n = min(n_neighbors, n_components) - 1
    out = np.empty((n_components, n), dtype=np.int32)
    if n == 0:
        return out
    step = max(1, _BLOCK_VALUES // n_components)
    for begin in range(0, n_components, step):
        end = min(begin + step, n_components)
        block = values(begin, end)
        block[np.arange(end - begin), np.arange(begin, end)] = np.inf
        nearest = np.argpartition(block, n - 1, axis=1)[:, :n] if n < n_components else np.argsort(block)[:, :n]
        order = np.lexsort((nearest, np.take_along_axis(block, nearest, axis=1)))
        out[begin:end] = np.take_along_axis(nearest, order, axis=1)
    return out
