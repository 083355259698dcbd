"""`min_distances` updates the distances to the nearest seed, and `potentials` returns J for each candidate seed."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, clustered, rounding, same_bits, sixteenths


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("D", [1, 2, 17, 64, 200])
@pytest.mark.parametrize("n_candidates", [1, 2, 9, 17])
def test_equals_the_reference(n_candidates, D, dtype):
    for n in (1, 15, 131):
        X, candidates = clustered(n, D, dtype), clustered(n_candidates, D, dtype, seed=n)
        current = reference.distances(X, clustered(1, D, dtype, seed=9))[0]
        for given in (None, current):
            distances = native.distances(X, candidates, given)
            assert distances.dtype == dtype
            assert distances.shape == (n_candidates, n)
            truth = reference.distances(X, candidates, given)
            np.testing.assert_allclose(distances, truth, rtol=rounding(dtype, D))


@pytest.mark.parametrize("dtype", DTYPES)
def test_current_is_left_alone(dtype, kernels):
    X = clustered(40, 3, dtype)
    current = kernels.distances(X, X[:1])[0]
    before = current.copy()
    result = kernels.distances(X, X[1:4], current)
    np.testing.assert_array_equal(current, before)
    assert not np.shares_memory(result, current)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_offset_changes_nothing(dtype, offset, kernels):
    X, candidates = sixteenths(90, 7, dtype), sixteenths(5, 7, dtype, seed=1)
    expected = reference.distances(X.astype(np.float64), candidates.astype(np.float64))
    distances = kernels.distances(X + dtype(offset), candidates + dtype(offset))
    np.testing.assert_array_equal(distances, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_is_at_distance_zero_from_itself(dtype, kernels):
    X = clustered(60, 90, dtype) * dtype(1e4) + dtype(1e6)
    distances = kernels.distances(X, X[::6])
    np.testing.assert_array_equal(distances[np.arange(10), np.arange(0, 60, 6)], 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_outliers_are_finite(dtype, kernels):
    X = clustered(50, 4, dtype)
    X[7] = 1e8
    distances = kernels.distances(X, X[[7, 8]])
    assert np.isfinite(distances).all()
    np.testing.assert_allclose(distances[0, 8], 4e16, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_distances_are_written_where_they_are_wanted(dtype, kernels):
    X, candidates = clustered(131, 5, dtype), clustered(9, 5, dtype, seed=2)
    room = np.full((12, 131), -1, dtype=dtype)
    found = kernels.distances(X, candidates, out=room[:9])
    assert np.shares_memory(found, room)
    assert same_bits(room[:9], kernels.distances(X, candidates))
    np.testing.assert_array_equal(room[9:], -1)
    for wrong in (room, room[:9, ::2], room[:9].astype(int)):
        with pytest.raises(ValueError, match="out"):
            kernels.distances(X, candidates, out=wrong)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 15, 8192, 20001])
def test_potentials_are_those_of_the_reference(n, dtype):
    R = np.random.default_rng(n)
    squares, closest, weights = R.random((7, n)).astype(dtype), R.random(n).astype(dtype), R.random(n)
    for given in (None, weights):
        for candidates in (None, np.array([6, 0, 0, 3])):
            found = native.potentials(squares, closest, given, candidates=candidates)
            truth = reference.potentials(squares, closest, given, candidates=candidates)
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, truth, rtol=1e-13)


def test_potentials_of_nothing_are_zero(kernels):
    np.testing.assert_array_equal(kernels.potentials(np.empty((3, 0)), np.empty(0)), np.zeros(3))
    assert kernels.potentials(np.ones((3, 4)), np.ones(4), candidates=np.empty(0, dtype=np.int64)).shape == (0,)
