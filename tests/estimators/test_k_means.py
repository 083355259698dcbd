"""Methods and attributes of `KMeans` beyond `fit`: transform, score, bounds, feature names, history."""

import numpy as np
import pytest
from estimator_data import DTYPES

from cprime import Bounds, KMeans
from cprime.search import Graph
from cprime.seeding import kmeans_plusplus
from cprime.sources import open_data
from fits import clustered


@pytest.fixture(params=DTYPES)
def fitted(request):
    X = clustered(200, 3, request.param)
    return X, KMeans(5, random_state=0).fit(X)


def squared(X, km):
    return np.square(X[:, np.newaxis].astype(float) - km.cluster_centers_.astype(float)).sum(axis=2)


def test_transform_is_the_distance_to_every_center(fitted):
    X, km = fitted
    distances = km.transform(X)
    assert distances.shape == (200, 5)
    np.testing.assert_allclose(distances, np.sqrt(squared(X, km)), rtol=1e-6)
    assert np.array_equal(distances.argmin(axis=1), km.predict(X))
    again = KMeans(5, random_state=0).fit_transform(X)
    assert np.array_equal(again, distances)


def test_score_is_minus_the_error(fitted):
    X, km = fitted
    assert km.score(X) == pytest.approx(-km.inertia_, rel=1e-12)
    other = X[:50] + 1
    assert km.score(other) == pytest.approx(-squared(other, km).min(axis=1).sum(), rel=1e-6)


def test_predict_returns_the_nearest_center_of_other_points(fitted):
    X, km = fitted
    other = X[:50] + X.dtype.type(0.7)
    assert np.array_equal(km.predict(other), squared(other, km).argmin(axis=1))
    assert np.array_equal(km.predict(km.cluster_centers_), np.arange(5))


def test_bounds_may_be_of_other_data(fitted):
    X, km = fitted
    bounds = km.bounds(X)
    assert isinstance(bounds, Bounds)
    assert bounds._fields == ("free_energy", "log_likelihood", "kl_gap", "entropy")
    assert all(isinstance(value, float) for value in bounds)
    other = X[:30] + 1
    joint = -np.log(5) - 1.5 * np.log(2 * np.pi * km.variance_) - squared(other, km) / (2 * km.variance_)
    assert km.bounds(other).free_energy == pytest.approx(joint.max(axis=1).mean(), rel=1e-5)
    likelihood = np.log(np.exp(joint).sum(axis=1)).mean()
    assert km.bounds(other).log_likelihood == pytest.approx(likelihood, rel=1e-5)


def test_columns_of_transform_have_names(fitted):
    X, km = fitted
    assert km.get_feature_names_out().tolist() == [f"kmeans{c}" for c in range(5)]
    frame = KMeans(5, random_state=0).set_output(transform="pandas").fit(X).transform(X)
    assert frame.columns.tolist() == [f"kmeans{c}" for c in range(5)]
    assert frame.dtypes.unique().tolist() == [X.dtype]
    np.testing.assert_array_equal(frame.to_numpy(), km.transform(X))
    assert KMeans(5, random_state=0).set_output(transform="polars").fit_transform(X).width == 5


def test_history_is_what_happened(fitted):
    _, km = fitted
    history = km.history_
    assert history.dtype.names == (
        "phase",
        "lower_bound",
        "quantization_error",
        "n_distances",
        "n_between",
        "n_moved",
        "seconds",
    )
    assert history.shape == (km.n_iter_,)
    assert set(history["phase"]) == {"em"}
    assert (history["n_distances"] == 200 * 5).all()
    assert not history["n_between"].any()
    assert history["n_moved"][0] == 200
    assert (history["n_moved"][1:] < 200).all()
    assert (history["seconds"] > 0).all()
    assert km.lower_bounds_ == history["lower_bound"].tolist()
    assert km.n_active_ == 1
    assert km.inertia_ <= history["quantization_error"][-1]
    assert km.lower_bound_ >= km.lower_bounds_[-1]


@pytest.mark.parametrize("tol", [0.0, 1e-3, 0.5])
def test_it_stops_once_the_error_changes_by_no_more_than_tol(tol):
    X = clustered(2000, 2, n_clusters=30)
    km = KMeans(30, init=X[:30], tol=tol).fit(X)
    errors = km.history_["quantization_error"]
    change = np.abs(np.diff(errors)) / errors[1:]
    assert km.converged_
    assert (change[:-1] > tol).all()
    assert change[-1] <= tol or km.history_["n_moved"][-1] == 0
    assert km.n_iter_ == len(errors)


def test_it_says_when_iterations_did_not_suffice():
    X = clustered(2000, 2, n_clusters=30)
    km = KMeans(30, init=X[:30], tol=0, max_iter=3).fit(X)
    assert (km.n_iter_, km.converged_) == (3, False)
    assert KMeans(30, init=X[:30], tol=0, max_iter=300).fit(X).converged_


