"""Spherical k-means (cosine distance): points and centers of length 1 (Dhillon & Modha 2001).

Between unit vectors ‖x − μ‖² = 2 − 2 cos(x, μ), so every search for squared distances finds the center of greatest
cosine. Only the M-step differs: the center of least J is the mean, scaled to length 1.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.kernels import Dense, Floats, Rows
from cprime.model.scatter import Scatter
from cprime.model.tied_spherical import OF_DOUBLE, ROUNDING, Summed, TiedSpherical
from cprime.sources.kinds import described

_PIECE = 2**16  # number of coordinates of centers that are computed at a time; they fit into a cache


@storable("model.UnitCenters")
@dataclass(frozen=True)
class UnitCenters(TiedSpherical):
    """`TiedSpherical` mixture with equal weights, in which the rows of `centers` have length 1."""

    moves_to_means: ClassVar[bool] = False

    def recentred(
        self, counts: NDArray[np.float64], sums: NDArray[np.float64], squares: float, prior: Scatter | None = None
    ) -> tuple[Self, float]:
        """Return the model with centers S_c / ‖S_c‖, and the sum of squares about them; if S_c = 0, the center stays.

        sums (C, D): S_c = Σ w x with weights w    counts (C,): N_c = Σ w
        squares: sum of squares about the old centers μ_c, J = 2 Σ_c (N_c − S_c·μ_c)
        J falls by Σ_c ‖S_c‖ ‖μ_c^new − μ_c‖², which is computed without cancellation.
        """
        centers, gains = self.centers.copy(), np.zeros(len(counts))
        step = max(1, _PIECE // self.n_features)
        for begin in range(self.n_fixed, len(centers), step):  # in pieces that stay in a processor's cache
            rows = slice(begin, begin + step)
            centers[rows], lengths = directions(counts[rows], sums[rows], self.centers[rows])
            shift = np.subtract(centers[rows], self.centers[rows], dtype=np.float64)
            gains[rows] = lengths * _products(shift, shift)
        rest = squares - float(np.add.reduce(gains)) + OF_DOUBLE * squares
        return replace(self, centers=centers), max(rest, ROUNDING[centers.dtype] * squares)

    def beyond(self, before: Floats, shares: NDArray[np.float64]) -> Self:
        centers = Dense(super().beyond(before, shares).centers).normalized()[0].dense()
        centers[: self.n_fixed] = self.centers[: self.n_fixed]
        return replace(self, centers=centers)

    def centers_of(
        self, counts: NDArray[np.float64], sums: NDArray[np.float64], otherwise: Floats
    ) -> NDArray[np.float64]:
        """Return the centers S_c / ‖S_c‖ (n, D) of n clusters with weighted sums S_c (n, D) of their points.

        otherwise (n, D): centers of clusters with S_c = 0
        """
        return directions(counts, sums, otherwise)[0]

    def union_costs(self, a: Summed, b: Summed) -> NDArray[np.float64]:
        """Return by how much J, the weighted sum of squared distances, rises if clusters a and b are merged: (n,).

        a, b: sums Σ w (n,) and S = Σ w x (n, D) over the clusters' points x of length 1. The result is
        2 (‖S_a‖ + ‖S_b‖ − ‖S_a + S_b‖), because J = 2 Σ_c (Σ w − ‖S_c‖). To avoid cancellation, it is computed from the
        cosine of the angle between S_a and S_b: ‖S_a + S_b‖² is (‖S_a‖ + ‖S_b‖)² − ‖S_a‖ ‖S_b‖ (2 − 2 cos).
        """
        one, two = (np.sqrt(_products(sums, sums)) for sums in (a[1], b[1]))
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = a[1] / one[:, np.newaxis] - b[1] / two[:, np.newaxis]
            between = _products(apart, apart)
            both = np.sqrt(np.maximum(np.square(one + two) - one * two * between, 0))
            return np.where((one > 0) & (two > 0), 2 * one * two * between / (one + two + both), 0.0)

    def tangent(self, directions: NDArray[np.float64], ids: slice) -> NDArray[np.float64]:
        """Return directions (n, D) minus their projections on the n centers of the slice `ids`.

        Planes with these normals divide clusters in two.
        """
        centers = self.centers[ids].astype(np.float64)
        return directions - _products(directions, centers)[:, np.newaxis] * centers

    def exchange_factors(
        self, counts: NDArray, sums: NDArray | None, weight: float | NDArray
    ) -> tuple[NDArray, NDArray] | None:
        """Return factors of squared distances for the change of the error J if a point is reassigned and centers move.

        Returns two arrays (C,), for a point's own component and for others. Let S_b = Σ w x over the points of a
        component b, R = ‖S_b‖, and cos the cosine between point and center. A point of weight w that joins b lengthens
        S_b by √(R² + 2 w R cos + w²) − R = w cos + w² (1 − cos²)/2R + … So J rises by w d² (1 − (1 + cos)/2 · w/R),
        where d² = 2 − 2 cos is the squared distance to b. Likewise, J falls by more than w d² if a point leaves its
        component. The cosine in the factor is approximated by its mean in the component, R/N with N = Σ w.
        """
        if sums is None:
            return None
        lengths = np.sqrt(_products(sums, sums))
        cosines = lengths / np.maximum(counts, weight)
        return super().exchange_factors(lengths, None, weight * (1 + cosines) / 2)


def _products(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scalar products (n,) of the rows of `a` with the same rows of `b`."""
    return np.einsum("nd,nd->n", a, b)


def have_directions(lengths: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the mask (C,) of sums over points of length 1 that are more than rounding error.

    lengths (C,): lengths of the sums    counts (C,): total weights of their points
    """
    return lengths > np.finfo(np.float64).eps * counts


def directions(
    counts: NDArray[np.float64], sums: NDArray[np.float64], otherwise: Floats
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the directions S_c / ‖S_c‖ (C, D) and lengths ‖S_c‖ (C,) of sums S_c (C, D) over points of length 1.

    If S_c is only rounding error, judged by counts (C,), the row of `otherwise` replaces S_c / ‖S_c‖.
    """
    units, lengths = Dense(sums).normalized()
    held = have_directions(lengths, counts)
    if not held.all():
        return np.where(held[:, np.newaxis], units.array, otherwise), lengths
    return units.array.astype(np.float64, copy=False), lengths


def unit_rows(
    X: Rows,
    name: str,
    order: NDArray[np.int64] | None = None,
    first: int | NDArray[np.int64] = 0,
    weights: NDArray[np.float64] | None = None,
) -> Rows:
    """Return the rows scaled to length 1, in their original order or the given one.

    order: indices of the rows in the new order, or None    name: argument that errors name
    first: index of the first row in the data, or indices of all rows (n,), for error messages
    weights (n,): weights of the rows, in their original order

    Raises ValueError if a row of positive weight has only zeros, and so no direction.
    """
    rows, lengths = X.normalized(order)
    zeros = np.flatnonzero(lengths == 0)
    if len(zeros):
        zeros = zeros if order is None else np.sort(order[zeros])
        zeros = zeros if weights is None else zeros[weights[zeros] > 0]
    if len(zeros):
        numbers = first + zeros if isinstance(first, int) else first[zeros]
        raise ValueError(
            f"{name} must have no rows of zeros with metric='cosine', got {len(zeros)}: "
            f"{'row' if len(zeros) == 1 else 'rows'} {described([str(n) for n in numbers])}. "
            f"Leave such rows out, because they have no direction."
        )
    return rows
