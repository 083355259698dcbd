"""Copying points into the order of their components changes the time of a fit, but not its result."""

import numpy as np
import pytest
from search_data import clustered

from cprime import GaussianMixture, KMeans
from cprime.search import Graph, Papers
from fits import centers_of, random_weights

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")

C = 60
X = clustered(2500, 3, n_clusters=40)


def both(make, weight=None):
    """Return a fit without the regrouped copy and a fit with it."""
    return (make(Graph(n_neighbors=17, regroup=regroup)).fit(X, sample_weight=weight) for regroup in (False, True))


def assert_same_fit(plain, regrouped):
    """Check that two fits are equal except for the order of summation."""
    np.testing.assert_array_equal(regrouped.labels_, plain.labels_)
    np.testing.assert_allclose(centers_of(regrouped), centers_of(plain), rtol=0, atol=1e-11)
    np.testing.assert_array_equal(regrouped.history_["n_moved"], plain.history_["n_moved"])
    np.testing.assert_array_equal(regrouped.history_["n_distances"], plain.history_["n_distances"])
    for name in ("quantization_error", "lower_bound"):
        np.testing.assert_allclose(regrouped.history_[name], plain.history_[name], rtol=1e-12)
    np.testing.assert_array_equal(regrouped.neighbors_, plain.neighbors_)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("given", [{}, {"epsilon": 0.05}, {"metric": "cosine"}, {"n_init": 2}], ids=str)
def test_k_means_of_regrouped_rows_is_the_same(given, weighted):
    plain, regrouped = both(
        lambda search: KMeans(C, search=search, random_state=0, n_threads=1, **given),
        random_weights(len(X)) if weighted else None,
    )
    assert_same_fit(plain, regrouped)
    assert regrouped.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)
    for name, value in plain.certificate_.items():  # the sample has the same points
        np.testing.assert_allclose(regrouped.certificate_[name], value, rtol=1e-9, atol=1e-12)


def test_k_means_whose_lists_are_audited():
    """An audit samples the same points in either order."""
    hard = np.random.default_rng(0).standard_normal((3000, 20))
    plain, regrouped = (
        KMeans(300, search=Graph(regroup=regroup), random_state=0, n_threads=1).fit(hard) for regroup in (False, True)
    )
    assert_same_fit(plain, regrouped)


@pytest.mark.parametrize("assignment", ["sampled", "soft", "hard"])
@pytest.mark.parametrize("family", ["tied_spherical", "diag", "tied"])
def test_mixtures_of_regrouped_rows_are_the_same(family, assignment):
    plain, regrouped = both(
        lambda search: GaussianMixture(
            C,
            covariance_type=family,
            n_active=3,
            search=search,
            assignment=assignment,
            init_params="two-level",
            max_iter=6,
            tol=0,
            reg_covar=1e-3,
            random_state=0,
            n_threads=1,
        )
    )
    assert_same_fit(plain, regrouped)
    assert regrouped.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-12)


def test_searches_that_draw_by_point_have_no_such_option():
    with pytest.raises(TypeError, match="regroup"):
        Papers("exact", regroup=True)
    with pytest.raises(TypeError, match="regroup"):
        KMeans(C, regroup=True)
