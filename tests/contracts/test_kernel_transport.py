"""`assign_bounded`: sizes are within the bounds at the least total cost, compared with linear programs and NumPy."""

import numpy as np
import pytest
from kernel_calls import native, reference
from scipy.optimize import linprog
from scipy.sparse import coo_array, vstack
from scipy.spatial.distance import cdist

from cprime.kernels import Infeasible, assign_weighted


def squared_distances(n, C, seed=0, kind="normal"):
    """Return squared distances (n, C) of points in the plane to others: of normal distribution, or on a small grid."""
    rng = np.random.default_rng(seed)
    X, centers = rng.normal(size=(n, 2)) * [3, 1], rng.normal(size=(C, 2))
    return cdist(np.rint(X), np.rint(centers), "sqeuclidean") if kind == "grid" else cdist(X, centers, "sqeuclidean")


def nearest_of(costs, K, dtype=np.float64):
    """Return ids and costs (n, K) of the K candidates of least cost."""
    ids = np.argsort(costs, axis=1, kind="stable")[:, :K].astype(np.int32)
    return ids, np.take_along_axis(costs, ids.astype(int), axis=1).astype(dtype)


def least_cost(costs, lower, upper, weights=None):
    """Return the least cost of an assignment within the bounds of points that may be divided, by linear programming."""
    n, C = costs.shape
    weights = np.ones(n) if weights is None else weights
    each = coo_array((np.ones(n * C), (np.repeat(np.arange(n), C), np.arange(n * C))), shape=(n, n * C))
    total = coo_array((np.ones(n * C), (np.tile(np.arange(C), n), np.arange(n * C))), shape=(C, n * C))
    limits = np.concatenate([upper, -lower])
    found = linprog(costs.ravel(), A_ub=vstack([total, -total]), b_ub=limits, A_eq=each, b_eq=weights, bounds=(0, None))
    return found.fun


def dual(costs, ids, prices, lower, upper):
    """Return a lower bound of the cost of all assignments of points to their candidates, given prices."""
    least = (np.where(ids < 0, np.inf, costs.astype(float)) + prices[ids]).min(axis=1).sum()
    return least - np.maximum(prices, 0) @ upper + np.maximum(-prices, 0) @ lower


def total_cost(costs, ids, labels):
    assert ((ids == labels[:, np.newaxis]) & (ids >= 0)).sum(axis=1).tolist() == [1] * len(ids)
    return costs.astype(float)[ids == labels[:, np.newaxis]].sum()


