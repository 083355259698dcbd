"""Numbers near the limits of their type: ids are valid, and results equal those of a search by differences."""

import numpy as np
import pytest
from kernel_calls import native as kernels
from kernel_calls import reference
from kernel_data import DTYPES, clustered

# Squares of differences at these scales overflow, nearly overflow, are subnormal, or are zero.
SCALES = {
    np.float32: (1e20, 2e19, 1e19, 3e18, 1e-18, 1e-20, 1e-22, 1e-30),
    np.float64: (1e155, 1e154, 5e153, 1e152, 1e-153, 1e-160, 1e-162, 1e-200),
}
CASES = [(dtype, scale) for dtype in DTYPES for scale in SCALES[dtype]]


def scaled(n, D, dtype, scale, seed=0):
    """Return points with finite coordinates of the order of `scale`."""
    with np.errstate(under="ignore"):
        return (clustered(n, D, np.float64, seed) * scale).astype(dtype)


def scaled_centers(X, dtype, scale):
    """Return 41 centers, which leave part of a panel empty; points nearer to X follow them in memory."""
    memory = np.concatenate([scaled(41, X.shape[1], dtype, scale, seed=1), X[:128]])
    return memory[:41]


def by_differences(X, centers, n_kept):
    """Return the nearest centers by squared distances in the data's type, even infinite; ties go to the lower id."""
    with np.errstate(over="ignore", under="ignore"):
        squares = ((X[:, None, :] - centers) ** 2).sum(axis=2)
    kept = np.argsort(squares, axis=1, kind="stable")[:, :n_kept]
    return kept, np.take_along_axis(squares, kept, axis=1)


@pytest.mark.parametrize("n_kept", [1, 3])
@pytest.mark.parametrize(("dtype", "scale"), CASES)
def test_nearest_of_squares_beyond_their_type_is_that_of_differences(dtype, scale, n_kept):
    X = scaled(300, 16, dtype, scale)
    centers = scaled_centers(X, dtype, scale)
    far = np.tile(np.arange(n_kept, dtype=np.int32), (300, 1))
    _, squares = by_differences(X, centers, n_kept)
    tiny = 40 * np.finfo(dtype).tiny
    for hint in (None, far):
        kept, distances = kernels.nearest(X, centers, n_kept, hint=hint)
        assert ((kept >= 0) & (kept < 41)).all()
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(distances, squares, rtol=20 * np.finfo(dtype).eps, atol=tiny)


@pytest.mark.parametrize(("dtype", "scale"), CASES)
def test_reassign_and_keep_of_squares_beyond_their_type_stay_within_range(dtype, scale):
    X = scaled(300, 16, dtype, scale)
    centers = scaled_centers(X, dtype, scale)
    lists = np.array([[(c + g) % 41 for g in range(1, 41)] for c in range(41)], dtype=np.int32)
    labels = np.arange(300, dtype=np.int32) % 41
    _, squares = by_differences(X, centers, 3)
    tiny = 40 * np.finfo(dtype).tiny
    new, distances = kernels.reassign(X, centers, lists, labels)
    assert ((new >= 0) & (new < 41)).all()
    kept, kept_squares = kernels.top_k(X, centers, lists, labels[:, None], 3)
    assert ((kept >= 0) & (kept < 41)).all()
    np.testing.assert_allclose(kept_squares, squares, rtol=20 * np.finfo(dtype).eps, atol=tiny)
    fits = np.isfinite(squares[:, 0])
    np.testing.assert_allclose(distances[fits], squares[fits, 0], rtol=1e-3, atol=tiny)


@pytest.mark.parametrize("n_kept", [1, 2, 5])
@pytest.mark.parametrize("value", [1e20, 3e38])
def test_one_candidate_that_overflows_leaves_memory_and_the_others_alone(value, n_kept):
    X, centers = clustered(700, 32, np.float32), clustered(41, 32, np.float32, seed=1)
    centers[7] = value
    lists = np.array([[(c + g) % 41 for g in range(1, 41)] for c in range(41)], dtype=np.int32)
    previous = np.full((700, n_kept), -1, dtype=np.int32)
    previous[:, 0] = np.arange(700) % 41
    kept, _ = kernels.top_k(X, centers, lists, previous, n_kept)
    expected, _ = by_differences(X, centers, n_kept)
    np.testing.assert_array_equal(kept, expected)
    labels, _ = kernels.reassign(X, centers, lists, previous[:, 0].copy())
    np.testing.assert_array_equal(labels, expected[:, 0])
    np.testing.assert_array_equal(kernels.nearest(X, centers, n_kept)[0], expected)


@pytest.mark.parametrize("scale", [1e153, 1e200])
def test_spread_out_chooses_candidates_where_masses_overflow(scale):
    """All entries of the result are written, and ids are valid within their group, at every scale."""
    candidates = clustered(200, 3, np.float64) * scale
    uniform = np.random.default_rng(0).random((20, 4))
    sizes, n_chosen = np.array([0, 120, 200]), np.array([12, 8])
    for _ in range(20):  # freed memory with invalid ids must not appear in the result
        np.full(20, -(10**6))
        chosen = kernels.spread_out(candidates, sizes, np.full(200, 1e15), n_chosen, uniform)
        assert ((chosen[:12] >= 0) & (chosen[:12] < 120)).all()
        assert ((chosen[12:] >= 0) & (chosen[12:] < 80)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_kept", [1, 2, 4])
def test_equal_centres_are_kept_in_the_order_of_their_ids(dtype, n_kept):
    """If there are more copies of a center than a screen can hold, those with the lowest ids are returned."""
    X = clustered(600, 8, dtype)
    centers = clustered(3, 8, dtype, seed=1)[np.arange(900) % 3]
    expected, _ = by_differences(X, centers, n_kept)
    np.testing.assert_array_equal(kernels.nearest(X, centers, n_kept)[0], expected)
    np.testing.assert_array_equal(reference.nearest(X, centers, n_kept)[0], expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_kept", [1, 3])
def test_groups_far_apart_are_searched_as_one_by_one(dtype, n_kept):
    """Groups far apart are searched accurately, though products relative to one common origin would be rounded."""
    far = 3e4 if dtype == np.float32 else 1e9
    X, centers = clustered(2000, 6, dtype), clustered(700, 6, dtype, seed=1)
    for place, group in enumerate(np.array_split(np.arange(2000), 4)):
        X[group] += place * far
    for place, group in enumerate(np.array_split(np.arange(700), 4)):
        centers[group] += place * far
    expected, squares = by_differences(X, centers, n_kept)
    kept, distances = kernels.nearest(X, centers, n_kept)
    np.testing.assert_allclose(distances, squares, rtol=20 * np.finfo(dtype).eps)
    assert (kept == expected).mean() > 0.999  # squares that are equal to the last digits may differ in id
