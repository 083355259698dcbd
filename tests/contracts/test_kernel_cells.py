"""`CenterCells` finds the nearest centers within a few cells of centers, those that may contain the nearest."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, THREADS, clustered, rounding, sixteenths

from cprime.kernels import as_rows

SIZES = [(1, 1, 1), (60, 3, 7), (300, 20, 9), (400, 70, 5), (900, 70, 90)]


def cells_of(C, n_cells, seed=0):
    """Return the index of each cell's first center, and C at the end; some cells are empty."""
    inner = np.random.default_rng(seed).integers(0, C + 1, n_cells - 1)
    return np.concatenate([[0], np.sort(inner), [C]]).astype(np.int64)


def by_cells(X, C, n_cells, offset=0):
    """Return centers like the rows X sorted by cell: cell centers and centers, first indices, and cell distances."""
    centers = clustered(C, X.shape[1], X.dtype.type, seed=1) + X.dtype.type(offset)
    begins = cells_of(C, n_cells)
    cells = np.stack([centers[b:e].mean(axis=0) if e > b else centers[0] for b, e in pairwise(begins)]).astype(X.dtype)
    between = 2 * np.sqrt(np.square(cells[:, np.newaxis] - cells).sum(axis=2))
    return np.concatenate([cells, centers]), begins, between


def without_bars(places, begins, between):
    return places, begins, np.full_like(between, np.inf)


def true_squares(X, parts, kept):
    centers = parts[0][len(parts[2]) :]
    return np.square(X.astype(np.float64)[:, np.newaxis] - centers[kept]).sum(axis=2)


@pytest.mark.parametrize("H", [1, 2, 5])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("C", "D", "n_cells"), SIZES)
def test_all_cells_together_are_a_search_of_all(C, D, n_cells, dtype, H):
    for n in (1, 7, 1200):
        X = clustered(n, D, dtype)
        parts = without_bars(*by_cells(X, C, n_cells))
        kept, squares, n_distances = native.CenterCells(*parts).find(as_rows(X), H, n_cells + 3)
        expected, distances = native.nearest(X, parts[0][n_cells:], min(H, C))
        assert n_distances == n * (C + n_cells)
        np.testing.assert_array_equal(kept[:, :C], expected)
        np.testing.assert_array_equal(squares[:, :C], distances)
        assert (kept[:, C:] == -1).all()
        assert np.isinf(squares[:, C:]).all()


@pytest.mark.parametrize("H", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("C", "D", "n_cells"), SIZES)
@pytest.mark.parametrize("most", [1, 3])
def test_finds_what_the_twin_finds(C, D, n_cells, dtype, H, most):
    """Results equal those of the NumPy reference, except if cells are equally near within rounding of float32."""
    X = clustered(300, D, dtype)
    parts = by_cells(X, C, n_cells)
    kept, squares, n_distances = native.CenterCells(*parts).find(as_rows(X), H, most)
    expected_kept, expected, n_expected = reference.CenterCells(*parts).find(as_rows(X), H, most)
    found = kept >= 0
    np.testing.assert_allclose(squares[found], true_squares(X, parts, kept)[found], rtol=rounding(dtype, D))
    assert abs(n_distances - n_expected) <= (0 if dtype == np.float64 else 0.05 * n_expected)
    assert (np.diff(np.where(found, squares, np.finfo(dtype).max), axis=1) >= 0).all()
    same = (kept == expected_kept).all(axis=1)
    assert same.mean() >= (1 if dtype == np.float64 else 0.8)
    assert squares[:, 0].mean() <= 1.01 * expected[:, 0].mean()
    np.testing.assert_allclose(squares[same], expected[same], rtol=rounding(dtype, D))


