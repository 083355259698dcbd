"""Equations of MacKay, Information Theory, Inference, and Learning Algorithms, chapters 20 and 22: one test per row.

MacKay's distance is d(x, y) = ½ Σ_i (x_i − y_i)², so his stiffness β is twice that of `SoftKMeans`.
"""

import numpy as np
import pytest
from mixtures_of_rows import CENTERS, EXACTLY, WEIGHTS, C, D, N, X, k_means
from numpy.testing import assert_allclose

from cprime import GaussianMixture, SoftKMeans, theory
from fits import squared_distances

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BETA = 0.7
d = 0.5 * squared_distances(X, CENTERS)
r_1 = np.exp(-BETA * d) / np.exp(-BETA * d).sum(axis=1, keepdims=True)  # (20.7)
SIGMA = np.array([0.8, 1.0, 1.2, 1.5])
SIGMAS = np.outer(SIGMA, [0.5, 1.0, 2.0])


def soft():
    options = {"stiffness": BETA / 2, "init": CENTERS, "search": "full", "tol": 0}
    return SoftKMeans(C, max_iter=1, **options).fit(X)


def mixture(covariance_type, precisions):
    start = {"means_init": CENTERS, "weights_init": WEIGHTS, "precisions_init": precisions}
    return GaussianMixture(C, covariance_type=covariance_type, n_active=None, max_iter=1, **start, **EXACTLY).fit(X)


def version_2():
    """Return the responsibilities of (22.22)."""
    p = WEIGHTS / (np.sqrt(2 * np.pi) * SIGMA) ** D * np.exp(-d / SIGMA**2)
    return p / p.sum(axis=1, keepdims=True)


def version_3():
    """Return the responsibilities of (22.27)."""
    exponents = (np.square(CENTERS - X[:, np.newaxis]) / (2 * SIGMAS**2)).sum(axis=2)
    p = WEIGHTS / (np.sqrt(2 * np.pi) * SIGMAS).prod(axis=1) * np.exp(-exponents)
    return p / p.sum(axis=1, keepdims=True)


def test_algorithm_20_2_assignment_step():
    fit = k_means()
    assert np.array_equal(fit.predict(X), (0.5 * squared_distances(X, fit.cluster_centers_)).argmin(axis=1))


def test_algorithm_20_2_update_step():
    r = np.eye(C)[d.argmin(axis=1)]
    assert_allclose(k_means().cluster_centers_, r.T @ X / r.sum(axis=0)[:, np.newaxis], rtol=1e-12)


def test_20_7_soft_assignment():
    fit = soft()
    after = 0.5 * squared_distances(X, fit.cluster_centers_)
    r = np.exp(-BETA * after)
    assert_allclose(fit.predict_proba(X), r / r.sum(axis=1, keepdims=True), rtol=1e-9)


def test_20_8_update_of_the_means():
    assert_allclose(soft().cluster_centers_, r_1.T @ X / r_1.sum(axis=0)[:, np.newaxis], rtol=1e-10)


def test_20_9_total_responsibility():
    w = np.random.default_rng(0).uniform(0.5, 2, N)
    options = {"stiffness": BETA / 2, "init": CENTERS, "search": "full", "tol": 0, "max_iter": 1}
    found = SoftKMeans(C, **options).fit(X, sample_weight=w).cluster_centers_
    total = (w[:, np.newaxis] * r_1).sum(axis=0)
    assert_allclose(found * total[:, np.newaxis], (w[:, np.newaxis] * r_1).T @ X, rtol=1e-10)


def test_stiffness_is_the_inverse_variance():
    """β = 1/σ²: version 1 is EM of the mixture of equal weights and one fixed variance."""
    fit = soft()
    assert fit.variance_ == pytest.approx(1 / BETA, rel=1e-12)
    P = theory.Gaussians.spherical(fit.cluster_centers_, np.sqrt(1 / BETA))
    r = np.exp(P.log_densities(X))
    assert_allclose(fit.predict_proba(X), r / r.sum(axis=1, keepdims=True), rtol=1e-9)


def test_22_22_soft_assignment_with_weights_and_variances():
    fit, r = mixture("spherical", 1 / SIGMA**2), version_2()
    assert_allclose(N * fit.weights_, r.sum(axis=0), rtol=1e-10)
    after = fit.weights_ / (2 * np.pi * fit.covariances_) ** (D / 2)
    p = after * np.exp(-0.5 * squared_distances(X, fit.means_) / fit.covariances_)
    assert_allclose(fit.predict_proba(X), p / p.sum(axis=1, keepdims=True), rtol=1e-8, atol=1e-14)


def test_22_23_update_of_the_means():
    r = version_2()
    assert_allclose(mixture("spherical", 1 / SIGMA**2).means_, r.T @ X / r.sum(axis=0)[:, np.newaxis], rtol=1e-10)


def test_22_24_update_of_the_variances():
    fit, r = mixture("spherical", 1 / SIGMA**2), version_2()
    expected = (r * squared_distances(X, fit.means_)).sum(axis=0) / (D * r.sum(axis=0))
    assert_allclose(fit.covariances_, expected, rtol=1e-9)


def test_22_25_update_of_the_weights():
    R = version_2().sum(axis=0)
    assert_allclose(mixture("spherical", 1 / SIGMA**2).weights_, R / R.sum(), rtol=1e-10)


def test_22_26_total_responsibility():
    fit, r = mixture("spherical", 1 / SIGMA**2), version_2()
    R = np.array([sum(r[n, k] for n in range(N)) for k in range(C)])
    assert_allclose(fit.weights_ * N, R, rtol=1e-10)


def test_22_27_soft_assignment_of_axis_aligned_gaussians():
    fit, r = mixture("diag", 1 / SIGMAS**2), version_3()
    assert_allclose(fit.means_, r.T @ X / r.sum(axis=0)[:, np.newaxis], rtol=1e-10)
    assert_allclose(fit.weights_, r.mean(axis=0), rtol=1e-10)


def test_22_28_update_of_the_variances_of_columns():
    fit, r = mixture("diag", 1 / SIGMAS**2), version_3()
    squares = np.square(X[:, np.newaxis] - fit.means_)
    assert_allclose(fit.covariances_, np.einsum("nk,nki->ki", r, squares) / r.sum(axis=0)[:, np.newaxis], rtol=1e-9)


def test_likelihood_grows_without_bound_if_a_component_has_one_point():
    """Section 22.4 (KABOOM!): as σ → 0, log p(X) of a mixture with a center at a point grows like −D log σ."""
    values = []
    for sigma in (1e-2, 1e-4, 1e-6):
        P = theory.Gaussians.spherical(np.array([X[0], X.mean(axis=0)]), [sigma, 2.0], [0.5, 0.5])
        q = np.exp(P.log_densities(X[:1])) * P.weights
        values.append(theory.free_energy(P, X[:1], q / q.sum()))
    assert_allclose(np.diff(values), D * np.log(100), rtol=1e-6)
