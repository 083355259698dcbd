"""Proposition 3 and Corollary 2 of Lücke & Forster, eq. (14)–(16) and (19): k-means and mixture likelihood."""

import numpy as np
import pytest
from scipy.special import logsumexp
from theory_data import DTYPES, bound_of, free_energy, log_likelihood, model_of, nearest_sets, resolution

from cprime import KMeans
from fits import clustered, random_weights, squared_distances

ITERATIONS = (1, 2, 3, 300)
RELATIVE = {np.float32: 1e-5, np.float64: 1e-12}


def fits(dtype, weighted):
    """Yield fitted k-means before and at convergence, with data and weights."""
    X = clustered(180, 3, dtype, seed=5)
    weight = random_weights(180) if weighted else None
    for max_iter in ITERATIONS:
        km = KMeans(7, init=X[:7], tol=0, max_iter=max_iter).fit(X, sample_weight=weight)
        assert km.converged_ == (max_iter == 300)
        yield X, weight, km


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_14_variance_is_the_mean_error_per_dimension_and_maximises_the_bound(dtype, weighted):
    for X, weight, km in fits(dtype, weighted):
        W = len(X) if weight is None else weight.sum()
        J = np.sum((1 if weight is None else weight) * squared_distances(X, km.cluster_centers_).min(axis=1))
        assert km.inertia_ == pytest.approx(J, rel=RELATIVE[dtype])
        assert km.variance_ == pytest.approx(J / (3 * W), rel=RELATIVE[dtype])
        for factor in (0.8, 0.99, 1.01, 1.3):
            other = model_of(km.cluster_centers_, km.variance_ * factor)
            assert bound_of(X, other, 1, weight=weight) < km.lower_bound_


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_15_bound_is_a_function_of_the_variance_alone(dtype, weighted):
    for X, weight, km in fits(dtype, weighted):
        closed = -np.log(7) - 3 / 2 * np.log(2 * np.pi * np.e * km.variance_)
        kept = nearest_sets(X, km.cluster_centers_, 1)
        assert km.lower_bound_ == pytest.approx(closed, rel=1e-12)
        general = free_energy(X, km.cluster_centers_, km.variance_, kept, weight)
        assert km.lower_bound_ == pytest.approx(general, rel=RELATIVE[dtype])
        of_history = -np.log(7) - 3 / 2 * np.log(2 * np.pi * np.e * errors(km) / (3 * total(X, weight)))
        np.testing.assert_allclose(km.lower_bounds_, of_history, rtol=1e-12)


def errors(km):
    """Return J as computed in the E-step of each iteration."""
    return km.history_["quantization_error"]


def total(X, weight):
    """Return the total weight W = Σ_n w_n."""
    return len(X) if weight is None else weight.sum()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_16_gap_to_the_likelihood_is_the_formula(dtype, weighted):
    for X, weight, km in fits(dtype, weighted):
        bounds = km.bounds(X, sample_weight=weight)
        exponents = -squared_distances(X, km.cluster_centers_) / (2 * km.variance_)
        gap = 3 / 2 + np.average(logsumexp(exponents, axis=1), weights=weight)
        tolerance = 10 * resolution(dtype, 3)
        assert bounds.kl_gap == pytest.approx(gap, abs=tolerance)
        assert bounds.kl_gap == pytest.approx(bounds.log_likelihood - bounds.free_energy, abs=tolerance)
        likelihood = log_likelihood(X, km.cluster_centers_, km.variance_, weight)
        assert bounds.log_likelihood == pytest.approx(likelihood, rel=RELATIVE[dtype])
        assert bounds.free_energy == pytest.approx(km.lower_bound_, rel=RELATIVE[dtype])
        assert bounds.kl_gap > 0.01
        assert bounds.entropy == 0


@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0, 100.0])
def test_16_gap_is_never_negative_and_vanishes_where_clusters_are_far_apart(spread):
    X = clustered(400, 2, seed=1, n_clusters=4, spread=spread)
    gap = KMeans(4, n_init=10, random_state=0).fit(X).bounds(X).kl_gap
    assert gap >= -resolution(np.float64, 2)
    assert (gap < 1e-9) == (spread == 100)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_corollary_2_the_bound_rises_strictly_and_stays_below_the_likelihood(dtype, weighted, seed):
    X = clustered(300, 4, dtype, seed=seed)
    weight = random_weights(300) + 0.01 if weighted else None  # reassigning points of weight 0 changes no bound
    km = KMeans(9, init=X[:9], tol=0).fit(X, sample_weight=weight)
    assert km.converged_
    assert km.n_iter_ > 4
    assert (np.diff(km.lower_bounds_) > 0).all()
    for n_iter in range(1, km.n_iter_ + 1):
        stopped = KMeans(9, init=X[:9], tol=0, max_iter=n_iter).fit(X, sample_weight=weight)
        likelihood = log_likelihood(X, stopped.cluster_centers_, stopped.variance_, weight)
        W = total(X, weight)
        of_19 = -np.log(9) - 2 * np.log(2 * np.pi * np.e * stopped.inertia_ / (4 * W))
        assert likelihood > of_19 + 1e-3
        assert stopped.lower_bound_ == pytest.approx(of_19, rel=1e-12)
