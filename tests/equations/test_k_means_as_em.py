"""Equations of Lücke & Forster, k-means as a variational EM approximation: one test for each row of the page."""

import numpy as np
import pytest
from mixtures_of_rows import CENTERS, COVARIANCES, VARIANCE, WEIGHTS, C, D, N, X, general, isotropic, k_means
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal

from cprime import KMeans, theory
from fits import squared_distances

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def largest(values, n):
    """Return whether each entry is among the n largest of its row."""
    return values.argsort(axis=1).argsort(axis=1) >= values.shape[1] - n


def log_joint(fit):
    """Return log p(c, x_n) of a fitted general mixture, (N, C)."""
    parameters = zip(fit.weights_, fit.means_, fit.covariances_, strict=True)
    return np.array([np.log(w) + multivariate_normal(m, S).logpdf(X) for w, m, S in parameters]).T


def log_isotropic(centers, variance):
    """Return log p(c, x_n) of (9): (N, C)."""
    return -np.log(C) - D / 2 * np.log(2 * np.pi * variance) - squared_distances(X, centers) / (2 * variance)


def test_1_error_is_the_sum_of_squared_distances_to_the_assigned_centers():
    fit = k_means()
    s = np.eye(C)[fit.labels_]
    assert fit.inertia_ == pytest.approx((s * squared_distances(X, fit.cluster_centers_)).sum(), rel=1e-12)


def test_2_components_have_the_weight_1_over_c_and_isotropic_densities():
    P = theory.Gaussians.spherical(CENTERS, np.sqrt(VARIANCE))
    density = (2 * np.pi * VARIANCE) ** (-D / 2) * np.exp(-squared_distances(X, CENTERS) / (2 * VARIANCE))
    assert_allclose(P.weights, 1 / C)
    assert_allclose(np.exp(P.log_densities(X)), density, rtol=1e-12)


def test_3_log_likelihood_is_the_mean_over_points():
    fit = isotropic()
    expected = logsumexp(log_isotropic(fit.means_, fit.covariances_), axis=1).mean()
    assert fit.score(X) == pytest.approx(expected, rel=1e-12)


def test_4_truncated_posterior_is_zero_outside_the_active_set():
    fit = general(n_active=2)
    p = np.exp(log_joint(fit))
    delta = largest(p, 2)
    assert_allclose(fit.predict_proba(X), p * delta / (p * delta).sum(axis=1, keepdims=True), atol=1e-12)


