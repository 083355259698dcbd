"""Searches that screen centers with rounded (coarse) numbers: many columns, and many centers or points of each."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import THREADS, clustered, moves_between, nothing, same_bits, sixteenths
from test_kernel_bounds import assert_true
from test_kernel_nearest import assert_nearest
from test_kernel_range import SCALES
from test_kernel_reassign import assert_reassigned, random_factors, random_labels, random_lists

SHAPES = [(300, 64), (300, 130), (1000, 17), (270, 300)]  # number of centers, number of columns
shapes = pytest.mark.parametrize(("C", "D"), SHAPES)


def heavy(n, D, seed=0):
    """Return points (n, D) float32, most of which have one number much greater than the others."""
    return np.random.default_rng(seed).standard_t(1.3, (n, D)).astype(np.float32)


@shapes
@pytest.mark.parametrize("draw", [clustered, heavy])
def test_finds_the_nearest(draw, C, D):
    of_type = {"dtype": np.float32} if draw is clustered else {}
    centers = draw(C, D, seed=1, **of_type)
    for n in (1, 33, 500):
        X = draw(n, D, seed=2, **of_type)
        for n_kept in (1, 2, 40):
            assert_nearest(X, centers, *native.nearest(X, centers, n_kept))


@shapes
@pytest.mark.parametrize("scale", [1e-15, 1e-6, 1e6, 1e15])
def test_the_nearest_is_found_at_any_scale_of_columns(scale, C, D):
    X, centers = (clustered(n, D, np.float64, seed=n) * scale for n in (200, C))
    column = np.geomspace(1e-2, 1e2, D)
    for factor in (1, column):
        rows, others = (X * factor).astype(np.float32), (centers * factor).astype(np.float32)
        assert_nearest(rows, others, *native.nearest(rows, others, 3))


@shapes
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("n_kept", [1, 4, 60])
def test_ties_go_to_the_lower_id_and_an_offset_changes_nothing(n_kept, offset, C, D):
    X, centers = sixteenths(150, D, np.float32), sixteenths(C, D, np.float32, seed=1)
    centers[40:50] = centers[:10]
    expected_kept, expected_distances = reference.nearest(X.astype(np.float64), centers.astype(np.float64), n_kept)
    kept, distances = native.nearest(X + np.float32(offset), centers + np.float32(offset), n_kept)
    np.testing.assert_array_equal(kept, expected_kept)
    np.testing.assert_array_equal(distances, expected_distances)


@shapes
def test_identical_centers_are_nearest_in_order_of_index(C, D):
    X = np.full((C, D), 1.1, dtype=np.float32)
    kept, distances = native.nearest(X, X, 4)
    np.testing.assert_array_equal(kept, np.tile(np.arange(4), (C, 1)))
    np.testing.assert_array_equal(distances, 0)


@shapes
@pytest.mark.parametrize("n_kept", [1, 6])
def test_a_hint_never_changes_the_result_and_neither_do_threads(n_kept, C, D):
    X, centers = clustered(903, D, np.float32), clustered(C, D, np.float32, seed=2)
    expected = native.nearest(X, centers, n_kept, n_threads=1)
    random = np.random.default_rng(0).permuted(np.tile(np.arange(C, dtype=np.int32), (903, 1)), axis=1)
    for hint in (expected[0], np.ascontiguousarray(random[:, :n_kept])):
        assert same_bits(native.nearest(X, centers, n_kept, hint=hint), expected)
    for n_threads in THREADS:
        assert same_bits(native.nearest(X, centers, n_kept, n_threads=n_threads), expected)


@pytest.mark.parametrize("scale", SCALES[np.float32])
def test_the_nearest_is_found_at_the_edge_of_the_type(scale):
    C, D = 300, 64
    with np.errstate(under="ignore"):
        X, centers = ((clustered(n, D, np.float64, seed=n) * scale).astype(np.float32) for n in (150, C))
    with np.errstate(over="ignore", under="ignore"):
        squares = ((X[:, None, :] - centers) ** 2).sum(axis=2)
    tolerance = {"rtol": 2 * D * np.finfo(np.float32).eps, "atol": 2 * D * np.finfo(np.float32).tiny}
    with np.errstate(over="ignore"):
        for n_kept in (1, 3):
            kept, distances = native.nearest(X, centers, n_kept)
            assert ((kept >= 0) & (kept < C)).all()
            np.testing.assert_allclose(distances, np.sort(squares, axis=1)[:, :n_kept], **tolerance)
        few = 3
        labels, lists = random_labels(150, few), random_lists(few, few - 1)
        moved, there = native.reassign(X, centers[:few], lists, labels)
        np.testing.assert_allclose(there, squares[np.arange(150), moved], **tolerance)
        np.testing.assert_allclose(there, squares[:, :few].min(axis=1), **tolerance)


@pytest.mark.parametrize("n_others", [1, 3])
def test_bounds_follow_moving_centers(n_others):
    C, D, n = 300, 64, 400
    rng = np.random.default_rng(0)
    X, centers = clustered(n, D, np.float32), clustered(C, D, np.float32, seed=2)
    bounds = nothing(n, C, n_others, np.float32)
    for step in (0, 0.3, 0.003, 0.03, 2.0):
        after = centers + (step * rng.standard_normal(centers.shape) * rng.integers(0, 2, (C, 1))).astype(np.float32)
        distances, _ = native.nearest_bounded(X, after, bounds, moves_between(centers, after))
        kept, expected = native.nearest(X, after)
        np.testing.assert_array_equal(bounds.labels, kept[:, 0])
        assert same_bits(distances, np.ascontiguousarray(expected[:, 0]))
        assert_true(X, after, bounds)
        centers = after


@pytest.mark.parametrize("D", [64, 130, 300])
@pytest.mark.parametrize("length", [1, 16, 17, 33])
@pytest.mark.parametrize("draw", [clustered, heavy])
def test_reassign_goes_to_the_best_of_the_list(draw, length, D):
    of_type = {"dtype": np.float32} if draw is clustered else {}
    for n, C in ((90, 2), (700, 40)):
        X, centers = draw(n, D, seed=D, **of_type), draw(C, D, seed=n, **of_type)
        lists, labels = random_lists(C, length, seed=D, emptied=0.3), random_labels(n, C)
        assert_reassigned(X, centers, lists, labels)
        assert_reassigned(X, centers, lists, labels, *random_factors(C, np.float32))


@pytest.mark.parametrize("D", [64, 130])
def test_reassign_leaves_ties_with_the_own_center(D):
    X, centers = sixteenths(600, D, np.float32, span=4), sixteenths(20, D, np.float32, seed=1, span=4)
    centers[10:] = centers[:10]
    lists, labels = random_lists(20, 19), random_labels(600, 20)
    expected = reference.reassign(X.astype(np.float64), centers.astype(np.float64), lists, labels)
    for offset in (0, 1e6):
        found = native.reassign(X + np.float32(offset), centers + np.float32(offset), lists, labels)
        for here, there in zip(found, expected, strict=True):
            np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("draw", [clustered, heavy])
def test_keeps_the_nearest_of_what_is_offered(draw):
    of_type = {"dtype": np.float32} if draw is clustered else {}
    D, C, n = 130, 40, 700
    X, centers = draw(n, D, seed=1, **of_type), draw(C, D, seed=2, **of_type)
    lists = random_lists(C, 17, emptied=0.3)
    for width, n_kept in ((1, 3), (3, 3), (2, 12)):
        previous = np.argsort(np.random.default_rng(3).random((n, C)), axis=1)[:, :width].astype(np.int32)
        kept, distances = native.top_k(X, centers, lists, previous, n_kept)
        expected_kept, expected = reference.top_k(X, centers, lists, previous, n_kept)
        np.testing.assert_array_equal(kept >= 0, expected_kept >= 0)
        np.testing.assert_allclose(distances, expected, rtol=2 * D * np.finfo(np.float32).eps)
