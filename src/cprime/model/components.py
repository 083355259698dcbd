"""What a search compares points with: centres, by squared distances, or Gaussians, by costs −2 log p(c, x) (31).

Both offer the verbs of `search.Components`, so that a search is written once.
"""

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels import Found
from cprime.kernels.arguments import Floats
from cprime.neighbors import exact_lists, least_lists, refined_lists

_CLOSED_FORM = 32768  # most components whose lists come from all C² values


class Centers:
    """Centres; the cost is the squared distance.

    steady: whether the points that they are compared with are those of before, whatever an M-step has done
    """

    squared_distances = True

    def __init__(self, centers: Floats, steady: bool = True):
        self.centers = centers
        self.steady = steady

    def changed(self, before: Floats) -> NDArray[np.bool_]:
        return (self.centers != before).any(axis=1)

    def reassign(
        self,
        points: Floats,
        lists: NDArray[np.int32],
        winners: NDArray[np.int32],
        factors: tuple[NDArray, NDArray] | None = None,
        active: NDArray[np.bool_] | None = None,
        known: Floats | None = None,
    ) -> tuple[NDArray[np.int32], Floats]:
        inside, outside = factors or (None, None)
        return kernels.reassign(points, self.centers, lists, winners, inside, outside, active=active, known=known)

    def best(self, points: Floats, n_kept: int, hint: NDArray[np.int32] | None = None) -> tuple[NDArray, Floats]:
        return kernels.nearest(points, self.centers, n_kept, hint=hint)

    def keep(
        self, points: Floats, lists: NDArray[np.int32], previous: NDArray[np.int32], n_kept: int
    ) -> tuple[NDArray, Floats]:
        return kernels.keep_nearest(points, self.centers, lists, previous, n_kept)

    def among(
        self,
        points: Floats,
        lists: NDArray[np.int32],
        previous: NDArray[np.int32],
        n_kept: int,
        extra: NDArray[np.int32] | None = None,
        evidence: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Found:
        return kernels.nearest_among(
            points, self.centers, lists, previous, n_kept, extra, evidence=evidence, sample_weight=sample_weight
        )

    def lists(self, n_neighbors: int, previous: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        return exact_lists(self.centers, n_neighbors, previous)

    def scale_of(self, costs: Floats) -> float:
        return float(costs.sum(dtype=np.float64))


class GaussianCosts:
    """Gaussians of their own covariances; the cost is −2 log p(c, x).

    covariances: (C, D) variances or (C, D, D)
    """

    squared_distances = False
    steady = False

    def __init__(self, gaussians: kernels.Gaussians, covariances: NDArray[np.float64]):
        self.gaussians = gaussians
        self.covariances = covariances

    @property
    def centers(self) -> Floats:
        return self.gaussians.means

    def changed(self, before: Floats) -> NDArray[np.bool_]:
        return np.ones(len(self.centers), dtype=bool)

    def reassign(
        self,
        points: Floats,
        lists: NDArray[np.int32],
        winners: NDArray[np.int32],
        factors: tuple[NDArray, NDArray] | None = None,
        active: NDArray[np.bool_] | None = None,
        known: Floats | None = None,
    ) -> tuple[NDArray[np.int32], Floats]:
        kept, costs = kernels.keep_best(points, self.gaussians, lists, winners[:, np.newaxis], 1)
        return kept[:, 0], costs[:, 0]

    def best(self, points: Floats, n_kept: int, hint: NDArray[np.int32] | None = None) -> tuple[NDArray, Floats]:
        return kernels.best(points, self.gaussians, n_kept)

    def keep(
        self, points: Floats, lists: NDArray[np.int32], previous: NDArray[np.int32], n_kept: int
    ) -> tuple[NDArray, Floats]:
        return kernels.keep_best(points, self.gaussians, lists, previous, n_kept)

    def among(
        self,
        points: Floats,
        lists: NDArray[np.int32],
        previous: NDArray[np.int32],
        n_kept: int,
        extra: NDArray[np.int32] | None = None,
        evidence: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Found:
        return kernels.best_among(
            points, self.gaussians, lists, previous, n_kept, extra, evidence=evidence, sample_weight=sample_weight
        )

    def lists(self, n_neighbors: int, previous: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """By the mean cost of c̃ for what c generates, i.e. by KL(c‖c̃) − log π_c̃ up to a constant, in closed form.

        From products of all C² pairs; beyond 32,768 components by the distances of means, from `previous` if there is
        any.
        """
        C = len(self.centers)
        if C > _CLOSED_FORM:
            if previous is None:
                return exact_lists(self.centers, n_neighbors)
            return refined_lists(self.centers, previous, n_neighbors)
        means = self.centers.astype(np.float64)
        means -= means.mean(axis=0)
        factors = self.gaussians.factors.astype(np.float64)
        if factors.ndim == 3:
            precisions = np.matmul(factors.transpose(0, 2, 1), factors)
            moments = self.covariances + means[:, :, np.newaxis] * means[:, np.newaxis]
            pulls = np.einsum("cij,cj->ci", precisions, means)
        else:
            precisions = np.square(factors)
            moments = self.covariances + np.square(means)
            pulls = precisions * means
        constants = self.gaussians.offsets + (pulls * means).sum(axis=1)
        left = np.column_stack([moments.reshape(C, -1), means, np.ones(C)])
        right = np.column_stack([precisions.reshape(C, -1), -2 * pulls, constants])
        return least_lists(lambda begin, end: kernels.products(left[begin:end], right), C, n_neighbors)

    def scale_of(self, costs: Floats) -> float:
        return float(costs.size * self.centers.shape[1])
