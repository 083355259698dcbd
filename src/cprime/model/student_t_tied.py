"""t mixtures whose components share one scale matrix Σ: M-steps pool the scatter of all components.

If Σ is a matrix, points are whitened, so that costs are computed from squared distances of whitened points and centers.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.execution.block import Block
from cprime.kernels import GaussianParameters, joined
from cprime.model.base import expect_gaussians
from cprime.model.covariance import DataScale, pooled, positive, scaled_along, within
from cprime.model.interface import Expected, Responsibilities
from cprime.model.own_covariance import OwnCovariance, OwnMoments, Spherical
from cprime.model.student_t import StudentT, StudentTMoments
from cprime.model.tied import Whitened
from cprime.neighbors.components import GaussianCosts


@dataclass(frozen=True)
class WhitenedOwn(Whitened, OwnCovariance):
    """Gaussians with one covariance matrix for all components, whose moments have weights that do not sum to 1 per row.

    Moments are `OwnMoments` whose second moment is one matrix (D, D): the weighted sum over all points of
    (x − o)(x − o)ᵀ, with the mean o of the centers.
    """

    full: ClassVar[bool] = True
    least_variances = None  # not defined for components that share one Σ

    @cached
    def factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Factors of the precisions of whitened points, which are ones (C, D), and log |L⁻¹| (C,), where Σ = L Lᵀ."""
        log_determinant = float(np.log(np.diagonal(self._inverse)).sum())
        return np.ones(self.centers.shape), np.full(self.n_components, log_determinant)

    @cached
    def gaussians(self) -> GaussianParameters:
        """Parameters of the densities of whitened points, for kernels."""
        centers = self.embedded_centers
        offsets = within(self._offsets - self._offsets.min(), centers.dtype)
        return GaussianParameters(centers, np.ones_like(centers), offsets)

    def components(self) -> GaussianCosts:
        return GaussianCosts(self.gaussians, np.ones(self.centers.shape))

    def summarise(self, block: Block, shares: Responsibilities) -> OwnMoments:
        q = shares.responsibilities
        counts, sums = block.X.accumulate(shares.ids, q, block.sample_weight, n_components=self.n_components)
        weights = np.ones(len(block)) if q is None else q.sum(axis=1)
        if block.sample_weight is not None:
            weights *= block.sample_weight
        return OwnMoments(counts, sums, self._scatter(block, weights))

    def _scatter(self, block: Block, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ_n weights_n (x_n − o)(x_n − o)ᵀ (D, D) over the rows of a block, with the mean o of all centers."""
        origin = self._origin[np.newaxis].astype(self.centers.dtype)
        every = np.zeros((len(block), 1), dtype=np.int32)
        scatter: NDArray[np.float64] = block.X.moments(origin, every, None, weights, full=True)[2][0]
        return scatter

    def _second_about(self, means: NDArray[np.float64], moments: OwnMoments, total: float) -> NDArray[np.float64]:
        return self._within(moments.counts, means, moments.second, self._origin) / total

    def hold_centers(self, moments: OwnMoments, prior: None = None) -> tuple[OwnMoments, None]:
        second = self._scatter_held(moments, moments.second, self._origin)
        return replace(super().hold_centers(moments)[0], second=second), None

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[OwnMoments, None]:
        sums = shares[:, np.newaxis] * self.centers.astype(np.float64)
        return OwnMoments(shares, sums, self._scatter_about(self._origin, shares)), None


@storable("model.StudentTTied")
@dataclass(frozen=True)
class StudentTTied(StudentT, WhitenedOwn):  # type: ignore[misc]  # moments are those of t mixtures
    """t mixture with one full scale matrix; covariances (D, D): Σ [data unit²]."""

    covariance_type: ClassVar[str] = "tied"

    def expect_all(self, block: Block) -> Expected:
        """Return the result of an exact E-step of a block; rows are whitened in pieces, to limit memory."""
        pieces = self._whitened_pieces(block)
        found = joined(points.respond(self.gaussians, weights) for points, weights in pieces)
        sums = found.first @ self._lower.T + found.counts[:, np.newaxis] * self.centers
        weighted = OwnMoments(found.counts, sums, self._scatter(block, found.row_weights))
        return expect_gaussians(block, found, StudentTMoments(found.shares, weighted, found.logs), self.error_of)


@storable("model.StudentTTiedSpherical")
@dataclass(frozen=True)
class StudentTTiedSpherical(StudentT, Spherical):
    """t mixture with one spherical scale matrix; covariances: σ² of Σ = σ² I [data unit²], an array without axes."""

    covariance_type: ClassVar[str] = "tied_spherical"
    axes: ClassVar[str] = ""
    least_variances = None  # not defined for components that share one Σ
    n_singular = 0

    @property
    def spread(self) -> NDArray[np.float64]:
        return np.full(self.centers.shape, float(self.covariances))

    def _covariances_along(self, before: Self, share: float) -> NDArray[np.float64]:
        along = scaled_along(np.atleast_1d(self.covariances), np.atleast_1d(before.covariances), share)
        return positive(along, self.centers.dtype)[0]

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        variance = np.maximum(pooled(shares, second), 0).mean(keepdims=True) + self.reg_covar
        return np.asarray(positive(variance, self.centers.dtype, scale.pool(shares).average_columns())[0])

    def attributes(self) -> dict[str, Any]:
        found = super().attributes()
        return {name: value if name == "dof_" else float(value) for name, value in found.items()}
