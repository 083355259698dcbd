"""Gaussian components with covariance matrices of their own [E; L eq. 28-31]."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime.model.covariance import factors_beyond, inverses, of_empty, repaired
from cprime.model.own_covariance import OwnCovariance


@dataclass(frozen=True)
class Full(OwnCovariance):
    """covariances (C, D, D) [data unit²]."""

    full = True

    @property
    def _n_covariance_parameters(self) -> int:
        return self.centers.size * (self.n_features + 1) // 2

    @cached_property
    def _lower(self) -> NDArray[np.float64]:
        return repaired(self.covariances)[1]

    @cached_property
    def _factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        factors = inverses(self._lower)
        return factors, np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)

    def _spread(self) -> NDArray[np.float64]:
        return self.covariances

    def _covariances_beyond(self, before: Self, share: float) -> NDArray[np.float64]:
        return factors_beyond(self._lower, before._lower, share)

    def _shaped(self, counts: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        covariances = of_empty(counts, second)
        D = self.n_features
        covariances[:, np.arange(D), np.arange(D)] += self.reg_covar
        return repaired(covariances, self.centers.dtype)[0]

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.empty_like(normal)
        for c in np.unique(labels):
            out[labels == c] = normal[labels == c] @ self._lower[c].T
        return out
