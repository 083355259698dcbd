"""Kernels on rows of narrow types (such as uint8) are bit-identical to kernels on the same numbers in a wider type."""

import pickle

import ml_dtypes
import numpy as np
import pytest
from kernel_calls import VERBS

from cprime.kernels import (
    CenterCells,
    Dense,
    DistanceBounds,
    FactorAnalysers,
    GaussianParameters,
    Moves,
    SparseRows,
    StoredRows,
    as_rows,
)

TYPES = {"uint8": np.uint8, "int8": np.int8, "bool": bool, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
LAYOUTS = {
    "as they come": lambda X: StoredRows(X),
    "every other row backwards": lambda X: StoredRows(X.repeat(2, axis=0)[::-2])[::-1],
    "some columns of more": lambda X: StoredRows(np.concatenate([X[:, :1], X, X[:, :1]], axis=1)[:, 1:-1]),
    "in an order": lambda X: StoredRows(X[::-1]).ordered(np.arange(len(X))[::-1].copy()),
}
SIZES = {"few": (5, 3, 2), "more": (700, 70, 40)}


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


def given(n, D, C, dtype):
    """Return centers, Gaussians and active sets, as arguments of the kernels."""
    rng = np.random.default_rng(1)
    m = (30 * rng.standard_normal((C, D))).astype(dtype)
    return {
        "m": m,
        "diag": GaussianParameters(m, rng.uniform(0.1, 1, (C, D)).astype(dtype), rng.random(C).astype(dtype)),
        "full": GaussianParameters(
            m, np.tril(rng.uniform(0.1, 1, (C, D, D))).astype(dtype), rng.random(C).astype(dtype)
        ),
        "labels": rng.integers(C, size=n).astype(np.int32),
        "lists": np.argsort(rng.random((C, C)), axis=1)[:, : max(1, C // 4)].astype(np.int32),
        "kept": np.argsort(rng.random((n, C)), axis=1)[:, :2].astype(np.int32),
        "q": rng.random((n, 2)),
        "w": rng.uniform(0.5, 2, n),
    }


def bounded(X, g):
    C, n = len(g["m"]), len(X)
    bounds = DistanceBounds(
        g["labels"].copy(), np.zeros((n, 0), np.int32), np.zeros((n, 0), X.dtype), np.zeros(n, X.dtype)
    )
    moves = Moves(np.zeros(C, X.dtype), np.full((C, 1), np.inf, X.dtype), np.zeros((C, 1), X.dtype))
    return X.nearest_bounded(g["m"], bounds, moves), bounds


def analysers(X, g):
    (C, D), rng = g["m"].shape, np.random.default_rng(3)
    directions, loadings = 0.1 * rng.random((C, 2, D)), rng.random((C, D, 2))
    roots = np.tile(np.eye(2), (C, 1, 1))
    return FactorAnalysers(g["m"], 1 + rng.random((C, D)), directions, loadings, roots, rng.random(C))


CALLS = {
    "nearest": lambda X, g: [X.nearest(g["m"], 1), X.nearest(g["m"], 2), X.nearest(g["diag"], 2), X.nearest(g["full"])],
    "assign": lambda X, g: [X.assign(g["m"]), X.assign(g["m"], g["labels"][:, None], g["w"])],
    "lloyd": lambda X, g: [X.lloyd(X[:2].dense(), 4, 1e-9), X.lloyd(X[:1].dense(), 2, 0.5, g["w"], least_shift=1e-9)],
    "first": lambda X, g: X.first(),
    "nearest_bounded": bounded,
    "reassign": lambda X, g: X.reassign(g["m"], g["lists"], g["labels"], np.full(len(g["m"]), 1.5, X.dtype)),
    "own_distances": lambda X, g: X.own_distances(g["m"], g["labels"]),
    "top_k": lambda X, g: [X.top_k(g[name], g["lists"], g["kept"], 2) for name in ("m", "diag", "full")],
    "search_lists": lambda X, g: [
        X.search_lists(g[name], lists, g["kept"], 2, evidence=lists.size > 0, sample_weight=g["w"])
        for name in ("m", "diag", "full")
        for lists in (g["lists"], g["lists"][:, :0])
    ],
    "distances": lambda X, g: X.distances(g["m"]),
    "extent": lambda X, g: [X.extent(), X.extent(g["m"][0])],
    "products": lambda X, g: [X.products(g["m"]), X.products(g["m"], g["m"][0])],
    "accumulate": lambda X, g: [
        X.accumulate(g["kept"], g["q"], g["w"], n_components=len(g["m"])),
        X.accumulate(g["labels"][:, None], n_components=10 * len(g["m"])),
        X.accumulate(g["labels"][:2, None], n_components=len(g["m"]), rows=np.array([len(X) - 1, 0])),
    ],
    "moments": lambda X, g: [
        X.moments(g["m"], g["kept"], g["q"], g["w"], full=False),
        X.moments(g["m"], g["labels"][:, None], full=True),
    ],
    "along": lambda X, g: X.along(g["m"], g["m"][::-1].copy(), g["labels"]),
    "spread_out": lambda X, g: X.spread_out(
        np.array([0, 2, len(X)]), g["w"], np.array([1, 3]), np.random.default_rng(0).random((4, 2))
    ),
    "jumped": lambda X, g: X.jumped(g["m"], g["w"]),
    "expect_all": lambda X, g: X.expect_all(g["m"], 500.0, g["w"]),
    "log_sum_exp": lambda X, g: X.log_sum_exp(g["m"], 500.0),
    "respond": lambda X, g: [X.respond(g["diag"], g["w"]), X.respond(g["full"])],
    "responsibilities": lambda X, g: X.responsibilities(g["diag"]),
    "factor_costs": lambda X, g: X.factor_costs(analysers(X, g), g["kept"]),
    "top_k_factors": lambda X, g: X.top_k_factors(analysers(X, g), g["lists"], g["kept"], 2),
    "factor_moments": lambda X, g: [
        X.factor_moments(g["m"], analysers(X, g).directions, None, g["kept"], g["q"], g["w"]),
        X.factor_moments(g["m"], *analysers(X, g)[2:5:2], g["labels"][:, None]),
    ],
    "normalized": lambda X, g: [
        (units.dense(), lengths) for units, lengths in (X.normalized(), X.normalized(np.arange(len(X))[::-1].copy()))
    ],
    "projected": lambda X, g: [X.projected(g["m"][0].astype(np.float64)), X.projected(*g["m"][:2].astype(np.float64))],
    "principal": lambda X, g: X.principal(g["w"], np.zeros(X.shape[1])),
    "widened": lambda X, g: X.widened().distances(np.pad(g["m"], ((0, 0), (0, 1)))),
    "ordered": lambda X, g: X.ordered(np.arange(len(X))[::-1].copy()).dense(),
    "alike": lambda X, g: X.alike(g["m"]).dense(),
    "imputed": lambda X, g: X.imputed(g["diag"], g["kept"], g["q"]),
    "converted": lambda X, g: [X.converted(n).dense() for n in (len(X), 2**40)],
    "times": lambda X, g: X.times(g["m"][0]).dense(),
    "cells": lambda X, g: in_cells(X, g),
}


def in_cells(X, g):
    m, C = g["m"], len(g["m"])
    between = np.full((2, 2), X.shape[1] ** 0.5, X.dtype)
    return CenterCells(np.concatenate([m[:2], m]), np.array([0, C // 2, C]), between).find(X, 2, 2)


def flat(found):
    """Return all arrays and numbers in a nested result as a flat list."""
    if isinstance(found, list | tuple):
        return [one for part in found for one in flat(part)]
    if hasattr(found, "__dict__"):
        return flat(list(vars(found).values()))
    return [] if found is None else [np.asarray(found)]


def assert_same(found, expected):
    assert len(flat(found)) == len(flat(expected))
    for ours, theirs in zip(flat(found), flat(expected), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_all_verbs_are_here():
    assert set(VERBS) <= set(CALLS)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES.keys())
@pytest.mark.parametrize("name", CALLS)
def test_verbs(name, dtype, size):
    n, D, C = size
    X, g = numbers(dtype, n, D), given(n, D, C, np.float32)
    assert_same(CALLS[name](as_rows(X), g), CALLS[name](Dense(X.astype(np.float32)), g))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("divided", [False, True])
def test_layouts_threads_and_the_wider_type(layout, divided):
    n, D, C = SIZES["more"]
    X, g = numbers(np.float16, n, D), given(n, D, C, np.float64)
    ours, theirs = layout(X).as_type(np.float64), Dense(X.astype(np.float64))
    if divided:
        theirs, lengths = theirs.normalized()
        ours = StoredRows(ours.array, np.float64, ours.order, lengths if ours.order is None else lengths[::-1].copy())
    np.testing.assert_array_equal(ours.dense(), theirs.dense())
    for name, call in CALLS.items():
        if name != "times":
            assert_same(call(ours, g), call(theirs, g))
    kept = g["labels"][:, None]
    for n_threads in (1, 2, 3):
        found = ours[100:600].accumulate(kept[100:600], n_components=C, n_threads=n_threads)
        assert_same(found, theirs[100:600].accumulate(kept[100:600], n_components=C))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_half_is_what_numpy_has(dtype):
    every = np.arange(2**16, dtype=np.uint16).view(dtype).reshape(-1, 16)
    finite = np.isfinite(every.astype(np.float32)).all(axis=1)
    X = StoredRows(every[finite])
    found = X.products(np.eye(16, dtype=np.float32))
    np.testing.assert_array_equal(found, every[finite].astype(np.float32))
    assert not np.isfinite(StoredRows(every).extent()[0])
    row, column, value = StoredRows(every).not_finite()
    assert row == np.flatnonzero(~finite)[0]
    assert not np.isfinite([value, float(every[row, column])]).any()


def test_rows_are_chosen_as_those_of_arrays():
    X = numbers(np.uint8, 50, 4)
    rows, wide = StoredRows(X), Dense(X.astype(np.float32))
    order = np.random.default_rng(0).permutation(50)
    for some in (slice(3, 40, 2), np.array([5, 1, 1]), X[:, 0] > 20):
        np.testing.assert_array_equal(rows[some].dense(), wide[some].dense())
        np.testing.assert_array_equal(rows.ordered(order)[some].dense(), wide[order][some].dense())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows.ordered(order))).dense(), wide[order].dense())
    assert rows.ordered(order).array is X
    assert len(rows[:0]) == 0
    with pytest.raises(TypeError, match="uint8, int8, bool, float16, bfloat16, got int16"):
        StoredRows(X.astype(np.int16))
    with pytest.raises(ValueError, match="order"):
        _ = rows.ordered(np.array([50])).core
    assert not isinstance(as_rows(X.astype(np.float32)), StoredRows | SparseRows)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16])
def test_no_rows(dtype):
    X, centers = StoredRows(np.ones((5, 3), dtype)), np.zeros((2, 3), np.float32)
    none = X[np.zeros(5, dtype=bool)]
    assert none.own_distances(centers, np.empty(0, dtype=np.int32)).shape == (0,)
    assert none.nearest(centers)[0].shape == X[:0].nearest(centers)[0].shape == (0, 1)
