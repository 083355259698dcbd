"""Soft k-means (MacKay): EM with a fixed variance, between k-means and one cluster at the mean."""

import numpy as np
import pytest
from family_data import DTYPES, EQUAL, TOLERANCE, miyamoto

from cprime import GaussianMixture, KMeans, SoftKMeans
from cprime.estimators.validation import as_search
from fits import clustered, squared_distances

NOT_CONVERGED = pytest.mark.filterwarnings("ignore:The fit did not converge")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_active", [2, None])
def test_responsibilities_are_of_the_given_stiffness(dtype, n_active):
    X = clustered(150, 3, dtype)
    fit = SoftKMeans(5, stiffness=0.4, n_active=n_active, init=X[:5]).fit(X)
    expected = miyamoto(squared_distances(X, fit.cluster_centers_), 1 / 0.4, n_active or 5)
    np.testing.assert_allclose(fit.predict_proba(X), expected, atol=TOLERANCE[dtype])
    assert (fit.stiffness_, fit.variance_) == (pytest.approx(0.4, rel=1e-15), pytest.approx(1 / 0.8, rel=1e-15))
    assert np.array_equal(fit.predict_proba(X, sparse=True).toarray(), fit.predict_proba(X))
    assert np.array_equal(fit.labels_, fit.predict(X))
    assert fit.inertia_ == pytest.approx(squared_distances(X, fit.cluster_centers_).min(axis=1).sum(), rel=1e-5)


@NOT_CONVERGED
@pytest.mark.parametrize("n_active", [1, 2, 5])
def test_one_iteration_is_that_of_the_mixture_with_this_variance(n_active):
    X = clustered(200, 3)
    mixture = GaussianMixture(5, n_active=n_active, means_init=X[:5], precisions_init=0.8, max_iter=1, **EQUAL).fit(X)
    fit = SoftKMeans(5, stiffness=0.4, n_active=n_active, init=X[:5], max_iter=1).fit(X)
    assert np.array_equal(fit.cluster_centers_, mixture.means_)
    assert fit.lower_bounds_ == mixture.lower_bounds_


@pytest.mark.parametrize("n_active", [2, 5])
def test_what_the_mixture_has_found_is_a_solution_at_its_variance(n_active):
    X = clustered(300, 2, n_clusters=5)
    mixture = GaussianMixture(5, n_active=n_active, means_init=X[:5], tol=1e-13, max_iter=5000, **EQUAL).fit(X)
    fit = SoftKMeans(
        5, stiffness=0.5 / mixture.variance_, n_active=n_active, init=mixture.means_, tol=0, max_iter=200
    ).fit(X)
    np.testing.assert_allclose(fit.cluster_centers_, mixture.means_, atol=1e-4)
    assert fit.bounds(X).log_likelihood == pytest.approx(mixture.bounds(X).log_likelihood, abs=1e-8)
    softer = SoftKMeans(
        5, stiffness=0.2 / mixture.variance_, n_active=n_active, init=mixture.means_, tol=0, max_iter=200
    ).fit(X)
    assert softer.bounds(X).log_likelihood < mixture.bounds(X).log_likelihood - 1e-3


def test_a_great_stiffness_is_k_means():
    X = clustered(400, 3)
    plain = KMeans(6, init=X[:6], tol=0, search="full").fit(X)
    stiff = SoftKMeans(6, stiffness=1e8, init=X[:6], tol=0).fit(X)
    assert np.array_equal(stiff.labels_, plain.labels_)
    np.testing.assert_allclose(stiff.cluster_centers_, plain.cluster_centers_, rtol=1e-9)
    softer = SoftKMeans(6, stiffness=0.5, init=X[:6], tol=0).fit(X)
    assert np.abs(softer.cluster_centers_ - plain.cluster_centers_).max() > 0.01


@pytest.mark.parametrize("stiffness", [0.01, 1.0, 100.0])
def test_one_kept_cluster_is_k_means_whatever_the_stiffness(stiffness):
    X = clustered(400, 3)
    plain = KMeans(6, init=X[:6], tol=0, search="full").fit(X)
    fit = SoftKMeans(6, stiffness=stiffness, n_active=1, init=X[:6], tol=0).fit(X)
    assert np.array_equal(fit.labels_, plain.labels_)
    np.testing.assert_allclose(fit.cluster_centers_, plain.cluster_centers_, rtol=1e-12)


