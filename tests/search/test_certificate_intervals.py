"""Certificates agree with samples of known nearest centers, excess and shortfall."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from cprime.execution.block import ActiveSet
from cprime.kernels import as_rows
from cprime.neighbors.components import Centers
from cprime.search.full import certify

Z = norm.ppf(0.975)
CENTERS = np.array([[0.0], [10.0], [30.0]])
X = np.array([[1.0], [2.0], [12.0], [9.0], [28.0], [33.0], [4.0], [6.0]])
SQUARES = np.square(X - CENTERS[:, 0])


def kept(wrong=(), n=1):
    """Return active sets of the n nearest centers, without the nearest for the points in `wrong`."""
    order = np.argsort(SQUARES, axis=1)
    order[list(wrong)] = np.roll(order[list(wrong)], -1, axis=1)
    ids = order[:, :n].astype(np.int32)
    return ActiveSet(ids, np.take_along_axis(SQUARES, ids, axis=1))


def wilson(p, m):
    """Return both solutions q of |p − q| = z √(q (1 − q) / m), the Wilson interval."""
    return np.sort(np.roots([1 + Z**2 / m, -(2 * p + Z**2 / m), p**2]))


@pytest.mark.parametrize("wrong", [(), (0,), (1, 4, 6), range(8)])
def test_agreement_and_its_wilson_interval(wrong):
    found = certify(as_rows(X), kept(wrong), Centers(CENTERS), None)
    assert (found["n_points"], found["agreement"]) == (8, 1 - len(wrong) / 8)
    np.testing.assert_allclose(found["agreement_interval"], wilson(1 - len(wrong) / 8, 8), atol=1e-8)


def test_as_good_as_the_nearest_counts():
    half = np.array([[5.0]])
    both = ActiveSet(np.array([[1]], np.int32), np.array([[25.0]]))
    assert certify(as_rows(half), both, Centers(CENTERS), None)["agreement"] == 1.0


@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_the_excess_is_that_of_j_with_the_interval_of_a_ratio(unit):
    """The excess is relative to J and its interval is that of a ratio, in any unit of the data."""
    wrong = [1, 6]
    chosen, best = kept(wrong), SQUARES.min(axis=1)
    scaled = ActiveSet(chosen.ids, np.square(X * unit - CENTERS[chosen.ids[:, 0]] * unit))
    found = certify(as_rows(X * unit), scaled, Centers(CENTERS * unit), None)
    excess = np.where(np.isin(np.arange(8), wrong), np.sort(SQUARES, axis=1)[:, 1] - best, 0)
    ratio = excess.sum() / best.sum()
    error = np.sqrt(np.mean(np.square(excess - ratio * best)) / 8) / best.mean()
    assert found["relative_excess"] == pytest.approx(ratio)
    np.testing.assert_allclose(found["relative_excess_interval"], [max(ratio - Z * error, 0), ratio + Z * error])
    assert "shortfall" not in found
    every = certify(as_rows(X), kept(range(8)), Centers(CENTERS), None)
    low, high = every["relative_excess_interval"]
    assert 0 < low < every["relative_excess"] < high
    none = certify(as_rows(X), kept(), Centers(CENTERS), None)
    assert (none["relative_excess"], none["relative_excess_interval"]) == (0.0, [0.0, 0.0])


def test_points_on_their_centers_have_no_excess():
    found = certify(
        as_rows(CENTERS),
        ActiveSet(np.arange(3, dtype=np.int32)[:, np.newaxis], np.zeros((3, 1))),
        Centers(CENTERS),
        None,
    )
    assert (found["relative_excess"], found["relative_excess_interval"]) == (0.0, [0.0, 0.0])


@pytest.mark.parametrize("n", [1, 2])
def test_the_shortfall_is_that_of_f(n):
    scale, wrong = -0.02, [0, 5]
    found = certify(as_rows(X), kept(wrong, n), Centers(CENTERS), scale)
    exact = logsumexp(scale * np.sort(SQUARES, axis=1)[:, :n], axis=1)
    short = exact - logsumexp(scale * kept(wrong, n).costs, axis=1)
    error = short.std() / np.sqrt(8)
    assert found["shortfall"] == pytest.approx(short.mean())
    np.testing.assert_allclose(
        found["shortfall_interval"], [max(short.mean() - Z * error, 0), short.mean() + Z * error], rtol=1e-10
    )
    assert "relative_excess" not in found
    assert certify(as_rows(X), kept((), n), Centers(CENTERS), scale)["shortfall"] == pytest.approx(0, abs=1e-15)
