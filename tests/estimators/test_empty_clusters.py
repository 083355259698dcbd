"""k-means relocates empty clusters deterministically, reports it in the log and an attribute, and J does not rise."""

import logging

import numpy as np
import pytest
from estimator_data import DTYPES
from sklearn.exceptions import ConvergenceWarning

from cprime import KMeans
from cprime.sources import open_data
from fits import clustered

DUPLICATES = pytest.mark.filterwarnings("ignore:Number of distinct clusters")


def far_start(X, C, n_far):
    """Return C initial centers, the last n_far of which are so far away that they get no points."""
    start = X[:C].copy()
    start[C - n_far :] = 1e4 * (1 + np.arange(n_far))[:, np.newaxis]
    return start


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_far", [1, 3, 7])
def test_empty_clusters_are_given_far_points(dtype, weighted, n_far, caplog):
    X = clustered(200, 3, dtype)
    weight = np.random.default_rng(0).random(200) if weighted else None
    with caplog.at_level(logging.DEBUG, logger="cprime"):
        km = KMeans(8, init=far_start(X, 8, n_far), tol=0).fit(X, sample_weight=weight)
    assert km.n_relocated_ >= n_far
    assert set(km.labels_) == set(range(8))
    assert km.converged_
    errors = [*km.history_["quantization_error"], km.inertia_]
    assert (np.diff(errors) <= 0).all()
    logged = [record.getMessage() for record in caplog.records]
    first = next(message for message in logged if "empty cluster" in message)
    assert first == f"centers of {n_far} empty cluster(s) moved to the points farthest from their centers"
    assert logged[logged.index(first) + 1].startswith("iteration 1: ")
    without = KMeans(8 - n_far, init=X[: 8 - n_far], tol=0).fit(X, sample_weight=weight)
    assert km.inertia_ < without.inertia_


def test_the_farthest_points_are_taken_farthest_first():
    """After one iteration the empty clusters contain the points that were farthest from their centers."""
    X = np.array([[0.0], [1.0], [2.0], [10.0], [13.0], [40.0]])
    km = KMeans(3, init=[[1.0], [1e3], [1e4]], max_iter=1, tol=0).fit(X)
    np.testing.assert_allclose(km.cluster_centers_, [[13 / 4], [40.0], [13.0]], rtol=1e-15)
    assert km.n_relocated_ == 2


def test_of_equally_far_points_the_first_are_taken():
    X = np.concatenate([np.eye(60), -np.eye(60)])[np.random.default_rng(0).permutation(120)]
    X[10:100:10] *= 2
    start = np.concatenate([np.zeros((1, 60)), np.full((12, 60), 1e3)])
    taken = [*range(10, 100, 10), 0, 1, 2]
    for data in (X, open_data(X, chunk_rows=2)):
        km = KMeans(13, init=start, max_iter=1, tol=0).fit(data)
        np.testing.assert_allclose(km.cluster_centers_[1:], X[taken], rtol=1e-15)


def test_a_point_leaves_with_its_weight():
    X = np.array([[0.0], [1.0], [10.0]])
    weight = np.array([1.0, 3.0, 2.0])
    km = KMeans(2, init=[[0.0], [1e3]], max_iter=1, tol=0).fit(X, sample_weight=weight)
    np.testing.assert_allclose(km.cluster_centers_, [[3 / 4], [10.0]], rtol=1e-15)


