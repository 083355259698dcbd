"""t mixtures whose components share one scale matrix Σ: M-steps pool the scatter of all components.

Yet for the computation of costs each component has its own copy of the factor of Σ⁻¹, in all C·D² numbers if Σ is a
matrix.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import cached
from cprime.model.covariance import (
    DataScale,
    factors_along,
    factors_of_precisions,
    inverses,
    pooled,
    positive,
    repaired,
    scaled_along,
)
from cprime.model.own_covariance import FullCovariance, Spherical
from cprime.model.student_t import StudentT


@storable("model.StudentTTied")
@dataclass(frozen=True)
class StudentTTied(StudentT, FullCovariance):
    """t mixture with one full scale matrix; covariances (D, D): Σ [data unit²]."""

    covariance_type: ClassVar[str] = "tied"
    axes: ClassVar[str] = "DD"
    least_variances = None  # not defined for components that share one Σ

    @cached
    def _one_lower(self) -> NDArray[np.float64]:
        """Lower Cholesky factor of the common scale matrix Σ: (1, D, D)."""
        return repaired(self.covariances[np.newaxis])[1]

    @property
    def _lower(self) -> NDArray[np.float64]:
        return self._of_each(self._one_lower)

    @cached
    def factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        one = inverses(self._one_lower)
        return self._of_each(one), np.full(self.n_components, np.log(np.diagonal(one[0])).sum())

    @property
    def spread(self) -> NDArray[np.float64]:
        return self._of_each(self.covariances)

    def _of_each(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.broadcast_to(matrix, (self.n_components, *matrix.shape[-2:]))

    def _covariances_along(self, before: Self, share: float) -> NDArray[np.float64]:
        along: NDArray[np.float64] = factors_along(self._one_lower, before._one_lower, share)[0]
        return along

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        covariance = pooled(shares, second)
        covariance[np.diag_indices(self.n_features)] += self.reg_covar
        return repaired(covariance[np.newaxis], self.centers.dtype, scale.pool(shares))[0][0]

    def _precisions(self) -> dict[str, NDArray[np.float64]]:
        factors = factors_of_precisions(self._one_lower)[0]
        return {"precisions_": factors @ factors.T, "precisions_cholesky_": factors}

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._of_each(directions @ self.covariances @ directions.T)


@storable("model.StudentTTiedSpherical")
@dataclass(frozen=True)
class StudentTTiedSpherical(StudentT, Spherical):
    """t mixture with one spherical scale matrix; covariances: σ² of Σ = σ² I [data unit²], an array without axes."""

    covariance_type: ClassVar[str] = "tied_spherical"
    axes: ClassVar[str] = ""
    least_variances = None  # not defined for components that share one Σ

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
