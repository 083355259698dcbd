"""Factors of exchanges and jumps of centers equal the exact change of J, for means and for directions."""

import numpy as np
import pytest

from cprime.model import TiedSpherical
from cprime.model.unit import UnitCenters

D, MEAN = 5, (2.0, 1.0, 0.0, 0.0, -1.0)


def rows(n, seed=0, unit=True):
    X = np.random.default_rng(seed).normal(MEAN, 1.0, (n, D))
    return X / np.linalg.norm(X, axis=1, keepdims=True) if unit else X


def model(kind, *groups):
    """Return the centers of groups of points as a model, the counts, and the sums of the groups' points."""
    counts = np.array([float(len(group)) for group in groups])
    sums = np.array([group.sum(axis=0) for group in groups])
    start = kind(np.zeros_like(sums), 1.0, 1e-20)
    return kind(start.centers_of(counts, sums, sums), 1.0, 1e-20), counts, sums


def error(kind, *groups):
    """Return J, the sum of squared distances of the groups' points to their own centers."""
    centers = model(kind, *groups)[0].centers
    return sum(np.square(group - center).sum() for group, center in zip(groups, centers, strict=True))


KINDS = pytest.mark.parametrize("kind", [TiedSpherical, UnitCenters])


@KINDS
def test_a_union_costs_what_it_adds_to_j(kind):
    a, b = rows(7, 1, kind is UnitCenters), rows(4, 2, kind is UnitCenters)
    _, counts, sums = model(kind, a, b)
    of, other = (counts[:1], sums[:1]), (counts[1:], sums[1:])
    both = np.concatenate([a, b])
    expected = error(kind, both) - error(kind, a, b)
    start = model(kind, a, b)[0]
    np.testing.assert_allclose(start.union_costs(of, other), expected, rtol=1e-12)
    np.testing.assert_array_equal(start.union_costs(of, other), start.union_costs(other, of))


@KINDS
def test_centers_are_those_of_least_error(kind):
    X = rows(9, 3, kind is UnitCenters)
    center = model(kind, X)[0].centers[0]
    for shift in 1e-3 * np.eye(D):
        other = center + shift
        if kind is UnitCenters:
            other /= np.linalg.norm(other)
        assert np.square(X - other).sum() > np.square(X - center).sum()
    if kind is UnitCenters:
        assert np.linalg.norm(center) == pytest.approx(1, abs=1e-15)


@KINDS
def test_along_a_tangent_points_lie_as_much_on_one_side_as_on_the_other(kind):
    X = rows(50, 4, kind is UnitCenters)
    found = model(kind, X)[0]
    direction = found.tangent(np.random.default_rng(5).standard_normal((1, D)), slice(0, 1))[0]
    assert ((X - found.centers[0]) @ direction).sum() == pytest.approx(0, abs=1e-12)
    assert np.square(X @ direction).sum() > 1e-3


@pytest.mark.parametrize(("n", "least"), [(8, 0.75), (80, 0.97), (800, 0.99)])
def test_factors_of_directions_are_what_both_centers_make_of_a_move(n, least):
    """For a point with the mean cosine of its component, the factors are exact to first order in the point's weight."""
    a, b = rows(n, 6), rows(n, 7)
    found, counts, sums = model(UnitCenters, a, b)
    inside, outside = found.exchange_factors(counts, sums, 1.0)
    (cosine,) = np.linalg.norm(sums[:1], axis=1) / n
    point = np.argmin(np.abs(a @ found.centers[0] - cosine))
    leaves = error(UnitCenters, a) - error(UnitCenters, np.delete(a, point, axis=0))
    arrives = error(UnitCenters, np.vstack([b, a[point]])) - error(UnitCenters, b)
    here, there = np.square(a[point] - found.centers).sum(axis=1)
    for exact, factor, square in ((leaves, inside[0], here), (arrives, outside[1], there)):
        assert abs(exact - factor * square) < (1 - least) * abs(exact - square) + 1e-12


def test_there_are_no_factors_of_directions_without_sums():
    found, counts, _ = model(UnitCenters, rows(5, 8), rows(6, 9))
    assert found.exchange_factors(counts, None, 1.0) is None


@pytest.mark.parametrize("apart", [1e-3, 1e-7])
def test_costs_of_directions_that_hardly_differ_keep_their_digits(apart):
    """J about the mean direction, and its increase by a union, are accurate for directions that differ by `apart`.

    J is then of the size of apart², far below the rounding of the counts and sums from which it is computed.
    """
    generator = np.random.default_rng(0)
    X = np.array([1.0, 0, 0, 0]) + apart * generator.standard_normal((300, 4)) * [0, 1, 1, 1]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    a, b = X[:120], X[120:]
    old = model(UnitCenters, X[:10])[0]
    before = np.square(X - old.centers[0]).sum()
    new, squares = old.recentred(np.array([300.0]), X.sum(axis=0)[np.newaxis], before)
    assert squares == pytest.approx(np.square(X - new.centers[0]).sum(), rel=1e-7)
    (cost,) = new.union_costs(*((np.array([float(len(x))]), x.sum(axis=0)[np.newaxis]) for x in (a, b)))
    split = sum(np.square(x - x.sum(axis=0) / np.linalg.norm(x.sum(axis=0))).sum() for x in (a, b))
    assert cost == pytest.approx(squares - split, rel=1e-4)


def test_what_has_no_direction_keeps_another():
    model_, otherwise = model(UnitCenters, rows(5, 8))[0], np.array([[0.0, 1.0]])
    assert np.array_equal(model_.centers_of(np.array([2.0]), np.zeros((1, 2)), otherwise), otherwise)


@KINDS
def test_extrapolated_centers_keep_their_length_and_fixed_centers_stay(kind):
    before, after = rows(4, 4, kind is UnitCenters), rows(4, 5, kind is UnitCenters)
    shares = np.array([0.5, 0.0, 0.3, 0.8])
    expected = after + shares[:, np.newaxis] * (after - before)
    expected[0] = after[0] = before[0]
    if kind is UnitCenters:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = kind(after, 1.0, 1e-20, n_fixed=1).beyond(before, shares)
    np.testing.assert_allclose(found.centers, expected, rtol=1e-12)
    np.testing.assert_array_equal(found.centers[0], before[0])
