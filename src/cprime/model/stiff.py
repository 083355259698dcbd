"""The papers' mixture with a variance that no M-step changes: MacKay's soft k-means of stiffness β = 1/2σ².

    r_nc ∝ exp(−β ‖x_n − μ_c‖²)

Owns only that σ² stays; all else is `TiedSpherical`.
"""

import math
from dataclasses import dataclass
from typing import Self

from cprime.model.tied_spherical import TiedSpherical


@dataclass(frozen=True)
class Stiff(TiedSpherical):
    """Parameters Θ, of which M-steps change the centers alone; a variance that is not a number is found once."""

    @property
    def n_parameters(self) -> int:
        """Free parameters: C·D coordinates."""
        return self.centers.size

    def with_variance(self, mean_square: float) -> Self:
        """The same parameters; σ² = mean_square / D (14) only where there is none yet."""
        return super().with_variance(mean_square) if math.isnan(self.variance) else self
