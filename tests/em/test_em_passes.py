"""E-steps as passes over blocks: what points keep, what is counted, what adds up."""

import numpy as np
import pytest
from em_data import KEY, C, block, kept, model, plain, points, squares

from cprime.block import Block, Kept
from cprime.em import EStep, ExactEStep, Hard, Soft, Totals, Winners
from cprime.em.expectation import HardSums, NearestStart, Visit, Visited, _differ
from cprime.em.repair import Accumulated
from cprime.execution import local
from cprime.execution.local import Local
from cprime.model import Full as FullCovariances
from cprime.neighbors import Cells
from cprime.search import Full, Seen
from cprime.sources import open_data
from cprime.statistics import Movers, Statistics

weighted = pytest.mark.parametrize("weighted", [False, True])
LOOK = Full().look(None, model().components(), None, KEY)


@weighted
def test_a_first_pass_moves_every_point_of_weight(weighted):
    b = block(weighted)
    found, totals = EStep(model(), LOOK, 2, Soft())(b, None)
    expected = kept(b.X, model().centers, 2)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.costs, expected.costs)
    heavy = int((plain(b) > 0).sum())
    assert (totals.n_distances, totals.n_moved, totals.n_changed) == (60 * C, heavy, 60)
    assert (totals.seen.n_points, totals.seen.n_heavy) == (60, heavy)
    assert totals.statistics.quantization_error == pytest.approx(plain(b) @ expected.costs[:, 0])
    assert totals.statistics.log_sum == pytest.approx(Soft().of_kept(b, model(), found, None, None, 0)[0].log_sum)
    assert totals.members is totals.movers is None


@weighted
def test_moves_are_counted_with_weight_and_changes_without(weighted):
    b = block(weighted)
    before = kept(b.X, model().centers, 2)
    ids = before.ids.copy()
    ids[::3] = ids[::3, ::-1]
    _, totals = EStep(model(), LOOK, 2, Soft())(b, Kept(ids, before.costs))
    assert totals.n_changed == 20
    assert totals.n_moved == int((plain(b)[::3] > 0).sum())
    assert EStep(model(), LOOK, 2, Soft())(b, before)[1].n_changed == 0


def test_the_error_is_that_of_the_winners_whatever_costs_mean():
    """Costs of Gaussians are no distances; those of points with a further coordinate hold more than the distance."""
    b = block(True)
    skew = np.array([[2.0, 0.5, 0], [0.5, 1, 0], [0, 0, 0.3]])
    gaussians = FullCovariances(model().centers, np.repeat(skew[np.newaxis], C, axis=0), 0.0, np.full(C, 1 / C))
    for parameters in (gaussians, type(model())(model().centers, 0.7, 1e-20, np.arange(1, C + 1) / 15)):
        look = Full().look(None, parameters.components(), None, KEY)
        found, totals = EStep(parameters, look, 1, Hard())(b, None)
        J = plain(b) @ np.square(b.X - model().centers[found.winners]).sum(axis=1)
        assert totals.statistics.quantization_error == pytest.approx(J, rel=1e-12)
        assert abs(plain(b) @ found.costs[:, 0] - J) > 1e-3 * J


def test_a_lazy_point_leaves_only_for_what_is_nearer_by_a_factor():
    """(1 + ε) ‖x − μ_new‖ < ‖x − μ_old‖, here on a line: at 1 and 0 the edge for ε = 1 is x = 2/3."""
    line = type(model())(np.array([[0.0, 0, 0], [1.0, 0, 0]]), 1.0, 1e-20)
    x = np.array([0.1, 0.55, 0.65, 0.6666666, 0.67, 0.9])
    b, before = Block(np.column_stack([x, np.zeros((6, 2))])), Kept(np.zeros((6, 1), np.int32))
    look = Full().look(None, line.components(), None, KEY)
    found, totals = EStep(line, look, 1, Winners(), epsilon=1.0)(b, before)
    assert found.winners.tolist() == [0, 0, 0, 0, 1, 1]
    np.testing.assert_allclose(found.costs[:, 0], [*np.square(x[:4]), *np.square(1 - x[4:])])
    assert totals.n_moved == 2
    assert totals.statistics.quantization_error == pytest.approx(found.costs.sum())
    assert EStep(line, look, 1, Winners(), 1.0)(b, None)[0].winners.tolist() == [0, 1, 1, 1, 1, 1]
    tie = Block(np.array([[0.75, 0.0, 0.0]]))
    stays = EStep(line, look, 1, Winners(), 2.0)(tie, Kept(np.zeros((1, 1), np.int32)))[0]
    assert stays.winners.tolist() == [0]


@weighted
def test_an_exact_pass_looks_at_all_and_keeps_nothing(weighted):
    b = block(weighted)
    nothing, totals = ExactEStep(model(), Soft())(b, None)
    heavy = int((plain(b) > 0).sum())
    assert nothing is None
    assert (totals.n_distances, totals.n_moved, totals.n_changed) == (60 * C, 60, 60)
    assert (totals.seen.n_points, totals.seen.n_heavy) == (60, heavy)
    assert totals.statistics.log_sum == model().expect_all(b).log_sum


