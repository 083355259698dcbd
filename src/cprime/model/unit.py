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
from cprime.kernels import Rows
from cprime.model.base import Scatter
from cprime.model.tied_spherical import TiedSpherical


@storable
@dataclass(frozen=True)
class UnitCenters(TiedSpherical):
    """As `TiedSpherical` with equal weights; the rows of `centers` have length 1."""

    def recentred(
        self, counts: NDArray[np.float64], sums: NDArray[np.float64], squares: float, prior: Scatter | None = None
    ) -> tuple[Self, float]:
        """S_c / ‖S_c‖, and the sum of squares about it, 2 Σ_c (N_c − ‖S_c‖); what has no direction stays."""
        lengths = np.linalg.norm(sums, axis=1)
        held = lengths > np.finfo(np.float64).eps * counts
        directions = sums / np.where(held, lengths, 1)[:, np.newaxis]
        centers = np.where(held[:, np.newaxis], directions, self.centers).astype(self.centers.dtype)
        along = (sums * centers).sum()
        return replace(self, centers=centers), max(2 * float(counts.sum() - along), 0.0)


def unit_rows(X: Rows, name: str) -> Rows:
    """The rows scaled to length 1, in their dtype; ValueError where one has no direction."""
    lengths = np.sqrt(X.squares())
    if not lengths.all():
        raise ValueError(f"{name} must have no rows of zeros with metric='cosine', got {int((lengths == 0).sum())}.")
    with np.errstate(invalid="ignore"):  # of numbers that are not finite, which whoever reads all rows refuses
        return X.divided(lengths)