@pytest.mark.parametrize("H", [1, 4])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0, 1e6])
def test_ties_go_to_the_lower_number_and_an_offset_changes_nothing(offset, dtype, H):
    X, centers = sixteenths(100, 32, dtype), sixteenths(200, 32, dtype, seed=1)
    centers[100:] = centers[:100]
    begins, g = cells_of(200, 6), 6
    bars = np.full((g, g), np.inf, dtype=dtype)
    places = np.concatenate([centers[:g], centers])
    expected = reference.CenterCells(places, begins, bars).find(as_rows(X), H, g)
    found = native.CenterCells(places + dtype(offset), begins, bars).find(as_rows(X + dtype(offset)), H, g)
    for here, there in zip(found, expected, strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("H", [1, 6])
def test_more_equal_centers_than_a_screen_holds(H):
    centers = np.repeat(clustered(2, 64, np.float32, seed=1), 400, axis=0)
    X, begins = clustered(40, 64, np.float32), np.array([0, 400, 800], dtype=np.int64)
    parts = np.concatenate([centers[::400], centers]), begins, np.full((2, 2), np.inf, dtype=np.float32)
    kept, squares, _ = native.CenterCells(*parts).find(as_rows(X), H, 2)
    expected_kept, expected, _ = reference.CenterCells(*parts).find(as_rows(X), H, 2)
    np.testing.assert_array_equal(kept, expected_kept)
    np.testing.assert_allclose(squares, expected, rtol=rounding(np.float32, 64))


def test_what_is_beyond_the_plane_is_left_out():
    """A cell beyond the plane between two cell centers is skipped, even if its center is the next nearest."""
    X = np.array([[0.4, 0]], dtype=np.float32)
    places = np.array([[0, 0], [2, 0], [0, 0], [0.5, 0]], dtype=np.float32)
    begins, between = np.array([0, 1, 2], dtype=np.int64), np.full((2, 2), 4, dtype=np.float32)
    for kernels in (native, reference):
        found = kernels.CenterCells(places, begins, between).find(as_rows(X), 1, 2)
        assert (found[0][0, 0], found[1][0, 0], found[2]) == (0, np.float32(0.4) ** 2, 3)
        wide = kernels.CenterCells(places, begins, 10 * between)
        assert wide.find(as_rows(X), 1, 2)[0][0, 0] == 1
        assert wide.find(as_rows(X), 1, 1)[0][0, 0] == 0


@pytest.mark.parametrize("H", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_neither_threads_nor_other_rows_change_a_bit(dtype, H):
    X = clustered(5000, 30, dtype)
    known = native.CenterCells(*by_cells(X, 900, 25))
    expected = kept, squares, _ = known.find(as_rows(X), H, 4)
    for n in THREADS:
        for here, there in zip(known.find(as_rows(X), H, 4, n_threads=n), expected, strict=True):
            np.testing.assert_array_equal(here, there)
    for some in (slice(0, 1), slice(17, 60), slice(4000, 5000)):
        for here, there in zip(known.find(as_rows(X[some]), H, 4)[:2], (kept[some], squares[some]), strict=True):
            np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pickled_one_finds_the_same(dtype):
    X = clustered(300, 5, dtype)
    known = native.CenterCells(*by_cells(X, 90, 4))
    again = pickle.loads(pickle.dumps(known))
    for here, there in zip(known.find(as_rows(X), 2, 2), again.find(as_rows(X), 2, 2), strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("kernels", [native, reference], ids=["native", "reference"])
def test_what_is_no_cell_is_refused(kernels):
    X = clustered(5, 3, np.float32)
    places, begins, between = by_cells(X, 9, 2)
    for wrong in (begins[1:], begins[::-1].copy(), begins + 1, begins[:0]):
        with pytest.raises(ValueError, match="begins"):
            kernels.CenterCells(places, wrong, between)
    with pytest.raises(ValueError, match="between"):
        kernels.CenterCells(places, begins, between[:1])
    known = kernels.CenterCells(places, begins, between)
    with pytest.raises(ValueError, match="n_kept"):
        known.find(as_rows(X), 0, 1)
    with pytest.raises(ValueError, match="n_searched"):
        known.find(as_rows(X), 1, 0)
    with pytest.raises(ValueError, match="X"):
        known.find(as_rows(X[:, :2].copy()), 1, 1)
    with pytest.raises(TypeError, match="X"):
        known.find(as_rows(X.astype(np.float64)), 1, 1)
