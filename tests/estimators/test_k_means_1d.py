"""k-means in one dimension: the global optimum, the interface of scikit-learn, and degenerate data."""

import itertools

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from cprime import KMeans, KMeans1D

DTYPES = (np.float32, np.float64)
DUPLICATES = pytest.mark.filterwarnings("ignore:Number of distinct clusters")


def column(n, dtype=np.float64, seed=0):
    """Return numbers (n, 1) around a few random centers, many of them equal."""
    rng = np.random.default_rng(seed)
    places = 5 * rng.standard_normal(6)
    return np.round(places[rng.integers(6, size=n)] + rng.standard_normal(n), 2).astype(dtype)[:, np.newaxis]


def inertia(X, centers, weights=None):
    squares = (X.astype(np.float64) - centers[:, 0]) ** 2
    return np.average(squares.min(axis=1), weights=weights) * (len(X) if weights is None else np.sum(weights))


@pytest.mark.parametrize("weighted", [False, True])
def test_no_assignment_is_better(weighted):
    """No partition of seven points into three clusters has a lower J, even among those that are not runs."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        X = np.round(rng.standard_normal((7, 1)), 1)
        w = rng.exponential(size=7) if weighted else np.ones(7)
        least = np.inf
        for labels in itertools.product(range(3), repeat=7):
            J = 0.0
            for c in set(labels):
                mine = np.array(labels) == c
                J += (w[mine] * (X[mine, 0] - np.average(X[mine, 0], weights=w[mine])) ** 2).sum()
            least = min(least, J)
        km = KMeans1D(3).fit(X, sample_weight=w if weighted else None)
        assert km.inertia_ == pytest.approx(least, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("C", [2, 5, 12])
def test_never_worse_than_k_means_from_many_starts(C):
    for seed in range(3):
        X = column(400, seed=seed)
        local = KMeans(C, n_init=20, tol=0, random_state=seed).fit(X)
        assert KMeans1D(C).fit(X).inertia_ <= local.inertia_ * (1 + 1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_attributes_fit_together(dtype):
    X = column(500, dtype)
    km = KMeans1D(7).fit(X)
    assert km.cluster_centers_.shape == (7, 1)
    assert km.cluster_centers_.dtype == dtype
    assert (np.diff(km.cluster_centers_[:, 0]) > 0).all()
    assert km.labels_.dtype == np.int32
    assert np.array_equal(km.labels_, km.predict(X))
    assert np.array_equal(km.labels_, np.abs(X - km.cluster_centers_[:, 0]).argmin(axis=1))
    assert np.array_equal(km.labels_, km.transform(X).argmin(axis=1))
    assert km.transform(X).dtype == dtype
    assert km.inertia_ == pytest.approx(inertia(X, km.cluster_centers_), rel=1e-6)
    assert km.score(X) == -km.inertia_
    for c in range(7):
        np.testing.assert_allclose(km.cluster_centers_[c], X[km.labels_ == c].mean(dtype=np.float64), rtol=1e-6)
    centers = km.cluster_centers_[:, 0].astype(np.float64)
    np.testing.assert_allclose(km.boundaries_, (centers[1:] + centers[:-1]) / 2, rtol=1e-15)
    assert km.get_feature_names_out().tolist() == [f"kmeans1d{c}" for c in range(7)]
    assert km.n_features_in_ == 1


def test_a_number_on_a_boundary_goes_to_the_lower():
    km = KMeans1D(2).fit([[0.0], [4.0]])
    assert km.predict([[2.0], [np.nextafter(2.0, 3.0)]]).tolist() == [0, 1]


def test_single_precision_is_as_good_as_double():
    X = column(3000, np.float32)
    single, double = KMeans1D(20).fit(X), KMeans1D(20).fit(X.astype(np.float64))
    np.testing.assert_allclose(single.cluster_centers_, double.cluster_centers_, rtol=1e-6)
    assert single.inertia_ == pytest.approx(double.inertia_, rel=1e-6)


def test_a_large_offset_changes_nothing():
    X = np.round(column(500) * 1024) / 1024
    plain, moved = KMeans1D(6).fit(X), KMeans1D(6).fit(X + 2.0**30)
    assert np.array_equal(plain.labels_, moved.labels_)
    np.testing.assert_allclose(moved.cluster_centers_ - 2.0**30, plain.cluster_centers_, rtol=0, atol=1e-6)
    assert moved.inertia_ == pytest.approx(plain.inertia_, rel=1e-7)


def test_every_point_may_have_a_cluster():
    X = np.random.default_rng(0).standard_normal((12, 1))
    km = KMeans1D(12).fit(X)
    assert km.inertia_ == 0
    assert np.array_equal(km.cluster_centers_, np.sort(X, axis=0))
    assert sorted(km.labels_) == list(range(12))


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_clusters_than_distinct_values_are_warned_of(dtype):
    X = np.array([[3.0], [1.0], [3.0], [2.0], [1.0]], dtype=dtype)
    with pytest.warns(
        ConvergenceWarning, match=r"Number of distinct clusters \(3\) found smaller than n_clusters \(5\)"
    ):
        km = KMeans1D(5).fit(X)
    assert km.cluster_centers_[:, 0].tolist() == [1, 2, 3, 3, 3]
    assert km.boundaries_.tolist() == [1.5, 2.5, np.inf, np.inf]
    assert km.labels_.tolist() == [2, 0, 2, 1, 0]
    assert km.predict([[9.0]]).tolist() == [2]
    assert km.inertia_ == 0


@DUPLICATES
def test_values_without_weight_are_no_values():
    km = KMeans1D(3).fit([[0.0], [5.0], [100.0]], sample_weight=[1.0, 1.0, 0.0])
    assert km.cluster_centers_[:, 0].tolist() == [0, 5, 5]
    assert km.labels_.tolist() == [0, 1, 1]


@DUPLICATES
@pytest.mark.parametrize("value", [0.0, -1e6, 3e-30])
def test_equal_points_are_one_cluster(value):
    km = KMeans1D(3).fit(np.full((20, 1), value))
    assert np.array_equal(km.cluster_centers_, np.full((3, 1), value))
    assert km.inertia_ == 0
    assert not km.labels_.any()


def test_numbers_far_from_one_are_cut_as_they_are():
    X = np.array([[-1.7e60], [-1.6e60], [0.0], [1.6e60], [1.7e60]])
    km = KMeans1D(3).fit(X)
    np.testing.assert_allclose(km.cluster_centers_[:, 0], [-1.65e60, 0, 1.65e60])
    assert km.labels_.tolist() == [0, 0, 1, 2, 2]


def test_weights_that_sums_cannot_see_beside_others_are_refused():
    X, weights = column(30), 10.0 ** np.linspace(-30, 28, 30)
    with pytest.raises(ValueError, match=r"sample_weight must be at most 1.84e\+19 times its least positive entry"):
        KMeans1D(2).fit(X, sample_weight=weights)
    weights[weights < 1e10] = 0
    assert KMeans1D(2).fit(X, sample_weight=weights).inertia_ > 0


@pytest.mark.parametrize(
    ("estimator", "X", "error", "words"),
    [
        (KMeans1D(2), np.ones((5, 2)), ValueError, "X must have one column for k-means in one dimension, got 2"),
        (KMeans1D(2), np.ones(5), ValueError, "Expected 2D array"),
        (KMeans1D(2), [[0.0], [np.nan]], ValueError, "NaN"),
        (KMeans1D(3), [[0.0], [1.0]], ValueError, "n_samples=2 should be >= n_clusters=3"),
        (KMeans1D(0), [[0.0], [1.0]], ValueError, "n_clusters == 0, must be >= 1"),
        (KMeans1D(1.5), [[0.0], [1.0]], TypeError, "n_clusters must be an instance of int"),
        (KMeans1D(1, n_threads=0), [[0.0], [1.0]], ValueError, "n_threads"),
    ],
)
def test_invalid_arguments_are_refused_by_name(estimator, X, error, words):
    with pytest.raises(error, match=words):
        estimator.fit(X)


def test_weights_are_checked():
    for weights in ([1.0, -1.0], [0.0, 0.0], [1.0]):
        with pytest.raises(ValueError, match=r"(?i)sample.weight"):
            KMeans1D(1).fit([[0.0], [1.0]], sample_weight=weights)


def test_predict_wants_a_fit_and_one_column():
    with pytest.raises(NotFittedError):
        KMeans1D().predict([[1.0]])
    with pytest.raises(ValueError, match="2 features"):
        KMeans1D(1).fit([[1.0]]).predict([[1.0, 2.0]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_bytes_in_another_order_are_of_the_same_precision(dtype):
    X = column(30, dtype)
    km = KMeans1D(3).fit(X.astype(X.dtype.newbyteorder()))
    assert km.cluster_centers_.dtype == dtype
    assert np.array_equal(km.cluster_centers_, KMeans1D(3).fit(X).cluster_centers_)
