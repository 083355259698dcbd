"""Degenerate data: equal points, as many clusters as points, one or thousands of columns, outliers, large offsets."""

import numpy as np
import pytest
from estimator_data import DTYPES, MAKERS, mixture, start_of

from cprime import KMeans
from fits import centers_of, clustered

NOT_CONVERGED = pytest.mark.filterwarnings("ignore:The fit did not converge")
DUPLICATES = pytest.mark.filterwarnings("ignore:Number of distinct clusters")
every_estimator = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def assert_sound(estimator, X):
    """Check that all results of a fit are finite and consistent."""
    C = len(centers_of(estimator))
    assert np.isfinite(centers_of(estimator)).all()
    assert 0 < estimator.variance_ < np.inf
    assert np.isfinite(estimator.lower_bound_)
    assert np.isfinite(estimator.lower_bounds_).all()
    assert np.isfinite(estimator.history_["quantization_error"]).all()
    assert estimator.labels_.min() >= 0
    assert estimator.labels_.max() < C
    assert np.array_equal(estimator.labels_, estimator.predict(X))
    bounds = estimator.bounds(X)
    assert np.isfinite(bounds).all()
    tolerance = 1e-5 if X.dtype == np.float32 else 1e-12
    size = X.shape[1] + abs(bounds.free_energy) + abs(bounds.log_likelihood)
    assert bounds.kl_gap >= -tolerance * size
    assert -tolerance * size <= bounds.entropy <= np.log(C) + tolerance * size
    assert bounds.free_energy == pytest.approx(estimator.lower_bound_, rel=tolerance)
    assert np.isfinite(estimator.score(X))
    if not isinstance(estimator, KMeans):
        np.testing.assert_allclose(estimator.predict_proba(X).sum(axis=1), 1, rtol=4 * np.finfo(X.dtype).eps)
        assert np.isfinite(estimator.score_samples(X)).all()


@DUPLICATES
@every_estimator
@every_dtype
@pytest.mark.parametrize("value", [0.0, 1.0, -1e6, 3e-30])
@pytest.mark.parametrize("C", [1, 3])
def test_identical_points_get_centers_that_equal_them(make, dtype, value, C):
    X = np.full((20, 3), value, dtype=dtype)
    estimator = make(C, random_state=0).fit(X)
    assert_sound(estimator, X)
    assert estimator.converged_
    np.testing.assert_allclose(centers_of(estimator), dtype(value), rtol=1e-6)


@every_estimator
@every_dtype
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_every_point_may_have_a_component(make, dtype, init):
    X = clustered(12, 3, dtype)
    estimator = make(12, random_state=0)
    estimator.set_params(**{"init" if isinstance(estimator, KMeans) else "init_params": init}).fit(X)
    assert_sound(estimator, X)
    assert sorted(estimator.labels_) == list(range(12))
    order = estimator.labels_
    np.testing.assert_allclose(centers_of(estimator)[order], X, atol=1e-5)
    if isinstance(estimator, KMeans):
        assert estimator.inertia_ == 0
        assert estimator.score(X) == 0
    else:
        assert estimator.variance_ == pytest.approx(1e-6)


@every_dtype
@pytest.mark.parametrize("n_active", [1, 2, 5, 12])
def test_every_point_may_have_a_component_of_no_least_variance(dtype, n_active):
    """The precision of the data type alone keeps the likelihood finite if there is no variance floor."""
    X = clustered(12, 3, dtype)
    gm = mixture(12, n_active=n_active, reg_covar=0, random_state=0).fit(X)
    assert_sound(gm, X)
    assert sorted(gm.labels_) == list(range(12))
    assert gm.variance_ < (1e-11 if dtype is np.float32 else 1e-28)


@every_estimator
@every_dtype
@pytest.mark.parametrize("D", [1, 3])
def test_a_single_point_is_its_center(make, dtype, D):
    X = np.full((1, D), 2.5, dtype=dtype)
    estimator = make(1, random_state=0).fit(X)
    assert_sound(estimator, X)
    assert np.array_equal(centers_of(estimator), X)


@every_estimator
@every_dtype
def test_clusters_are_found_in_thousands_of_dimensions(make, dtype):
    X = clustered(60, 2000, dtype, n_clusters=3)
    truth = KMeans(3, random_state=0, n_init=3).fit(X.astype(np.float64))
    estimator = make(3, random_state=0, n_init=3).fit(X)
    assert_sound(estimator, X)
    assert len({*zip(estimator.labels_.tolist(), truth.labels_.tolist(), strict=True)}) == 3
    assert estimator.variance_ == pytest.approx(truth.variance_, rel=1e-4)


