"""Criteria that weigh a fit against its number of parameters, per data set and in nats; the lower the better.

Each takes the mean log-likelihood L of a point, or the free energy F that bounds it from below and stands in for it:
"their free energies (Eqns. 19 and 20) provide likelihood approximations" (Lücke & Forster, section 6).
"""

import math

import numpy as np
from numpy.typing import NDArray


def bic(mean_log_likelihood: float, weight: float, n_parameters: int) -> float:
    """−2 W L + parameters · log W, W the sum of the weights (Schwarz 1978)."""
    return -2 * weight * mean_log_likelihood + n_parameters * math.log(weight)


def aic(mean_log_likelihood: float, weight: float, n_parameters: int) -> float:
    """−2 W L + 2 · parameters (Akaike 1974)."""
    return -2 * weight * mean_log_likelihood + 2 * n_parameters


def share_gain(counts: NDArray[np.float64]) -> float:
    """What F gains per point when weights 1/C become the shares N_c/N: log C − H(N_c/N), never negative.

    counts (C,): N_c = Σ w_n q_nc. With the q_nc kept, Σ_c (N_c/N) log π_c is the only term that the weights are in.
    """
    shares = counts[counts > 0] / counts.sum()
    return math.log(len(counts)) + float((shares * np.log(shares)).sum())
