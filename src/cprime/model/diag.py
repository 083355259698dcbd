"""Gaussian components with diagonal covariances: one variance for each component and column."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.kernels import Rows
from cprime.model.base import register
from cprime.model.conditional import Conditional, others
from cprime.model.covariance import DataScale, of_empty, positive, scaled_along
from cprime.model.own_covariance import OwnCovariance


@register
@storable("model.Diag")
@dataclass(frozen=True)
class Diag(OwnCovariance):
    """Gaussian mixture with diagonal covariances; covariances (C, D): variances [data unit²]."""

    covariance_type: ClassVar[str] = "diag"
    sklearn_type: ClassVar[str] = "diag"
    axes: ClassVar[str] = "CD"
    full: ClassVar[bool] = False
    scale_free: ClassVar[bool] = True

    @cached
    def factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        factors = 1 / np.sqrt(self.spread)
        return factors, np.log(factors).sum(axis=1)

    def _covariances_along(self, before: Self, share: float) -> NDArray[np.float64]:
        return positive(scaled_along(self.covariances, before.covariances, share), self.centers.dtype)

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        return positive(of_empty(shares, np.maximum(second, 0) + self.reg_covar), self.centers.dtype, scale)

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        return normal * np.sqrt(self.spread[labels])

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        scaled = self._moved(X, labels) * self.factors[0][labels]
        return np.sqrt(np.einsum("nd,nd->n", scaled, scaled))

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        return replace(self, centers=self._places(columns), covariances=self.covariances[:, columns])

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        return Conditional(self.marginal(columns), self.marginal(others(columns, self.n_features)))
