"""k-means of directions, spherical k-means: points and centers of length 1 (Dhillon & Modha 2001).

Between unit vectors ‖x − μ‖² = 2 − 2 cos(x, μ), so every search for squared distances finds the center of greatest
cosine; only the M-step differs: the center that lowers J most is the mean, scaled to length 1.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime._storable import storable
from cprime._values import replace
from cprime.kernels import Floats, Rows
from cprime.model.scatter import Scatter
from cprime.model.tied_spherical import Summed, TiedSpherical, factors_of, rounding

# Rows shorter than these have squares, or are themselves, of fewer digits than their type has; powers of two.
_LEAST_LENGTH = {np.dtype(np.float32): 2.0**-100, np.dtype(np.float64): 2.0**-480}


@storable
@dataclass(frozen=True)
class UnitCenters(TiedSpherical):
    """As `TiedSpherical` with equal weights; the rows of `centers` have length 1."""

    def recentred(
        self, counts: NDArray[np.float64], sums: NDArray[np.float64], squares: float, prior: Scatter | None = None
    ) -> tuple[Self, float]:
        """S_c / ‖S_c‖, and the sum of squares about it; what has no direction stays.

        J = 2 Σ_c (N_c − S_c·μ_c) falls by Σ_c ‖S_c‖ ‖μ_c^new − μ_c‖², where nothing cancels.
        """
        centers = self.centers_of(counts, sums, self.centers).astype(self.centers.dtype)
        shift = np.square(np.subtract(centers, self.centers, dtype=np.float64)).sum(axis=1)
        gain = float((np.linalg.norm(sums, axis=1) * shift).sum())
        own, double = rounding(squares, centers)
        return replace(self, centers=centers), max(squares - gain + double, own)

    def centers_of(
        self, counts: NDArray[np.float64], sums: NDArray[np.float64], otherwise: Floats
    ) -> NDArray[np.float64]:
        """S_c / ‖S_c‖."""
        lengths = np.linalg.norm(sums, axis=1)
        held = lengths > np.finfo(np.float64).eps * counts
        return np.where(held[:, np.newaxis], sums / np.where(held, lengths, 1)[:, np.newaxis], otherwise)

    def union_costs(self, a: Summed, b: Summed) -> NDArray[np.float64]:
        """2 (‖S_a‖ + ‖S_b‖ − ‖S_a + S_b‖), since J = 2 Σ_c (N_c − ‖S_c‖); by the angle, so nothing cancels.

        With d² = 2 − 2 cos of the two directions ‖S_a + S_b‖² is (‖S_a‖ + ‖S_b‖)² − ‖S_a‖ ‖S_b‖ d².
        """
        one, two = (np.linalg.norm(sums, axis=1) for sums in (a[1], b[1]))
        with np.errstate(divide="ignore", invalid="ignore"):
            between = np.square(a[1] / one[:, np.newaxis] - b[1] / two[:, np.newaxis]).sum(axis=1)
            both = np.sqrt(np.maximum(np.square(one + two) - one * two * between, 0))
            return np.where((one > 0) & (two > 0), 2 * one * two * between / (one + two + both), 0.0)

    def tangent(self, directions: NDArray[np.float64], ids: slice) -> NDArray[np.float64]:
        """Without what lies along the center."""
        centers = self.centers[ids].astype(np.float64)
        return directions - (directions * centers).sum(axis=1, keepdims=True) * centers

    def exchange_factors(self, counts: NDArray, sums: NDArray | None, weight: float) -> tuple[NDArray, NDArray] | None:
        """A point that arrives lengthens S_b by √(R² + 2 w R cos + w²) − R = w cos + w² (1 − cos²)/2R + …, R = ‖S_b‖.

        J then rises by w d² (1 − (1 + cos)/2 · w/R), d² = 2 − 2 cos, and falls likewise by more than w d² where it
        leaves; cos is that of the component's mean, R/N.
        """
        if sums is None:
            return None
        lengths = np.linalg.norm(sums, axis=1)
        cosines = lengths / np.maximum(counts, weight)
        return factors_of(lengths, weight * (1 + cosines) / 2, self.centers.dtype)


def unit_rows(X: Rows, name: str, reuse: bool = False) -> Rows:
    """The rows scaled to length 1, in their dtype, on request in their memory; ValueError if one has no direction."""
    lengths = np.sqrt(X.squares())
    least = _LEAST_LENGTH[X.dtype]
    if (lengths < least).any():  # longer first, which is exact
        X = X.divided(np.where(lengths < least, least, 1))
        lengths = np.sqrt(X.squares())
    if not lengths.all():
        raise ValueError(f"{name} must have no rows of zeros with metric='cosine', got {int((lengths == 0).sum())}.")
    with np.errstate(invalid="ignore"):  # of numbers that are not finite, which whoever reads all rows refuses
        return X.divided(lengths, reuse)
