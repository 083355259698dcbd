"""`CenterCells`: the nearest centers of a row's cell, where they are nearer than what it keeps."""

import pickle

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, THREADS, clustered, rounding, sixteenths

from cprime.kernels import as_rows


def cells_of(C, n_cells, seed=0):
    """Where cells begin among C centers; some are empty."""
    inner = np.random.default_rng(seed).integers(0, C + 1, n_cells - 1)
    return np.concatenate([[0], np.sort(inner), [C]]).astype(np.int64)


def nothing(X, H=1):
    """What rows keep at first, and its squares."""
    return np.full((len(X), H), -1, dtype=np.int32), np.full((len(X), H), np.inf, dtype=X.dtype)


def searched(kernels, X, centers, begins, rounds=3, least=None, known=None, H=1, **options):
    """What is kept, and squares, after a few rounds, each in cells at random."""
    rng = np.random.default_rng(1)
    kept, squares = nothing(X, H)
    known = known or kernels.CenterCells(centers, begins, **options)
    for _ in range(rounds):
        cells = rng.integers(-1, len(begins) - 1, len(X)).astype(np.int32)
        bar = np.zeros(len(X), dtype=X.dtype) if least is None else least
        known.improve(as_rows(X), cells, bar, kept, squares, **options)
    return kept, squares


@pytest.mark.parametrize("H", [1, 2, 5])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("C", "D", "n_cells"), [(1, 1, 1), (60, 3, 7), (300, 20, 9), (400, 70, 5), (400, 70, 90)])
def test_finds_what_the_twin_finds(C, D, n_cells, dtype, H):
    centers, begins = clustered(C, D, dtype, seed=1), cells_of(C, n_cells)
    for n in (1, 7, 120):
        X = clustered(n, D, dtype)
        for least in (None, np.random.default_rng(2).uniform(0, 2 * D**0.5, n).astype(dtype)):
            kept, squares = searched(native, X, centers, begins, least=least, H=H)
            expected_kept, expected = searched(reference, X, centers, begins, least=least, H=H)
            np.testing.assert_array_equal(kept < 0, expected_kept < 0)
            np.testing.assert_allclose(squares, expected, rtol=rounding(dtype, D))
            found = kept >= 0
            truth = np.square(X.astype(np.float64)[:, np.newaxis] - centers[kept]).sum(axis=2)
            np.testing.assert_allclose(squares[found], truth[found], rtol=rounding(dtype, D))


@pytest.mark.parametrize("H", [1, 4])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0, 1e6])
def test_ties_go_to_the_lower_number_and_an_offset_changes_nothing(offset, dtype, H):
    X, centers = sixteenths(300, 64, dtype), sixteenths(400, 64, dtype, seed=1)
    centers[200:] = centers[:200]
    expected = searched(reference, X, centers, cells_of(400, 6), H=H)
    found = searched(native, X + dtype(offset), centers + dtype(offset), cells_of(400, 6), H=H)
    for here, there in zip(found, expected, strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("H", [1, 3, 9])
def test_all_cells_together_are_a_search_of_all(H):
    X, centers, begins = clustered(900, 64, np.float32), clustered(500, 64, np.float32, seed=1), cells_of(500, 12)
    kept, squares = nothing(X, H)
    known = native.CenterCells(centers, begins)
    for cell in (*range(12), 3):  # what is seen again changes nothing
        known.improve(as_rows(X), np.full(900, cell, dtype=np.int32), np.zeros(900, dtype=np.float32), kept, squares)
    expected, distances = native.nearest(X, centers, H)
    np.testing.assert_array_equal(kept, expected)
    np.testing.assert_array_equal(squares, distances)


@pytest.mark.parametrize("H", [1, 6])
def test_more_equal_centers_than_a_screen_holds(H):
    centers = np.repeat(clustered(2, 64, np.float32, seed=1), 400, axis=0)
    X = clustered(40, 64, np.float32)
    begins = np.array([0, 400, 800], dtype=np.int64)
    kept, squares = searched(native, X, centers, begins, rounds=6, H=H)
    expected_kept, expected = searched(reference, X, centers, begins, rounds=6, H=H)
    np.testing.assert_array_equal(kept, expected_kept)
    np.testing.assert_allclose(squares, expected, rtol=rounding(np.float32, 64))


@pytest.mark.parametrize("H", [1, 3])
def test_any_number_of_threads_gives_the_same_bits(H):
    X, centers, begins = clustered(5000, 30, np.float32), clustered(900, 30, np.float32, seed=1), cells_of(900, 25)
    first, *others = (searched(native, X, centers, begins, H=H, n_threads=n) for n in THREADS)
    for kept, squares in others:
        np.testing.assert_array_equal(kept, first[0])
        np.testing.assert_array_equal(squares, first[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pickled_one_finds_the_same(dtype):
    X, centers, begins = clustered(300, 5, dtype), clustered(90, 5, dtype, seed=1), cells_of(90, 4)
    known = pickle.loads(pickle.dumps(native.CenterCells(centers, begins)))
    for here, there in zip(
        searched(native, X, centers, begins, known=known), searched(native, X, centers, begins), strict=True
    ):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("kernels", [native, reference], ids=["native", "reference"])
def test_what_is_no_cell_is_refused(kernels):
    X, centers, begins = clustered(5, 3, np.float32), clustered(9, 3, np.float32), cells_of(9, 2)
    for wrong in (begins[1:], begins[::-1].copy(), begins + 1, begins[:0]):
        with pytest.raises(ValueError, match="begins"):
            kernels.CenterCells(centers, wrong)
    known = kernels.CenterCells(centers, begins)
    zeros, cells, (none, far) = np.zeros(5, dtype=np.float32), np.full(5, -1, dtype=np.int32), nothing(X, 2)
    with pytest.raises(ValueError, match="cells"):
        known.improve(as_rows(X), np.full(5, 2, dtype=np.int32), zeros, none, far)
    with pytest.raises(ValueError, match="kept"):
        known.improve(as_rows(X), cells, zeros, np.full((5, 2), 9, dtype=np.int32), far)
    with pytest.raises(ValueError, match="X"):
        known.improve(X[:, :2].copy(), cells, zeros, none, far)
    with pytest.raises(TypeError, match="X"):
        known.improve(X.astype(np.float64), cells, zeros, none, far)
