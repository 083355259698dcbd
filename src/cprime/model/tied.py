"""Gaussian components that share one covariance matrix [E].

Points and means are whitened by it, L⁻¹ (x − origin) with Σ = L Lᵀ; what is left is the papers' mixture with σ² = 1,
and every search for squared distances serves.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.block import Block
from cprime.kernels.native import Floats
from cprime.model.base import (
    Scatter,
    Weights,
    expect_gaussians,
    log_weights,
    means_of,
    n_weights,
    new_weights,
    statistics_of,
)
from cprime.model.covariance import factors_beyond, inverses, repaired
from cprime.model.embedded import Embedded
from cprime.statistics import Statistics


@dataclass(frozen=True)
class Tied(Embedded):
    """Parameters Θ.

    centers (C, D) data units, of the data's dtype    covariances (D, D) [data unit²], float64
    reg_covar: what an M-step adds to the variances [data unit²]    weights (C,), None for 1/C each
    """

    centers: Floats
    covariances: NDArray[np.float64]
    reg_covar: float = 0.0
    weights: Weights = None

    scatter_shape = "matrix"
    scale = -0.5
    _steady = False

    @property
    def n_parameters(self) -> int:
        """Free parameters: C·D coordinates, one covariance matrix, and C − 1 weights where these are free."""
        return self.centers.size + self.n_features * (self.n_features + 1) // 2 + n_weights(self.weights)

    @cached_property
    def _lower(self) -> NDArray[np.float64]:
        return repaired(self.covariances[np.newaxis])[1][0]

    @cached_property
    def _whitening(self) -> NDArray[np.float64]:
        """L⁻¹, below it a row of zeros where weights are free."""
        inverse = inverses(self._lower[np.newaxis])[0]
        return inverse if self.weights is None else np.vstack([inverse, np.zeros(self.n_features)])

    @cached_property
    def _origin(self) -> NDArray[np.float64]:
        """Of the dtype of the centers, so that points and centers are moved by the same."""
        return self.centers.mean(axis=0, dtype=np.float64).astype(self.centers.dtype).astype(np.float64)

    @cached_property
    def _embedded(self) -> Floats:
        centers = (self.centers - self._origin) @ self._whitening.T
        if self._handicap is not None:
            centers[:, -1] = self._handicap
        return np.ascontiguousarray(centers, dtype=self.centers.dtype)

    @cached_property
    def log_scale(self) -> float:
        """max log π − ½ log |2πΣ|, the same for every component and point [nats]."""
        log_determinant = 2 * float(np.log(np.diagonal(self._lower)).sum())
        return float(log_weights(self.weights, self.n_components).max()) - 0.5 * (
            self.n_features * math.log(2 * math.pi) + log_determinant
        )

    def embed(self, X: Floats, before: Floats | None = None) -> Floats:
        dtype = self.centers.dtype
        return kernels.products(X, self._whitening.astype(dtype), self._origin.astype(dtype))

    def expect_all(self, block: Block) -> Statistics:
        D = self.n_features
        return expect_gaussians(
            block,
            block.embedded(self.embed),
            self._gaussians,
            self.centers,
            lambda found: (
                found.first[:, :D] @ self._lower.T + found.counts[:, np.newaxis] * self.centers,
                float(found.second[:, :D].sum()),
            ),
        )

    def maximise(self, statistics: Statistics, scatter: Scatter | None = None) -> Self:
        """M-step: means, π_c = N_c / N, and Σ = (T − Σ_c N_c (μ_c − m)(μ_c − m)ᵀ) / W, T being the scatter about m."""
        assert scatter is not None
        means = means_of(statistics, self.centers)
        shift = means - scatter.mean
        between = (statistics.counts[:, np.newaxis] * shift).T @ shift
        covariance = (np.asarray(scatter.squares) - between) / statistics.weight
        covariance[np.diag_indices(self.n_features)] += self.reg_covar
        covariance = (covariance + covariance.T) / 2
        return replace(
            self,
            centers=means.astype(self.centers.dtype),
            covariances=repaired(covariance[np.newaxis], self.centers.dtype)[0][0],
            weights=new_weights(self.weights, statistics),
        )

    def beyond(self, before: Self, share: float) -> Self:
        covariances = factors_beyond(self._lower[np.newaxis], before._lower[np.newaxis], share)[0]
        return replace(self, covariances=covariances, **self._means_beyond(before, share))

    def remembered(self, shares: NDArray[np.float64]) -> tuple[Statistics, Scatter]:
        mean = shares @ self.centers
        shift = self.centers - mean
        within = self.covariances - self.reg_covar * np.eye(self.n_features)
        scatter = Scatter(mean, within + (shares[:, np.newaxis] * shift).T @ shift, 1.0)
        return statistics_of(shares, self.centers, 0.0), scatter

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        return normal @ self._lower.T
