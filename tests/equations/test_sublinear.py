"""Equations of Forster & Lücke, Can clustering scale sublinearly with its clusters?: one test for each row."""

import numpy as np
import pytest
from mixtures_of_rows import CENTERS, VARIANCE, C, D, N, X, isotropic, k_means
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax

from cprime import KMeans, theory
from cprime.search import Papers
from fits import squared_distances

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ALONE = {"start": "random", "n_warmup": 0, "final_assignment": "found", "certificate": 0}


def log_joint(centers, variance):
    """Return log p(c, x_n) of the isotropic mixture: (N, C)."""
    return -np.log(C) - D / 2 * np.log(2 * np.pi * variance) - squared_distances(X, centers) / (2 * variance)


def kept(values, n):
    """Return the values, with −∞ in place of those that are not among the n largest of their row."""
    return np.where(values >= np.sort(values, axis=1)[:, [-n]], values, -np.inf)


def test_1_log_likelihood_is_a_sum_over_points():
    fit = isotropic()
    assert N * fit.score(X) == pytest.approx(
        logsumexp(log_joint(fit.means_, fit.covariances_), axis=1).sum(), rel=1e-12
    )


def test_2_density_of_the_isotropic_mixture():
    fit = isotropic()
    exponentials = np.exp(-squared_distances(X, fit.means_) / (2 * fit.covariances_))
    density = 1 / C * (2 * np.pi * fit.covariances_) ** (-D / 2) * exponentials.sum(axis=1)
    assert_allclose(np.exp(fit.score_samples(X)), density, rtol=1e-10)


def test_3_responsibilities_are_functions_of_the_distances():
    fit = isotropic()
    d = np.sqrt(squared_distances(X, fit.means_))
    s = np.exp(-0.5 * (d / np.sqrt(fit.covariances_)) ** 2)
    assert_allclose(fit.predict_proba(X), s / s.sum(axis=1, keepdims=True), rtol=1e-9)


def test_4_m_step():
    fit, s = isotropic(), softmax(log_joint(CENTERS, VARIANCE), axis=1)
    means = s.T @ X / s.sum(axis=0)[:, np.newaxis]
    assert_allclose(fit.means_, means, rtol=1e-10)
    assert fit.covariances_ == pytest.approx((s * squared_distances(X, means)).sum() / (D * N), rel=1e-10)


def test_5_truncated_posterior():
    fit = isotropic(n_active=3)
    p = np.exp(kept(log_joint(fit.means_, fit.covariances_), 3))
    assert_allclose(fit.predict_proba(X), p / p.sum(axis=1, keepdims=True), atol=1e-12)


def test_6_free_energy_has_the_posteriors_of_other_parameters():
    """q is the truncated posterior of the parameters before the M-step, p(c, x) has those after it."""
    fit, q = isotropic(n_active=2), softmax(kept(log_joint(CENTERS, VARIANCE), 2), axis=1)
    entropy = -(q * np.log(np.where(q > 0, q, 1))).sum()
    expected = (q * log_joint(fit.means_, fit.covariances_)).sum() + entropy
    assert N * theory.free_energy(fit, X, q) == pytest.approx(expected, rel=1e-12)


def test_7_full_e_step_maximizes_the_free_energy_over_the_active_sets():
    P, rows = theory.Gaussians.spherical(CENTERS, np.sqrt(VARIANCE)), X[:4]
    p = np.exp(P.log_densities(rows))
    pairs = [pair for pair in np.ndindex(C, C) if pair[0] < pair[1]]
    best = np.array([[p[n, list(pair)].sum() for pair in pairs] for n in range(len(rows))]).argmax(axis=1)
    bounds = []
    for n, x in enumerate(rows):
        q = [np.where(np.isin(np.arange(C), pair), p[n], 0) for pair in pairs]
        bounds.append([theory.free_energy(P, [x], [each / each.sum()]) for each in q])
    assert np.array_equal(np.argmax(bounds, axis=1), best)
    found = isotropic(n_active=2, n_iter=1)
    assert found.lower_bounds_[0] == pytest.approx(logsumexp(kept(log_joint(CENTERS, VARIANCE), 2), axis=1).mean())


def test_8_lists_are_ordered_by_mean_distances_of_points_to_components():
    search = Papers("estimated", n_neighbors=C, n_explore=0, **ALONE)  # each point sees all components
    fit = KMeans(C, init=CENTERS, search=search, jumps=False, tol=0, max_iter=2, random_state=0).fit(X)
    distances = np.sqrt(squared_distances(X, CENTERS))
    nearest = distances.argmin(axis=1)
    between = np.array([distances[nearest == c].mean(axis=0) for c in range(C)])
    np.fill_diagonal(between, -np.inf)
    assert np.array_equal(fit.neighbors_, between.argsort(axis=1))


def test_9_sums_of_8_have_as_many_terms_as_points_have_candidates():
    search = Papers("estimated", n_neighbors=2, n_explore=0, **ALONE)
    fit = KMeans(C, init=CENTERS, search=search, jumps=False, tol=0, max_iter=3, random_state=0).fit(X)
    assert (fit.history_["n_distances"] <= N * 2).all()
    assert (fit.history_["n_distances"] >= N).all()


def test_10_free_energy_of_truncated_posteriors():
    fit = isotropic(n_active=2)
    expected = logsumexp(kept(log_joint(fit.means_, fit.covariances_), 2), axis=1).sum()
    assert N * fit.lower_bound_ == pytest.approx(expected, rel=1e-12)


def test_11_a_nearer_component_raises_the_free_energy():
    P, x = theory.Gaussians.spherical(CENTERS, np.sqrt(VARIANCE)), X[7:8]
    distances = np.linalg.norm(x - CENTERS, axis=1)
    bounds = [theory.free_energy(P, x, np.eye(C)[[c]]) for c in range(C)]
    assert np.array_equal(np.argsort(bounds), np.argsort(-distances))


def test_12_joint_density():
    P = theory.Gaussians.spherical(CENTERS, np.sqrt(VARIANCE))
    p = 1 / C * (2 * np.pi * VARIANCE) ** (-D / 2) * np.exp(-squared_distances(X, CENTERS) / (2 * VARIANCE))
    assert_allclose(np.exp(P.log_densities(X)) * P.weights, p, rtol=1e-12)


def test_13_of_two_components_the_nearer_has_the_larger_joint_density():
    labels = k_means().predict(X)
    P = theory.Gaussians.spherical(k_means().cluster_centers_, np.sqrt(VARIANCE))
    assert np.array_equal(P.log_densities(X).argmax(axis=1), labels)
    assert np.array_equal(squared_distances(X, P.means).argmin(axis=1), labels)
