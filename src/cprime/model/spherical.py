"""Gaussian components with one variance each, equal in all directions: diagonal covariances with equal entries."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.model.base import register
from cprime.model.covariance import DataScale, of_empty, positive
from cprime.model.diag import Diag


@register
@storable("model.Spherical")
@dataclass(frozen=True)
class Spherical(Diag):
    """Gaussian mixture with spherical covariances; covariances (C,): variances [data unit²]."""

    covariance_type: ClassVar[str] = "spherical"
    sklearn_type: ClassVar[str] = "spherical"
    axes: ClassVar[str] = "C"
    scale_free: ClassVar[bool] = False

    @property
    def spread(self) -> NDArray[np.float64]:
        return np.repeat(self.covariances[:, np.newaxis], self.n_features, axis=1)

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        variances = np.maximum(second, 0).mean(axis=1) + self.reg_covar
        return positive(of_empty(shares, variances), self.centers.dtype, scale.average_columns())

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        return replace(self, centers=self._places(columns))