@pytest.mark.parametrize(("factor", "stays"), [(0.8, True), (0.95, True), (1.05, False), (1.3, False)])
def test_centers_leave_the_mean_once_sigma_is_below_the_largest_spread(factor, stays):
    """All centers stay at the mean until σ falls below the largest standard deviation (MacKay, chapter 20)."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 3)) * [1.0, 2.0, 5.0]
    X -= X.mean(axis=0)
    largest = np.linalg.eigvalsh(X.T @ X / len(X))[-1]
    near = 1e-3 * rng.standard_normal((4, 3))
    fit = SoftKMeans(4, stiffness=factor / (2 * largest), init=near, tol=0, max_iter=400).fit(X)
    apart = np.ptp(fit.cluster_centers_, axis=0).max()
    assert apart < np.ptp(near, axis=0).max() / 10 if stays else apart > 0.5


def test_stiffness_by_default_is_that_of_the_start_and_stays():
    X = clustered(300, 3)
    fits = [SoftKMeans(6, init=X[:6], max_iter=n, tol=0).fit(X) for n in (1, 20)]
    squares = squared_distances(X, X[:6]).min(axis=1).sum()
    for fit in fits:
        assert fit.variance_ == pytest.approx(squares / X.size, rel=1e-12)
    assert fits[1].inertia_ < 0.9 * squares


def test_bounds_have_no_gap_where_all_are_kept():
    X = clustered(200, 3)
    full = SoftKMeans(5, init=X[:5]).fit(X).bounds(X)
    assert full.kl_gap == pytest.approx(0, abs=1e-10)
    assert full.entropy > 0.01
    part = SoftKMeans(5, n_active=2, init=X[:5]).fit(X).bounds(X)
    assert part.kl_gap > 1e-6


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"stiffness": 0}, ValueError, "stiffness must be > 0, got 0"),
        ({"stiffness": -1.0}, ValueError, "stiffness must be > 0, got -1.0"),
        ({"stiffness": np.nan}, ValueError, "stiffness must be finite|stiffness == nan"),
        ({"stiffness": "soft"}, ValueError, "stiffness must be 'auto' or a number > 0, got 'soft'"),
        ({"stiffness": [1.0]}, TypeError, r"stiffness must be 'auto' or a number > 0, got \[1.0\]"),
        ({"stiffness": True}, TypeError, "stiffness must be 'auto' or a number > 0, got True"),
        ({"n_active": 4}, ValueError, "n_active must be at most n_clusters=3, got 4"),
        ({"max_iter": 0}, ValueError, "max_iter == 0"),
        ({"init": "best"}, ValueError, "init should be"),
        ({"n_clusters": 41}, ValueError, "n_samples=40 should be >= n_clusters=41"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        SoftKMeans(**({"n_clusters": 3} | arguments)).fit(clustered(40, 2))


@pytest.mark.parametrize("search", ["graph", "exact", "estimated"])
def test_partial_searches_raise_the_same_bound(search):
    X = clustered(2000, 3, n_clusters=40, spread=8.0)
    common = {"stiffness": 0.5, "n_active": 3, "tol": 0, "max_iter": 30, "random_state": 0}
    full = SoftKMeans(40, init=X[:40], search="full", **common).fit(X)
    fit = SoftKMeans(40, init=X[:40], search=as_search(search).with_params(n_neighbors=8), **common).fit(X)
    bounds = np.array([*fit.lower_bounds_, fit.lower_bound_])
    assert (np.diff(bounds) >= -1e-12).all()
    assert fit.variance_ == full.variance_ == 1.0
    assert fit.neighbors_.shape == (40, 8)
    assert full.neighbors_ is None
    assert fit.certificate_["agreement"] > 0.9
    assert -1e-9 <= fit.bounds(X).free_energy - fit.lower_bound_ < 0.02
