"""Equations of Bishop, Pattern Recognition and Machine Learning, sections 9.1 to 9.3: one test for each row."""

import numpy as np
import pytest
from mixtures_of_rows import CENTERS, COVARIANCES, WEIGHTS, C, D, N, X, general, k_means
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from cprime import GaussianMixture, KMeans, KMedoids, theory
from fits import squared_distances

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def normal(means, covariances):
    """Return N(x_n | μ_k, Σ_k): (N, K)."""
    return np.array([multivariate_normal(m, S).pdf(X) for m, S in zip(means, covariances, strict=True)]).T


def posterior(weights, means, covariances):
    """Return γ(z_nk) of (9.13): (N, K)."""
    joint = weights * normal(means, covariances)
    return joint / joint.sum(axis=1, keepdims=True)


GAMMA = posterior(WEIGHTS, CENTERS, COVARIANCES)
TOTALS = GAMMA.sum(axis=0)  # N_k
CONVERGED = GaussianMixture(2, n_active=None, tol=1e-15, max_iter=5000, random_state=0).fit(X)


def test_9_1_distortion():
    fit = k_means()
    r = np.eye(C)[fit.labels_]
    assert fit.inertia_ == pytest.approx((r * squared_distances(X, fit.cluster_centers_)).sum(), rel=1e-12)


def test_9_2_points_are_assigned_to_the_closest_center():
    fit = k_means()
    assert np.array_equal(fit.predict(X), squared_distances(X, fit.cluster_centers_).argmin(axis=1))


def test_9_3_derivative_of_the_distortion_by_a_center_is_zero():
    fit = k_means(n_iter=100)
    r = np.eye(C)[fit.labels_]
    assert_allclose(2 * (r[:, :, np.newaxis] * (X[:, np.newaxis] - fit.cluster_centers_)).sum(axis=0), 0, atol=1e-10)


def test_9_4_centers_are_the_means_of_their_points():
    fit = k_means()
    r = np.eye(C)[squared_distances(X, CENTERS).argmin(axis=1)]
    assert_allclose(fit.cluster_centers_, r.T @ X / r.sum(axis=0)[:, np.newaxis], rtol=1e-12)


def test_9_5_sequential_update_moves_the_nearest_center():
    fit = KMeans(C, init=X[:C], search="full").partial_fit(X[:C])
    centers, counts = X[:C].copy(), np.ones(C)
    for x in X[C:]:
        k = np.square(x - centers).sum(axis=1).argmin()
        counts[k] += 1
        centers[k] = centers[k] + 1 / counts[k] * (x - centers[k])
        assert_allclose(fit.partial_fit(x[np.newaxis]).cluster_centers_, centers, rtol=1e-9)


def test_9_6_distortion_of_general_dissimilarities():
    V = np.abs(X[:, np.newaxis] - X).sum(axis=2)
    fit = KMedoids(C, metric="precomputed", random_state=0).fit(V)
    r = np.eye(C)[fit.labels_]
    assert fit.inertia_ == pytest.approx((r * V[:, fit.medoid_indices_]).sum(), rel=1e-12)


def test_9_7_density_of_a_mixture():
    fit = general()
    expected = (fit.weights_ * normal(fit.means_, fit.covariances_)).sum(axis=1)
    assert_allclose(np.exp(fit.score_samples(X)), expected, rtol=1e-10)


def test_9_8_weights_are_between_0_and_1():
    assert ((general().weights_ >= 0) & (general().weights_ <= 1)).all()


def test_9_9_weights_sum_to_1():
    assert general().weights_.sum() == pytest.approx(1, abs=1e-12)


def test_9_10_prior_of_the_latent_variable():
    P = theory.Gaussians(CENTERS, COVARIANCES, WEIGHTS)
    z = np.eye(C, dtype=int)
    assert_allclose(np.prod(P.weights**z, axis=1), WEIGHTS)
    assert_allclose(np.bincount(general().sample(20_000, random_state=0)[1]) / 20_000, general().weights_, atol=0.02)


def test_9_11_density_given_the_latent_variable():
    P = theory.Gaussians(CENTERS, COVARIANCES, WEIGHTS)
    for z in np.eye(C, dtype=int):
        expected = np.prod(normal(CENTERS, COVARIANCES) ** z, axis=1)
        assert_allclose(np.exp(P.log_densities(X) @ z), expected, rtol=1e-10)


def test_9_12_density_is_the_sum_over_the_latent_variable():
    fit = general()
    P = theory.Gaussians.from_estimator(fit)
    summed = sum(P.weights[z] * np.exp(P.log_densities(X)[:, z]) for z in range(C))
    assert_allclose(np.exp(fit.score_samples(X)), summed, rtol=1e-10)


def test_9_13_responsibilities_are_posteriors():
    fit = general()
    expected = posterior(fit.weights_, fit.means_, fit.covariances_)
    assert_allclose(fit.predict_proba(X), expected, rtol=1e-8, atol=1e-14)