def test_a_point_without_weight_is_not_taken():
    X = np.array([[0.0], [1.0], [10.0], [50.0]])
    km = KMeans(2, init=[[0.0], [1e3]], tol=0).fit(X, sample_weight=[1.0, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(km.cluster_centers_, [[0.5], [10.0]], rtol=1e-15)


def test_the_last_point_of_a_cluster_is_not_taken():
    """The point at 90 is the farthest, but it is the only point of its cluster."""
    X = np.array([[0.0], [4.0], [90.0]])
    km = KMeans(3, init=[[1.0], [60.0], [1e4]], tol=0).fit(X)
    assert sorted(km.cluster_centers_[:, 0].tolist()) == [0.0, 4.0, 90.0]
    assert km.inertia_ == 0


@DUPLICATES
def test_the_last_point_is_known_as_such_by_its_weight_however_that_was_rounded():
    """The last point is recognized although (0.1 + 0.2 + 0.3) − 0.3 − 0.2 exceeds 0.1 in floating point."""
    X = np.array([[1.0], [2.0], [4.0], [100.0], [100.5]])
    km = KMeans(5, init=[[0.0], [100.2], [1e3], [1e4], [1e5]], max_iter=1).fit(X, sample_weight=[0.1, 0.2, 0.3, 1, 1])
    assert km.n_relocated_ == 2
    np.testing.assert_allclose(km.cluster_centers_[:4, 0], [1.0, 100.25, 4.0, 2.0], rtol=1e-12)


def test_repair_goes_on_where_the_point_taken_had_a_twin():
    """One of the equal points at 50 is relocated, then returns because both are at a center, and repair continues."""
    X = np.array([[-1.0], [1.0], [50.0], [50.0]])
    km = KMeans(3, init=[[0.0], [30.0], [1e4]]).fit(X)
    assert sorted(km.cluster_centers_[:, 0].tolist()) == [-1.0, 1.0, 50.0]
    assert km.n_relocated_ == 2
    assert km.inertia_ == 0
    assert km.converged_


def test_repair_goes_on_where_the_next_farthest_was_the_last_of_its_cluster():
    """Two clusters are empty; after (2, 0) is taken, (1, 0) is the last of its cluster, so another point is next."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    km = KMeans(4, init=[[0.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]).fit(X)
    assert sorted(km.labels_) == [0, 1, 2, 3]
    assert km.inertia_ == 0
    assert km.converged_


def test_the_next_farthest_is_taken_where_the_farthest_is_alone():
    """The point at 100 is the farthest but alone in its cluster, so the next one, at 31, is relocated."""
    X = np.array([[0.0], [1.0], [2.0], [30.0], [31.0], [100.0]])
    km = KMeans(3, init=[[10.0], [180.0], [1e4]]).fit(X)
    assert km.n_relocated_ == 1
    assert km.labels_.tolist() == [0, 0, 0, 2, 2, 1]
    assert km.inertia_ == pytest.approx(2.5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_is_moved_without_need(dtype):
    X = clustered(200, 3, dtype)
    km = KMeans(8, random_state=0, tol=0).fit(X)
    assert km.n_relocated_ == 0


@pytest.mark.parametrize("init", ["k-means++", "random", "afk-mc2", np.arange(12.0).reshape(6, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_fewer_distinct_points_than_clusters_is_warned_of(init, weighted):
    X = np.repeat(np.array([[0.0, 0.0], [3.0, 1.0], [7.0, 7.0]]), 5, axis=0)
    weight = np.arange(1.0, 16.0) if weighted else None
    with pytest.warns(ConvergenceWarning, match=r"\(3\) found smaller than n_clusters \(6\)") as caught:
        km = KMeans(6, init=init, random_state=0).fit(X, sample_weight=weight)
    assert len(caught) == 1
    assert km.inertia_ == pytest.approx(0, abs=1e-25)
    assert km.converged_
    assert km.n_iter_ < 10
    assert np.array_equal(km.labels_, km.predict(X))
    assert np.isfinite(km.cluster_centers_).all()


@DUPLICATES
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_does_not_make_equal_points_distinct(dtype):
    """The weighted mean of equal points may differ from them by rounding, which must not cause a relocation."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.standard_normal((3, 2)), 4, axis=0).astype(dtype)
        km = KMeans(5, init="random", random_state=seed).fit(X, sample_weight=rng.random(12))
        assert km.converged_
        assert km.n_iter_ < 10


@DUPLICATES
def test_warning_points_at_the_caller():
    with pytest.warns(ConvergenceWarning) as caught:
        KMeans(3, random_state=0).fit(np.zeros((4, 1)))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("search", ["full", "bounded", "graph", "exact", "estimated"])
@pytest.mark.parametrize("n", [60, 3000])
def test_the_center_of_an_empty_cluster_stays_if_centers_never_move_elsewhere(search, n):
    X = np.random.default_rng(0).normal(size=(n, 3))
    far = np.vstack([X[:6], [[99.0, 99.0, 99.0]]])
    with pytest.warns(ConvergenceWarning, match="Number of distinct clusters"):
        km = KMeans(7, init=far, search=search, jumps="never", random_state=0).fit(X)
    assert np.array_equal(km.cluster_centers_[6], far[6])
    assert km.converged_
    assert km.n_relocated_ == 0
    assert km.partial_fit(X).cluster_centers_[6].tolist() == far[6].tolist()
    assert KMeans(7, init=far, search=search, jumps=False, random_state=0).fit(X).n_relocated_ == 1
