"""Equations of the lecture slides on k-means and Gaussian mixtures: one test for each row of the page."""

import numpy as np
import pytest
from mixtures_of_rows import CENTERS, COVARIANCES, WEIGHTS, C, N, X, general, k_means
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from cprime import KMeans1D, theory
from fits import squared_distances

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def log_joint(weights, means, covariances):
    """Return log π_k + log N(x_n | μ_k, Σ_k): (N, K)."""
    parameters = zip(weights, means, covariances, strict=True)
    return np.array([np.log(w) + multivariate_normal(m, S).logpdf(X) for w, m, S in parameters]).T


def test_k_means_objective():
    fit = k_means()
    z = np.eye(C)[fit.labels_]
    assert fit.inertia_ == pytest.approx((z * squared_distances(X, fit.cluster_centers_)).sum(), rel=1e-12)


def test_k_means_steps():
    z = np.eye(C)[squared_distances(X, CENTERS).argmin(axis=1)]
    assert_allclose(k_means().cluster_centers_, z.T @ X / z.sum(axis=0)[:, np.newaxis], rtol=1e-12)


def test_k_means_convergence():
    errors, centers = k_means(n_iter=100).history_["quantization_error"], CENTERS
    for found in errors:
        squares = squared_distances(X, centers)
        assert found == pytest.approx(squares.min(axis=1).sum(), rel=1e-12)
        z = np.eye(C)[squares.argmin(axis=1)]
        centers = z.T @ X / z.sum(axis=0)[:, np.newaxis]
    assert (np.diff(errors) <= 0).all()


def test_k_means_in_one_dimension_is_solved_by_dynamic_programming():
    x = np.sort(X[:30, 0])

    def error(i, j):
        return np.square(x[i:j] - x[i:j].mean()).sum()

    best = [error(0, j) if j else 0.0 for j in range(len(x) + 1)]
    for _ in range(C - 1):
        best = [min([best[i] + error(i, j) for i in range(j)], default=0.0) for j in range(len(x) + 1)]
    assert KMeans1D(C).fit(x[:, np.newaxis]).inertia_ == pytest.approx(best[-1], rel=1e-12)


def test_k_means_is_a_matrix_factorization():
    fit = k_means()
    U, Z = fit.cluster_centers_.T, np.eye(C)[fit.labels_].T
    (stated,) = (each for each in theory.ledger(fit, X).identities if each.equation == "matrix")
    residual = np.linalg.norm(X.T - U @ Z, "fro") ** 2
    assert stated.right == pytest.approx(residual, rel=1e-12)
    assert stated.left == pytest.approx(residual, rel=1e-9)


def test_mixture_samples():
    """A component with probability π_k, then a point of its Gaussian."""
    fit = general()
    rows, k = fit.sample(40_000, random_state=0)
    assert_allclose(np.bincount(k, minlength=C) / len(k), fit.weights_, atol=0.015)
    for c in range(C):
        assert_allclose(rows[k == c].mean(axis=0), fit.means_[c], atol=0.1)
        assert_allclose(np.cov(rows[k == c].T), fit.covariances_[c], atol=0.2)


def test_mixture_density():
    fit = general()
    p = np.exp(log_joint(fit.weights_, fit.means_, fit.covariances_)).sum(axis=1)
    assert_allclose(np.exp(fit.score_samples(X)), p, rtol=1e-10)


def test_mixture_log_likelihood():
    fit = general()
    p = np.exp(log_joint(fit.weights_, fit.means_, fit.covariances_)).sum(axis=1)
    assert N * fit.score(X) == pytest.approx(np.log(p).sum(), rel=1e-12)


def test_complete_log_likelihood():
    P, z = theory.Gaussians(CENTERS, COVARIANCES, WEIGHTS), np.eye(C)[np.arange(N) % C]
    expected = (z * log_joint(WEIGHTS, CENTERS, COVARIANCES)).sum()
    assert N * theory.free_energy(P, X, z) == pytest.approx(expected, rel=1e-12)


def test_lower_bound_by_jensens_inequality():
    P, q = theory.Gaussians(CENTERS, COVARIANCES, WEIGHTS), np.random.default_rng(0).dirichlet(np.ones(C), N)
    joint = log_joint(WEIGHTS, CENTERS, COVARIANCES)
    expected = (q * (joint - np.log(q))).sum()
    assert N * theory.free_energy(P, X, q) == pytest.approx(expected, rel=1e-12)
    assert expected < np.log(np.exp(joint).sum(axis=1)).sum()


def test_e_step():
    fit = general()
    joint = np.exp(log_joint(fit.weights_, fit.means_, fit.covariances_))
    assert_allclose(fit.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-8, atol=1e-14)


def test_m_step():
    fit, joint = general(), np.exp(log_joint(WEIGHTS, CENTERS, COVARIANCES))
    gamma = joint / joint.sum(axis=1, keepdims=True)
    means = gamma.T @ X / gamma.sum(axis=0)[:, np.newaxis]
    about = X[:, np.newaxis] - means
    assert_allclose(fit.weights_, gamma.sum(axis=0) / N, rtol=1e-10)
    assert_allclose(fit.means_, means, rtol=1e-10)
    expected = np.einsum("nk,nki,nkj->kij", gamma, about, about) / gamma.sum(axis=0)[:, np.newaxis, np.newaxis]
    assert_allclose(fit.covariances_, expected, rtol=1e-8, atol=1e-12)
