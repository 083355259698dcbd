"""Degrees of freedom ν of t distributions: what they solve, and what they add to a density.

All is computed so that nothing cancels where ν is large: at 10⁹ a t distribution is a Gaussian.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

LEAST, MOST = 0.1, 1e9  # that an M-step gives
_LARGE = 50.0  # from which on four terms of Stirling's series are all of it
_STEPS = 9  # at most
_CLOSE = 1e-12  # of the logarithm of what is solved: a step from there leaves nothing

Doubles = NDArray[np.float64]


def gap(x: Doubles) -> Doubles:
    """log x − ψ(x) for x > 0: falls from ∞ to 0."""
    square = 1 / np.square(x)
    series = (0.5 + (1 / 12 - square * (1 / 120 - square / 252)) / x) / x
    with np.errstate(invalid="ignore"):
        return np.where(x < _LARGE, np.log(x) - digamma(np.minimum(x, _LARGE)), series)


def solved(target: Doubles) -> Doubles:
    """ν of log(ν/2) − ψ(ν/2) = target, or the end of [0.1, 10⁹] that is next to it; target >= 0, of any shape.

    With x = ν/2 the left side is (3x + 1)/(x (6x + 1)) within 2 % (Minka: Estimating a Gamma distribution, 2002). That
    says where to start, and what slope its logarithm has over log x: each step leaves 2 % of the error.
    """
    target = np.asarray(target, dtype=np.float64)
    least, most = gap(np.array([MOST, LEAST]) / 2)
    wanted = np.clip(target, least, most)
    x = (3 - wanted + np.sqrt(np.square(3 - wanted) + 24 * wanted)) / (12 * wanted)
    for _ in range(_STEPS):
        off = np.log(gap(x) / wanted)
        x = x * np.exp(off / (1 + 6 * x / ((6 * x + 1) * (6 * x + 2))))
        if np.abs(off).max(initial=0.0) <= _CLOSE:
            break
    return np.where(target >= most, LEAST, np.where(target <= least, MOST, np.clip(2 * x, LEAST, MOST)))


def _stirling(x: Doubles) -> Doubles:
    """log Γ(x) − (x − ½) log x + x − ½ log 2π, of x that is large."""
    square = 1 / np.square(x)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x


def log_normalizer(dof: Doubles, n_features: int) -> Doubles:
    """By how much −2 log of the greatest density exceeds that of the Gaussian of the same Σ: D log(ν/2) −
    2 log Γ((ν + D)/2) + 2 log Γ(ν/2), which goes to 0.
    """
    x, a = np.asarray(dof, dtype=np.float64) / 2, n_features / 2
    far = np.maximum(x, _LARGE)
    large = 2 * a - 2 * (far + a - 0.5) * np.log1p(a / far) - 2 * (_stirling(far + a) - _stirling(far))
    return np.where(x < _LARGE, 2 * (a * np.log(x) - gammaln(x + a) + gammaln(x)), large)