@pytest.mark.parametrize(("n", "C"), [(24, 4), (150, 8)])
@pytest.mark.parametrize("kind", ["normal", "grid"])
@pytest.mark.parametrize("seed", range(2))
def test_an_assignment_has_the_least_cost(kernels, n, C, kind, seed):
    costs, mean = squared_distances(n, C, seed, kind), n // C
    ids = np.tile(np.arange(C, dtype=np.int32), (n, 1))
    for low, high in [(0, mean + 1), (mean, mean + 1), (mean // 2, 2 * mean), (mean // 4, n), (mean, n)]:
        lower, upper = np.full(C, low), np.full(C, high)
        labels, prices = kernels.assign_bounded(ids, costs, lower, upper)
        assert labels.dtype == np.int32
        sizes = np.bincount(labels, minlength=C)
        assert (sizes >= low).all()
        assert (sizes <= high).all()
        total, least = total_cost(costs, ids, labels), least_cost(costs, lower, upper)
        assert least * (1 - 1e-9) <= total <= least * (1 + 1e-4) + 1e-9
        assert total <= dual(costs, ids, prices, lower, upper) * (1 + 2e-4) + 1e-9
        again, _ = kernels.assign_bounded(ids, costs, lower, upper, prices, accuracy=1e-7)
        assert total_cost(costs, ids, again) <= least * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_costs_with_some_candidates_are_those_of_the_reference(dtype):
    """Both versions find the same least cost with 6 of 30 candidates, sorted or not, and bounds on both sides."""
    ids, costs = nearest_of(squared_distances(900, 30), 6, dtype)
    lower, upper = np.full(30, 9), np.full(30, 60)
    order = np.random.default_rng(0).permuted(np.tile(np.arange(6), (900, 1)), axis=1)
    shuffled = np.take_along_axis(ids, order, axis=1), np.take_along_axis(costs, order, axis=1)
    expected = total_cost(costs, ids, reference.assign_bounded(ids, costs, lower, upper)[0])
    for given in [(ids, costs), shuffled]:
        labels, prices = native.assign_bounded(*given, lower, upper)
        sizes = np.bincount(labels, minlength=30)
        assert sizes.min() >= 9
        assert sizes.max() <= 60
        total = total_cost(costs, ids, labels)
        assert total == pytest.approx(expected, rel=2e-4)
        assert total <= dual(costs, ids, prices, lower, upper) * (1 + 2e-4)


def test_every_cluster_has_bounds_of_its_own_with_short_lists(kernels):
    ids, costs = nearest_of(squared_distances(60, 5), 3)
    ids[::4, 2] = -1
    costs[::4, 2] = np.inf
    lower, upper = np.array([0, 5, 20, 0, 3]), np.array([60, 9, 40, 10, 60])
    labels, _ = kernels.assign_bounded(ids, costs, lower, upper)
    sizes = np.bincount(labels, minlength=5)
    assert (sizes >= lower).all()
    assert (sizes <= upper).all()
    total_cost(costs, ids, labels)  # checks that every label is a candidate


def test_infeasible_assignments_are_refused(kernels):
    ids, costs = nearest_of(squared_distances(60, 5), 1)
    with pytest.raises(Infeasible, match="candidates of the points allow no assignment"):
        kernels.assign_bounded(ids, costs, np.zeros(5, int), np.full(5, 12))
    with pytest.raises(Infeasible, match="candidates of the points allow no assignment"):
        kernels.assign_bounded(ids * 0, costs, np.full(5, 2), np.full(5, 60))
    pairs = np.tile(np.array([0, 1, -1, -1, -1], np.int32), (60, 1))
    with pytest.raises(Infeasible, match="candidates of the points allow no assignment"):
        kernels.assign_bounded(pairs, np.tile(costs, (1, 5)), np.zeros(5, int), np.full(5, 12))
    with pytest.raises(Infeasible, match="5 clusters of 0 to 55 points cannot have the sum 60"):
        kernels.assign_bounded(ids, costs, np.zeros(5, int), np.full(5, 11))


def test_bounds_hold_for_equal_costs_and_far_points(kernels):
    """The auction ends if many costs are equal, and if one point is far away."""
    lower, upper = np.full(4, 10), np.full(4, 10)
    ids = np.tile(np.arange(4, dtype=np.int32), (40, 1))
    far = np.zeros((40, 4))
    far[0] = 1e12 + np.arange(4)
    for costs in (np.zeros((40, 4)), np.ones((40, 4)), far, np.arange(160.0).reshape(40, 4) % 7):
        labels, _ = kernels.assign_bounded(ids, costs, lower, upper)
        assert np.bincount(labels).tolist() == [10] * 4
        assert total_cost(costs, ids, labels) == pytest.approx(least_cost(costs, lower, upper), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("low", [0, 15, 40])
def test_an_assignment_has_the_least_cost_if_points_lie_in_clumps(low):
    """Two clusters lie in each of two clumps, so their prices rise in tiny steps; shortest paths give the optimum."""
    rng = np.random.default_rng(low)
    X = rng.choice([-5.0, 5.0], (400, 1)) + 1e-4 * rng.normal(size=(400, 2))
    X[:40] = rng.uniform(-9, 9, (40, 2))
    centers = np.concatenate([[[-5, 1e-4], [-5, -1e-4], [5, 1e-4], [5, -1e-4]], rng.uniform(-9, 9, (4, 2))])
    costs, lower, upper = cdist(X, centers, "sqeuclidean"), np.full(8, low), np.full(8, 60)
    ids, near = nearest_of(costs, 8)
    for start in (None, rng.normal(size=8)):
        labels, prices = native.assign_bounded(ids, near, lower, upper, start, accuracy=1e-10)
        sizes = np.bincount(labels, minlength=8)
        assert low <= sizes.min() <= sizes.max() <= 60
        total = total_cost(near, ids, labels)
        assert total == pytest.approx(least_cost(costs, lower, upper), rel=1e-9)
        assert total == pytest.approx(dual(near, ids, prices, lower, upper), rel=1e-9)
    two = ids[:, :2].copy(), near[:, :2].copy()
    with pytest.raises(Infeasible, match="candidates of the points allow no assignment"):
        native.assign_bounded(*two, lower, upper)


def test_an_empty_problem_has_an_empty_result(kernels):
    labels, prices = kernels.assign_bounded(
        np.empty((0, 3), np.int32), np.empty((0, 3)), np.zeros(2, int), np.ones(2, int)
    )
    assert labels.shape == (0,)
    assert prices.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("ids", "costs", "message"),
    [
        ([[0, 2]], [[1.0, 2.0]], "ids must have components from -1 to 1, got 0 to 2"),
        ([[-1, -1]], [[1.0, 2.0]], "ids must have a candidate for each point"),
        ([[0, 1]], [[1.0, np.nan]], "costs must be >= 0 and finite"),
        ([[0, 1]], [[-1.0, 2.0]], "costs must be >= 0 and finite"),
        ([[0, 1]], [[1.0]], r"costs must have shape \(1, 2\), got \(1, 1\)"),
    ],
)
def test_bad_arguments_are_named(kernels, ids, costs, message):
    with pytest.raises(ValueError, match=message):
        kernels.assign_bounded(np.array(ids, np.int32), np.array(costs), np.zeros(2, int), np.ones(2, int))


@pytest.mark.parametrize(("n", "C"), [(24, 4), (400, 8)])
@pytest.mark.parametrize("integers", [False, True])
def test_weighted_points_have_about_the_least_cost_of_divisible_ones(n, C, integers):
    """Weights of clusters are within the bounds up to a point's weight, at a cost near that of a linear program."""
    rng = np.random.default_rng(n)
    weights = rng.integers(1, 4, n).astype(float) if integers else rng.uniform(0.5, 3, n)
    costs, mean = squared_distances(n, C), weights.sum() / C
    for low, high in [(0.0, 1.05), (1.0, 1.0), (0.6, 1.5), (0.9, np.inf)]:
        ids, near = nearest_of(costs, C)
        lower, upper = np.full(C, low * mean), np.minimum(np.full(C, high * mean), weights.sum())
        labels, prices = assign_weighted(ids, near, weights, lower, upper)
        sizes = np.bincount(labels, weights, C)
        assert (np.maximum(sizes - upper, lower - sizes) < weights.max()).all()
        assert prices.shape == (C,)
        total = (weights * costs[np.arange(n), labels]).sum()
        least = least_cost(costs, lower, upper, weights)
        assert total <= least * (1.3 if n < 100 else 1.03)


def test_weighted_points_without_other_candidates_are_infeasible():
    ids, costs = np.zeros((9, 1), np.int32), np.ones((9, 1))
    with pytest.raises(Infeasible):
        assign_weighted(ids, costs, np.arange(1.0, 10), np.zeros(2), np.full(2, 30.0))
