"""Tied spherical mixture with a fixed variance: MacKay's soft k-means of stiffness β = 1/2σ².

    r_nc ∝ exp(−β ‖x_n − μ_c‖²)    (responsibilities)

This mixture differs from `TiedSpherical` only in the M-step, which leaves σ² unchanged.
"""

from dataclasses import dataclass
from typing import Self

from cprime._utils.storable import storable
from cprime.model.scatter import Scatter
from cprime.model.tied_spherical import SphericalMoments, TiedSpherical


@storable("model.Stiff")
@dataclass(frozen=True)
class FixedVariance(TiedSpherical):
    """Parameters Θ of a tied spherical mixture with a fixed variance; M-steps change only the centers."""

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: C·D coordinates."""
        return self.centers.size

    def maximise(self, moments: SphericalMoments, prior: Scatter | None = None) -> Self:
        return self.recentred(moments.counts, moments.sums, moments.squares, prior)[0]
