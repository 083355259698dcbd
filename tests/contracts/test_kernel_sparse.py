"""Every kernel for sparse rows gives the result of the NumPy reference for the same rows as a dense array."""

import numpy as np
import pytest
from every_kernel import SPARSE, different, given, placed, results
from kernel_calls import native as kernels
from kernel_calls import reference
from kernel_data import DTYPES, THREADS, moves_between, neighbours, nothing, rounding
from scipy.sparse import csr_array, csr_matrix
from test_kernel_guard_pages import at_page_end

from cprime.kernels import Dense, SparseRows
from cprime.kernels.compute import computing
from reference import Reference
from reference.distances import costs_of

# (n, D, C): one of each, fewer entries than a vector, around the size of a panel, and lists of several panels
SIZES = [(1, 1, 1), (9, 5, 3), (300, 40, 17), (211, 333, 140), (700, 90, 300)]


def rows_of(n, D, dtype, seed=0, density=0.15, offset=0.0):
    """Return rows (n, D) that are mostly zero; some rows are all zero, and one has no zeros."""
    rng = np.random.default_rng(seed)
    X = (offset + rng.standard_normal((n, D))) * (rng.random((n, D)) < density)
    X[::37] = 0
    X[n // 2] = rng.standard_normal(D)
    return X.astype(dtype)


def centers_near(X, C, seed=1):
    """Return slightly moved rows as centers; two are equal, one equals a row, one has no zeros."""
    rng = np.random.default_rng(seed)
    centers = X[rng.choice(len(X), C)] + 0.2 * rng.standard_normal((C, X.shape[1])) * (rng.random(X.shape[1]) < 0.3)
    centers[C // 2], centers[-1] = centers[0], X[len(X) // 2]
    centers[C // 3] = 0.1 * rng.standard_normal(X.shape[1])
    return centers.astype(X.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "D", "C"), SIZES)
def test_results_are_those_of_the_rows_as_an_array(n, D, C, dtype):
    Y = rows_of(n, D, dtype)
    centers = centers_near(Y, C)
    g = given(n, centers)
    found, expected = (results(X, g, SPARSE) for X in (SparseRows.from_scipy(csr_array(Y)), Reference(Y)))
    near = {"rtol": 2 * rounding(dtype, D), "atol": 2 * rounding(dtype, D) * np.abs(Y).max()}
    for name, values in expected.items():
        for a, b in zip(found[name], values, strict=True):
            if b.dtype.kind == "i":
                np.testing.assert_array_equal(a, b, err_msg=name)
            elif name in ("along", "log_sum_exp", "projected", "accumulate", "assign"):
                np.testing.assert_allclose(a, b, **near, err_msg=name)
            else:
                np.testing.assert_allclose(a, b, rtol=rounding(dtype, D), err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_squared_distances_are_true_far_from_the_origin(dtype):
    """Products cancel far from the origin, so distances must be exact; a row that is a center has distance 0."""
    Y = rows_of(150, 60, dtype, density=0.5, offset=1000.0)
    near = (Y + dtype(0.01) * (Y != 0)).astype(dtype)
    for centers in (near[:40], Y[:40]):
        X, lists = SparseRows.from_scipy(csr_array(Y)), np.empty((40, 0), dtype=np.int32)
        labels = (np.arange(150) % 40).astype(np.int32)
        truth = reference.distances(Y, centers)
        np.testing.assert_allclose(kernels.distances(X, centers), truth, rtol=rounding(dtype, 60))
        np.testing.assert_allclose(kernels.nearest(X, centers)[1][:, 0], truth.min(axis=0), rtol=rounding(dtype, 60))
        own = kernels.reassign(X, centers, lists, labels)[1]
        np.testing.assert_allclose(own, truth[labels, np.arange(150)], rtol=rounding(dtype, 60))
    assert not own[:40].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_near_centers_than_a_screen_holds(dtype):
    """The first of many equal centers is found, and the nearest of many that differ by less than scores resolve."""
    Y = rows_of(60, 30, dtype)
    many = np.repeat(Y[1:2], 90, axis=0)
    many[45:] += dtype(1e-6)
    X = SparseRows.from_scipy(csr_array(Y))
    kept, distances = kernels.nearest(X, many)
    expected, squared = reference.nearest(Y, many)
    np.testing.assert_allclose(distances, squared, rtol=rounding(dtype, 30))
    assert kept[1, 0] == expected[1, 0] == 0
    lists = np.delete(np.tile(np.arange(90), (90, 1)), np.arange(90) * 91).reshape(90, 89).astype(np.int32)
    labels, there = kernels.reassign(X, many, lists, np.full(60, 89, dtype=np.int32))
    np.testing.assert_allclose(there, squared[:, 0], rtol=rounding(dtype, 30))
    assert labels[1] < 45


@pytest.mark.long
def test_many_columns_are_taken_in_pieces():
    """Rows of a component may have more columns than fit in a panel."""
    rng = np.random.default_rng(0)
    Y = rows_of(300, 20_000, np.float32, density=0.01)
    centers = (Y[:70] + 0.05 * rng.standard_normal((70, 20_000)) * (rng.random(20_000) < 0.02)).astype(np.float32)
    lists, labels = neighbours(70, 69), np.zeros(300, dtype=np.int32)
    found = kernels.reassign(SparseRows.from_scipy(csr_array(Y)), centers, lists, labels)
    expected = reference.reassign(Y, centers, lists, labels)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_gives_the_same_bits(dtype):
    Y = rows_of(9001, 23, dtype)
    X, g, found = SparseRows.from_scipy(csr_array(Y)), given(9001, centers_near(Y, 7)), []
    for n_threads in THREADS:
        with computing(n_threads):
            found.append(results(X, g, SPARSE))
    assert different(found[0], found[1]) == different(found[0], found[2]) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "D", "C"), SIZES)
def test_nothing_is_read_behind_an_array(n, D, C, dtype):
    Y = rows_of(n, D, dtype)
    X, g = SparseRows.from_scipy(csr_array(Y)), given(n, centers_near(Y, C))
    there = SparseRows(*map(at_page_end, (X.values, X.columns, X.begins)), D)
    assert different(results(X, g, SPARSE), results(there, placed(g, at_page_end), SPARSE)) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_others", [0, 3])
def test_bounds_outlive_an_iteration(dtype, n_others):
    Y = rows_of(400, 50, dtype)
    X, before = SparseRows.from_scipy(csr_array(Y)), centers_near(Y, 12)
    after = (before + 0.01 * np.random.default_rng(7).standard_normal(before.shape)).astype(dtype)
    bounds = nothing(400, 12, n_others, dtype)
    for centers, moved in ((before, moves_between(before, before)), (after, moves_between(before, after, 4))):
        distances, n_evaluations = kernels.nearest_bounded(X, centers, bounds, moved)
        truth = costs_of(Y, centers)
        kept, expected = reference.nearest(Y, centers)
        np.testing.assert_array_equal(bounds.labels, kept[:, 0])
        np.testing.assert_allclose(distances, expected[:, 0], rtol=rounding(dtype, 50))
        lengths, row = np.sqrt(truth), np.arange(400)
        for b in range(n_others):
            assert (bounds.lows[:, b] <= lengths[row, bounds.others[:, b]]).all()
        lengths[row, bounds.labels] = np.inf
        for b in range(n_others):
            lengths[row, bounds.others[:, b]] = np.inf
        assert (bounds.rest <= lengths.min(axis=1)).all()
    assert n_evaluations < 400 * 12 or not n_others


def test_rows_are_chosen_by_slice_number_and_mask():
    Y = rows_of(50, 20, np.float64)
    X = SparseRows.from_scipy(csr_matrix(Y))
    assert (X.shape, len(X), X.dtype, X.ndim) == ((50, 20), 50, np.float64, 2)
    for rows in (slice(3, 9), slice(None, None, 7), np.array([4, 0, 4, 49]), Y[:, 0] > 0, slice(9, 3), np.array([-1])):
        part = X[rows]
        np.testing.assert_array_equal(part.dense(), Y[rows])
        for order in (None, np.arange(len(part))[::-1]):
            units, lengths = part.normalized(order)
            expected = Dense(Y[rows] if order is None else Y[rows][order]).normalized()
            np.testing.assert_allclose(lengths, expected[1], rtol=1e-15)
            np.testing.assert_allclose(units.dense(), expected[0].dense(), rtol=1e-15)
    assert np.shares_memory(X[3:9].values, X.values)
    assert (abs(X[3:9].given() - csr_array(Y[3:9])) > 0).nnz == 0


def test_what_is_not_canonical_is_copied_and_the_original_left_alone():
    X = csr_array((np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
    np.testing.assert_array_equal(SparseRows.from_scipy(X).dense(), [[2, 0, 4], [0, 4, 0]])
    np.testing.assert_array_equal(X.indices, [2, 0, 2, 1])


def test_sparse_rows_are_no_array():
    X = SparseRows.from_scipy(csr_array(np.eye(3)))
    with pytest.raises(TypeError, match="is no array"):
        np.asarray(X)
    for refused in (
        lambda: kernels.moments(X, np.eye(3), np.zeros((3, 1), np.int32), full=False),
        lambda: kernels.top_k(X, np.eye(3), np.empty((3, 0), np.int32), np.zeros((3, 1), np.int32), 1),
        lambda: kernels.expect_all(X, np.eye(3), 1.0),
    ):
        with pytest.raises(TypeError, match="sparse ones are compared by squared distances"):
            refused()


@pytest.mark.parametrize(
    ("columns", "begins"),
    [([0, 3], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 3, 2]), ([0, 1], [0, 1, 3]), ([0, 1], [-1, 1, 2])],
)
def test_what_would_be_read_out_of_bounds_is_refused(columns, begins):
    X = SparseRows(np.ones(2), np.array(columns, dtype=np.int32), np.array(begins), 3)
    centers, ids = np.eye(3), np.zeros((2, 1), dtype=np.int32)
    no_lists = np.empty((3, 0), dtype=np.int32)
    for call in (
        lambda: kernels.nearest(X, centers),
        lambda: kernels.distances(X, centers),
        lambda: kernels.accumulate(X, ids, n_components=3),
        lambda: kernels.reassign(X, centers, no_lists, ids[:, 0]),
        lambda: kernels.search_lists(X, centers, no_lists, ids, 1),
        lambda: kernels.along(X, centers, centers, ids[:, 0]),
        lambda: kernels.spread_out(X, np.array([0, 2]), np.ones(2), np.array([1]), np.zeros((1, 1))),
    ):
        with pytest.raises(ValueError, match=r"columns|begin"):
            call()


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_name_the_argument(dtype):
    Y = rows_of(20, 6, dtype)
    X, centers = SparseRows.from_scipy(csr_array(Y)), centers_near(Y, 5)
    labels, lists = np.arange(20, dtype=np.int32) % 5, neighbours(5, 3)
    for name, call in {
        "centers": lambda: kernels.nearest(X, centers[:, :4]),
        "n_kept": lambda: kernels.nearest(X, centers, 6),
        "hint": lambda: kernels.nearest(X, centers, hint=np.full((20, 1), 5, dtype=np.int32)),
        "candidates": lambda: kernels.distances(X, centers.astype(np.float16)),
        "current": lambda: kernels.distances(X, centers, np.ones(3, dtype=dtype)),
        "labels": lambda: kernels.reassign(X, centers, lists, labels + np.int32(5)),
        "lists": lambda: kernels.reassign(X, centers, lists + np.int32(5), labels),
        "previous": lambda: kernels.search_lists(X, centers, lists, labels[:, np.newaxis] + np.int32(5), 1),
        "kept": lambda: kernels.accumulate(X, labels[:3, np.newaxis], n_components=5),
        "directions": lambda: kernels.along(X, centers, centers[:2], labels),
    }.items():
        with pytest.raises((TypeError, ValueError), match=name):
            call()
