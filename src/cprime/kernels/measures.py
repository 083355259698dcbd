"""Parameters of components for kernels: centers (cost: squared distance) or Gaussians (cost: −2 log density)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]


class Exact(NamedTuple):
    """Unrounded float64 parameters of C Gaussians, from which densities of rows with missing values are computed.

    offsets (C,): cost of a complete row that equals the mean of the component
    factors (C, D, D): A_c, where A_cᵀA_c is the precision; None if precisions are diagonal
    empty (C,): cost of a row without any observed value: −2 log π_c for the weight π_c, up to a constant
    """

    offsets: Doubles
    empty: Doubles
    factors: Doubles | None = None


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


# Components that kernels take: centers (C, D), whose costs are squared distances, or Gaussians.
Measure = Floats | GaussianParameters
