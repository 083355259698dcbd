"""Cells over clustered centers: no cell contains a large part of all centers, and points have few candidates."""

import math

import numpy as np
import pytest
from crowded_data import KINDS, clump, coincident, mostly_coincident

from cprime.kernels import Dense
from cprime.neighbors import Cells, CenterIndex

C = 4000
SIDE = math.isqrt(C - 1) + 1
AROUND = 8  # cells that are searched for each point


def centers_of(kind, dtype=np.float32, D=6):
    return kind(C, D, np.random.default_rng(0)).astype(dtype)


def near_points(centers, n=1000):
    rng = np.random.default_rng(1)
    picked = centers[rng.integers(len(centers), size=n)]
    return picked + (1e-4 * np.abs(picked) * rng.standard_normal(picked.shape)).astype(centers.dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_no_cell_has_more_than_a_few_times_its_share(kind, dtype):
    cells = Cells(centers_of(kind, dtype))
    held = (cells.members >= 0).sum(axis=1)
    assert held.max() <= 4 * SIDE
    assert len(cells.coarse) <= 3 * SIDE
    assert (cells.offer.offered >= 0).sum(axis=1).max() <= AROUND * 4 * SIDE
    assert cells.members.size + cells.offer.offered.size <= 40 * C


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_every_center_is_in_one_cell_or_coincides_with_one_that_is(kind, dtype):
    centers = centers_of(kind, dtype)
    cells = Cells(centers)
    members = np.sort(cells.members[cells.members >= 0])
    np.testing.assert_array_equal(members, np.flatnonzero(cells.first == np.arange(C)))
    assert (cells.first <= np.arange(C)).all()
    np.testing.assert_array_equal(centers[cells.first], centers)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_is_near(kind):
    """For most points, the found center is at most a tenth farther than the nearest one.

    For points far away, all centers near the origin tie in the last place.
    """
    centers = centers_of(kind)
    X = near_points(centers)
    _, least = Dense(X).nearest(centers)
    near = [values[:, 0] for values in CenterIndex(centers).find(Dense(X))[:2]]
    for (labels, distances), share in ((Cells(centers).find(Dense(X)), 0.7), (near, 0.85)):
        np.testing.assert_allclose(distances, np.square(X - centers[labels]).sum(axis=1), rtol=1e-4)
        assert (np.sqrt(distances) <= 1.1 * np.sqrt(least[:, 0]) + 1e-30).mean() > share


@pytest.mark.parametrize("kind", [coincident, mostly_coincident, clump])
def test_lists_have_the_component_itself_and_no_component_twice(kind):
    lists = Cells(centers_of(kind)).lists(33)
    assert (lists == np.arange(C)[:, np.newaxis]).any(axis=1).all()
    for row in lists[::97]:
        held = row[row >= 0]
        assert len(np.unique(held)) == len(held)
        assert (row[len(held) :] == -1).all()


def test_centers_that_coincide_lead_to_others():
    """The lists of coinciding centers contain other centers too, because lists of copies alone would be dead ends."""
    centers = centers_of(mostly_coincident)
    cells = Cells(centers)
    lists = cells.lists(33)
    for copy in np.flatnonzero(cells.first != np.arange(C))[::500]:
        others = lists[copy, 1:][lists[copy, 1:] >= 0]
        assert cells.first[copy] in others
        assert (centers[others] != centers[copy]).any(axis=1).sum() >= 10


def test_lists_are_full_whatever_coincides():
    """Lists are full even if most centers coincide, because each point needs C' components."""
    for n_distinct in (1, 2, 7):
        centers = np.repeat(np.random.default_rng(0).standard_normal((n_distinct, 2)), 30, axis=0)
        lists = Cells(centers).lists(12)
        assert (lists >= 0).all()
        assert all(len(set(row)) == 12 for row in lists.tolist())
        assert (lists == np.arange(len(centers))[:, np.newaxis]).any(axis=1).all()
