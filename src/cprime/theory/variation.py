"""Overlap of densities: the variation distance of Kearns, Mansour & Ng, eq. (33)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime.estimators.validation import check_integer
from cprime.theory.expectation import MeanEstimator, Quadrature, Sample
from cprime.theory.mixtures import Floats, as_mixture


class VariationDistance(NamedTuple):
    """Variation distance between every two components.

    Attributes
    ----------
    distance : ndarray of shape (n_components, n_components)
        From 0 (equal densities) to 2 (no overlap).
    lower, upper : ndarray of shape (n_components, n_components)
        A 95 % interval; both equal `distance` after quadrature.

    Examples
    --------
    >>> from cprime.theory import Gaussians, variation_distance
    >>> V = variation_distance(Gaussians.spherical([-2, 2], [1, 1]))
    >>> V.distance.round(2).tolist()
    [[0.0, 1.91], [1.91, 0.0]]
    """

    distance: Floats
    lower: Floats
    upper: Floats


def variation_distance(model: Any, *, n_samples: int = 100_000, random_state: Any = None) -> VariationDistance:
    """Compute V(P_i, P_j) = `∫ |P_i(x) − P_j(x)| dx` between the components of a model, (33) of the source.

    Parameters
    ----------
    model : Gaussians, Univariate, KMeans, GaussianMixture or StudentTMixture
        An estimator must be fitted. Weights have no effect.
    n_samples : int, default=100_000
        Number of draws in more than one dimension; quadrature is used in one dimension.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    result : VariationDistance

    Examples
    --------
    >>> from cprime.theory import Gaussians, variation_distance
    >>> P = Gaussians.spherical([-2, 2], [1.5, 1.5])
    >>> round(float(variation_distance(P).distance[0, 1]), 4)
    1.6352
    """
    mixture = as_mixture(model, "model").with_equal_weights()
    C = len(mixture.weights)
    first, second = np.triu_indices(C, 1)
    if C == 1:
        zero = np.zeros((1, 1))
        return VariationDistance(zero, zero, zero)

    def relative_difference(X: Floats, log_q: Floats) -> Floats:
        relative = np.exp(mixture.log_densities(X) - log_q[:, np.newaxis])
        return np.abs(relative[:, first] - relative[:, second])

    def order(X: Floats) -> NDArray[np.intp]:
        """Return the components ordered by density at each row; the order changes where two densities cross."""
        return np.argsort(mixture.log_densities(X), axis=1, kind="stable")

    mean: MeanEstimator
    if mixture.n_features == 1:
        mean = Quadrature(mixture, mixture, order)
    else:
        mean = Sample.drawn(mixture, check_integer(n_samples, "n_samples", 2), random_state)
    found = mean(relative_difference)

    def square(values: Floats) -> Floats:
        result = np.zeros((C, C))
        result[first, second] = result[second, first] = values
        return result

    return VariationDistance(square(found.values), *map(square, found.intervals))
