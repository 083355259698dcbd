"""Initialization of mixtures: given means, precisions and weights, and warm starts."""

import numpy as np
import pytest
from estimator_data import mixture

from cprime import KMeans
from fits import clustered, outcome


@pytest.fixture
def X():
    return clustered(200, 3, spread=1.5)


def first_bound(gm):
    """Return F of the initial parameters."""
    return gm.lower_bounds_[0]


@pytest.mark.parametrize("n_active", [1, 3, None])
def test_without_a_precision_the_variance_is_that_of_k_means(X, n_active):
    """The initial variance is (14) of Lücke & Forster for the initial means; for C′ = 1 the first bound is (15)."""
    weight = np.random.default_rng(0).random(200)
    gm = mixture(5, n_active=n_active, means_init=X[:5]).fit(X, sample_weight=weight)
    nearest = np.square(X[:, np.newaxis] - X[:5]).sum(axis=2).min(axis=1)
    variance = np.average(nearest, weights=weight) / 3
    same = mixture(5, n_active=n_active, means_init=X[:5], precisions_init=1 / variance).fit(X, sample_weight=weight)
    assert first_bound(gm) == pytest.approx(first_bound(same), rel=1e-12)
    np.testing.assert_allclose(gm.means_, same.means_, rtol=1e-9)
    if n_active == 1:
        assert first_bound(gm) == pytest.approx(-np.log(5) - 1.5 * np.log(2 * np.pi * np.e * variance), rel=1e-12)


def test_equal_weights_may_be_given(X):
    given = mixture(4, weights_init=np.full(4, 0.25), random_state=0).fit(X)
    assert outcome(given) == outcome(mixture(4, random_state=0).fit(X))


def test_means_may_be_those_of_a_fitted_estimator(X):
    km = KMeans(4, random_state=0).fit(X)
    of_estimator = mixture(4, init_params=km).fit(X)
    assert outcome(of_estimator) == outcome(mixture(4, means_init=km.cluster_centers_).fit(X))
    again = mixture(4, init_params=of_estimator).fit(X)
    assert first_bound(again) > first_bound(of_estimator)


def test_a_converged_fit_stays_where_it_is_in_a_warm_start(X):
    gm = mixture(5, random_state=0, tol=1e-4, warm_start=True).fit(X)
    bound = gm.lower_bound_
    gm.fit(X)
    assert gm.n_iter_ == 1  # compared with the last iteration of the previous fit
    assert gm.lower_bound_ == pytest.approx(bound, abs=1e-3)
    assert gm.lower_bound_ >= bound
    assert first_bound(gm) == pytest.approx(bound, rel=1e-12)


def test_without_warm_start_a_fit_forgets_the_one_before(X):
    gm = mixture(5, random_state=0).fit(X + 100)
    assert outcome(gm.fit(X)) == outcome(mixture(5, random_state=0).fit(X))


def test_warm_start_needs_means_of_the_same_shape(X):
    gm = mixture(5, random_state=0, warm_start=True).fit(X)
    with pytest.raises(ValueError, match="warm_start goes on from a fit with n_components=5, got n_components=6"):
        gm.set_params(n_components=6).fit(X)
    with pytest.raises(ValueError, match=r"warm_start.*\(5, 2\).*\(5, 3\)"):
        gm.set_params(n_components=5).fit(X[:, :2])


def test_warm_start_takes_the_dtype_of_the_new_data(X):
    gm = mixture(5, random_state=0, warm_start=True).fit(X)
    assert gm.fit(X.astype(np.float32)).means_.dtype == np.float32
