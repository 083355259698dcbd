"""The papers' mixture: one spherical variance shared by all components [L eq. 1-3], and equal or free weights.

    p(c) = 1/C or π_c        p(x | c) = (2πσ²)^(−D/2) exp(−‖x − μ_c‖² / 2σ²)

With equal weights and C′ = 1 it is k-means (Prop. 2).
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
    n_weights,
    new_weights,
    statistics_of,
)
from cprime.model.covariance import scaled_beyond
from cprime.model.embedded import Embedded
from cprime.statistics import Statistics


@dataclass(frozen=True)
class TiedSpherical(Embedded):
    """Parameters Θ.

    centers (C, D) data units, of the data's dtype    variance: σ² [data unit²]    weights (C,), None for 1/C each
    variance_floor: the least σ² an M-step may give [data unit²]; keeps the likelihood bounded where points coincide
    """

    centers: Floats
    variance: float
    variance_floor: float
    weights: Weights = None

    scatter_shape = "trace"

    @property
    def n_parameters(self) -> int:
        """Free parameters: C·D coordinates, one variance, and C − 1 weights where these are free."""
        return self.centers.size + 1 + n_weights(self.weights)

    @cached_property
    def log_scale(self) -> float:
        """log p(c, x) + cost/2σ² = max log π − (D/2) log 2πσ², the same for every component and point [nats]."""
        return float(log_weights(self.weights, self.n_components).max()) - self.n_features / 2 * math.log(
            2 * math.pi * self.variance
        )

    @property
    def scale(self) -> float:
        """−1/2σ², by which a squared distance becomes log p(c, x) less `log_scale` [nats per data unit²]."""
        return -0.5 / self.variance

    @property
    def covariances(self) -> float:
        return self.variance

    @cached_property
    def _embedded(self) -> Floats:
        if self._handicap is None:
            return self.centers
        return np.column_stack([self.centers, self._handicap.astype(self.centers.dtype)])

    def embed(self, X: Floats, before: Floats | None = None) -> Floats:
        if self._handicap is None:
            return X
        if before is not None and before.shape[1] == self.n_features + 1:
            return before
        return np.column_stack([X, np.zeros(len(X), dtype=X.dtype)])

    def expect_all(self, block: Block) -> Statistics:
        if self._handicap is not None:
            D = self.n_features
            return expect_gaussians(
                block,
                block.embedded(self.embed),
                self._gaussians,
                self.centers,
                lambda found: (
                    found.first[:, :D] + found.counts[:, np.newaxis] * self.centers,
                    float(found.second[:, :D].sum()),
                ),
            )
        exact = kernels.expect_all(block.X, self.centers, self.variance, block.sample_weight)
        return Statistics(**exact._asdict(), weight=block.weight)

    def with_variance(self, mean_square: float) -> Self:
        """The same centres with σ² = mean_square / D, `mean_square` being a mean of squared distances (14)."""
        return replace(self, variance=max(float(mean_square) / self.n_features, self.variance_floor))

    def maximise(self, statistics: Statistics, scatter: Scatter | None = None) -> Self:
        """M-step (6): μ_c = S_c / N_c, σ² = 1/(DW) Σ_nc w_n q_nc ‖x_n − μ_c^new‖²; a component without points stays."""
        model, squares = self.recentred(statistics, scatter)
        return replace(model.with_variance(squares / statistics.weight), weights=new_weights(self.weights, statistics))

    def recentred(self, statistics: Statistics, scatter: Scatter | None = None) -> tuple[Self, float]:
        """The new means, and the sum of squares about them [data unit²].

        That is the one about the old centres less Σ_c N_c ‖μ_c^new − μ_c‖², or, where that cancels, the scatter less
        Σ_c N_c ‖μ_c^new − mean‖²; of a difference that is rounding, the most that it may be.
        """
        origin, squares = None, float(statistics.squares)
        if scatter is not None and float(scatter.squares) < squares:
            origin, squares = scatter.mean, float(scatter.squares)
        centers, shift = kernels.means(statistics.counts, statistics.sums, self.centers, origin)
        own, double = (64 * float(np.finfo(dtype).eps) * squares for dtype in (self.centers.dtype, np.float64))
        rest = squares - float((statistics.counts * shift).sum()) + double
        return replace(self, centers=centers), max(rest, own)

    def beyond(self, before: Self, share: float) -> Self:
        variance = float(scaled_beyond(np.array(self.variance), np.array(before.variance), share))
        return replace(self, variance=max(variance, self.variance_floor), **self._means_beyond(before, share))

    def remembered(self, shares: NDArray[np.float64]) -> tuple[Statistics, Scatter]:
        mean, within = shares @ self.centers, self.n_features * self.variance
        between = float((shares * np.square(self.centers - mean).sum(axis=1)).sum())
        return statistics_of(shares, self.centers, within), Scatter(mean, within + between, 1.0)

    def log_likelihood(self, X: Floats) -> NDArray[np.float64]:
        if self._handicap is None:
            return self.log_scale + kernels.log_sum_exp(X, self.centers, self.variance)
        return super().log_likelihood(X)

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        return normal * math.sqrt(self.variance)


def variance_floor(centers: Floats) -> float:
    """The least variance that numbers as large as the starting centres can show: (ε · largest)² [data unit²]."""
    resolution = float(np.finfo(centers.dtype).eps) * max(float(centers.max()), -float(centers.min()))
    return max(resolution**2, 1e-60 if centers.dtype == np.float32 else 1e-200)
