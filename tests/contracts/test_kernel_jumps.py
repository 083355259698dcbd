"""`jumped` lowers J, to the known optimum if there is one, by the same jumps as the NumPy reference."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, same_bits, sixteenths
from scipy.sparse import csr_array

from cprime.kernels import as_rows


def groups(C, n, D, seed=0):
    """Return rows of C well separated groups of n rows each, the means of the groups, and J at these means."""
    rng = np.random.default_rng(seed)
    places = 20.0 * np.stack(np.unravel_index(rng.permutation(5**D)[:C], (5,) * D), axis=1)
    X = (places[:, np.newaxis] + rng.standard_normal((C, n, D))).reshape(C * n, D)
    means = X.reshape(C, n, D).mean(axis=1)
    return rng.permutation(X), means, float(np.square(X.reshape(C, n, D) - means[:, np.newaxis]).sum())


def error_of(X, centers, w=1.0):
    return float((w * np.square(X[:, np.newaxis] - centers).sum(axis=2).min(axis=1)).sum())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("C", "n", "D"), [(2, 4, 2), (3, 50, 2), (17, 40, 3), (60, 30, 3), (12, 700, 2)])
def test_jumps_lead_from_the_worst_start_to_the_optimum(C, n, D, dtype, kernels):
    X, means, least = groups(C, n, D)
    X = X.astype(dtype)
    start = X[np.square(X - X[0]).sum(axis=1).argsort()[:C]]  # all starting centers lie next to each other
    centers, error = kernels.jumped(X, start)
    assert error == pytest.approx(least, rel=1e-5)
    assert centers.dtype == dtype
    distance = np.square(means[:, np.newaxis] - centers).sum(axis=2)
    assert (np.sort(distance.argmin(axis=1)) == np.arange(C)).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "C", "D"), [(40, 3, 1), (500, 20, 2), (800, 9, 17), (5000, 12, 4)])
def test_jumps_are_those_of_the_reference(n, C, D, weighted):
    """Jumps equal those of the reference for overlapping clusters; multiples of 1/16 make all sums exact."""
    X = sixteenths(n, D, np.float64, seed=D, span=200)
    w = np.random.default_rng(1).integers(0, 4, n).astype(float) if weighted else None
    found, expected = (kernels.jumped(X, X[:C], w) for kernels in (native, reference))
    assert found[1] == pytest.approx(expected[1], rel=1e-12)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-10, atol=1e-10)
    assert found[1] == pytest.approx(error_of(X, found[0], 1.0 if w is None else w), rel=1e-10)


def test_jumps_of_sparse_rows_are_those_of_dense_ones():
    X = sixteenths(600, 8, np.float64, seed=2)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0
    found, expected = as_rows(csr_array(X)).jumped(X[:15]), native.jumped(X, X[:15])
    assert found[1] == pytest.approx(expected[1], rel=1e-10)
    assert found[1] == pytest.approx(error_of(X, found[0]), rel=1e-10)


@pytest.mark.parametrize("shift", [0.0, 1e5])
@pytest.mark.parametrize("scale", [2.0**-40, 2.0**30])
def test_a_power_of_two_changes_nothing_else(scale, shift):
    X = sixteenths(900, 3, np.float64, seed=1, span=300) + shift
    centers, error = native.jumped(X, X[:25])
    scaled, squares = native.jumped(X * scale, X[:25] * scale)
    assert same_bits(scaled, centers * scale)
    assert squares == error * scale**2


def test_more_tries_are_no_worse_and_none_are_fewer_jumps(kernels):
    X = np.random.default_rng(3).random((1500, 2))
    errors = [kernels.jumped(X, X[:40], n_tries=n)[1] for n in (0, 1, 20)]
    assert errors == sorted(errors, reverse=True)
    assert errors[2] < errors[0]


def test_where_there_is_nothing_to_gain(kernels):
    same = np.ones((50, 3))
    assert kernels.jumped(same, same[:4])[1] == 0.0
    few = np.repeat(np.arange(3.0), 20)[:, np.newaxis]
    centers, error = kernels.jumped(few, np.array([[0.0], [0.0], [0.0], [0.0]]))
    assert error == 0.0
    assert set(centers[:, 0]) >= {0.0, 1.0, 2.0}


def test_what_is_wrong_is_said(kernels):
    X = np.zeros((5, 2))
    with pytest.raises(ValueError, match="two at least, got 1"):
        kernels.jumped(X, X[:1])
    with pytest.raises(ValueError, match="columns"):
        kernels.jumped(X, np.zeros((2, 3)))


@pytest.mark.parametrize("scale", [1e154, 1e200])
@pytest.mark.filterwarnings("ignore:overflow|invalid value:RuntimeWarning")
def test_jumps_end_where_squares_overflow(scale, kernels):
    X = scale * np.random.default_rng(0).standard_normal((300, 3))
    assert not np.isfinite(kernels.jumped(X, X[:7], tol=1e-5)[1])
