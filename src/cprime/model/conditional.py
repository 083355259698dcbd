"""Conditional distributions of some columns x_m of a mixture, given the other columns x_o.

    p(x_m | x_o, c) = N(μ_m + B_c (x_o − μ_o), Σ_mm − B_c Σ_om),    B_c = Σ_mo Σ_oo⁻¹

Indices m and o select columns of means μ and covariances Σ of component c. The conditional covariance of a Gaussian
does not depend on x_o. Only the means and the weights of components depend on x_o; the weights are
π_c N(x_o; μ_o, Σ_oo), divided by their sum.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import by_pieces
from cprime._utils.values import replace
from cprime.kernels import Floats
from cprime.kernels.tables import Group, groups


@dataclass(frozen=True)
class Conditional:
    """Conditional distributions of M columns of a mixture, given the k others.

    given: mixture of the k known columns
    left: mixture of the M other columns, with the conditional covariances in place of their covariances
    slopes: the regression matrices B_c = Σ_mo Σ_oo⁻¹ (C, M, k), where o are the known and m the other columns; or two
    factors (C, M, H) and (C, H, k), whose product is B_c; empty if columns are independent
    """

    given: Any
    left: Any
    slopes: tuple[NDArray[np.float64], ...] = ()

    def means(self, X: Floats, ids: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return conditional means of the M other columns, (n, H, M), for each row and its H components `ids` (n, H).

        X (n, k): values of the k known columns
        """
        n, H = ids.shape
        flat = ids.reshape(-1)
        out = self.left.centers[flat].astype(np.float64)

        def move(group: Group) -> None:
            c, places = group
            out[places] += self._moved(X[places // H], c)

        if self.slopes:
            by_pieces(move, groups(flat, self.given.n_components))
        return out.reshape(n, H, self.left.n_features)

    def all_means(self, X: Floats) -> NDArray[np.float64]:
        """Return the conditional means of the M other columns, (n, C, M), for each row and all C components.

        X (n, k): values of the k known columns
        """
        out = np.repeat(self.left.centers[np.newaxis].astype(np.float64), len(X), axis=0)

        def move(c: int) -> None:
            out[:, c] += self._moved(X, c)

        if self.slopes:
            by_pieces(move, range(self.given.n_components))
        return out

    def _moved(self, X: Floats, c: int) -> NDArray[np.float64]:
        """Return the shift B_c (x_o − μ_o) (n, m) of the conditional mean of component c, with regression matrix B_c.

        X (n, k): values x_o of the k known columns    m: number of unknown columns
        """
        moved = np.subtract(X, self.given.centers[c], dtype=np.float64)
        for slope in reversed(self.slopes):
            moved = moved @ slope[c].T
        return moved

    def condition(self, x: Floats, weights: NDArray[np.float64]) -> Any:
        """Return the mixture of the other columns given the known columns of one row, x (k,).

        weights (C,): weights of the components given x
        """
        centers = self.all_means(x[np.newaxis])[0]
        return replace(self.left, centers=centers.astype(self.left.centers.dtype), weights=weights)


def others(columns: NDArray[np.intp], n_features: int) -> NDArray[np.intp]:
    """Return the indices, ascending, of all columns (0 … n_features − 1) that are not in `columns`."""
    return np.setdiff1d(np.arange(n_features), columns)
