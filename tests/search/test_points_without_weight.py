"""Points of weight 0 do not change the result of k-means with partial search, including its exchange steps."""

import numpy as np
import pytest
from search_data import DTYPES, clustered, kmeans

C = 300


def both(X, more, weight=None, dtype=np.float64, **given):
    """Return fits of X, and of X with more rows of weight 0, from the same centers and with lists of given length."""
    weight = np.ones(len(X)) if weight is None else weight
    X, more = X.astype(dtype), more.astype(dtype)
    start = X[np.random.default_rng(2).choice(len(X), C, replace=False)]
    given = {"init": start, "n_neighbors": 33, "tol": 0} | given
    alone = kmeans(C, "graph", **given).fit(X, sample_weight=weight)
    all_weights = np.concatenate([weight, np.zeros(len(more))])
    return alone, kmeans(C, "graph", **given).fit(np.concatenate([X, more]), sample_weight=all_weights)


def assert_same_fit(alone, other):
    n = len(alone.labels_)
    np.testing.assert_array_equal(other.labels_[:n], alone.labels_)
    np.testing.assert_allclose(other.cluster_centers_, alone.cluster_centers_, rtol=0, atol=1e-9)
    assert other.inertia_ == pytest.approx(alone.inertia_, rel=1e-10)
    assert other.lower_bound_ == pytest.approx(alone.lower_bound_, rel=1e-10)
    assert other.variance_ == pytest.approx(alone.variance_, rel=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("times", [1, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_points_again(times, weighted, dtype):
    X = clustered(3000, 2)
    weight = np.random.default_rng(1).uniform(0.5, 2, 3000) if weighted else None
    assert_same_fit(*both(X, np.tile(X, (times, 1)), weight, dtype))


@pytest.mark.parametrize("seed", range(4))
def test_points_elsewhere(seed):
    """Points of weight 0 elsewhere change nothing; lists contain all centers, so it does not matter when they are
    renewed.
    """
    X, more = clustered(2000, 2, seed=seed), 12 * np.random.default_rng(seed).standard_normal((3000, 2))
    assert_same_fit(*both(X, more, n_neighbors=C))


def test_points_without_weight_go_to_the_center_that_is_nearest():
    X, more = clustered(2000, 2), clustered(500, 2, seed=1)
    _, other = both(X, more, n_neighbors=C)
    np.testing.assert_array_equal(other.labels_, other.predict(np.concatenate([X, more])))
