"""Fits with bounded search equal those with full search and evaluate fewer distances."""

import numpy as np
import pytest
from search_data import DTYPES, clustered, kmeans, mixture

from cprime import KMeans
from cprime.estimators.validation import resolve_search
from cprime.search import Bounded, Full, Graph
from fits import random_weights

duplicates = pytest.mark.filterwarnings("ignore:Number of distinct clusters")
not_converged = pytest.mark.filterwarnings("ignore:The fit did not converge")


def assert_same_fit(X, C, weight=None, **given):
    """Fit with both searches from one start and compare them; return the bounded fit and its share of evaluations."""
    full = kmeans(C, "full", **given).fit(X, sample_weight=weight)
    bounded = kmeans(C, "bounded", **given).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(bounded.labels_, full.labels_)
    np.testing.assert_array_equal(bounded.history_["n_moved"], full.history_["n_moved"])
    assert bounded.n_iter_ == full.n_iter_
    assert bounded.n_relocated_ == full.n_relocated_
    assert bounded.converged_ == full.converged_
    # Sums are updated incrementally if few points are reassigned. Their last digits then differ, except in float32.
    exact = X.dtype == np.float32
    scale = np.abs(X).max()
    np.testing.assert_allclose(
        bounded.cluster_centers_, full.cluster_centers_, rtol=0, atol=0 if exact else 1e-12 * scale
    )
    np.testing.assert_allclose(
        bounded.history_["quantization_error"], full.history_["quantization_error"], rtol=0 if exact else 1e-11
    )
    return bounded, bounded.history_["n_distances"].sum() / full.history_["n_distances"].sum()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "D", "C"),
    [(1500, 2, 20), (900, 10, 40), (1000, 3, 4), (300, 2, 2), (1500, 1, 60), (1500, 40, 20), (2000, 2, 600)],
)
def test_fits_are_those_of_the_full_search(n, D, C, dtype):
    X = clustered(n, D, dtype, seed=D, spread=1.5)
    _, share = assert_same_fit(X, C, init="random", tol=0)
    assert share < 0.85
    assert_same_fit(X, C, random_weights(n), tol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_most_evaluations_are_spared(dtype):
    X = clustered(5000, 2, dtype, n_clusters=50)
    fit, share = assert_same_fit(X, 50, init=X[:50], tol=0)
    assert fit.n_iter_ > 10
    assert share < 0.35
    assert fit.history_["n_distances"][-1] < 2 * len(X)


@duplicates
@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_and_outliers_have_the_labels_of_the_full_search(dtype):
    rng = np.random.default_rng(5)
    relocated = 0
    cases = {
        "few distinct": (np.repeat(rng.normal(size=(60, 2)), 20, axis=0), 50),
        "a grid": (rng.integers(0, 6, (2000, 2)), 20),
        "outliers": (np.vstack([rng.normal(size=(1000, 2)), 1e3 * rng.normal(size=(3, 2))]), 100),
        "far from the origin": (rng.normal(size=(1000, 5)) + 1e4, 20),
        "small numbers": (1e-15 * rng.normal(size=(1000, 5)), 20),
    }
    for X, C in cases.values():
        relocated += assert_same_fit(X.astype(dtype), C, init="random", tol=0)[0].n_relocated_
    assert relocated > 0, "no cluster was empty: the test shows less than it says"


@pytest.mark.parametrize("given", [{"epsilon": 0.05}, {"n_init": 3, "init": "random"}])
def test_laziness_and_several_starts_equal_the_full_search(given):
    X = clustered(2000, 3, np.float32, spread=1.5)
    assert_same_fit(X, 25, **({"tol": 1e-5} | given))


@not_converged
def test_fits_stopped_early_are_the_same():
    X = clustered(2000, 3, np.float32, spread=1.5)
    for max_iter in (1, 2, 5, 9):
        assert_same_fit(X, 30, init="random", max_iter=max_iter, tol=0)


def test_there_are_no_lists_and_nothing_to_certify():
    fit = kmeans(20, "bounded").fit(clustered(500, 3))
    assert fit.neighbors_ is None
    assert fit.certificate_ is None


def test_a_hard_mixture_of_equal_weights():
    X = clustered(2000, 2)
    full, bounded = (mixture(20, search, 1, init_params=X[:20]).fit(X) for search in ("full", "bounded"))
    np.testing.assert_array_equal(bounded.predict(X), full.predict(X))
    np.testing.assert_allclose(bounded.means_, full.means_, atol=1e-12)
    assert bounded.history_["n_distances"].sum() < 0.8 * full.history_["n_distances"].sum()


def test_more_than_one_kept_is_refused():
    with pytest.raises(ValueError, match="search='bounded' needs n_active=1, got 3"):
        mixture(20, "bounded", 3).fit(clustered(100, 2))


@pytest.mark.parametrize(
    ("n", "D", "C", "expected"),
    [
        (2**16, 2, 32, Bounded),
        (2**16, 4, 32, Bounded),
        (2**16, 5, 32, Full),
        (2**17, 2, 31, Full),
        (2**16 - 1, 2, 32, Full),
        (2**16, 2, 512, Graph),
    ],
)
def test_the_automatic_search_goes_by_bounds_in_low_dimension(n, D, C, expected):
    assert type(resolve_search(KMeans(C), C, 1, n, D)) is expected
    if expected is Bounded:
        assert type(resolve_search(mixture(C, "auto"), C, 1, n)) is Full
