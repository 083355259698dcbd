"""The papers' mixture: equal weights, one spherical variance shared by all components [L eq. 1-3].

    p(c) = 1/C        p(x | c) = (2πσ²)^(−D/2) exp(−‖x − μ_c‖² / 2σ²)

With C′ = 1 it is k-means (Prop. 2). Owns log p(c, x) from squared distances and the M-step from additive
statistics; knows nothing of points, of searches or of how the statistics were gathered.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import means
from cprime.kernels.native import Floats
from cprime.statistics import Statistics


class Spread(NamedTuple):
    """Σ_n w_n ‖x_n − origin‖² of all data [data unit²]; origin (D,)."""

    origin: NDArray[np.float64]
    squares: float


@dataclass(frozen=True)
class TiedSpherical:
    """Parameters Θ.

    centers (C, D) data units, of the data's dtype    variance: σ² [data unit²]
    variance_floor: the least σ² an M-step may give [data unit²]; keeps the likelihood bounded where points coincide
    """

    centers: Floats
    variance: float
    variance_floor: float

    @property
    def n_components(self) -> int:
        return self.centers.shape[0]

    @property
    def n_features(self) -> int:
        return self.centers.shape[1]

    @property
    def n_parameters(self) -> int:
        """Free parameters: C·D coordinates and one variance."""
        return self.centers.size + 1

    @property
    def log_scale(self) -> float:
        """log p(c, x) + ‖x − μ_c‖²/2σ² = −log C − (D/2) log 2πσ², the same for every component and point [nats]."""
        return -math.log(self.n_components) - self.n_features / 2 * math.log(2 * math.pi * self.variance)

    @property
    def scale(self) -> float:
        """−1/2σ², by which a squared distance becomes log p(c, x) less `log_scale` [nats per data unit²]."""
        return -0.5 / self.variance

    def with_variance(self, mean_square: float) -> Self:
        """The same centres with σ² = mean_square / D, `mean_square` being a mean of squared distances (14)."""
        return replace(self, variance=max(float(mean_square) / self.n_features, self.variance_floor))

    def maximise(self, statistics: Statistics, spread: Spread | None = None) -> tuple[Self, float]:
        """M-step (6): μ_c = S_c / N_c, σ² = 1/(DW) Σ_nc w_n q_nc ‖x_n − μ_c^new‖²; a component without points stays.

        Returns the new parameters and the sum of squares about the new centres [data unit²]: the one about the old
        centres less Σ_c N_c ‖μ_c^new − μ_c‖², or, where that cancels, the spread less Σ_c N_c ‖μ_c^new − origin‖².
        """
        origin, squares = None, statistics.squares
        if spread is not None and spread.squares < squares:
            origin, squares = spread
        centers, shift = means(statistics.counts, statistics.sums, self.centers, origin)
        squares = max(squares - float((statistics.counts * shift).sum()), 0.0)
        return replace(self, centers=centers).with_variance(squares / statistics.weight), squares


def variance_floor(centers: Floats) -> float:
    """The least variance that numbers as large as the starting centres can show: (ε · largest)² [data unit²]."""
    return max((float(np.finfo(centers.dtype).eps) * float(np.abs(centers).max())) ** 2, 1e-200)
