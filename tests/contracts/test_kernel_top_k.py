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