def test_9_14_log_likelihood():
    fit = general()
    expected = np.log((fit.weights_ * normal(fit.means_, fit.covariances_)).sum(axis=1)).sum()
    assert N * fit.score(X) == pytest.approx(expected, rel=1e-12)


def test_9_15_density_of_a_component_at_its_only_point_grows_without_bound():
    for sigma in (1.0, 1e-2, 1e-4):
        P = theory.Gaussians.spherical(X[:1], sigma)
        expected = 1 / (2 * np.pi) ** (D / 2) / sigma**D
        assert np.exp(P.log_densities(X[:1]))[0, 0] == pytest.approx(expected, rel=1e-9)


def test_9_16_derivative_of_the_log_likelihood_by_the_means_is_zero():
    fit = CONVERGED
    gamma, inverse = fit.predict_proba(X), np.linalg.inv(fit.covariances_)
    derivative = np.einsum("nk,kij,nkj->ki", gamma, inverse, X[:, np.newaxis] - fit.means_)
    assert_allclose(derivative, 0, atol=1e-6)


def test_9_17_means():
    expected = np.array([sum(GAMMA[n, k] * X[n] for n in range(N)) / TOTALS[k] for k in range(C)])
    assert_allclose(general().means_, expected, rtol=1e-10)


def test_9_18_effective_number_of_points():
    assert_allclose(N * general().weights_, TOTALS, rtol=1e-10)


def test_9_19_covariances():
    fit = general()
    difference = X[:, np.newaxis] - fit.means_
    expected = np.einsum("nk,nki,nkj->kij", GAMMA, difference, difference) / TOTALS[:, np.newaxis, np.newaxis]
    assert_allclose(fit.covariances_, expected, rtol=1e-8, atol=1e-12)


def test_9_20_weights_maximize_the_lagrangian():
    """ln p(X) + λ (Σ_k π_k − 1) with λ = −N: no weights near those of the M-step give more, for fixed γ."""
    found, rng = general().weights_, np.random.default_rng(0)

    def lagrangian(weights):
        return (GAMMA * np.log(weights)).sum() - N * (weights.sum() - 1)

    assert all(lagrangian(found) > lagrangian(found * np.exp(0.1 * rng.normal(size=C))) for _ in range(20))


def test_9_21_its_derivative_is_zero():
    fit = CONVERGED
    p = normal(fit.means_, fit.covariances_)
    derivative = (p / (fit.weights_ * p).sum(axis=1, keepdims=True)).sum(axis=0) - N
    assert_allclose(derivative, 0, atol=1e-6)


def test_9_22_weights_are_shares_of_the_points():
    assert_allclose(general().weights_, TOTALS / N, rtol=1e-10)


def test_9_23_e_step():
    assert_allclose(theory.Gaussians(CENTERS, COVARIANCES, WEIGHTS).weights, WEIGHTS)
    assert_allclose(general(n_iter=1).weights_, GAMMA.mean(axis=0), rtol=1e-10)


def test_9_24_m_step_of_means():
    assert_allclose(general().means_, GAMMA.T @ X / TOTALS[:, np.newaxis], rtol=1e-10)


def test_9_25_m_step_of_covariances_has_the_new_means():
    fit = general()
    for k in range(C):
        about = X - (GAMMA.T @ X / TOTALS[:, np.newaxis])[k]
        assert_allclose(fit.covariances_[k], (GAMMA[:, k] * about.T) @ about / TOTALS[k], rtol=1e-8, atol=1e-12)


def test_9_26_m_step_of_weights():
    assert_allclose(general().weights_, TOTALS / N, rtol=1e-10)


def test_9_27_effective_number_of_points_of_a_weighted_sample():
    w = np.random.default_rng(0).uniform(0.5, 2, N)
    start = {"means_init": CENTERS, "weights_init": WEIGHTS, "precisions_init": np.linalg.inv(COVARIANCES)}
    options = {"n_active": None, "momentum": False, "search": "full", "reg_covar": 0, "tol": 0, "max_iter": 1}
    fit = GaussianMixture(C, **start, **options).fit(X, sample_weight=w)
    assert_allclose(w.sum() * fit.weights_, w @ GAMMA, rtol=1e-10)


def test_9_28_log_likelihood_that_em_evaluates():
    fit = general()
    expected = logsumexp(np.log(WEIGHTS) + np.log(normal(CENTERS, COVARIANCES)), axis=1).mean()
    assert fit.lower_bounds_[0] == pytest.approx(expected, rel=1e-12)


def test_9_29_log_likelihood_is_the_sum_over_all_latent_variables():
    P, rows = theory.Gaussians(CENTERS, COVARIANCES, WEIGHTS), X[:3]
    joint = WEIGHTS * normal(CENTERS, COVARIANCES)[:3]
    total = sum(joint[[0, 1, 2], list(z)].prod() for z in np.ndindex(C, C, C))
    q = np.exp(P.log_densities(rows)) * P.weights
    found = 3 * theory.free_energy(P, rows, q / q.sum(axis=1, keepdims=True))
    assert found == pytest.approx(np.log(total), rel=1e-12)
