"""Information criteria of a fit on a whole data set, in nats; lower is better.

Each function takes the mean log-likelihood L per point, or in its place the free energy F, a lower bound of L: "their
free energies (Eqns. 19 and 20) provide likelihood approximations" (Lücke & Forster, section 6).
"""

import math

import numpy as np
from numpy.typing import NDArray


def bic(mean_log_likelihood: float, weight: float, n_parameters: int) -> float:
    """Return the BIC, −2 W L + n_parameters · log W; L is per point, W the sum of the weights (Schwarz 1978)."""
    return -2 * weight * mean_log_likelihood + n_parameters * math.log(weight)


def aic(mean_log_likelihood: float, weight: float, n_parameters: int) -> float:
    """Return the AIC, −2 W L + 2 · n_parameters; L is per point, W the sum of the weights (Akaike 1974)."""
    return -2 * weight * mean_log_likelihood + 2 * n_parameters


def share_gain(counts: NDArray[np.float64]) -> float:
    """Return log C − H(N_c/N) ≥ 0, the increase of F per point if mixing weights 1/C are replaced by N_c/N.

    F is the free energy in nats, H the entropy.

    counts (C,): N_c = Σ_n w_n q_nc, with point weights w and responsibilities q. For fixed q, Σ_c (N_c/N) log π_c is
    the only term of F that depends on the mixing weights π.
    """
    shares = counts[counts > 0] / counts.sum()
    return math.log(len(counts)) + float((shares * np.log(shares)).sum())
