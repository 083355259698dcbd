"""Gaussian components with variances of their own in every direction of the axes [E]."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime.model.covariance import of_empty, positive, scaled_beyond
from cprime.model.own_covariance import OwnCovariance


@dataclass(frozen=True)
class Diag(OwnCovariance):
    """covariances (C, D): variances [data unit²]."""

    full = False

    @property
    def _n_covariance_parameters(self) -> int:
        return self.centers.size

    @cached_property
    def _factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        factors = 1 / np.sqrt(self._spread())
        return factors, np.log(factors).sum(axis=1)

    def _spread(self) -> NDArray[np.float64]:
        return self.covariances

    def _covariances_beyond(self, before: Self, share: float) -> NDArray[np.float64]:
        return positive(scaled_beyond(self.covariances, before.covariances, share), self.centers.dtype)

    def _shaped(self, counts: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        return positive(of_empty(counts, np.maximum(second, 0) + self.reg_covar), self.centers.dtype)

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        return normal * np.sqrt(self._spread()[labels])
