"""Degrees of freedom ν of t distributions: the equation for ν in the M-step, and the terms of the log-density with ν.

All formulas avoid cancellation for large ν; at ν = 10⁹ a t distribution is a Gaussian.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

# Range to which M-steps clip the degrees of freedom ν; at the upper end a t distribution is a Gaussian.
LEAST, MOST = 0.1, 1e9
# For arguments of at least this size, four terms of Stirling's series are exact up to rounding.
_LARGE = 50.0
# Maximum number of Newton steps for ν; each reduces the error to about 2 % of its previous value.
_STEPS = 9
# Newton steps end once the logarithms of both sides of the equation for ν differ by at most this, hardly more than by
# rounding.
_CLOSE = 1e-12

Doubles = NDArray[np.float64]


def gap(x: Doubles) -> Doubles:
    """Return h(x) = log x − ψ(x), of which the equation for ν consists; h falls from ∞ to 0.    ψ: digamma function"""
    square = 1 / np.square(x)
    series = (0.5 + (1 / 12 - square * (1 / 120 - square / 252)) / x) / x
    with np.errstate(invalid="ignore"):
        return np.where(x < _LARGE, np.log(x) - digamma(np.minimum(x, _LARGE)), series)


def solved(target: Doubles) -> Doubles:
    """Return degrees of freedom ν with log(ν/2) − ψ(ν/2) = target >= 0 (any shape), or the nearest end of [0.1, 10⁹].

    ψ is the digamma function. With x = ν/2 the left side is (3x + 1)/(x (6x + 1)) within 2 % (Minka: Estimating a Gamma
    distribution, 2002). This approximation gives the first x. Newton steps then solve the logarithm of the equation for
    log x, with the slope of the approximation. So each step reduces the error to about 2 % of its previous value.
    """
    target = np.asarray(target, dtype=np.float64)
    least, greatest = gap(np.array([MOST, LEAST]) / 2)
    wanted = np.clip(target, least, greatest)
    x = (3 - wanted + np.sqrt(np.square(3 - wanted) + 24 * wanted)) / (12 * wanted)
    for _ in range(_STEPS):
        off = np.log(gap(x) / wanted)
        x = x * np.exp(off / (1 + 6 * x / ((6 * x + 1) * (6 * x + 2))))
        if np.abs(off).max(initial=0.0) <= _CLOSE:
            break
    return np.where(target >= greatest, LEAST, np.where(target <= least, MOST, np.clip(2 * x, LEAST, MOST)))


def _stirling(x: Doubles) -> Doubles:
    """Return log Γ(x) − (x − ½) log x + x − ½ log 2π for large x: the error of Stirling's formula, by its series."""
    square = 1 / np.square(x)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x


def log_normalizer(dof: Doubles, n_features: int) -> Doubles:
    """Return the part of −2 log p(μ) of t distributions that depends on their degrees of freedom ν.

    This part is the difference to a Gaussian with the same Σ and μ in D dimensions:
    D log(ν/2) − 2 log Γ((ν + D)/2) + 2 log Γ(ν/2). For large ν it tends to 0.
    """
    x, a = np.asarray(dof, dtype=np.float64) / 2, n_features / 2
    far = np.maximum(x, _LARGE)
    large = 2 * a - 2 * (far + a - 0.5) * np.log1p(a / far) - 2 * (_stirling(far + a) - _stirling(far))
    return np.where(x < _LARGE, 2 * (a * np.log(x) - gammaln(x + a) + gammaln(x)), large)
