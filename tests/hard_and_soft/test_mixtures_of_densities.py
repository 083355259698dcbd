"""Mixtures of Gaussians and of scipy.stats densities: log densities, draws, conversion from estimators, errors."""

import numpy as np
import pytest
from scipy.stats import expon, kstest, multivariate_normal, norm, t

from cprime import GaussianMixture, KMeans, StudentTMixture
from cprime.theory import (
    Gaussians,
    Univariate,
    fit_assignment,
    kl_divergence,
    partition_loss,
    posterior_mean,
    variation_distance,
)
from cprime.theory.mixtures import as_mixture


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


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("dof", [0.5, "estimate", 1e9])
@pytest.mark.parametrize("covariance_type", ["tied_spherical", "spherical", "diag", "tied", "full"])
def test_a_t_mixture_keeps_its_density(rng, covariance_type, dof):
    X = rng.standard_t(3, (200, 2))
    tm = StudentTMixture(3, covariance_type=covariance_type, dof=dof, random_state=0, max_iter=5).fit(X)
    mixture = as_mixture(tm, "model")
    np.testing.assert_allclose(np.log(np.exp(mixture.log_densities(X)) @ mixture.weights), tm.score_samples(X))


def t_mixture():
    """Return a fitted mixture of t distributions in one dimension, and the same densities by SciPy."""
    tm = StudentTMixture(2, dof=4.0)
    tm.weights_, tm.means_ = np.array([0.25, 0.75]), np.array([[-1.0], [2.0]])
    tm.covariances_, tm.dof_ = np.array([[[0.5]], [[4.0]]]), np.array([3.0, 8.0])
    return tm, Univariate([t(3, -1, np.sqrt(0.5)), t(8, 2, 2)], [0.25, 0.75])


@pytest.mark.long
def test_theory_takes_t_mixtures_as_densities():
    tm, known = t_mixture()
    assert kl_divergence(tm, known).value == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(variation_distance(tm).distance, variation_distance(known).distance, rtol=1e-8)
    for assignment in ("hard", "posterior"):
        found, expected = (
            partition_loss(each, Univariate([norm(0, 2)]), assignment=assignment, weights="free")
            for each in (tm, known)
        )
        assert found.loss == pytest.approx(expected.loss, rel=1e-9)
        np.testing.assert_allclose(found.terms, expected.terms, rtol=1e-7)
    draws = as_mixture(tm, "Q").sample(20_000, 0)[:, 0]
    law = lambda x: 0.25 * known.distributions[0].cdf(x) + 0.75 * known.distributions[1].cdf(x)  # noqa: E731
    assert kstest(draws, law).pvalue > 1e-3
    plane = StudentTMixture(2, random_state=0).fit(np.random.default_rng(0).standard_t(3, (300, 2)))
    divergence = kl_divergence(plane, Gaussians([[0, 0]], [np.eye(2)]), n_samples=2000, random_state=0)
    assert 0 < divergence.lower < divergence.upper


def test_what_needs_gaussians_refuses_t_mixtures_with_the_reason():
    tm, _ = t_mixture()
    with pytest.raises(TypeError, match=r"got StudentTMixture.*: Gaussians cannot represent others"):
        Gaussians.from_estimator(tm)
    with pytest.raises(TypeError, match=r"got StudentTMixture.*: the mean has this form for Gaussian components alone"):
        posterior_mean(tm, [[0.0]], 1.0)
    with pytest.raises(TypeError, match=r"got StudentTMixture.*: only their refit by maximum likelihood is known"):
        fit_assignment([[0.0], [1.0], [2.0]], tm)


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
        (lambda: Gaussians.spherical([0, 1], [1, -1]), "standard_deviations must be 2 positive numbers"),
        (lambda: Gaussians.spherical([0, 1], 1, [0.5, 0.6]), "weights must be 2 numbers"),
        (lambda: Univariate([]), "at least one"),
        (lambda: Univariate([3]), "frozen continuous"),
    ],
)
def test_wrong_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
