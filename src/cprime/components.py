"""Components as a search uses them: they return the cost of each component for a point, lower is better.

A family of components only has to define the costs of rows and candidates; `Components` then provides all that
searches need. Centers and Gaussians use faster kernels. Independent of models and searches.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Dense, Floats, GaussianParameters, Measure, Rows, SearchResult
from cprime.kernels.offered import among_offered, least_offered
from cprime.neighbors import EXACT_LISTS, exact_lists, least_lists, refined_lists

_SQUARED_SUMS = 2.0**480  # largest number for which float64 can hold sums of many squares

Ids = NDArray[np.int32]


class Components:
    """Base of C components with centers (C, D) in the space of the points. A subclass defines `costs`.

    squared_distances: whether costs are the squared distances of points to centers
    steady: whether, in addition, M-steps leave the space in which distances are computed unchanged
    scattered: whether a point's best component may be far from its active set, as with subspaces that cross
    """

    squared_distances: ClassVar[bool] = False
    steady: bool = False
    scattered: ClassVar[bool] = False
    centers: Floats

    def costs(self, points: Rows, ids: Ids) -> Floats:
        """Return the costs of components ids (n, m) for the points: (n, m), of the points' dtype."""
        raise TypeError(f"{type(self).__name__} must say what components cost points.")

    def best(self, points: Rows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        """Return every point's n_kept best of all components, sorted by (cost, id): (n, H) int32, and their costs.

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
        """Return for every point the best of its current component and that one's neighbors, and its cost: (n,) each.

        winners (n,): current components    lists (C, G): neighbor lists, padded by −1
        active (C,): only points of these components are reassigned; all others have the cost `known` (n,)
        """
        kept, costs = self.keep(points, lists, winners[:, np.newaxis], 1)
        return kept[:, 0], costs[:, 0]

    def keep(self, points: Rows, lists: Ids, previous: Ids, n_kept: int) -> tuple[Ids, Floats]:
        """Return the n_kept best of K(n) (`previous`) and of the neighbor list of its first component, with costs."""
        listed = np.where(np.minimum.accumulate(lists >= 0, axis=1), lists, np.int32(-1))[previous[:, 0]]
        return least_offered(self.costs, points, np.column_stack([previous, listed]), n_kept)[:2]

    def among(
        self,
        points: Rows,
        lists: Ids,
        previous: Ids,
        n_kept: int,
        extra: Ids | None = None,
        evidence: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> SearchResult:
        """Find the n_kept best of K(n), the neighbor lists of all components in K(n), and `extra` candidates.

        evidence: whether to also return the terms that equation (8) averages
        """
        return among_offered(self.costs, points, lists, previous, n_kept, extra, evidence, sample_weight)

    def lists(self, n_neighbors: int, previous: Ids | None = None) -> Ids:
        """Return the nearest neighbors of every component without itself: (C, min(n_neighbors, C) − 1)."""
        return exact_lists(self.centers, n_neighbors)

    @property
    def snapshot(self) -> tuple[NDArray, ...]:
        """Return the arrays with which `changed` compares in a later pass."""
        return ()

    def changed(self, before: tuple[NDArray, ...]) -> NDArray[np.bool_]:
        """Return the mask (C,) of components whose costs may have changed since the snapshot `before`."""
        return np.ones(len(self.centers), dtype=bool)

    def scale_of(self, costs: Floats) -> float:
        """Return the scale for an excess over the least possible costs (n,): their sum, or its expected value."""
        return float(costs.size * self.centers.shape[1])


class KernelComponents(Components):
    """Base of components whose costs kernels compute, by `measure`."""

    measure: Measure

    def best(self, points: Rows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        return points.nearest(self.measure, n_kept, hint=hint)

    def keep(self, points: Rows, lists: Ids, previous: Ids, n_kept: int) -> tuple[Ids, Floats]:
        return points.keep(self.measure, lists, previous, n_kept)

    def among(
        self,
        points: Rows,
        lists: Ids,
        previous: Ids,
        n_kept: int,
        extra: Ids | None = None,
        evidence: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> SearchResult:
        return points.among(
            self.measure, lists, previous, n_kept, extra, evidence=evidence, sample_weight=sample_weight
        )


class Centers(KernelComponents):
    """Centers; the cost is the squared distance."""

    squared_distances: ClassVar[bool] = True

    def __init__(self, centers: Floats, steady: bool = True):
        self.centers = self.measure = centers
        self.steady = steady

    @property
    def snapshot(self) -> tuple[NDArray, ...]:
        return (self.centers,)

    def changed(self, before: tuple[NDArray, ...]) -> NDArray[np.bool_]:
        if len(before) != len(self.snapshot):
            return super().changed(before)
        changed = (self.centers != before[0]).any(axis=1)
        for now, then in zip(self.snapshot[1:], before[1:], strict=True):
            changed |= now != then
        return changed

    def reassign(
        self,
        points: Rows,
        lists: Ids,
        winners: Ids,
        sample_weight: NDArray[np.float64] | None = None,
        active: NDArray[np.bool_] | None = None,
        known: Floats | None = None,
    ) -> tuple[Ids, Floats]:
        return points.reassign(self.centers, lists, winners, active=active, known=known)

    def lists(self, n_neighbors: int, previous: Ids | None = None) -> Ids:
        return exact_lists(self.centers, n_neighbors, previous)

    def scale_of(self, costs: Floats) -> float:
        return float(costs.sum(dtype=np.float64))


class Reweighted(Centers):
    """Centers whose squared distances are multiplied by factors when a point's component is compared with neighbors.

    inside (C,): factors for a point's current component    outside (C,): factors for any other    both >= 0
    """

    def __init__(self, centers: Floats, inside: Floats, outside: Floats):
        super().__init__(centers)
        self.inside, self.outside = inside, outside

    @property
    def snapshot(self) -> tuple[NDArray, ...]:
        return self.centers, self.inside, self.outside

    def reassign(
        self,
        points: Rows,
        lists: Ids,
        winners: Ids,
        sample_weight: NDArray[np.float64] | None = None,
        active: NDArray[np.bool_] | None = None,
        known: Floats | None = None,
    ) -> tuple[Ids, Floats]:
        """Reassign points by scaled distances; weight 0 does not count in the share that gets a farther one."""
        heavy = None if sample_weight is None or (sample_weight > 0).all() else sample_weight > 0
        if heavy is None:
            return points.reassign(self.centers, lists, winners, self.inside, self.outside, active=active, known=known)
        labels, costs = points.reassign(self.centers, lists, winners)
        factors, known = (self.inside, self.outside), None if known is None else known[heavy]
        labels[heavy], costs[heavy] = points[heavy].reassign(
            self.centers, lists, winners[heavy], *factors, active=active, known=known
        )
        return labels, costs


class GaussianCosts(KernelComponents):
    """Gaussians with individual covariances; the cost is −2 log p(c, x) (31), up to a constant.

    covariances: (C, D) variances or (C, D, D)
    """

    def __init__(self, gaussians: GaussianParameters, covariances: NDArray[np.float64]):
        self.measure = self.gaussians = gaussians
        self.centers = gaussians.means
        self.covariances = covariances

    def lists(self, n_neighbors: int, previous: Ids | None = None) -> Ids:
        """Return neighbor lists by the mean cost of c̃ for points from c: KL(c‖c̃) − log π_c̃ + const., in closed form.

        Computed for all C² pairs; beyond 32,768 components by the distances of means, by refining `previous` if given.
        """
        C = len(self.centers)
        if C > EXACT_LISTS:
            if previous is None:
                return exact_lists(self.centers, n_neighbors)
            return refined_lists(self.centers, previous, n_neighbors)
        means = self.centers.astype(np.float64)
        means -= means.mean(axis=0)
        factors, offsets = self.gaussians.factors.astype(np.float64), self.gaussians.offsets
        reach = np.abs(factors).max() * max(np.abs(means).max(), np.abs(self.covariances).max() ** 0.5)
        if reach > _SQUARED_SUMS:  # scale all costs by one power of two, which keeps their order
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
        right = np.column_stack([precisions.reshape(C, -1), -2 * pulls, constants])
        return least_lists(lambda begin, end: Dense(left[begin:end]).products(right), C, n_neighbors)
