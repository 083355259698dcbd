"""Anderson–Darling test of Gaussianity for weighted numbers with unknown mean and variance."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

LEAST_WEIGHT = 8.0  # least sample size for which D'Agostino & Stephens give the formula of p-values

# Rows (least A*, a, b, c): an Anderson–Darling statistic of at least this A* has the p-value exp(a + b A* + c A*²).
_TAILS = ((0.6, 1.2937, -5.709, 0.0186), (0.34, 0.9177, -4.279, -1.38))
# Rows (least A*, a, b, c) for smaller Anderson–Darling statistics A*: the p-value is 1 − exp(a + b A* + c A*²).
_HEADS = ((0.2, -8.318, 42.796, -59.938), (-math.inf, -13.436, 101.14, -223.73))
_LARGEST = 150.0  # larger statistics get the p-value of this one, because the formula for log p rises again beyond 153


def anderson_darling(values: NDArray, weights: NDArray[np.float64] | None = None) -> tuple[float, float]:
    """Return the statistic A*, corrected for small samples, and its p-value under Gaussianity.

    A² = −W − 1/W Σ_n [(S_n² − S_{n−1}²) log Φ(z_n) + ((W − S_{n−1})² − (W − S_n)²) log(1 − Φ(z_n))], where z_n are
    the sorted, standardized values, S_n = Σ_{m≤n} w_m, and W is the sum of all weights w. A weight of 2 is equivalent
    to the value occurring twice. A* = A² (1 + 0.75/W + 2.25/W²).

    values (n,) not all equal; weights (n,) positive

    References
    ----------
    T. W. Anderson, D. A. Darling: A test of goodness of fit. JASA 49, 1954. R. B. D'Agostino, M. A. Stephens:
    Goodness-of-fit techniques. Dekker 1986, section 4.8.5 and Table 4.9.
    """
    order = np.argsort(values, kind="stable")
    x = np.asarray(values, dtype=np.float64)[order]
    w = np.ones(len(x)) if weights is None else weights[order]
    above = np.cumsum(w)
    below, W = above - w, above[-1]
    centered = x - (w * x).sum() / W
    centered /= np.abs(centered).max()  # avoids overflow and underflow of squares
    z = centered / math.sqrt((w * centered**2).sum() / (W - 1))
    terms = (above**2 - below**2) * log_ndtr(z) + ((W - below) ** 2 - (W - above) ** 2) * log_ndtr(-z)
    statistic = (-W - terms.sum() / W) * (1 + 0.75 / W + 2.25 / W**2)
    return float(statistic), p_value(float(statistic))


def p_value(statistic: float) -> float:
    """Return the probability that the Anderson–Darling statistic A* of a Gaussian sample is at least `statistic`.

    A* is corrected for small samples. The formulas are those of D'Agostino & Stephens, Table 4.9.
    """
    A = min(statistic, _LARGEST)
    for least, a, b, c in _TAILS:
        if least <= A:
            return math.exp(a + b * A + c * A * A)
    a, b, c = _HEADS[0][1:] if _HEADS[0][0] <= A else _HEADS[1][1:]
    return 1 - math.exp(a + b * A + c * A * A)
