"""Kernels on rows of narrow types (such as uint8) are bit-identical to kernels on the same numbers in a wider type."""

import pickle

import ml_dtypes
import numpy as np
import pytest
from every_kernel import ARRAYS, CALLS, flat, given
from kernel_calls import VERBS

from cprime.kernels import (
    Dense,
    NarrowRows,
    SparseRows,
    as_rows,
)

TYPES = {"uint8": np.uint8, "int8": np.int8, "bool": bool, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
LAYOUTS = {
    "as they come": lambda X: NarrowRows(X),
    "every other row backwards": lambda X: NarrowRows(X.repeat(2, axis=0)[::-2])[::-1],
    "some columns of more": lambda X: NarrowRows(np.concatenate([X[:, :1], X, X[:, :1]], axis=1)[:, 1:-1]),
    "in an order": lambda X: NarrowRows(X[::-1]).ordered(np.arange(len(X))[::-1].copy()),
}
SIZES = {"few": (5, 3, 2), "more": (700, 70, 40)}


def centers(n, D, C, dtype):
    """Return the arguments of the kernels, with centers of the size of `numbers`."""
    return given(n, (30 * np.random.default_rng(1).standard_normal((C, D))).astype(dtype), variance=500.0)


def numbers(dtype, n, D, seed=0):
    """Return numbers of a type, some of them subnormal if the type has such, and zeros of both signs."""
    rng = np.random.default_rng(seed)
    groups = 40 * rng.standard_normal((1 + n // 20, D))
    X = groups[rng.integers(len(groups), size=n)] + 20 * rng.standard_normal((n, D))
    if dtype is bool:
        return X > 30
    if np.dtype(dtype).kind in "iu":
        return np.clip(np.abs(X) if dtype is np.uint8 else X, -128, 127).astype(dtype)
    X = X.astype(dtype)
    X[0, :2] = -0.0, 3e-7
    return X


def assert_same(found, expected):
    for ours, theirs in zip(flat(found), flat(expected), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_all_verbs_are_here():
    assert set(VERBS) <= {name.split(",")[0] for name in CALLS}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES.keys())
@pytest.mark.parametrize("name", sorted(CALLS.keys() - ARRAYS.keys()))
def test_every_kernel_of_narrow_rows_equals_that_of_wide_ones(name, dtype, size):
    n, D, C = size
    X, g = numbers(dtype, n, D), centers(n, D, C, np.float32)
    assert_same(CALLS[name](as_rows(X), g), CALLS[name](Dense(X.astype(np.float32)), g))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("divided", [False, True])
def test_layouts_and_threads_do_not_change_narrow_rows(layout, divided):
    n, D, C = SIZES["more"]
    X, g = numbers(np.float16, n, D), centers(n, D, C, np.float64)
    ours, theirs = layout(X).as_type(np.float64), Dense(X.astype(np.float64))
    if divided:
        theirs, lengths = theirs.normalized()
        ours = NarrowRows(ours.array, np.float64, ours.order, lengths if ours.order is None else lengths[::-1].copy())
    np.testing.assert_array_equal(ours.dense(), theirs.dense())
    for name in CALLS.keys() - ARRAYS.keys() - {"times"}:
        assert_same(CALLS[name](ours, g), CALLS[name](theirs, g))
    kept = g["labels"][:, None]
    for n_threads in (1, 2, 3):
        found = ours[100:600].accumulate(kept[100:600], n_components=C, n_threads=n_threads)
        assert_same(found, theirs[100:600].accumulate(kept[100:600], n_components=C))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_half_is_what_numpy_has(dtype):
    every = np.arange(2**16, dtype=np.uint16).view(dtype).reshape(-1, 16)
    finite = np.isfinite(every.astype(np.float32)).all(axis=1)
    X = NarrowRows(every[finite])
    found = X.products(np.eye(16, dtype=np.float32))
    np.testing.assert_array_equal(found, every[finite].astype(np.float32))
    assert not np.isfinite(NarrowRows(every).extent()[0])
    row, column, value = NarrowRows(every).not_finite()
    assert row == np.flatnonzero(~finite)[0]
    assert not np.isfinite([value, float(every[row, column])]).any()


def test_rows_are_chosen_as_those_of_arrays():
    X = numbers(np.uint8, 50, 4)
    rows, wide = NarrowRows(X), Dense(X.astype(np.float32))
    order = np.random.default_rng(0).permutation(50)
    for some in (slice(3, 40, 2), np.array([5, 1, 1]), X[:, 0] > 20):
        np.testing.assert_array_equal(rows[some].dense(), wide[some].dense())
        np.testing.assert_array_equal(rows.ordered(order)[some].dense(), wide[order][some].dense())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows.ordered(order))).dense(), wide[order].dense())
    assert rows.ordered(order).array is X
    assert len(rows[:0]) == 0
    with pytest.raises(TypeError, match="uint8, int8, bool, float16, bfloat16, got int16"):
        NarrowRows(X.astype(np.int16))
    with pytest.raises(ValueError, match="order"):
        _ = rows.ordered(np.array([50])).core
    assert not isinstance(as_rows(X.astype(np.float32)), NarrowRows | SparseRows)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16])
def test_no_rows_have_empty_results(dtype):
    X, centers = NarrowRows(np.ones((5, 3), dtype)), np.zeros((2, 3), np.float32)
    none = X[np.zeros(5, dtype=bool)]
    assert none.own_distances(centers, np.empty(0, dtype=np.int32)).shape == (0,)
    assert none.nearest(centers)[0].shape == X[:0].nearest(centers)[0].shape == (0, 1)
