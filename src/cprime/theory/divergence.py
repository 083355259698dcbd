"""Kullback-Leibler divergence of a mixture from the sampling density, which EM lowers."""

from typing import Any, NamedTuple

import numpy as np

from cprime.theory.expectation import expectation
from cprime.theory.mixtures import as_mixture, log_mixture_density
from cprime.theory.partition import nats_per


class Divergence(NamedTuple):
    """A Kullback-Leibler divergence with a 95 % interval.

    Attributes
    ----------
    value : float
        The divergence, in the requested unit.
    lower, upper : float
        The interval; both equal the value if it was found by quadrature.

    Examples
    --------
    >>> from cprime.theory import Gaussians, kl_divergence
    >>> found = kl_divergence(Gaussians.spherical([0], [1]), Gaussians.spherical([1], [1]), unit="nats")
    >>> round(found.value, 3), found.value == found.lower
    (0.5, True)
    """

    value: float
    lower: float
    upper: float


def kl_divergence(
    Q: Any, model: Any, *, unit: str = "bits", n_samples: int = 100_000, random_state: Any = None
) -> Divergence:
    """Return KL(Q‖Σ_b α_b P_b) of the sampling density Q and a mixture of densities P_b with weights α_b.

    EM lowers this divergence, whereas K-means lowers the partition loss (Kearns, Mansour & Ng, section 2).

    Parameters
    ----------
    Q, model : Gaussians, Univariate, KMeans, GaussianMixture or StudentTMixture
        The sampling density and the mixture; an estimator must be fitted.
    unit : {"bits", "nats"}, default="bits"
    n_samples : int, default=100_000
        Number of draws from Q in more than one dimension; quadrature is used in one dimension.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    result : Divergence

    Examples
    --------
    >>> from cprime.theory import Gaussians, kl_divergence
    >>> round(kl_divergence(Gaussians.spherical([0], 1), Gaussians.spherical([1], 1), unit="nats").value, 6)
    0.5
    """
    scale = 1 / nats_per(unit)
    known, mixture = as_mixture(Q, "Q"), as_mixture(model, "model")
    mean = expectation(
        known, mixture, lambda X: mixture.log_densities(X).argmax(axis=1)[:, np.newaxis], n_samples, random_state
    )
    found = mean(lambda X, log_q: (log_q - log_mixture_density(mixture, X))[:, np.newaxis])
    return Divergence(*(float(part[0]) * scale for part in (found.values, *found.intervals)))
