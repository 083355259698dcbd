"""`keep_nearest`: the partial E-step by clusters for active sets of several components."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, clustered, rounding


def random_sets(n, width, n_components, seed=0):
    """Return distinct components for each row, (n, width) int32."""
    rng = np.random.default_rng(seed)
    return np.argsort(rng.random((n, n_components)), axis=1)[:, :width].astype(np.int32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("D", [1, 2, 17, 64, 200])
@pytest.mark.parametrize("length", [0, 1, 16, 33, 70])
def test_keeps_the_nearest_of_what_is_offered(length, D, dtype):
    for n, C, width, n_kept in ((1, 2, 1, 1), (50, 75, 2, 5), (150, 140, 3, 3), (60, 90, 5, 2)):
        X, centers = clustered(n, D, dtype, seed=D), clustered(C, D, dtype, seed=n)
        own = np.arange(C)[:, None]
        lists = ((random_sets(C, min(length, C - 1), C - 1) + 1 + own) % C).astype(np.int32)
        lists[::3, length // 2 :] = -1
        previous = random_sets(n, width, C, seed=3)
        kept, distances = native.top_k(X, centers, lists, previous, n_kept)
        expected_kept, expected = reference.top_k(X, centers, lists, previous, n_kept)
        np.testing.assert_array_equal(kept >= 0, expected_kept >= 0)
        np.testing.assert_allclose(distances, expected, rtol=rounding(dtype, D))
        truth = reference.distances(X.astype(np.float64), centers.astype(np.float64)).T
        there = np.where(kept >= 0, np.take_along_axis(truth, np.maximum(kept, 0), axis=1), np.inf)
        np.testing.assert_allclose(distances, there, rtol=rounding(dtype, D))
        assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in kept)


@pytest.mark.parametrize("dtype", DTYPES)
def test_with_one_kept_it_is_reassignment(dtype):
    X, centers = clustered(500, 12, dtype), clustered(60, 12, dtype, seed=1)
    lists = native.nearest(centers, centers, 9)[0][:, 1:].copy()
    labels = np.random.default_rng(0).integers(60, size=500).astype(np.int32)
    kept, distances = native.top_k(X, centers, lists, labels[:, None], 1)
    moved, there = native.reassign(X, centers, lists, labels)
    np.testing.assert_array_equal(kept[:, 0], moved)
    np.testing.assert_allclose(distances[:, 0], there, rtol=1e-5)


def test_what_is_kept_never_gets_farther(kernels):
    X, centers = clustered(200, 9, np.float64), clustered(40, 9, np.float64, seed=1)
    lists = random_sets(40, 5, 40, seed=2)
    lists = np.where(lists == np.arange(40)[:, None], -1, lists).astype(np.int32)
    previous = np.argsort(((X[:, None] - centers) ** 2).sum(axis=2), axis=1)[:, 3:6].astype(np.int32)
    before = np.sort(((X[:, None] - centers[previous]) ** 2).sum(axis=2), axis=1)
    _, distances = kernels.top_k(X, centers, lists, previous, 3)
    assert (distances <= before * (1 + 1e-12)).all()
