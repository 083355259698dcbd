"""Mixtures of probabilistic principal components (Tipping & Bishop 1999): factor analyzers with isotropic noise."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime.model.base import register
from cprime.model.factors import Factors


@register
@storable("model.PrincipalComponents")
@dataclass(frozen=True)
class PrincipalComponents(Factors):
    """Factor analyzers with isotropic noise; noise_variances (C, D): equal for all coordinates of a component."""

    covariance_type: ClassVar[str] = "ppca"
    scale_free: ClassVar[bool] = False

    def _n_noise(self) -> int:
        return self.n_components

    def _pooled(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.repeat(noise.mean(axis=1, keepdims=True), noise.shape[1], axis=1)
