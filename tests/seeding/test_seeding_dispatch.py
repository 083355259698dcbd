"""`seed` accepts every form of `init`, does not validate data twice and emits no warning."""

import numpy as np
import pytest
from seeding_data import DTYPES, METHODS, clustered
from sklearn.cluster import KMeans, MeanShift
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

from cprime.seeding import is_given, seed


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_a_name_is_the_method_of_that_name(name, weighted):
    X = clustered(300, 3)
    w = np.random.default_rng(0).exponential(size=300) if weighted else None
    centers = seed(X, 20, name, sample_weight=w, random_state=4)
    np.testing.assert_array_equal(centers, METHODS[name](X, 20, sample_weight=w, random_state=4)[0])
    assert not is_given(name)


def test_the_chain_length_is_passed_on():
    X = clustered(300, 3)
    centers = seed(X, 20, "afk-mc2", random_state=4, chain_length=3)
    expected = METHODS["afk-mc2"](X, 20, random_state=4, chain_length=3)[0]
    np.testing.assert_array_equal(centers, expected)
    assert (centers != seed(X, 20, "afk-mc2", random_state=4)).any()


@pytest.mark.parametrize("name", METHODS)
def test_duplicates_are_not_reported_here(name, tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((30, 2), dtype=np.float32))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    centers = seed(X, 4, name, random_state=0)
    np.testing.assert_array_equal(centers, np.zeros((4, 2)))
    assert type(centers) is np.ndarray


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_is_copied(dtype):
    X = clustered(30, 3, dtype)
    init = np.asfortranarray(np.arange(12).reshape(4, 3))
    for given in (init, init.astype(dtype), init.tolist()):
        centers = seed(X, 4, given)
        assert is_given(given)
        assert centers.dtype == dtype
        assert centers.flags.c_contiguous
        assert centers.flags.writeable
        assert not np.shares_memory(centers, given)
        np.testing.assert_array_equal(centers, init)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fitted_estimator_gives_its_centers(dtype):
    X = clustered(80, 3, np.float64)
    for estimator, name in (
        (KMeans(4, n_init=1, random_state=0), "cluster_centers_"),
        (GaussianMixture(4, random_state=0), "means_"),
    ):
        estimator.fit(X)
        centers = seed(X.astype(dtype), 4, estimator)
        assert is_given(estimator)
        assert centers.dtype == dtype
        np.testing.assert_array_equal(centers, getattr(estimator, name).astype(dtype))
        assert not np.shares_memory(centers, getattr(estimator, name))


def test_a_callable_is_called_as_scikit_learn_does():
    X = clustered(50, 3, np.float32)
    state = np.random.RandomState(0)
    calls = []

    def init(data, n_clusters, random_state):
        calls.append((data, n_clusters, random_state))
        return data[:n_clusters].tolist()

    centers = seed(X, 4, init, random_state=state)
    assert np.shares_memory(calls[0][0], X)
    np.testing.assert_array_equal(calls[0][0], X)
    assert calls[0][1:] == (4, state)
    assert centers.dtype == np.float32
    np.testing.assert_array_equal(centers, X[:4])
    assert not is_given(init)


@pytest.mark.parametrize(
    ("init", "error", "message"),
    [
        (
            "kmeans",
            ValueError,
            "init should be 'k-means\\+\\+', 'k-means..', 'random', 'afk-mc2', 'two-level', 'jumps', .* got 'kmeans'",
        ),
        (np.zeros((3, 2)), ValueError, r"initial centers \(3, 2\) does not match the number of clusters 4"),
        (np.zeros((4, 5)), ValueError, r"initial centers \(4, 5\) does not match the number of features"),
        (np.zeros(4), ValueError, "Expected 2D array"),
        (np.full((4, 2), np.nan), ValueError, "init contains NaN"),
        (
            lambda X, n, random_state: X[:2],
            ValueError,
            r"centers \(2, 2\) does not match the number of clusters",
        ),
        (KMeans(4), NotFittedError, "init is a KMeans with neither cluster_centers_ nor means_"),
        (MeanShift(), NotFittedError, "MeanShift"),
        (7, TypeError, "init should be .* got 7 of type int"),
        (None, TypeError, "init should be .* got None of type NoneType"),
    ],
    ids=["name", "rows", "columns", "1d", "nan", "callable", "unfitted", "unfitted too", "number", "none"],
)
def test_anything_else_is_refused(init, error, message):
    with pytest.raises(error, match=message):
        seed(clustered(30, 2), 4, init)
