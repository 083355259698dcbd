"""Empty components are relocated to the farthest points, which are subtracted from the sums of their components."""

from types import SimpleNamespace

import numpy as np
import pytest

from cprime.em import HardEStep
from cprime.em.hard import FarthestPoints, FindFarthest, relocate_empty
from cprime.execution import local
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import as_rows
from cprime.model import TiedSpherical
from cprime.search import Full

X = np.array([[0.0], [1.0], [2.0], [9.0], [20.0], [21.0], [24.0]])
KEPT = ActiveSet(
    np.array([[0], [0], [0], [0], [1], [1], [1]], np.int32), np.array([[1.0], [0], [1], [64], [1], [0], [9]])
)
NONE = np.zeros(2, dtype=bool)


def rows_of(far):
    return far.rows.tolist(), far.winners.tolist(), far.distances.tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9])
def test_the_farthest_come_first_and_equal_ones_by_row(n):
    far = FindFarthest(n, 0.0, NONE)(Block(as_rows(X), None, 100), KEPT)[1]
    found = [[103, 106, 100, 102, 104], [0, 1, 0, 0, 1], [64, 9, 1, 1, 1]]
    assert rows_of(far) == tuple(column[:n] for column in found)


def test_points_on_centers_without_weight_or_alone_are_no_place():
    assert rows_of(FindFarthest(7, 1.0, NONE)(Block(as_rows(X)), KEPT)[1])[0] == [3, 6]
    weight = np.array([1.0, 1, 1, 0, 1, 1, 2])
    assert rows_of(FindFarthest(2, 0.0, NONE)(Block(as_rows(X), weight), KEPT)[1])[0] == [6, 0]
    assert rows_of(FindFarthest(2, 0.0, np.array([True, False]))(Block(as_rows(X)), KEPT)[1])[0] == [6, 4]


def test_rows_in_another_order_keep_their_numbers():
    order = np.arange(7)[::-1].copy()
    turned = ActiveSet(KEPT.ids[order], KEPT.costs[order])
    far = FindFarthest(4, 0.0, NONE)(Block(as_rows(X[order]), None, 100, order), turned)[1]
    assert rows_of(far)[0] == [103, 106, 100, 102]


def test_what_parts_have_found_is_merged():
    a = FarthestPoints(3, np.array([1, 5]), np.array([0, 1], np.int32), np.array([4.0, 2.0]))
    b = FarthestPoints(3, np.array([9, 8]), np.array([2, 3], np.int32), np.array([4.0, 3.0]))
    assert rows_of(a + b) == ([1, 9, 8], [0, 2, 3], [4.0, 4.0, 3.0])
    assert (b + a).n == 3
    assert rows_of(b + a) == rows_of(a + b)


def repaired(centers, x=X, weight=None, floor=1e-20):
    """Run a pass and the repair; return models, sums before and after, number of relocated components, and data."""
    model, data = TiedSpherical(np.array(centers, dtype=float)[:, np.newaxis], 1.0, floor), local(x, weight)
    totals = data.each(HardEStep(model, Full().look(None, model.components(), None)))
    data.commit()
    wins, J, members = totals.moments, totals.tally.error, totals.moments.members.copy()
    new, counts, sums, squares, n = relocate_empty(data, model, wins.counts, wins.sums, J, wins.members)
    np.testing.assert_array_equal(wins.members, members)
    before = SimpleNamespace(counts=wins.counts, sums=wins.sums, members=wins.members, error=J)
    return model, before, new, SimpleNamespace(counts=counts, sums=sums, squares=squares), n, data


def test_nothing_is_done_where_no_component_is_empty():
    model, before, new, after, n, _ = repaired([1, 21])
    assert (new is model, after.counts is before.counts, after.sums is before.sums, n) == (True, True, True, 0)


def test_empty_components_go_to_the_farthest_points():
    _, before, new, after, n, data = repaired([1, 500, 21, 600])
    assert n == 2
    np.testing.assert_array_equal(new.centers[:, 0], [1, 9, 21, 24])
    np.testing.assert_array_equal(after.counts, [3, 1, 2, 1])
    np.testing.assert_array_equal(after.sums[:, 0], [3, 9, 41, 24])
    assert after.squares == pytest.approx(before.error - 64 - 9, rel=1e-12)
    assert data.labels().tolist() == [0, 0, 0, 1, 2, 2, 3]
    assert before.counts.tolist() == [4, 0, 3, 0]
    kept = data.take(np.arange(7)).kept
    assert kept.costs[[3, 6], 0].tolist() == [0, 0]


def test_weights_leave_with_the_points():
    weight = np.array([1.0, 1, 1, 0.5, 1, 1, 2])
    _, before, _, after, n, _ = repaired([1, 500, 21], weight=weight)
    np.testing.assert_allclose(after.counts, [3, 0.5, 4])
    np.testing.assert_allclose(after.sums[:, 0], [3, 4.5, 89])
    assert (n, after.squares) == (1, pytest.approx(before.error - 32))


def test_no_component_is_emptied_for_another():
    """If two points share a center, only one of them is relocated."""
    _, _, new, after, n, data = repaired([5, 500, 600, 700], x=np.array([[0.0], [10.0]]))
    assert n == 1
    assert after.counts.tolist() == [1, 1, 0, 0]
    assert new.centers[:, 0].tolist() == [5, 0, 600, 700]
    assert data.labels().tolist() == [1, 0]
    model, before, new, after, n, _ = repaired([5, 500], x=np.array([[5.0], [5.0]]))
    assert (new is model, after.counts is before.counts, after.sums is before.sums, n) == (True, True, True, 0)


def test_the_last_point_of_a_component_is_skipped_not_moved():
    """A candidate that is the last point of its component is skipped, and the search continues with the next."""
    x = np.array([[0.0], [10.0], [98.0], [101.0]])
    _, _, new, after, n, _ = repaired([5, 500, 600, 700, 100], x=x)
    assert n == 2
    assert after.counts.tolist() == [1, 1, 0, 1, 1]
    assert new.centers[:, 0].tolist() == [5, 0, 600, 98, 100]


def test_the_farthest_of_many_points_are_found():
    costs = np.random.default_rng(0).permutation(200).astype(float)[:, np.newaxis]
    block, kept = Block(as_rows(np.zeros((200, 1)))), ActiveSet(np.zeros((200, 1), np.int32), costs)
    assert rows_of(FindFarthest(3, 0.0, NONE)(block, kept)[1])[2] == [199, 198, 197]


def test_a_distance_below_what_numbers_can_show_is_none():
    """No point at a squared distance of up to 4 D σ²_least is moved to an empty component.

    The mean of equal points may have such a distance from them, by rounding.
    """
    x = np.array([[0.0], [2.0]])
    assert repaired([0.1, 500], x=x, floor=1.0)[4] == 0  # (2 − 0.1)² = 3.61 <= 4
    assert repaired([0.1, 500], x=x, floor=0.9)[4] == 1
