"""Gaussian components with one variance each, the same in every direction: diagonal ones with equal entries."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime.model.covariance import of_empty, positive
from cprime.model.diag import Diag


@dataclass(frozen=True)
class Spherical(Diag):
    """covariances (C,): variances [data unit²]."""

    @property
    def _n_covariance_parameters(self) -> int:
        return self.n_components

    def _spread(self) -> NDArray[np.float64]:
        return np.repeat(self.covariances[:, np.newaxis], self.n_features, axis=1)

    def _shaped(self, counts: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        variances = np.maximum(second, 0).mean(axis=1) + self.reg_covar
        return positive(of_empty(counts, variances), self.centers.dtype)
