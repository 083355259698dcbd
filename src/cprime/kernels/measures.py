"""Parameters of components for kernels: centers (cost: squared distance) or Gaussians (cost: −2 log density)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]


class Exact(NamedTuple):
    """Unrounded float64 parameters of C components, from which densities of rows with missing values are computed.

    offsets (C,): cost of a complete row that equals the mean of the component
    factors (C, D, D): A_c, where A_cᵀA_c is the precision; None if precisions are diagonal
    empty (C,): cost of a row without any observed value: −2 log π_c for the weight π_c, up to a constant
    normalizer: function of a number of columns that returns the part of the costs (C,) of t distributions at their
    means that depends on degrees of freedom; None for Gaussians
    """

    offsets: Doubles
    empty: Doubles
    factors: Doubles | None = None
    normalizer: Callable[[int], Doubles] | None = None


class GaussianParameters(NamedTuple):
    """Gaussians or t distributions. The cost of x is offset_c + ‖A_c (x − μ_c)‖² = −2 log p(c, x), up to a constant.

    This is eq. (31) of Lücke & Forster 2019.
    means (C, D): μ    factors: A_c, where A_cᵀA_c is the precision, as its diagonal (C, D) or lower triangle (C, D, D)
    offsets (C,): cost of a row that equals the mean of the component
    dof (C,): degrees of freedom ν of t distributions, whose cost is offset_c + (ν_c + D) log(1 + ‖A_c (x − μ_c)‖²/ν_c)
    exact: float64 parameters for marginal densities of rows with missing values, or None
    All arrays outside `exact` have the dtype of the data.
    """

    means: Floats
    factors: Floats
    offsets: Floats
    dof: Floats | None = None
    exact: Exact | None = None


def exact_parts(given: GaussianParameters) -> Exact:
    """Return the unrounded parameters of Gaussians; if none are given, compute them from the rounded parameters."""
    if given.exact is not None:
        return given.exact
    factors, offsets = given.factors.astype(np.float64), given.offsets.astype(np.float64)
    matrices = factors.ndim == 3
    diagonals = np.diagonal(factors, axis1=1, axis2=2) if matrices else factors
    empty = offsets - factors.shape[1] * np.log(2 * np.pi) + 2 * np.log(diagonals).sum(axis=1)
    return Exact(offsets, empty, factors if matrices else None)


class Tails:
    """t distributions of rows with missing values: costs that depend on the degrees of freedom ν.

    dof (C,): ν    normalizers (C, D + 1): part of the cost at the mean, for each number of observed values, minus that
    of complete rows
    """

    def __init__(self, given: GaussianParameters):
        assert given.dof is not None
        assert given.exact is not None
        assert given.exact.normalizer is not None
        self.dof = given.dof.astype(np.float64)
        each = [given.exact.normalizer(n) for n in range(given.means.shape[1] + 1)]
        self.normalizers = np.stack(each, axis=1) - each[-1][:, np.newaxis]

    def costs(self, squared: Doubles, observed: NDArray[np.bool_], ids: NDArray[np.int32] | slice) -> Doubles:
        """Return costs (n, m) minus those of Gaussians at the means, from squared Mahalanobis distances (n, m).

        observed (n, D): mask of the values that are not missing    ids: the m components
        """
        n, dof = np.count_nonzero(observed, axis=1), self.dof[ids]
        tails: Doubles = (dof + n[:, np.newaxis]) * np.log1p(squared / dof)
        return self.normalizers[ids][:, n].T + tails


def tails_of(given: GaussianParameters) -> Tails | None:
    """Return the `Tails` of t distributions; None for Gaussians."""
    return None if given.dof is None else Tails(given)


# Components that kernels take: centers (C, D), whose costs are squared distances, or Gaussians.
Measure = Floats | GaussianParameters
