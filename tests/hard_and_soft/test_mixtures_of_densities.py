"""Gaussians and densities of scipy.stats: log densities, draws, estimators as mixtures, errors."""

import numpy as np
import pytest
from scipy.stats import expon, multivariate_normal, norm

from cprime import GaussianMixture, KMeans
from cprime.theory import Gaussians, Univariate


def random_gaussians(rng, C=3, D=2):
    roots = rng.standard_normal((C, D, D))
    return Gaussians(rng.standard_normal((C, D)), roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(D), [0.2, 0.5, 0.3])


def test_log_densities_are_those_of_scipy(rng):
    mixture = random_gaussians(rng)
    X = rng.standard_normal((20, 2))
    expected = [multivariate_normal(m, c).logpdf(X) for m, c in zip(mixture.means, mixture.covariances, strict=True)]
    np.testing.assert_allclose(mixture.log_densities(X), np.transpose(expected))


def test_draws_have_the_moments_and_the_seed_fixes_them(rng):
    mixture = random_gaussians(rng)
    X = mixture.sample(200_000, 0)
    np.testing.assert_array_equal(X, mixture.sample(200_000, 0))
    mean = mixture.weights @ mixture.means
    np.testing.assert_allclose(X.mean(axis=0), mean, atol=0.03)
    second = np.einsum("c,cij->ij", mixture.weights, mixture.covariances)
    second += (mixture.weights * (mixture.means - mean).T) @ (mixture.means - mean)
    np.testing.assert_allclose(np.cov(X.T), second, atol=0.1)


def test_k_means_is_an_equal_spherical_mixture(rng):
    km = KMeans(3, random_state=0).fit(rng.standard_normal((100, 2)))
    mixture = Gaussians.from_estimator(km)
    np.testing.assert_array_equal(mixture.means, km.cluster_centers_)
    np.testing.assert_allclose(mixture.standard_deviations**2, km.variance_)
    np.testing.assert_allclose(mixture.weights, 1 / 3)


@pytest.mark.parametrize("weights", ["equal", "free"])
@pytest.mark.parametrize("covariance_type", ["tied_spherical", "spherical", "diag", "tied", "full"])
def test_a_mixture_keeps_its_density(rng, covariance_type, weights):
    X = rng.standard_normal((200, 2))
    gm = GaussianMixture(3, covariance_type=covariance_type, weights=weights, random_state=0, tol=1e-2).fit(X)
    mixture = Gaussians.from_estimator(gm)
    np.testing.assert_allclose(np.log(np.exp(mixture.log_densities(X)) @ mixture.weights), gm.score_samples(X))


def test_draws_of_scipy_densities():
    mixture = Univariate([norm(-5, 1), expon(3)], [0.25, 0.75])
    X = mixture.sample(40_000, 1)[:, 0]
    assert (X < 0).mean() == pytest.approx(0.25, abs=0.01)
    assert X[X > 0].mean() == pytest.approx(4, abs=0.05)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussians(np.zeros(3), np.ones(3)), "means must have shape"),
        (lambda: Gaussians(np.zeros((2, 2)), np.ones((2, 2))), r"covariances must have shape \(2, 2, 2\)"),
        (lambda: Gaussians(np.zeros((1, 1)), np.full((1, 1, 1), -1.0)), "positive definite"),
        (lambda: Gaussians(np.full((1, 1), np.nan), np.ones((1, 1, 1))), "finite"),
        (lambda: Gaussians.spherical([0, 1], [1, -1]), "standard_deviations must be positive"),
        (lambda: Gaussians.spherical([0, 1], 1, [0.5, 0.6]), "weights must be 2 numbers"),
        (lambda: Univariate([]), "at least one"),
        (lambda: Univariate([3]), "frozen continuous"),
    ],
)
def test_wrong_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