def test_5_truncated_posterior_of_the_isotropic_mixture():
    fit = isotropic(n_active=2)
    squares = squared_distances(X, fit.means_)
    p = np.exp(-squares / (2 * fit.covariances_)) * largest(-squares, 2)
    assert_allclose(fit.predict_proba(X), p / p.sum(axis=1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize("n_active", [1, 2, C])
def test_6_m_step_is_that_of_em_with_truncated_posteriors(n_active):
    fit = isotropic(n_active)
    p = np.where(largest(-squared_distances(X, CENTERS), n_active), log_isotropic(CENTERS, VARIANCE), -np.inf)
    q = softmax(p, axis=1)
    means = q.T @ X / q.sum(axis=0)[:, np.newaxis]
    assert_allclose(fit.means_, means, rtol=1e-10)
    assert fit.covariances_ == pytest.approx((q * squared_distances(X, means)).sum() / (D * N), rel=1e-10)


def test_7_free_energy_is_the_log_of_the_sum_over_the_active_set():
    fit = isotropic(n_active=2)
    p = log_isotropic(fit.means_, fit.covariances_)
    expected = logsumexp(np.where(largest(p, 2), p, -np.inf), axis=1).mean()
    assert fit.lower_bound_ == pytest.approx(expected, rel=1e-12)
    assert theory.free_energy(fit, X, fit.predict_proba(X)) == pytest.approx(expected, rel=1e-12)


def test_8_exchange_raises_the_free_energy_iff_the_new_center_is_nearer():
    P, x = theory.Gaussians.spherical(CENTERS, np.sqrt(VARIANCE)), X[:1]
    distances = np.linalg.norm(x - CENTERS, axis=1)

    def bound(kept):
        q = np.exp(P.log_densities(x)) * np.isin(np.arange(C), kept)
        return theory.free_energy(P, x, q / q.sum())

    exchanges = [(old, new, other) for old, new, other in np.ndindex(C, C, C) if len({old, new, other}) == 3]
    rises = [bound([new, other]) > bound([old, other]) for old, new, other in exchanges]
    assert rises == [distances[new] < distances[old] for old, new, _ in exchanges]


def test_9_joint_density_of_a_component_and_a_point():
    P = theory.Gaussians.spherical(CENTERS, np.sqrt(VARIANCE))
    p = 1 / C * (2 * np.pi * VARIANCE) ** (-D / 2) * np.exp(-squared_distances(X, CENTERS) / (2 * VARIANCE))
    assert_allclose(np.exp(P.log_densities(X)) * P.weights, p, rtol=1e-12)


def test_12_one_active_component_has_all_responsibility():
    s = np.eye(C)[squared_distances(X, k_means().cluster_centers_).argmin(axis=1)]
    assert np.array_equal(np.eye(C)[k_means().predict(X)], s)
    assert np.array_equal(isotropic(n_active=1).predict_proba(X), s)


def test_13_m_step_with_one_active_component_is_that_of_k_means():
    s = np.eye(C)[squared_distances(X, CENTERS).argmin(axis=1)]
    means = s.T @ X / s.sum(axis=0)[:, np.newaxis]
    fit = isotropic(n_active=1)
    assert_allclose(k_means().cluster_centers_, means, rtol=1e-12)
    assert_allclose(fit.means_, means, rtol=1e-12)
    assert fit.covariances_ == pytest.approx((s * squared_distances(X, means)).sum() / (D * N), rel=1e-10)


def test_14_variance_of_k_means_is_the_error_per_coordinate():
    fit = k_means()
    s = np.eye(C)[fit.labels_]
    expected = (s * squared_distances(X, fit.cluster_centers_)).sum() / (D * N)
    assert fit.variance_ == pytest.approx(expected, rel=1e-12)


def test_15_free_energy_of_k_means_is_a_function_of_the_variance():
    fit = k_means()
    assert fit.lower_bound_ == pytest.approx(-np.log(C) - D / 2 * np.log(2 * np.pi * np.e * fit.variance_), rel=1e-12)


def test_16_gap_between_the_log_likelihood_and_the_free_energy_of_k_means():
    fit = k_means()
    exponents = -squared_distances(X, fit.cluster_centers_) / (2 * fit.variance_)
    assert fit.bounds(X).kl_gap == pytest.approx(D / 2 + logsumexp(exponents, axis=1).mean(), rel=1e-10)


def test_17_free_energy_of_k_means_is_the_log_joint_of_the_nearest_centers():
    fit = k_means()
    p = log_isotropic(fit.cluster_centers_, fit.variance_)
    assert fit.bounds(X).free_energy == pytest.approx(p[np.arange(N), fit.labels_].mean(), rel=1e-12)


def test_18_gap_is_the_log_likelihood_minus_the_free_energy():
    fit = k_means()
    found = fit.bounds(X)
    p = log_isotropic(fit.cluster_centers_, fit.variance_)
    assert found.log_likelihood == pytest.approx(logsumexp(p, axis=1).mean(), rel=1e-12)
    assert found.kl_gap == pytest.approx(logsumexp(p, axis=1).mean() - p.max(axis=1).mean(), rel=1e-10)


def test_19_error_of_k_means_bounds_the_log_likelihood():
    for n_iter in (1, 2, 5):
        fit = k_means(n_iter)
        bound = -np.log(C) - D / 2 * np.log(2 * np.pi * np.e / (D * N) * fit.inertia_)
        (stated,) = (each for each in theory.ledger(fit, X).identities if each.equation == "(19)")
        assert stated.right == pytest.approx(bound, rel=1e-12)
        assert fit.bounds(X).log_likelihood > bound


def test_20_free_energy_at_convergence_has_the_entropy_of_the_posteriors():
    fit = isotropic(n_active=2, n_iter=2000)
    q = fit.predict_proba(X)
    entropy = -(q * np.log(np.where(q > 0, q, 1))).sum() / N
    expected = -np.log(C) - D / 2 * np.log(2 * np.pi * np.e * fit.covariances_) + entropy
    assert fit.lower_bound_ == pytest.approx(expected, rel=1e-9)
    stated = [each for each in theory.ledger(fit, X).identities if each.equation == "(20)"]
    assert stated[-1].right == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_21_lazy_k_means_reassigns_a_point_only_to_a_much_nearer_center(epsilon):
    centers, labels, rows = CENTERS, None, np.arange(N)
    for n_iter in (1, 2, 3):
        distances = np.sqrt(squared_distances(X, centers))
        nearest = distances.argmin(axis=1)
        if labels is None:
            labels = nearest
        labels = np.where((1 + epsilon) * distances[rows, nearest] < distances[rows, labels], nearest, labels)
        s = np.eye(C)[labels]
        centers = s.T @ X / s.sum(axis=0)[:, np.newaxis]
        options = {"init": CENTERS, "search": "full", "jumps": False, "tol": 0}
        fit = KMeans(C, epsilon=epsilon, max_iter=n_iter, **options).fit(X)
        assert_allclose(fit.cluster_centers_, centers, rtol=1e-10)


def test_22_classification_likelihood_is_the_free_energy_of_hard_assignment():
    fit = isotropic(assignment="hard", n_iter=3)
    s = np.eye(C)[squared_distances(X, fit.means_).argmin(axis=1)]
    log_normal = np.array([multivariate_normal(m, fit.covariances_ * np.eye(D)).logpdf(X) for m in fit.means_]).T
    assert fit.lower_bound_ == pytest.approx((s * (np.log(1 / C) + log_normal)).sum() / N, rel=1e-12)


def test_23_free_energy_of_any_responsibilities():
    fit = isotropic()
    q = np.random.default_rng(0).dirichlet(np.ones(C), N)
    p = log_isotropic(fit.means_, fit.covariances_)
    assert theory.free_energy(fit, X, q) == pytest.approx((q * p - q * np.log(q)).sum() / N, rel=1e-12)


def test_26_free_energy_of_one_assigned_component_is_maximal_for_the_nearest():
    P, rows = theory.Gaussians.spherical(CENTERS, np.sqrt(VARIANCE)), X[:3]
    bounds = {c: theory.free_energy(P, rows, np.eye(C)[list(c)]) for c in np.ndindex(C, C, C)}
    nearest = KMeans(C, init=CENTERS, max_iter=1).fit(CENTERS).predict(rows)
    assert max(bounds, key=bounds.__getitem__) == tuple(nearest) == tuple(squared_distances(rows, CENTERS).argmin(1))


def test_27_its_maximum_is_the_mean_log_joint_of_the_nearest_center():
    fit = isotropic(n_active=1)
    expected = log_isotropic(fit.means_, fit.covariances_).max(axis=1).mean()
    assert fit.lower_bound_ == pytest.approx(expected, rel=1e-12)


def test_28_weights_are_a_distribution():
    fit, p = (
        general(),
        np.array(
            [w * multivariate_normal(m, S).pdf(X) for w, m, S in zip(WEIGHTS, CENTERS, COVARIANCES, strict=True)]
        ).T,
    )
    assert fit.weights_.sum() == pytest.approx(1, abs=1e-12)
    assert_allclose(fit.weights_, (p / p.sum(axis=1, keepdims=True)).mean(axis=0), rtol=1e-10)


def test_29_density_of_a_general_component():
    P = theory.Gaussians(CENTERS, COVARIANCES, WEIGHTS)
    for c in range(C):
        difference, inverse = X - CENTERS[c], np.linalg.inv(COVARIANCES[c])
        squares = np.einsum("ni,ij,nj->n", difference, inverse, difference)
        density = np.linalg.det(2 * np.pi * COVARIANCES[c]) ** -0.5 * np.exp(-squares / 2)
        assert_allclose(np.exp(P.log_densities(X)[:, c]), density, rtol=1e-10)


def test_30_squared_mahalanobis_distance():
    fit = general()
    labels = fit.predict(X)
    difference = X - fit.means_[labels]
    squares = np.einsum("ni,nij,nj->n", difference, np.linalg.inv(fit.covariances_)[labels], difference)
    assert_allclose(np.square(fit.nearest(X)[1]), squares, rtol=1e-10)


def test_31_component_of_the_least_penalized_distance_is_kept():
    fit = general(n_active=1)
    difference = X[:, np.newaxis] - fit.means_
    squares = np.einsum("nci,cij,ncj->nc", difference, np.linalg.inv(fit.covariances_), difference)
    penalized = squares + np.log(np.linalg.det(2 * np.pi * fit.covariances_)) - 2 * np.log(fit.weights_)
    assert np.array_equal(fit.predict(X), penalized.argmin(axis=1))
    assert fit.lower_bound_ == pytest.approx(-penalized.min(axis=1).mean() / 2, rel=1e-12)
