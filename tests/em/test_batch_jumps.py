"""Jumps of centers between batches: sums of halves in NumPy, gains on held-out points, and the laws of the weights."""

import tracemalloc

import numpy as np
import pytest
from em_data import C, D, model, points, squares, weights_of
from scipy.sparse import csr_array

from cprime._utils.random import Key, Purpose
from cprime.em import jump_between_batches
from cprime.em.batch_jumps import HalfSums, HeldOutGains, labelled_data
from cprime.kernels import Dense, SparseRows
from cprime.model import TiedSpherical

KEY = Key(3, iteration=1)


def labelled(X, centers, weights=None):
    return labelled_data(Dense(X), weights, squares(X, centers).argmin(axis=1).astype(np.int32))


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_and_gains_are_those_of_numpy(weighted):
    X, centers, w = points(), model().centers, weights_of() if weighted else None
    data, plain = labelled(X, centers, w), np.ones(len(X)) if w is None else w
    label = squares(X, centers).argmin(axis=1)
    halves = np.random.default_rng(5).standard_normal((2, 2 * C, D))
    numbers = np.cumsum(plain > 0) - (plain > 0)
    second = KEY.uniform(Purpose.BATCHES, 0, len(X))[numbers] < 0.5
    ids = label + C * second
    sums = data.each(HalfSums(halves, KEY))
    nearer = np.stack([np.square(X - half[ids]).sum(axis=1) for half in halves]).argmin(axis=0)
    expected = np.zeros((2, 2 * C, 1 + D))
    np.add.at(expected, (nearer, ids), plain[:, np.newaxis] * np.column_stack([np.ones(len(X)), X]))
    np.testing.assert_allclose(sums, expected, atol=1e-12)
    other = label + C * ~second
    errors = plain * np.square(X - centers[label]).sum(axis=1)
    gains = errors - plain * np.minimum(*(np.square(X - half[other]).sum(axis=1) for half in halves))
    expected = [np.bincount(label, values, C) for values in (gains, gains**2, errors)]
    np.testing.assert_allclose(data.each(HeldOutGains(centers, halves, KEY)), expected, atol=1e-10)


def groups(n_groups, n, D, seed=0):
    rng = np.random.default_rng(seed)
    places = 8 * rng.standard_normal((n_groups, D))
    return places, places[np.arange(n) % n_groups] + rng.standard_normal((n, D))


@pytest.mark.parametrize(("n_groups", "D"), [(3, 1), (30, 6)])
def test_a_center_that_two_groups_share_gets_one_that_another_group_has_too_many_of(n_groups, D):
    places, X = groups(n_groups, 40 * n_groups, D)
    near = np.argsort(squares(places, places)[0])[1]
    centers = places.copy()
    centers[0] = (places[0] + places[near]) / 2  # two groups share this center
    centers[near] = places[-1] + 0.5  # and one group has two centers
    data = labelled(X, centers)
    counts = 10.0 * np.bincount(squares(X, centers).argmin(axis=1), minlength=n_groups)
    before = TiedSpherical(centers, squares(X, centers).min(axis=1).mean() / D, 1e-20)
    after, new, weights = jump_between_batches(data, before, counts, counts, KEY)
    assert squares(X, after.centers).min(axis=1).sum() < 1.1 * squares(X, places).min(axis=1).sum()
    assert new.sum() == pytest.approx(counts.sum())
    np.testing.assert_array_equal(new, weights)
    again = jump_between_batches(labelled(X, after.centers), after, new, new, KEY)
    assert again[0] is after


def test_neither_noise_nor_outliers_move_a_center():
    places, X = groups(10, 500, 4)
    X[:3] = 1e3 * np.eye(3, 4)
    counts = np.full(10, 500.0)
    before = TiedSpherical(places, 1.0, 1e-20)
    assert jump_between_batches(labelled(X, places), before, counts, counts, KEY)[0] is before


@pytest.mark.parametrize("sparse", [False, True])
def test_groups_of_clusters_have_the_jumps_of_all_together_and_take_less_memory(monkeypatch, sparse):
    places, X = groups(12, 12 * 40, 6)
    places, X = (np.pad(rows, ((0, 0), (0, 2000 - 6))) for rows in (places, X))
    centers = places.copy()
    centers[0] = (places[0] + places[1]) / 2
    centers[1] = places[-1] + 0.5
    nearest, counts = squares(X, centers).argmin(axis=1), np.zeros(12)
    np.add.at(counts, nearest, 10.0)
    before = TiedSpherical(centers, squares(X, centers).min(axis=1).mean() / 2000, 1e-20)
    data = labelled_data(SparseRows.from_scipy(csr_array(X)) if sparse else Dense(X), None, nearest.astype(np.int32))
    found = {}
    for values in (2**18, 2 * 2000, 2000):
        monkeypatch.setattr("cprime.em.batch_jumps._VALUES", values)
        tracemalloc.start()
        found[values] = (
            jump_between_batches(data, before, counts, counts, KEY)[0].centers,
            tracemalloc.get_traced_memory()[1],
        )
        tracemalloc.stop()
    (together, peak), (pairs, _), (single, least) = found.values()
    for each in (pairs, single):
        assert np.array_equal((each != centers).any(axis=1), (together != centers).any(axis=1))
        assert squares(X, each).min(axis=1).sum() < 1.02 * squares(X, together).min(axis=1).sum()
    assert not sparse or least < 0.4 * peak
