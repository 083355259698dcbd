"""E-steps as passes over blocks: active sets, counts of evaluations, and sums over blocks."""

import numpy as np
import pytest
from em_data import KEY, C, block, kept, model, plain, points, squares

from cprime.em import EStep, ExactEStep, HardEStep, Totals, hard_assignment, soft_assignment
from cprime.em.expectation import CostPass, CostTally, HardMoments, NearestStart, moved
from cprime.em.hard import ClusterSums, Lazy, SumByComponent
from cprime.em.k_means import ReassignmentSums
from cprime.execution import local
from cprime.execution.block import ActiveSet, Block
from cprime.execution.local import Local
from cprime.execution.statistics import Tally
from cprime.kernels import as_rows
from cprime.model import FullCovariance, PooledSpherical
from cprime.neighbors import Cells
from cprime.search import Full, SearchStats
from cprime.sources import open_data

weighted = pytest.mark.parametrize("weighted", [False, True])
LOOK = Full().look(None, model().components(), KEY)


@weighted
def test_a_first_pass_moves_every_point_of_weight(weighted):
    b = block(weighted)
    found, totals = EStep(model(), LOOK, 2, soft_assignment)(b, None)
    expected = kept(b.X, model().centers, 2)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.costs, expected.costs)
    heavy = int((plain(b) > 0).sum())
    assert (totals.tally.n_distances, totals.tally.n_moved) == (60 * C, heavy)
    assert totals.stats.n_weighted == heavy
    assert totals.tally.error == pytest.approx(plain(b) @ expected.costs[:, 0])
    assert totals.tally.log_sum == pytest.approx(soft_assignment(b, model(), found).log_sum)


@weighted
def test_moves_of_points_of_weight_are_counted(weighted):
    b = block(weighted)
    before = kept(b.X, model().centers, 2)
    ids = before.ids.copy()
    ids[::3] = ids[::3, ::-1]
    _, totals = EStep(model(), LOOK, 2, soft_assignment)(b, ActiveSet(ids, before.costs))
    assert totals.tally.n_moved == int((plain(b)[::3] > 0).sum())
    assert EStep(model(), LOOK, 2, soft_assignment)(b, before)[1].tally.n_moved == 0


def test_the_error_is_that_of_the_winners_whatever_costs_hold_beside_the_distance():
    """The quantization error contains distances only, also for models whose costs have additional terms."""
    b, weights = block(True), np.arange(1, C + 1) / 15
    for parameters in (
        type(model())(model().centers, 0.7, 1e-20, weights),
        PooledSpherical(model().centers, np.full(C, 0.7), 0.0, weights),
    ):
        look = Full().look(None, parameters.components(), KEY)
        found, totals = EStep(parameters, look, 1, hard_assignment)(b, None)
        J = plain(b) @ np.square(b.X.given() - model().centers[found.winners]).sum(axis=1)
        assert totals.tally.error == pytest.approx(J, rel=1e-12)
        assert abs(plain(b) @ found.costs[:, 0] - J) > 1e-3 * J
        exact = ExactEStep(parameters)(b, None)[1]
        assert exact.tally.error == pytest.approx(J, rel=1e-12)


def test_an_error_that_would_take_a_pass_of_its_own_is_not_known():
    """The error is NaN for full Gaussians, because their costs are not Euclidean distances."""
    skew = np.array([[2.0, 0.5, 0], [0.5, 1, 0], [0, 0, 0.3]])
    gaussians = FullCovariance(model().centers, np.repeat(skew[np.newaxis], C, axis=0), 0.0, np.full(C, 1 / C))
    look = Full().look(None, gaussians.components(), KEY)
    assert np.isnan(EStep(gaussians, look, 1, hard_assignment)(block(True), None)[1].tally.error)
    assert np.isnan(ExactEStep(gaussians)(block(True), None)[1].tally.error)


def test_a_lazy_point_leaves_only_for_what_is_nearer_by_a_factor():
    """A point moves if (1 + ε) ‖x − μ_new‖ < ‖x − μ_old‖: here, for centers 0 and 1 and ε = 1, if x > 2/3."""
    line = type(model())(np.array([[0.0, 0, 0], [1.0, 0, 0]]), 1.0, 1e-20)
    x = np.array([0.1, 0.55, 0.65, 0.6666666, 0.67, 0.9])
    b, before = Block(as_rows(np.column_stack([x, np.zeros((6, 2))]))), ActiveSet(np.zeros((6, 1), np.int32))
    look = Full().look(None, line.components(), KEY)
    found, totals = HardEStep(line, Lazy(look, 1.0))(b, before)
    assert found.winners.tolist() == [0, 0, 0, 0, 1, 1]
    np.testing.assert_allclose(found.costs[:, 0], [*np.square(x[:4]), *np.square(1 - x[4:])])
    assert totals.tally.n_moved == 2
    assert totals.tally.error == pytest.approx(found.costs.sum())
    assert HardEStep(line, Lazy(look, 1.0))(b, None)[0].winners.tolist() == [0, 1, 1, 1, 1, 1]
    tie = Block(as_rows(np.array([[0.75, 0.0, 0.0]])))
    stays = HardEStep(line, Lazy(look, 2.0))(tie, ActiveSet(np.zeros((1, 1), np.int32)))[0]
    assert stays.winners.tolist() == [0]


