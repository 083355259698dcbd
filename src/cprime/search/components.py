"""What a search compares points with: centres, by squared distances, or Gaussians, by costs −2 log p(c, x) (31).

Both offer the same verbs, so that a search is written once. Points are the rows that a model makes of the data for
this (`Chunk.points`); `centers` lie among them.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.arguments import Floats
from cprime.kernels.native_local import Found
from cprime.search.lists import exact_lists, least_lists, refined_lists

_CLOSED_FORM = 32768  # most components whose lists come from all C² values


class Components(Protocol):
    """C components and the verbs of a search; costs are any numbers of which the least is the best."""

    centers: Floats  # (C, D), where components lie among the points

    def best(self, points: Floats, n_kept: int, hint: NDArray[np.int32] | None = None) -> tuple[NDArray, Floats]:
        """The n_kept best of all for every point, by (cost, id): (n, H) int32, and their costs."""
        ...

    def keep(
        self, points: Floats, lists: NDArray[np.int32], previous: NDArray[np.int32], n_kept: int
    ) -> tuple[NDArray, Floats]:
        """The n_kept best of K(n) and of the list of the first in K(n)."""
        ...

    def among(
        self,
        points: Floats,
        lists: NDArray[np.int32],
        previous: NDArray[np.int32],
        n_kept: int,
        extra: NDArray[np.int32] | None = None,
        evidence: bool = False,
    ) -> Found:
        """The n_kept best of K(n), of the lists of all in K(n), and of extra ones."""
        ...

    def lists(self, n_neighbors: int, previous: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """The neighbours of every component, itself left out: (C, min(n_neighbors, C) − 1)."""
        ...

    def dissimilarity(self, costs: Floats) -> NDArray:
        """What is averaged over the points that a component wins to find its neighbours (8)."""
        ...

    def scale_of(self, costs: Floats) -> float:
        """What an excess over the least possible costs (n,) is compared with: their sum, or what it would be."""
        ...


class Centers:
    """Centres; the cost is the squared distance."""

    def __init__(self, centers: Floats, n_threads: int | None = None):
        self.centers = centers
        self.n_threads = n_threads

    def best(self, points: Floats, n_kept: int, hint: NDArray[np.int32] | None = None) -> tuple[NDArray, Floats]:
        return kernels.nearest(points, self.centers, n_kept, hint=hint, n_threads=self.n_threads)

    def keep(
        self, points: Floats, lists: NDArray[np.int32], previous: NDArray[np.int32], n_kept: int
    ) -> tuple[NDArray, Floats]:
        return kernels.keep_nearest(points, self.centers, lists, previous, n_kept, n_threads=self.n_threads)

    def among(
        self,
        points: Floats,
        lists: NDArray[np.int32],
        previous: NDArray[np.int32],
        n_kept: int,
        extra: NDArray[np.int32] | None = None,
        evidence: bool = False,
    ) -> Found:
        return kernels.nearest_among(
            points, self.centers, lists, previous, n_kept, extra, evidence=evidence, n_threads=self.n_threads
        )

    def lists(self, n_neighbors: int, previous: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        return exact_lists(self.centers, n_neighbors, self.n_threads, previous)

    def dissimilarity(self, costs: Floats) -> NDArray:
        return np.sqrt(costs, dtype=np.float64)

    def scale_of(self, costs: Floats) -> float:
        return float(costs.sum(dtype=np.float64))


class GaussianCosts:
    """Gaussians of their own covariances; the cost is −2 log p(c, x).

    covariances: (C, D) variances or (C, D, D)
    """

    def __init__(self, gaussians: kernels.Gaussians, covariances: NDArray[np.float64], n_threads: int | None = None):
        self.gaussians = gaussians
        self.covariances = covariances
        self.n_threads = n_threads

    @property
    def centers(self) -> Floats:
        return self.gaussians.means

    def best(self, points: Floats, n_kept: int, hint: NDArray[np.int32] | None = None) -> tuple[NDArray, Floats]:
        return kernels.best(points, self.gaussians, n_kept, n_threads=self.n_threads)

    def keep(
        self, points: Floats, lists: NDArray[np.int32], previous: NDArray[np.int32], n_kept: int
    ) -> tuple[NDArray, Floats]:
        return kernels.keep_best(points, self.gaussians, lists, previous, n_kept, n_threads=self.n_threads)

    def among(
        self,
        points: Floats,
        lists: NDArray[np.int32],
        previous: NDArray[np.int32],
        n_kept: int,
        extra: NDArray[np.int32] | None = None,
        evidence: bool = False,
    ) -> Found:
        return kernels.best_among(
            points, self.gaussians, lists, previous, n_kept, extra, evidence=evidence, n_threads=self.n_threads
        )

    def lists(self, n_neighbors: int, previous: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """By the mean cost of c̃ for what c generates, i.e. by KL(c‖c̃) − log π_c̃ up to a constant, in closed form.

        From products of all C² pairs; beyond 32,768 components by the distances of means, from `previous` if there is
        any.
        """
        C = len(self.centers)
        if C > _CLOSED_FORM:
            if previous is None:
                return exact_lists(self.centers, n_neighbors, self.n_threads)
            return refined_lists(self.centers, previous, n_neighbors, self.n_threads)
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
        return least_lists(
            lambda begin, end: kernels.products(left[begin:end], right, n_threads=self.n_threads), C, n_neighbors
        )

    def dissimilarity(self, costs: Floats) -> NDArray:
        return costs.astype(np.float64)

    def scale_of(self, costs: Floats) -> float:
        return float(costs.size * self.centers.shape[1])
