"""Whole fits with the NumPy reference kernels, as an oracle for compiled kernels, searches and the loop together."""

import sys

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans
from cprime.kernels import as_rows
from cprime.search import Bounded, Full, Graph, Papers
from reference import Reference

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]
SEARCHES = {
    "full": Full(),
    "bounded": Bounded(),
    "graph": Graph(5, regroup=False),
    "exact": Papers("exact", n_neighbors=5),
    "estimated": Papers("estimated", n_neighbors=5),
}
search_any = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES.keys())


def points(dtype):
    """Return well separated points, so that rounding changes no assignment."""
    rng = np.random.default_rng(0)
    return (8 * rng.standard_normal((9, 3))[rng.integers(9, size=150)] + rng.standard_normal((150, 3))).astype(dtype)


def by_twins(monkeypatch, fit):
    """Return the result of the fit with the NumPy reference kernels, after a check that these were called."""
    asked = []
    nearest = Reference.kernels.nearest
    monkeypatch.setattr(Reference.kernels, "nearest", lambda *args: asked.append(1) or nearest(*args))
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["cprime.execution.local"], "as_rows", lambda X: Reference(as_rows(X).dense()))
        found = fit()
        found.score(points(found.cluster_centers_.dtype if hasattr(found, "cluster_centers_") else found.means_.dtype))
    assert asked
    return found


@search_any
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_k_means_by_kernels_equals_that_by_twins(search, dtype, monkeypatch):
    X = points(dtype)

    def fit():
        return KMeans(9, search=search, init=X[:9], max_iter=20, random_state=0).fit(X)

    ours, theirs = fit(), by_twins(monkeypatch, fit)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-5, atol=1e-5)
    assert ours.n_iter_ == theirs.n_iter_


@search_any
@pytest.mark.parametrize("family", ["tied_spherical", "spherical", "diag", "tied", "full"])
@pytest.mark.parametrize("n_active", [1, 3])
def test_mixtures_by_kernels_equal_those_by_twins(n_active, family, search, monkeypatch):
    X = points(np.float64)
    n_active = 1 if isinstance(search, Bounded) else n_active

    def fit():
        given = {"n_active": n_active, "search": search, "means_init": X[:9], "max_iter": 4, "random_state": 0}
        return GaussianMixture(9, covariance_type=family, **given).fit(X)

    ours, theirs = fit(), by_twins(monkeypatch, fit)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.covariances_, theirs.covariances_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.lower_bounds_, theirs.lower_bounds_, rtol=1e-9)