@pytest.mark.parametrize(
    "job", [EStep(model(), LOOK, 2, Soft()), Visit(model(), LOOK, 2), NearestStart(points(8), None)]
)
def test_points_keep_what_a_pass_has_found(job):
    data = local(points())
    data.each(job)
    data.commit()
    np.testing.assert_array_equal(data.take(np.arange(60)).kept.ids, job(block(), None)[0].ids)


def test_other_passes_read_their_rows_and_leave_what_points_keep(tmp_path):
    """Of a file, whose chunks are read anew in every pass."""
    np.save(tmp_path / "X.npy", points())
    data = Local(open_data(tmp_path / "X.npy", chunk_rows=25))
    assert data.each(ExactEStep(model(), Soft())).statistics.log_sum == pytest.approx(
        model().expect_all(block()).log_sum
    )
    assert not data.placed
    data.each(Visit(model(), LOOK, 1))
    data.commit()
    before = data.take(np.arange(60)).kept
    assert data.each(HardSums(model())).squares == pytest.approx(HardSums(model())(block(), before)[1].squares)
    expected = np.eye(C)[before.winners].T @ np.column_stack([np.ones(60), points()])
    np.testing.assert_allclose(data.each(Accumulated(C)), expected, atol=1e-12)
    data.each(ExactEStep(model(), Soft()))
    assert data.take(np.arange(60)).kept.ids.tolist() == before.ids.tolist()


def totals(seed, members=None, movers=None):
    rng = np.random.default_rng(seed)
    statistics = Statistics(rng.random(C), rng.random((C, 2)), rng.random(), rng.random())
    return Totals(statistics, 3 + seed, 5 * seed, 7 * seed, Seen(10 + seed, seed), members, movers)


def test_totals_add_up():
    a, b = totals(1), totals(2)
    both = a + b
    assert (both.n_distances, both.n_moved, both.n_changed) == (9, 15, 21)
    assert both.seen == Seen(23, 3)
    np.testing.assert_allclose(both.statistics.counts, a.statistics.counts + b.statistics.counts)
    assert both.members is both.movers is None
    movers = [Movers(np.array([1], np.int32), np.ones((1, 2))), Movers(np.array([3], np.int32), np.ones((1, 2)))]
    full = totals(1, np.arange(C), movers[0]) + totals(2, np.ones(C, int), movers[1])
    np.testing.assert_array_equal(full.members, np.arange(C) + 1)
    np.testing.assert_array_equal(full.movers.ids, [1, 3])
    for part in (totals(1, np.arange(C), movers[0]) + b, a + totals(2, np.arange(C), movers[1])):
        assert part.members is part.movers is None


@weighted
def test_a_visit_sums_the_least_costs(weighted):
    b = block(weighted)
    found, visited = Visit(model(), LOOK, 3)(b, None)
    expected = kept(b.X, model().centers, 3)
    np.testing.assert_array_equal(found.ids, expected.ids)
    assert visited.cost == pytest.approx(plain(b) @ expected.costs[:, 0])
    assert visited.weight == pytest.approx(plain(b).sum())
    assert visited.seen.n_points == 60
    both = visited + Visited(1.0, 2.0, Seen(3, 2))
    assert both.cost == pytest.approx(visited.cost + 1)
    assert both.weight == pytest.approx(visited.weight + 2)
    assert both.seen.n_points == 63


def test_a_visit_without_costs_sums_nothing():
    def look(block, points, before, components, n_kept):
        return Kept(np.zeros((len(block), 1), np.int32)), 0, Seen(len(block), 0)

    assert Visit(model(), look, 1)(block(), None)[1].cost == 0.0


def test_the_nearest_start_of_all_or_of_what_cells_offer():
    b, centers = block(), points(30, seed=9)
    found, n = NearestStart(centers, None)(b, None)
    np.testing.assert_array_equal(found.ids[:, 0], squares(b.X, centers).argmin(axis=1))
    cells = Cells(centers)
    near, m = NearestStart(centers, cells)(b, None)
    np.testing.assert_array_equal(near.ids, cells.find(b.X)[0][:, np.newaxis])
    assert n == m == 60


@weighted
def test_hard_sums_are_those_of_the_winners(weighted):
    b = block(weighted)
    ids = (np.arange(60, dtype=np.int32) % C)[:, np.newaxis]
    nothing, found = HardSums(model())(b, Kept(np.hstack([ids, (ids + 1) % C])))
    w = plain(b)
    J = w @ np.square(b.X - model().centers[ids[:, 0]]).sum(axis=1)
    assert nothing is None
    np.testing.assert_allclose(found.counts, np.bincount(ids[:, 0], w, C))
    np.testing.assert_allclose(found.sums, (w[:, np.newaxis] * np.eye(C)[ids[:, 0]]).T @ b.X, atol=1e-12)
    assert (found.squares, found.quantization_error) == (pytest.approx(J), pytest.approx(J))
    assert found.weight == pytest.approx(w.sum())


def test_rows_that_differ_anywhere():
    ids = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.int32)
    assert _differ(ids, np.array([[1, 2], [0, 4], [5, 0]], dtype=np.int32)).tolist() == [False, True, True]
    assert _differ(ids[:, :1], np.array([[1], [0], [5]], dtype=np.int32)).tolist() == [False, True, False]
    assert _differ(ids, ids[:, :1]).tolist() == [True] * 3
