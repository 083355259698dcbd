"""Algorithms 2 and 3 of Lücke & Forster step by step: exact EM (C′ = C) and k-means-C′ equal plain NumPy."""

import numpy as np
import pytest
from theory_data import DTYPES, k_means_c_prime, resolution

from cprime import GaussianMixture
from fits import clustered, random_weights

EQUAL = {"covariance_type": "tied_spherical", "weights": "equal"}
NOT_CONVERGED = pytest.mark.filterwarnings("ignore:The fit did not converge")
ABSOLUTE = {np.float32: 2e-4, np.float64: 1e-9}  # for coordinates of about 5, after the iterations below


def fitted(X, centers, variance, n_active, n_iter, weight=None):
    """Return the mixture after n_iter iterations from the given parameters."""
    return GaussianMixture(
        len(centers),
        n_active=n_active,
        means_init=centers,
        precisions_init=1 / variance,
        tol=0,
        max_iter=n_iter,
        **EQUAL,
    ).fit(X, sample_weight=weight)


@NOT_CONVERGED
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_active", [1, 2, 3, 5, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_step_is_that_of_the_algorithm(dtype, n_active, weighted):
    X = clustered(203, 3, dtype, seed=6)
    weight = random_weights(203) if weighted else None
    centers = X[np.random.default_rng(2).choice(203, 6, replace=False)]
    for n_iter in (1, 2, 3, 4, 5, 9):
        ours = fitted(X, centers, 2.5, n_active, n_iter, weight)
        means, variance, bounds = k_means_c_prime(X, centers, 2.5, n_active or 6, n_iter, weight)
        np.testing.assert_allclose(ours.means_, means, rtol=0, atol=ABSOLUTE[dtype])
        assert ours.variance_ == pytest.approx(variance, rel=ABSOLUTE[dtype])
        np.testing.assert_allclose(ours.lower_bounds_, bounds, rtol=ABSOLUTE[dtype])
        assert ours.n_iter_ == n_iter


@NOT_CONVERGED
def test_keeping_all_is_exact_em_however_it_is_said():
    X = clustered(150, 2, seed=1)
    centers = X[:5]
    fits = [fitted(X, centers, 1.0, n_active, 7) for n_active in (None, 5, "auto")]
    assert [fit.n_active_ for fit in fits] == [5, 5, 5]
    assert len({fit.means_.tobytes() for fit in fits}) == 1
    assert len({fit.lower_bound_ for fit in fits}) == 1


@pytest.mark.parametrize("n_active", [1, None])
def test_one_component_is_the_gaussian_of_maximum_likelihood(n_active):
    X = clustered(90, 4)
    weight = random_weights(90)
    gm = GaussianMixture(1, n_active=n_active, random_state=0, **EQUAL).fit(X, sample_weight=weight)
    mean = np.average(X, axis=0, weights=weight)
    variance = np.average(np.square(X - mean).sum(axis=1), weights=weight) / 4
    np.testing.assert_allclose(gm.means_, [mean], rtol=1e-12)
    assert gm.variance_ == pytest.approx(variance, rel=1e-12)
    assert gm.lower_bound_ == pytest.approx(-2 * np.log(2 * np.pi * np.e * variance), rel=1e-12)


@pytest.mark.parametrize("n_active", [1, 2, None])
def test_converged_parameters_are_a_fixed_point(n_active):
    """One more E- and M-step in plain NumPy does not change the parameters of a converged fit."""
    X = clustered(300, 2, seed=3)
    gm = GaussianMixture(5, n_active=n_active, tol=1e-14, max_iter=5000, random_state=0, **EQUAL).fit(X)
    assert gm.converged_
    means, variance, bounds = k_means_c_prime(X, gm.means_, gm.variance_, gm.n_active_, 1)
    np.testing.assert_allclose(means, gm.means_, rtol=0, atol=1e-5)
    assert variance == pytest.approx(gm.variance_, rel=1e-5)
    assert gm.lower_bound_ == pytest.approx(bounds[0], abs=resolution(np.float64, 2, bounds[0]))


def seven_overlapping(n_per_cluster):
    """Return the data and centers of fig. S4: one Gaussian in the middle of six equal ones that overlap."""
    angle = np.arange(6) * np.pi / 3
    centers = 2.0 * np.vstack([[0.0, 0.0], np.column_stack([np.cos(angle), np.sin(angle)])])
    X = np.repeat(centers, n_per_cluster, axis=0)
    return X + np.random.default_rng(0).standard_normal(X.shape), centers


@pytest.mark.long
def test_from_the_truth_em_stays_where_k_means_leaves():
    """Fig. S4: started at the true centers, k-means raises F, lowers L and moves the outer centers out; EM stays."""
    X, truth = seven_overlapping(4000)
    fits = {
        n_active: GaussianMixture(
            7, n_active=n_active, means_init=truth, precisions_init=1.0, tol=1e-6, max_iter=300, **EQUAL
        ).fit(X)
        for n_active in (1, None)
    }
    shift = {n_active: np.linalg.norm(fit.means_ - truth, axis=1) for n_active, fit in fits.items()}
    at_truth = GaussianMixture(
        7, n_active=None, means_init=truth, precisions_init=1.0, tol=10.0, max_iter=2, **EQUAL
    ).fit(X)
    likelihood_of_truth = at_truth.lower_bounds_[0]
    assert fits[1].lower_bound_ > fits[1].lower_bounds_[0]
    assert fits[1].score(X) < likelihood_of_truth - 0.01
    assert fits[None].score(X) >= likelihood_of_truth
    assert shift[1][1:].min() > 0.2
    assert (np.linalg.norm(fits[1].means_[1:], axis=1) > 2.2).all()
    assert shift[None].max() < 0.2
    assert fits[None].variance_ == pytest.approx(1, abs=0.05)
    assert fits[1].variance_ < 0.8
