"""`extent`: the largest absolute value and the spread of data, which decide whether their squares can be computed."""

import numpy as np
import pytest
from kernel_data import DTYPES, THREADS, clustered


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "D"), [(1, 1), (3, 70), (5000, 3), (40000, 17)])
def test_extent_is_that_of_all_entries(kernels, dtype, n, D):
    X = clustered(n, D, dtype) - dtype(3)
    origin = X[n // 2]
    for threads in THREADS:
        assert kernels.extent(X, n_threads=threads) == (np.abs(X).max(), np.abs(X - X[0]).max())
        assert kernels.extent(X, origin, n_threads=threads) == (np.abs(X).max(), np.abs(X - origin).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_seen_wherever_it_stands(kernels, dtype, value):
    for n, k in [(0, 0), (49, 32), (25, 16), (7, 31)]:
        X = clustered(50, 33, dtype)
        X[n, k] = value
        largest, _ = kernels.extent(X)
        np.testing.assert_equal(largest, np.abs(value))


def test_nan_is_told_from_infinity_where_both_are(kernels):
    X = np.ones((40000, 3))
    X[30000], X[5, 1] = np.inf, np.nan
    assert np.isnan(kernels.extent(X)[0])


def test_extent_of_nothing_is_zero(kernels):
    assert kernels.extent(np.empty((0, 3))) == (0.0, 0.0)
    assert kernels.extent(np.empty((3, 0))) == (0.0, 0.0)