@weighted
def test_an_exact_pass_looks_at_all_and_keeps_nothing(weighted):
    b = block(weighted)
    nothing, totals = ExactEStep(model())(b, None)
    heavy = int((plain(b) > 0).sum())
    assert nothing is None
    assert (totals.tally.n_distances, totals.tally.n_moved) == (60 * C, 60)
    assert totals.stats.n_weighted == heavy
    assert totals.tally.log_sum == model().expect_all(b).log_sum


@pytest.mark.parametrize(
    "job", [EStep(model(), LOOK, 2, soft_assignment), CostPass(model(), LOOK, 2), NearestStart(points(8), None)]
)
def test_points_keep_what_a_pass_has_found(job):
    data = local(points())
    data.each(job)
    data.commit()
    np.testing.assert_array_equal(data.take(np.arange(60)).kept.ids, job(block(), None)[0].ids)


def test_other_passes_read_their_rows_and_leave_what_points_keep(tmp_path):
    """Passes with no search over a file, which is read again in every pass, do not change active sets."""
    np.save(tmp_path / "X.npy", points())
    data = Local(open_data(tmp_path / "X.npy", chunk_rows=25))
    assert data.each(ExactEStep(model())).tally.log_sum == pytest.approx(model().expect_all(block()).log_sum)
    assert not data.placed
    data.each(CostPass(model(), LOOK, 1))
    data.commit()
    before = data.take(np.arange(60)).kept
    assert data.each(HardMoments(model())).squares == pytest.approx(HardMoments(model())(block(), before)[1].squares)
    expected = np.eye(C)[before.winners].T @ np.column_stack([np.ones(60), points()])
    np.testing.assert_allclose(data.each(SumByComponent(C)), expected, atol=1e-12)
    data.each(ExactEStep(model()))
    assert data.take(np.arange(60)).kept.ids.tolist() == before.ids.tolist()


def totals(seed):
    rng = np.random.default_rng(seed)
    movers = ReassignmentSums(np.array([2 * seed - 1], np.int32), np.ones((1, 2)))
    moments = ClusterSums(rng.random(C), np.arange(C) * seed, movers)
    return Totals(Tally(1.0, 0.5, 0.0, 3 + seed, 5 * seed, rng.random()), moments, SearchStats(seed))


def test_totals_add_up():
    a, b = totals(1), totals(2)
    both = a + b
    assert (both.tally.n_distances, both.tally.n_moved) == (9, 15)
    assert (both.tally.weight, both.tally.log_sum) == (2.0, 1.0)
    assert both.stats == SearchStats(3)
    np.testing.assert_allclose(both.moments.counts, a.moments.counts + b.moments.counts)
    np.testing.assert_array_equal(both.moments.members, 3 * np.arange(C))
    np.testing.assert_array_equal(both.moments.sums.ids, [1, 3])
    assert both.tally.error == a.tally.error + b.tally.error


@weighted
def test_a_visit_sums_the_least_costs(weighted):
    b = block(weighted)
    found, visited = CostPass(model(), LOOK, 3)(b, None)
    expected = kept(b.X, model().centers, 3)
    np.testing.assert_array_equal(found.ids, expected.ids)
    assert visited.cost == pytest.approx(plain(b) @ expected.costs[:, 0])
    assert visited.weight == pytest.approx(plain(b).sum())
    assert visited.stats.n_weighted == (plain(b) > 0).sum()
    both = visited + CostTally(1.0, 2.0, SearchStats(2))
    assert both.cost == pytest.approx(visited.cost + 1)
    assert both.weight == pytest.approx(visited.weight + 2)
    assert both.stats.n_weighted == visited.stats.n_weighted + 2


def test_a_visit_without_costs_sums_nothing():
    def look(block, points, before, components, n_kept):
        return ActiveSet(np.zeros((len(block), 1), np.int32)), 0, SearchStats(0)

    assert CostPass(model(), look, 1)(block(), None)[1].cost == 0.0


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
    nothing, found = HardMoments(model())(b, ActiveSet(np.hstack([ids, (ids + 1) % C])))
    w = plain(b)
    J = w @ np.square(b.X.given() - model().centers[ids[:, 0]]).sum(axis=1)
    assert nothing is None
    np.testing.assert_allclose(found.counts, np.bincount(ids[:, 0], w, C))
    np.testing.assert_allclose(found.sums, (w[:, np.newaxis] * np.eye(C)[ids[:, 0]]).T @ b.X.given(), atol=1e-12)
    assert found.squares == pytest.approx(J)
    assert found.weight == pytest.approx(w.sum())


def test_points_that_keep_others_than_before():
    ids = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.int32)
    assert moved(ActiveSet(ids), ActiveSet(np.array([[1, 2], [0, 4], [5, 0]], dtype=np.int32))).tolist() == [
        False,
        True,
        True,
    ]
    one = ActiveSet(np.array([[1], [0], [5]], dtype=np.int32))
    assert moved(ActiveSet(ids[:, :1]), one).tolist() == [False, True, False]
    assert moved(ActiveSet(ids), ActiveSet(ids[:, :1])).tolist() == [True] * 3
    assert moved(ActiveSet(ids), None).tolist() == [True] * 3
