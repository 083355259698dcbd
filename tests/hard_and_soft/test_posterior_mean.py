"""The posterior mean of noisy points agrees with quadrature and with truncated sums, and has less error than the
points.
"""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from cprime import GaussianMixture, KMeans
from cprime.theory import Gaussians, posterior_mean


def test_it_is_the_integral_of_x_under_the_posterior():
    X = Gaussians([[-1.0], [2.0]], [[[0.5]], [[2.0]]], [0.3, 0.7])
    x = np.linspace(-25, 25, 200_001)
    density = np.exp(X.log_densities(x[:, np.newaxis])) @ X.weights
    for y in (-3.0, 0.4, 5.0):
        weights = density * np.exp(-((y - x) ** 2) / (2 * 1.5))
        found = posterior_mean(X, [[y]], 1.5)
        np.testing.assert_allclose(found, [[(weights @ x) / weights.sum()]], rtol=1e-8)


def test_correlated_features_lower_the_error_of_each_other():
    covariance = np.array([[4.0, 3.0], [3.0, 4.0]])
    X = Gaussians([[1.0, -1.0]], [covariance])
    Y = np.array([[5.0, 0.0], [1.0, -1.0]])
    expected = X.means + (Y - X.means) @ np.linalg.inv(covariance + 2 * np.eye(2)) @ covariance
    np.testing.assert_allclose(posterior_mean(X, Y, 2.0), expected, rtol=1e-12)


def test_truncated_to_one_it_is_that_of_the_best_component():
    X = Gaussians([[-1.0], [1.0]], [[[1.0]], [[1.0]]])
    np.testing.assert_allclose(posterior_mean(X, [[0.2], [-0.2]], 1.0, n_active=1), [[0.6], [-0.6]], rtol=1e-12)
    np.testing.assert_allclose(posterior_mean(X, [[0.0]], 1.0), [[0.0]], atol=1e-12)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical", "tied_spherical"])
def test_it_is_nearer_to_the_truth_than_what_was_seen(covariance_type):
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (600, 3)) * [1.0, 0.2, 0.5] + rng.choice([-4.0, 0.0, 4.0], (600, 1))
    Y = X + rng.normal(0, 0.7, X.shape)
    gm = GaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(X)
    assert np.square(posterior_mean(gm, Y, 0.49) - X).mean() < 0.8 * np.square(Y - X).mean()


def test_k_means_is_its_spherical_mixture_truncated_to_one_component(rng):
    X, Y = rng.standard_normal((2, 50, 2))
    km = KMeans(3, random_state=0).fit(X)
    expected = posterior_mean(Gaussians.from_estimator(km), Y, 0.5, n_active=1)
    np.testing.assert_array_equal(posterior_mean(km, Y, 0.5), expected)


def test_arguments_are_checked():
    with pytest.raises(NotFittedError):
        posterior_mean(GaussianMixture(2), [[1.0]], 1.0)
    X = Gaussians([[0.0]], [[[1.0]]])
    with pytest.raises(ValueError, match=r"variance must be a positive number, got 0\."):
        posterior_mean(X, [[1.0]], 0)
    with pytest.raises(ValueError, match=r"Y must have shape \(n_samples, 1\), got \(1, 2\)\."):
        posterior_mean(X, [[1.0, 2.0]], 1.0)
