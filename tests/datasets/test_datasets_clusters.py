"""Generated clusters of different sizes and spreads have the documented properties."""

import tracemalloc

import numpy as np
import pytest

from cprime.datasets import clusters


def test_points_lie_around_their_centers_with_their_spreads():
    data = clusters(40_000, 20, 5, random_state=0)
    assert data.data.shape == (40_000, 5)
    assert data.centers.shape == (20, 5)
    assert {a.dtype for a in (data.data, data.centers, data.spreads)} == {np.dtype(np.float32)}
    assert data.target.dtype == np.int32
    scaled = (data.data - data.centers[data.target]) / data.spreads[data.target, np.newaxis]
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose(scaled.var(axis=0), 1, atol=0.03)


def test_sizes_and_spreads_vary_as_documented():
    data = clusters(200_000, 2000, 2, random_state=1)
    counts = np.bincount(data.target, minlength=2000)
    assert counts.min() >= 1
    assert counts.sum() == 200_000
    assert np.log(counts).std() == pytest.approx(0.7, abs=0.07)
    assert np.log(data.spreads).std() == pytest.approx(0.3, abs=0.03)
    assert np.log(data.spreads).mean() == pytest.approx(0, abs=0.03)


def test_centers_fill_the_cube():
    side = 4 * np.sqrt(2) * 1000 ** (1 / 3)
    centers = clusters(1000, 1000, 3, random_state=2).centers
    assert centers.min() >= 0
    assert 0.95 * side < centers.max() <= side
    assert clusters(10, 10, 3, side=0.5, random_state=2).centers.max() <= 0.5


def test_points_come_in_random_order():
    target = clusters(10_000, 10, 2, random_state=3).target
    halves = np.bincount(target[:5000], minlength=10), np.bincount(target[5000:], minlength=10)
    np.testing.assert_allclose(halves[0], halves[1], rtol=0.35)


def test_no_cluster_is_empty_where_there_are_as_many_as_points():
    np.testing.assert_array_equal(np.sort(clusters(50, 50, 2, random_state=0).target), np.arange(50))


def test_memory_is_that_of_the_arrays():
    tracemalloc.start()
    data = clusters(500_000, 1000, 16, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < data.data.nbytes + data.target.nbytes + 24 * 2**20


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 0}, "n_clusters == 0, must be >= 1"),
        ({"n_features": 0}, "n_features == 0, must be >= 1"),
        ({"n_samples": 9, "n_clusters": 10}, "n_samples must be at least n_clusters=10, got 9"),
        ({"side": -1.0}, "side must be a positive number"),
        ({"side": np.inf}, "side must be finite"),
    ],
)
def test_wrong_arguments_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        clusters(**params)
