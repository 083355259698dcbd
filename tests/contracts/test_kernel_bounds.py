"""`nearest_bounded` finds the result of `nearest`, with distance bounds that stay valid while centers move."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, clustered, moves_between, nothing, same_bits, sixteenths


def assert_true(X, centers, bounds):
    """Check every bound against distances in float64."""
    truth = np.sqrt(reference.distances(X.astype(np.float64), centers.astype(np.float64)).T)
    row = np.arange(len(X))[:, np.newaxis]
    slack = 1e-5 if X.dtype == np.float32 else 1e-13
    assert (bounds.lows <= truth[row, bounds.others] * (1 + slack)).all()
    known = np.column_stack([bounds.labels, bounds.others])
    assert (np.diff(np.sort(known, axis=1), axis=1) > 0).all(), "a center is known twice"
    truth[row, known] = np.inf
    assert (bounds.rest <= truth.min(axis=1) * (1 + slack)).all()


def assert_nearest(kernels, X, centers, bounds, distances):
    kept, expected = kernels.nearest(X, centers)
    np.testing.assert_array_equal(bounds.labels, kept[:, 0])
    assert same_bits(distances, np.ascontiguousarray(expected[:, 0]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("D", "C", "n_others"), [(1, 2, 1), (2, 30, 3), (9, 17, 5), (40, 60, 3), (3, 4, 3), (5, 8, 0)])
def test_follows_moving_centers(kernels, D, C, n_others, dtype):
    rng = np.random.default_rng(D)
    n = 400
    X, centers = clustered(n, D, dtype, seed=D), clustered(C, D, dtype, seed=2)
    bounds = nothing(n, C, n_others, dtype)
    evaluations = []
    for step in (0, 0.3, 0.03, 0.003, 0.03, 0.003, 0.0, 2.0):
        after = centers + (step * rng.standard_normal(centers.shape) * rng.integers(0, 2, (C, 1))).astype(dtype)
        n_listed = None if step > 0.01 else max(2, C // 3)
        distances, n_evaluations = kernels.nearest_bounded(X, after, bounds, moves_between(centers, after, n_listed))
        assert_nearest(kernels, X, after, bounds, distances)
        assert_true(X, after, bounds)
        centers = after
        evaluations.append(n_evaluations)
    assert evaluations[0] >= n * C, "what says nothing cannot spare anything"
    if n_others:
        assert evaluations[3] < evaluations[0]
    assert all(count >= n for count in evaluations)


@pytest.mark.parametrize("dtype", DTYPES)
def test_centers_at_rest_cost_one_evaluation(kernels, dtype):
    X, centers = clustered(300, 4, dtype), clustered(40, 4, dtype, seed=2)
    bounds, rest = nothing(300, 40, 3, dtype), moves_between(centers, centers)
    kernels.nearest_bounded(X, centers, bounds, rest)
    kernels.nearest_bounded(X, centers, bounds, rest)
    distances, n_evaluations = kernels.nearest_bounded(X, centers, bounds, rest)
    assert n_evaluations == 300
    assert_nearest(kernels, X, centers, bounds, distances)


def test_bounds_are_believed(kernels):
    """Bounds are trusted even if they are wrong: a center that they exclude is not evaluated."""
    X, centers = clustered(100, 3, np.float64), clustered(9, 3, np.float64, seed=2)
    bounds = nothing(100, 9, 2, np.float64)
    bounds.lows[:], bounds.rest[:] = 1e9, 1e9
    distances, n_evaluations = kernels.nearest_bounded(X, centers, bounds, moves_between(centers, centers))
    assert n_evaluations == 100
    np.testing.assert_array_equal(bounds.labels, 0)
    np.testing.assert_allclose(distances, np.square(X - centers[0]).sum(axis=1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_go_to_the_lower_id(kernels, dtype):
    """Ties go to the lower id, for points on a grid and centers of which some coincide."""
    X, centers = sixteenths(500, 2, dtype, span=4), sixteenths(24, 2, dtype, seed=2, span=4)
    centers[7], centers[3] = centers[20], centers[11]
    bounds = nothing(500, 24, 3, dtype)
    for step in (0, 1, 2, 0, 1):
        after = centers + sixteenths(24, 2, dtype, seed=step, span=max(step, 1)) * (step > 0)
        distances, _ = kernels.nearest_bounded(X, after, bounds, moves_between(centers, after))
        assert_nearest(kernels, X, after, bounds, distances)
        centers = after


def altered(bounds, **arrays):
    return bounds._replace(**arrays)


@pytest.mark.parametrize(
    ("named", "arrays"),
    {
        "labels of 64 bits": ("bounds.labels", {"labels": np.zeros(20, dtype=np.int64)}),
        "too few labels": ("bounds.labels", {"labels": np.zeros(19, dtype=np.int32)}),
        "a label too high": ("bounds.labels", {"labels": np.full(20, 5, dtype=np.int32)}),
        "another below zero": ("bounds.others", {"others": np.full((20, 2), -1, dtype=np.int32)}),
        "as many others as centers": ("bounds.others", {"others": np.zeros((20, 5), dtype=np.int32)}),
        "lows of another width": ("bounds.lows", {"lows": np.zeros((20, 3))}),
        "lows of another dtype": ("bounds.lows", {"lows": np.zeros((20, 2), dtype=np.float32)}),
        "rest that cannot be written": ("bounds.rest", {"rest": np.broadcast_to(np.zeros(1), 20)}),
    }.values(),
)
def test_an_error_names_what_is_wrong_with_the_bounds(named, arrays):
    X, centers = clustered(20, 3, np.float64), clustered(5, 3, np.float64, seed=2)
    bounds = altered(nothing(20, 5, 2, np.float64), **arrays)
    with pytest.raises(ValueError, match=named):
        native.nearest_bounded(X, centers, bounds, moves_between(centers, centers))


@pytest.mark.parametrize("named", ["drift", "reach", "spread"])
def test_an_error_names_what_is_wrong_with_the_moves(named):
    X, centers = clustered(20, 3, np.float64), clustered(5, 3, np.float64, seed=2)
    moves = moves_between(centers, centers)
    short = moves._replace(**{named: getattr(moves, named)[:-1]})
    with pytest.raises(ValueError, match=f"moves.*{named}"):
        native.nearest_bounded(X, centers, nothing(20, 5, 2, np.float64), short)
