"""`walk` along lists, and `thin`, which makes lists that lead far."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, THREADS, clustered, same_bits, sixteenths
from scipy.sparse import csr_array

from cprime.kernels import SparseRows
from cprime.neighbors import both_ways, exact_lists


def starts_of(n, width, C, seed=0):
    """Some components of each row, −1 behind the last."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(C, size=(n, width)).astype(np.int32)
    ids[np.arange(width) > rng.integers(width, size=(n, 1))] = -1
    return ids


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 3, 8, 200])
@pytest.mark.parametrize("D", [1, 3, 16, 40])
def test_walks_are_those_of_the_twin(D, width, dtype):
    """Of numbers whose distances are exact, so that nothing is nearer by rounding."""
    X, centers = sixteenths(50, D, dtype), sixteenths(90, D, dtype, seed=1)
    for lists in (exact_lists(centers, 7), np.empty((90, 0), dtype=np.int32), both_ways(exact_lists(centers, 5), 9)):
        for n_starts in (1, 3):
            given = (X, centers, lists, starts_of(50, n_starts, 90), width)
            for found, expected in zip(native.walk(*given), reference.walk(*given), strict=True):
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_walks_do_not_depend_on_threads(dtype):
    X, centers = clustered(3000, 20, dtype), clustered(700, 20, dtype, seed=1)
    given = (X, centers, exact_lists(centers, 9), starts_of(3000, 2, 700), 5)
    first, *others = (tuple(native.walk(*given, n_threads=threads)) for threads in THREADS)
    assert all(same_bits(first, other) for other in others)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse_rows_walk_as_dense_ones(dtype):
    X = sixteenths(60, 12, dtype) * (np.random.default_rng(2).random((60, 12)) < 0.3)
    centers = sixteenths(80, 12, dtype, seed=1)
    given = (centers, exact_lists(centers, 6), starts_of(60, 2, 80), 4)
    found, expected = native.walk(SparseRows.of(csr_array(X)), *given), native.walk(X, *given)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-6)


def test_a_wide_walk_along_connected_lists_finds_the_nearest():
    X, centers = clustered(300, 5, np.float64), clustered(200, 5, np.float64, seed=1)
    lists, starts = exact_lists(centers, 200), np.zeros((300, 1), dtype=np.int32)
    np.testing.assert_array_equal(
        native.walk(X, centers, lists, starts, 200).labels, native.nearest(X, centers)[0][:, 0]
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spread", [1.0, 1.2, 3.0])
@pytest.mark.parametrize("D", [1, 2, 16, 40])
def test_lists_are_thinned_as_by_the_twin(D, spread, dtype):
    centers = sixteenths(100, D, dtype)
    for G in (1, 2, 20, 50):
        lists = exact_lists(centers, G)
        lists[::7, G // 2 :] = -1
        thinned = native.thin(centers, lists, spread)
        np.testing.assert_array_equal(thinned, reference.thin(centers, lists, spread))
        assert all(same_bits((thinned,), (native.thin(centers, lists, spread, n_threads=k),)) for k in THREADS)


def test_what_is_left_leads_in_different_directions():
    """On a line: the next one on either side."""
    centers = np.arange(30.0)[:, np.newaxis] ** 1.1
    thinned = native.thin(centers, exact_lists(centers, 12), 1.0)
    assert (np.sort(thinned[1:-1, :2], axis=1) == np.arange(1, 29)[:, np.newaxis] + [-1, 1]).all()
    assert (thinned[:, 2:] == -1).all()


@pytest.mark.parametrize("length", [3, 6, 40])
def test_lists_both_ways(length):
    centers = clustered(120, 4, np.float64)
    lists = exact_lists(centers, 4)
    lists[::5, 1:] = -1
    both = both_ways(lists, length)
    assert both.shape == (120, length)
    for c in range(120):
        own, found = [b for b in lists[c] if b >= 0], [b for b in both[c] if b >= 0]
        listing = {b for b in range(120) if c in lists[b]} - set(own)
        assert found[: len(own)] == own
        assert set(found[len(own) :]) <= listing
        assert len(found) == min(length, len(own) + len(listing)) == len(set(found))
        assert (both[c, len(found) :] == -1).all()


@pytest.mark.parametrize("k", [native, reference])
def test_what_is_no_walk_is_refused(k):
    X, centers = clustered(20, 3, np.float32), clustered(5, 3, np.float32)
    lists, starts = exact_lists(centers, 3), np.zeros((20, 2), dtype=np.int32)
    for name, call in {
        "X": lambda: k.walk(X[:, 0], centers, lists, starts, 2),
        "centers": lambda: k.walk(X, centers[:, :2], lists, starts, 2),
        "lists": lambda: k.walk(X, centers, lists + np.int32(5), starts, 2),
        "starts": lambda: k.walk(X, centers, lists, starts - np.int32(1), 2),
        "width": lambda: k.walk(X, centers, lists, starts, 0),
    }.items():
        with pytest.raises((TypeError, ValueError), match=name):
            call()
    with pytest.raises((TypeError, ValueError), match="lists"):
        k.thin(centers, lists + np.int32(5), 1.0)
    with pytest.raises(ValueError, match="starts"):
        k.walk(X, centers, lists, starts + np.int32(5), 2)