def test_init_may_be_a_fitted_estimator_or_a_function():
    X = clustered(300, 3)
    first = KMeans(6, random_state=0, max_iter=2).fit(X)
    of_centers = KMeans(6, init=first.cluster_centers_, tol=0).fit(X)
    of_estimator = KMeans(6, init=first, tol=0).fit(X)
    assert np.array_equal(of_estimator.cluster_centers_, of_centers.cluster_centers_)
    seen = []

    def init(data, n_clusters, random_state):
        seen.append((data.shape, n_clusters))
        return kmeans_plusplus(data, n_clusters, random_state=random_state)[0]

    of_function = KMeans(6, init=init, random_state=3, n_init=2).fit(X)
    assert seen == [((300, 3), 6)] * 2
    assert of_function.inertia_ == KMeans(6, random_state=3, n_init=2, jumps=False).fit(X).inertia_


def test_few_clusters_are_found_from_any_start_by_default():
    rng = np.random.default_rng(0)
    places = 8.0 * np.stack(np.divmod(np.arange(49), 7), axis=1)
    X = (places[rng.integers(49, size=9000)] + rng.standard_normal((9000, 2))).astype(np.float32)
    best = KMeans(49, init=places, search="full").fit(X).inertia_
    for options in (
        {},
        {"init": "random", "jumps": True},
        {"search": "full", "jumps": True},
        {"init": X[:49], "jumps": True},
    ):
        assert KMeans(49, random_state=0, **options).fit(X).inertia_ == pytest.approx(best, rel=1e-4)
    for options in ({"search": "full"}, {"jumps": False}, {"init": X[:49]}, {"init": "random"}):
        assert KMeans(49, random_state=0, **options).fit(X).inertia_ > 1.05 * best


def test_jumps_are_of_all_rows_and_weights_and_of_chunks(tmp_path):
    """Small groups are found, so jumps use all rows and weights: a sample of the rows would contain no such group."""
    rng = np.random.default_rng(1)
    X = np.concatenate(
        [rng.standard_normal((9000, 2)), *(rng.standard_normal((4, 2)) + np.array([90 * i, 90]) for i in (1, 2))]
    )
    order = rng.permutation(len(X))
    km = KMeans(3, random_state=0).fit(X[order])
    assert sorted(np.bincount(km.labels_)) == [4, 4, 9000]
    weights = np.ones(len(X))
    weights[9004:] = 0.0  # the rows of one group
    weighted = KMeans(2, random_state=0).fit(X[order], sample_weight=weights[order])
    assert sorted(weighted.counts_) == [4, 9000]
    np.save(tmp_path / "X.npy", X[order].astype(np.float32))
    chunked = KMeans(3, random_state=0).fit(open_data(tmp_path / "X.npy", chunk_rows=2000))
    assert sorted(chunked.counts_) == [4, 4, 9000]


@pytest.mark.parametrize("init", ["k-means++", "random", "afk-mc2"])
def test_every_start_finds_clusters_that_are_plain_to_see(init):
    rng = np.random.default_rng(0)
    truth = rng.integers(5, size=500)
    X = 50.0 * np.eye(5)[truth] + rng.standard_normal((500, 5))
    km = KMeans(5, init=init, n_init=20, random_state=0).fit(X)
    assert len({*zip(km.labels_.tolist(), truth.tolist(), strict=True)}) == 5
    assert km.variance_ == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ({}, "two-level"),  # jumps follow, so seeding can be faster
        ({"search": "full"}, "k-means++"),
        ({"search": "bounded"}, "k-means++"),
        ({"epsilon": 0.1}, "k-means++"),
        ({"search": Graph(), "jumps": False}, "k-means++"),
        ({"n_clusters": 127}, "jumps"),
        ({"n_clusters": 127, "jumps": False}, "k-means++"),
    ],
)
def test_the_start_is_in_two_levels_where_jumps_mend_it(given, start):
    X = clustered(8300, 3)
    fits = [
        KMeans(**{"n_clusters": 130, **given}, init=init, max_iter=1, random_state=0).fit(X) for init in ("auto", start)
    ]
    assert np.array_equal(fits[0].cluster_centers_, fits[1].cluster_centers_)
    other = "k-means++" if start == "two-level" else "two-level"
    third = KMeans(**{"n_clusters": 130, **given}, init=other, max_iter=1, random_state=0).fit(X)
    assert not np.array_equal(fits[0].cluster_centers_, third.cluster_centers_)


def test_exact_searches_find_many_clusters_that_are_far_apart():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(300, 3))
    X = (means[rng.integers(300, size=9000)] + 0.02 * rng.normal(size=(9000, 3))).astype(np.float32)
    exact, jumping = (KMeans(300, search=search, random_state=0).fit(X).inertia_ for search in ("full", "auto"))
    assert exact < 1.1 * jumping
