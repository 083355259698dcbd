"""Families with one covariance for all components (tied), for rows with missing values.

Each component has a copy of the covariance, because costs of rows with missing values are computed from each
component's marginal density.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.declared import Positive
from cprime._utils.storable import storable
from cprime.execution.block import ActiveSet, Block
from cprime.model.base import winner_error
from cprime.model.covariance import DataScale, pooled, positive, repaired
from cprime.model.own_covariance import FullCovariance, Spherical


@storable("model.PooledSpherical")
@dataclass(frozen=True)
class PooledSpherical(Spherical):
    """Spherical Gaussians with one common variance; covariances (C,): C copies of this variance [data unit²]."""

    covariance_type: ClassVar[str] = "tied_spherical"
    attribute_names: ClassVar[tuple[str, ...]] = (*Spherical.attribute_names, "variance_")
    declared: ClassVar[Mapping[str, Any]] = {"variance_": Positive}
    axes: ClassVar[str] = ""

    @property
    def variance(self) -> float:
        return float(self.covariances[0])

    def error_of(self, block: Block, kept: ActiveSet) -> float:
        """Return J, the weighted sum of squared distances of points to the means of their best components [data unit²].

        The distances are over the observed values. kept: active sets, best component first
        """
        return winner_error(block, self.centers, kept.winners.copy())

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        """Return C copies of the common variance (C,), which is at least `reg_covar`.

        shares (C,): share of the points in each component
        second (C, D): mean of (x − μ_c)² over the points x of each component, for every column
        """
        variance = np.maximum(pooled(shares, second).mean(keepdims=True), self.reg_covar)
        return np.repeat(
            positive(variance, self.centers.dtype, scale.pool(shares).average_columns()), self.n_components
        )

    def attributes(self) -> dict[str, Any]:
        variance = self.variance
        found = {"covariances_": variance, "precisions_": 1 / variance, "precisions_cholesky_": 1 / np.sqrt(variance)}
        return {**found, "variance_": variance}


@storable("model.PooledFull")
@dataclass(frozen=True)
class PooledFull(FullCovariance):
    """Gaussians with one common covariance matrix; covariances (C, D, D): C copies of this matrix [data unit²]."""

    covariance_type: ClassVar[str] = "tied"
    axes: ClassVar[str] = "DD"

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        covariance = pooled(shares, second) + self.reg_covar * np.eye(self.n_features)
        covariances, _ = repaired(covariance[np.newaxis], self.centers.dtype, scale.pool(shares))
        return np.repeat(covariances, self.n_components, axis=0)

    def attributes(self) -> dict[str, Any]:
        return {name: value[0] for name, value in super().attributes().items()}
