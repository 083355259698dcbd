"""Criteria for the choice of the number of clusters C: information criteria, and the elbow of the curve of J.

The information criteria, in nats, are computed from the mean log-likelihood L per point of a fit, or from the free
energy F, a lower bound of L, in its place: "their free energies (Eqns. 19 and 20) provide likelihood approximations"
(Lücke & Forster, section 6). Lower is better.

The elbow is searched in the curve of J, the sum of squared distances, over C. For data without clusters in d
dimensions, J ∝ C^(−2/d) if C is large (Zador 1982), so log J over log C is a straight line. For small C the curve is
bent downwards, because the first cuts of a Gaussian or a cube lower J least. Clusters bend the curve upwards, and
sharply, at their number: up to this number each new center removes distances between clusters, beyond it only distances
within clusters. (Sugar & James 2003 observe the same as a jump of J^(−d/2), for which d must be known.)

The bend at C is the change of the slope d log J / d log C at this C. The largest bend is an elbow if two conditions
hold. First, it is an outlier among the bends by the test of Grubbs (1950). The lowest bend is left out of the mean and
standard deviation in this test: the steep piece of the curve before an elbow begins with a downward bend, which would
mask the outlier. Second, the slope is at least halved, so a small bend among still smaller ones is no elbow. Poor local
optima make all bends noisy, so they hide an elbow rather than create one.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

LEAST_BENDS = 5
_SIMULATED = 20_000  # Number of simulated samples whose quantile is the critical value of the outlier test of bends.


def elbow(n_components: NDArray, inertia: NDArray[np.float64], alpha: float) -> int | None:
    """Return the number of components at the elbow of the inertia, or None if there is none at significance `alpha`.

    n_components (n,), increasing; inertia (n,): J, the sum of squared distances, of each fit
    """
    seen = inertia > 0
    slopes = np.diff(np.log(inertia[seen])) / np.diff(np.log(n_components[seen]))
    bends = np.diff(slopes)
    if len(bends) < LEAST_BENDS:
        return None
    i = int(bends.argmax())
    halved = bends[i] > 0 and slopes[i] <= 2 * slopes[i + 1]
    if not halved or excess(bends) <= critical_value(len(bends), alpha):
        return None
    return int(n_components[seen][i + 1])


def excess(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the outlier statistic (largest value − m) / s for each row of n values.

    m and s are the mean and the standard deviation of the n − 2 values without the largest and the least.
    """
    ordered = np.sort(values, axis=-1)
    others = ordered[..., 1:-1]
    spread = np.maximum(others.std(axis=-1, ddof=1), np.finfo(np.float64).tiny)
    return (ordered[..., -1] - others.mean(axis=-1)) / spread


@lru_cache
def critical_value(n: int, alpha: float) -> float:
    """Return the critical value of the outlier test: the (1 − alpha) quantile of `excess` for n Gaussian numbers.

    The quantile is found by simulation. A largest number whose `excess` is above it is an outlier.
    """
    return float(np.quantile(excess(np.random.RandomState(0).standard_normal((_SIMULATED, n))), 1 - alpha))


def bic(mean_log_likelihood: float, weight: float, n_parameters: int) -> float:
    """Return the BIC, −2 W L + n_parameters · log W (Schwarz 1978).

    L is the mean log-likelihood per point, W the sum of the weights.
    """
    return -2 * weight * mean_log_likelihood + n_parameters * math.log(weight)


def aic(mean_log_likelihood: float, weight: float, n_parameters: int) -> float:
    """Return the AIC, −2 W L + 2 · n_parameters (Akaike 1974).

    L is the mean log-likelihood per point, W the sum of the weights.
    """
    return -2 * weight * mean_log_likelihood + 2 * n_parameters


def icl(mean_log_likelihood: float, weight: float, n_parameters: int, mean_entropy: float) -> float:
    """Return the ICL, BIC + 2 W H (Biernacki, Celeux & Govaert 2000), which is larger if clusters overlap.

    L is the mean log-likelihood per point, W the sum of the weights, H the mean entropy of the posteriors in nats.
    """
    return bic(mean_log_likelihood, weight, n_parameters) + 2 * weight * mean_entropy


def share_gain(counts: NDArray[np.float64]) -> float:
    """Return log C − H(N_c/N) ≥ 0, the increase of F per point if mixing weights 1/C are replaced by N_c/N.

    F is the free energy in nats, H the entropy. For fixed responsibilities q, Σ_c (N_c/N) log π_c is the only term of F
    that depends on the mixing weights π. counts (C,): N_c = Σ_n w_n q_nc, with point weights w and N = Σ_c N_c
    """
    shares = counts[counts > 0] / counts.sum()
    return math.log(len(counts)) + float((shares * np.log(shares)).sum())
