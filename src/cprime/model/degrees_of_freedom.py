"""Degrees of freedom ν of t distributions: what they solve, and what they add to a density.

All is computed so that nothing cancels where ν is large: at 10⁹ a t distribution is a Gaussian.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

LEAST, MOST = 0.1, 1e9  # that an M-step gives
_LARGE = 50.0  # from which on four terms of Stirling's series are all of it
_STEPS = 60  # of Newton's method, at most; some five are needed
_CLOSE = 1e-13  # of log ν

Doubles = NDArray[np.float64]


def gap(x: Doubles) -> Doubles:
    """log x − ψ(x) for x > 0: falls from ∞ to 0."""
    square = 1 / np.square(x)
    series = (0.5 + (1 / 12 - square * (1 / 120 - square / 252)) / x) / x
    with np.errstate(invalid="ignore"):
        return np.where(x < _LARGE, np.log(x) - digamma(np.minimum(x, _LARGE)), series)


def _slope(x: Doubles) -> Doubles:
    """The derivative of log `gap` by log x: −1 at both ends, and near it between."""
    square = 1 / np.square(x)
    series = -(0.5 + (1 / 6 - square * (1 / 30 - square / 42)) / x) / x
    falls = np.where(x < _LARGE, 1 - x * polygamma(1, np.minimum(x, _LARGE)), series)
    return falls / gap(x)


def solved(target: Doubles) -> Doubles:
    """ν of log(ν/2) − ψ(ν/2) = target, or the end of [0.1, 10⁹] that is next to it; target >= 0, of any shape.

    Newton's method on logarithms, where the curve is almost straight, halves the interval wherever it would leave it.
    """
    target = np.asarray(target, dtype=np.float64)
    low, high = np.full(target.shape, np.log(LEAST / 2)), np.full(target.shape, np.log(MOST / 2))
    wanted = np.clip(target, gap(np.exp(high)), gap(np.exp(low)))
    at = np.clip(np.log((3 + np.sqrt(9 + 12 * wanted)) / (12 * wanted)), low, high)
    for _ in range(_STEPS):
        x = np.exp(at)
        off = np.log(gap(x) / wanted)
        low, high = np.where(off >= 0, at, low), np.where(off <= 0, at, high)
        step = at - off / _slope(x)
        new = np.where((step >= low) & (step <= high), step, (low + high) / 2)
        done = np.abs(new - at) <= _CLOSE * (1 + np.abs(new))
        at = new
        if done.all():
            break
    return np.clip(2 * np.exp(at), LEAST, MOST)


def log_normalizer(dof: Doubles, n_features: int) -> Doubles:
    """By how much −2 log of the greatest density exceeds that of the Gaussian of the same Σ: D log(ν/2) −
    2 log Γ((ν + D)/2) + 2 log Γ(ν/2), which goes to 0.
    """
    x, a = np.asarray(dof, dtype=np.float64) / 2, n_features / 2
    far = np.maximum(x, _LARGE)
    rest = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680]
    series = sum(factor * ((far + a) ** -power - far**-power) for power, factor in zip((1, 3, 5, 7), rest, strict=True))
    large = 2 * a - 2 * (far + a - 0.5) * np.log1p(a / far) - 2 * series
    return np.where(x < _LARGE, 2 * (a * np.log(x) - gammaln(x + a) + gammaln(x)), large)