@every_estimator
@every_dtype
@pytest.mark.parametrize("far", [1e4, 1e8, 1e12])
def test_far_outliers_get_clusters_of_their_own(make, dtype, far):
    X = clustered(100, 2, dtype)
    X[0] = far
    X[1] = [-far, far]
    estimator = make(4, random_state=0).fit(X)
    assert_sound(estimator, X)
    assert np.count_nonzero(estimator.labels_ == estimator.labels_[0]) == 1
    assert np.count_nonzero(estimator.labels_ == estimator.labels_[1]) == 1


@every_dtype
@pytest.mark.parametrize("n_active", [1, 2, None])
def test_bounds_do_not_suffer_from_a_component_far_away(dtype, n_active):
    """A component at 10⁶ without points does not reduce the accuracy of the others, which lie near 0."""
    X = clustered(80, 2, dtype)
    start = X[:4].copy()
    start[3] = 1e6
    settings = {"n_active": n_active, "precisions_init": 1.0, "tol": 1e-5, "max_iter": 200}
    estimator = mixture(4, means_init=start, **settings).fit(X)
    exact = mixture(4, means_init=start.astype(float), **settings).fit(X.astype(float))
    assert_sound(estimator, X)
    assert abs(estimator.means_[3] - 1e6).max() < 1
    np.testing.assert_allclose(estimator.means_, exact.means_, atol=1e-3)
    np.testing.assert_allclose(estimator.score_samples(X), exact.score_samples(X.astype(float)), atol=1e-3)
    assert estimator.lower_bound_ == pytest.approx(exact.lower_bound_, abs=1e-4)


@every_estimator
@every_dtype
def test_clusters_near_zero_are_not_rounded_for_most_points_being_far_away(make, dtype):
    rng = np.random.default_rng(0)
    places = np.repeat([1e6, 0.0, 5.0], [300, 100, 100])[:, np.newaxis]
    X = (places + rng.standard_normal((500, 1))).astype(dtype)
    start = np.array([[1e6], [0.0], [5.0]], dtype=dtype)
    single, double = make(3), make(3)
    single.set_params(**{start_of(single): start}).fit(X)
    double.set_params(**{start_of(double): start.astype(float)}).fit(X.astype(float))
    np.testing.assert_allclose(centers_of(single)[1:], centers_of(double)[1:], atol=2e-3)


@every_estimator
def test_offset_changes_nothing_in_double_precision(make):
    X = np.round(clustered(300, 3) * 1024) / 1024  # multiples of 1/1024, so that adding 2²⁰ causes no rounding
    offset = 2.0**20
    plain, moved = make(6), make(6)
    plain.set_params(**{start_of(plain): X[:6]}).fit(X)
    moved.set_params(**{start_of(moved): X[:6] + offset}).fit(X + offset)
    assert np.array_equal(plain.labels_, moved.labels_)
    np.testing.assert_allclose(centers_of(moved) - offset, centers_of(plain), rtol=0, atol=1e-6)
    assert moved.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-7)
    assert_sound(moved, X + offset)


@every_estimator
def test_an_offset_of_a_million_changes_little_in_float32(make):
    """Clusters of unit variance, 20 apart, are found though float32 coordinates there are multiples of 1/16."""
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=400)
    places = 20 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    X = (1e6 + places[truth] + rng.standard_normal((400, 2))).astype(np.float32)
    estimator = make(4, random_state=0, n_init=3).fit(X)
    assert_sound(estimator, X)
    assert len({*zip(estimator.labels_.tolist(), truth.tolist(), strict=True)}) == 4
    assert estimator.variance_ == pytest.approx(1, rel=0.15)
    found = centers_of(estimator)[estimator.labels_] - 1e6
    assert np.abs(found - places[truth]).max() < 0.3


@NOT_CONVERGED
@every_dtype
@pytest.mark.parametrize("n_active", [1, 2, None])
def test_mixtures_from_wild_starts_stay_finite(dtype, n_active):
    """Fits stay finite for initial means that coincide, and for variances that are far too small or too large."""
    X = clustered(100, 2, dtype)
    for start in (np.zeros((4, 2)), np.full((4, 2), 1e5), X[:4]):
        for precision in (1e-12, 1e6, None):
            gm = mixture(4, n_active=n_active, means_init=start, precisions_init=precision).fit(X)
            assert_sound(gm, X)


@every_estimator
def test_a_point_halfway_goes_to_the_lower_component(make):
    X = np.array([[-1.0], [0.0], [1.0]])
    estimator = make(2)
    estimator.set_params(**{start_of(estimator): np.array([[1.0], [-1.0]])}).fit(np.array([[-1.0], [1.0]]))
    assert estimator.predict(X).tolist() == [1, 0, 0]
