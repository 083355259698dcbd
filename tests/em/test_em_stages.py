"""Decisions after a pass: new parameters, whether the pass counts as an iteration, and when a run ends."""

from dataclasses import replace

import numpy as np
import pytest
from em_data import KEY, C, D, block, model, points, squares

from cprime.em import (
    EM,
    Accept,
    DrawFromAll,
    End,
    EStep,
    ExactEStep,
    Exchange,
    Final,
    HardEStep,
    Lloyd,
    MixtureSettings,
    Settings,
    Undo,
    Warmup,
    hard_assignment,
    hard_free_energy,
    soft_assignment,
)
from cprime.em.hard import Lazy
from cprime.em.k_means import Progress, ReassignmentSums
from cprime.execution import local
from cprime.model import Diag, Scatter, TiedSpherical
from cprime.search import Full, SearchStats

LOOK = Full().look(None, model().components(), KEY)
RUNNING = Progress(n_steps=3, stepped=True)


def proposed(stage):
    """Return the job of the next pass of a stage."""
    return stage.propose(model(), stage.components(model()), LOOK, KEY)


def pass_of(parameters=None, n_moved=5, X=None, weight=None):
    """Return the totals of a k-means pass with n_moved reassigned points, and the data after the pass."""
    data = local(points() if X is None else X, weight)
    totals = data.each(HardEStep(parameters or model(), LOOK))
    data.commit()
    tally = replace(totals.tally, n_moved=n_moved)
    return replace(totals, tally=tally), data


def lloyd(X, centers):
    """Return the means of the nearest points, and Σ ‖x − mean‖²."""
    labels = squares(X, centers).argmin(axis=1)
    means = np.array([X[labels == c].mean(axis=0) for c in range(len(centers))])
    return means, np.square(X - means[labels]).sum()


def test_a_step_of_k_means_is_lloyds():
    totals, data = pass_of()
    step = Lloyd(Settings(10, 1e-3), RUNNING).judge(model(), totals, data)
    X, (means, after) = points(), lloyd(points(), model().centers)
    J = squares(X, model().centers).min(axis=1).sum()
    np.testing.assert_allclose(step.model.centers, means)
    assert step.model.variance == pytest.approx(after / X.size)
    assert pytest.approx(J) == step.error
    assert step.bound == pytest.approx(-D / 2 * np.log(2 * np.pi * np.e * J / X.size) - np.log(C))
    assert (step.end, step.n_relocated, step.then) == (None, 0, None)
    progress = step.stage.progress
    assert (progress.last, progress.n_steps, progress.stepped) == (step.error, 4, True)
    assert (progress.n_weighted, progress.few) == (60, True)
    for name in ("counts", "peak"):
        np.testing.assert_array_equal(getattr(progress, name), totals.moments.counts)
    np.testing.assert_array_equal(step.counts, totals.moments.counts)
    np.testing.assert_array_equal(progress.sums, totals.moments.sums)


@pytest.mark.parametrize("n", [1, 2])
def test_a_pass_before_the_first_step_changes_the_variance_alone(n):
    totals, data = pass_of()
    first = Lloyd(Settings(10, 1e-3))
    step = Warmup(n, first).judge(model(), totals, data)
    assert step.model.variance == pytest.approx(totals.tally.error / 180)
    np.testing.assert_array_equal(step.model.centers, model().centers)
    assert step.stage == (first if n == 1 else Warmup(1, first))
    assert step.bound == pytest.approx(hard_free_energy(model(), step.error, 60.0))
    assert totals.tally.error == step.error


@pytest.mark.parametrize(("relative", "converged"), [(0.0009, True), (0.0011, False), (0.5, False)])
@pytest.mark.parametrize("side", [-1, 1])
def test_it_ends_where_j_has_changed_by_no_more_than_tol_of_it(relative, converged, side):
    totals, data = pass_of()
    before = replace(RUNNING, last=totals.tally.error * (1 + side * relative))
    step = Lloyd(Settings(10, 1e-3), before).judge(model(), totals, data)
    assert step.end == (End.CONVERGED if converged else None)
    assert isinstance(step.stage, Final) == converged  # the M-step has changed the centers


def test_it_ends_where_nothing_has_moved_since_a_step():
    for stepped in (False, True):
        totals, data = pass_of(n_moved=0)
        step = Lloyd(Settings(10, 0.0), Progress(stepped=stepped)).judge(model(), totals, data)
        assert step.end == (End.CONVERGED if stepped else None)
        assert step.stage is None if stepped else step.stage.progress.stepped
        totals, data = pass_of(n_moved=1)
        assert Lloyd(Settings(10, 0.0), Progress(stepped=stepped)).judge(model(), totals, data).end is None


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_no_change_at_all_needs_no_step_and_no_further_pass_unless_points_linger(epsilon):
    totals, data = pass_of(n_moved=0)
    step = Lloyd(Settings(10, 0.0, epsilon), RUNNING).judge(model(), totals, data)
    np.testing.assert_array_equal(step.model.centers, model().centers)
    assert step.end == End.CONVERGED
    assert (step.stage is None) == (epsilon == 0)
    assert Lloyd(Settings(10, 0.0)).judge(model(), totals, data).end is None


@pytest.mark.parametrize("n_steps", [8, 9, 10])
def test_it_is_done_with_the_last_step_that_is_allowed(n_steps):
    totals, data = pass_of()
    step = Lloyd(Settings(10, 0.0), replace(RUNNING, n_steps=n_steps)).judge(model(), totals, data)
    assert step.end == (End.MAX_ITER if n_steps >= 9 else None)


def test_points_on_their_centers_have_no_relative_change():
    X = np.repeat(points(C), 3, axis=0)
    centers = TiedSpherical(points(C), 1.0, 1e-20)
    totals, data = pass_of(centers, X=X)
    assert totals.tally.error == 0
    for last, tol, converged in ((0.0, 1e-3, True), (0.9, 0.8, False), (0.9, 0.95, True)):
        step = Lloyd(Settings(10, tol), Progress(last=last, stepped=True)).judge(centers, totals, data)
        assert (step.end == End.CONVERGED) == converged


def test_passes_of_k_means_follow_movers_only_if_few():
    few, many = Progress(sums=np.zeros((C, D)), few=True), Progress(sums=np.zeros((C, D)))
    for progress, incremental, follow in ((few, True, True), (few, False, False), (many, True, False)):
        stage = Lloyd(Settings(10, 0.0, 0.25, incremental=incremental), progress)
        assert proposed(stage).follow is follow
    assert proposed(Lloyd(Settings(10, 0.0, incremental=True), Progress(few=True))).follow is False
    lazy = Lloyd(Settings(10, 0.0, 0.25), few)
    assert proposed(lazy).look == Lazy(LOOK, 0.25)
    assert lazy.final(model(), model().components(), LOOK, KEY).look is LOOK
    assert proposed(Final(lazy, End.MAX_ITER)).look is LOOK
    assert lazy.loss(model()).scale is None


@pytest.mark.parametrize(("n_moved", "few"), [(15, True), (16, False)])
def test_sums_are_corrected_while_a_quarter_of_the_points_move_at_most(n_moved, few):
    totals, data = pass_of(n_moved=n_moved)
    assert Lloyd(Settings(10, 0.0), RUNNING).judge(model(), totals, data).stage.progress.few is few


def corrected(peaks, wrong=7.0):
    """Return the sums after a pass that updates incorrect sums (off by `wrong`) by the reassigned points."""
    totals, data = pass_of()
    counts, sums = totals.moments.counts, totals.moments.sums
    moved = np.array([1, 3], np.int32), np.ones((2, D))
    before = sums + wrong
    before[moved[0]] -= 1
    progress = Progress(stepped=True, counts=counts, sums=before, peak=peaks(counts))
    totals = replace(totals, moments=replace(totals.moments, sums=ReassignmentSums(*moved)))
    kept_sums = before.copy()
    step = Lloyd(Settings(10, 0.0), progress).judge(model(), totals, data)
    np.testing.assert_array_equal(before, kept_sums)
    return step.stage.progress, sums, counts


def test_movers_are_added_to_the_sums_of_before():
    progress, sums, counts = corrected(lambda counts: 64 * counts)
    np.testing.assert_allclose(progress.sums, sums + 7)
    np.testing.assert_array_equal(progress.peak, 64 * counts)
    progress, sums, counts = corrected(lambda counts: counts / 2)
    np.testing.assert_array_equal(progress.peak, counts)


def test_sums_are_made_anew_where_a_component_has_lost_nearly_all():
    progress, sums, counts = corrected(lambda counts: np.where(np.arange(C) == 2, 65 * counts, counts))
    np.testing.assert_allclose(progress.sums, sums, rtol=1e-12)
    np.testing.assert_array_equal(progress.peak, counts)


def test_what_has_left_an_empty_component_leaves_nothing():
    """Sums of an empty component are exactly 0, and its former peak does not cause sums to be recomputed."""
    totals, data = pass_of()
    counts, sums = totals.moments.counts.copy(), totals.moments.sums + 7
    counts[2] = 0.0
    before = Progress(stepped=True, counts=counts, sums=sums, peak=np.full(C, counts.max()))
    nothing = ReassignmentSums(np.empty(0, np.int32), np.empty((0, D)))

    def progress_after(counts):
        """Return the state after a pass that reassigns no point; fixed centers are not moved if they have no points."""
        moments = replace(totals.moments, counts=counts, sums=nothing)
        fixed = replace(model(), n_fixed=C)
        return Lloyd(Settings(10, 0.0), before).judge(fixed, replace(totals, moments=moments), data).stage.progress

    found = progress_after(counts)
    np.testing.assert_array_equal(found.sums[2], 0)
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(found.sums[others], sums[others])
    np.testing.assert_array_equal(found.peak, np.full(C, counts.max()))
    light = np.full(C, 0.25)  # below a 64th of the peak, so sums are recomputed
    again = progress_after(light)
    np.testing.assert_allclose(again.sums, totals.moments.sums)
    assert again.peak.tolist() == light.tolist()


def factors_of(counts, weight, dtype):
    """Return the factors of an exchange step for clusters of weights `counts` and points of this weight."""
    return TiedSpherical(np.zeros((len(counts), 1), dtype), 1.0, 1e-20).exchange_factors(counts, None, weight)


def test_factors_are_those_of_hartigan():
    """J falls by W/(W − w) d² if a point leaves a component and rises by W/(W + w) d² if it arrives."""
    inside, outside = factors_of(np.array([1.0, 4.0, 0.0, 10.0]), 2.0, np.float64)
    np.testing.assert_allclose(inside, [1 / 0.002, 2.0, 0.0, 10 / 8])
    np.testing.assert_allclose(outside, [1 / 3, 4 / 6, 0.002 / 2, 10 / 12])
    assert [factors.dtype for factors in factors_of(np.ones(2), 1.0, np.float32)] == [np.float32] * 2
    X, labels = points(7), np.array([0, 0, 0, 0, 1, 1, 1])

    def J(labels):
        return sum(np.square(X[labels == c] - X[labels == c].mean(axis=0)).sum() for c in (0, 1))

    moved = labels.copy()
    moved[2] = 1
    means = np.array([X[labels == c].mean(axis=0) for c in (0, 1)])
    here, there = np.square(X[2] - means).sum(axis=1)
    inside, outside = factors_of(np.array([4.0, 3.0]), 1.0, np.float64)
    assert J(moved) - J(labels) == pytest.approx(outside[1] * there - inside[0] * here)


def test_only_an_exchange_has_factors_and_not_before_counts_are_known():
    counts = np.array([2.0, 4.0, 6.0, 8.0, 10.0])
    known = Progress(counts=counts, n_weighted=15)
    for stage in (Exchange(Settings(10, 0.0)), Lloyd(Settings(10, 0.0), known)):
        assert proposed(stage).components is None
        assert len(stage.components(model()).snapshot) == 1
    stage = Exchange(Settings(10, 0.0), known)
    expected = factors_of(counts, 2.0, np.float64)
    components = proposed(stage).components
    np.testing.assert_array_equal((components.inside, components.outside), expected)
    np.testing.assert_array_equal(stage.components(model()).inside, expected[0])
    assert stage.final(model(), model().components(), LOOK, KEY).components is None


def exchanged(last, tol=1e-3, n_moved=5, n_steps=3, max_iter=10, gain=np.inf):
    totals, data = pass_of(n_moved=n_moved)
    progress = replace(RUNNING, last=last, n_steps=n_steps)
    return Exchange(Settings(max_iter, tol), progress, gain=gain).judge(model(), totals, data)


def test_an_exchange_is_judged_by_the_means_that_follow():
    after = lloyd(points(), model().centers)[1]
    step = exchanged(np.inf)
    assert pytest.approx(after) == step.error
    assert step.bound == pytest.approx(hard_free_energy(model(), after, 60.0))
    assert step.stage.progress.last == step.error
    assert (step.end, type(step.stage), step.stage.n_exchanges) == (None, Exchange, 1)


def test_an_exchange_that_would_raise_j_does_not_count():
    after = lloyd(points(), model().centers)[1]
    step = exchanged(after * 0.99, gain=0.023)
    assert (type(step), type(step.stage)) == (Undo, Lloyd)
    np.testing.assert_array_equal(step.model.centers, model().centers)
    assert (step.stage.progress.n_steps, step.stage.progress.last) == (4, after * 0.99)
    assert exchanged(after * 0.99, n_steps=9).stage.end == End.MAX_ITER
    assert isinstance(exchanged(after * 0.99, n_steps=8, gain=0.0).stage, Lloyd)
    assert isinstance(exchanged(after * 1.01), Accept)


def test_a_plain_step_comes_in_between_while_jumps_pay():
    """Jumps continue while the last ones have lowered J by 24 times `tol`, with a plain Lloyd step in between."""
    step = exchanged(lloyd(points(), model().centers)[1] * 0.99, gain=0.025)
    assert (type(step), type(step.stage), step.stage.gain) == (Undo, Exchange, 0.025)
    assert proposed(step.stage).components is None


def test_an_exchange_extrapolates_the_change_of_the_means():
    """Centers are moved on by W/(W + 32 w) of the change, with W the weight of a cluster and w that of a point."""
    first = exchanged(np.inf)
    shares = (first.counts / (first.counts + 32))[:, np.newaxis]
    means = lloyd(points(), model().centers)[0]
    np.testing.assert_allclose(first.stage.means, means)
    np.testing.assert_allclose(first.model.centers, means + shares * (means - model().centers))
    np.testing.assert_array_equal(first.stage.standing(first.model).centers, first.stage.means)
    totals, data = pass_of(first.model)
    second = replace(first.stage, progress=replace(first.stage.progress, last=np.inf)).judge(first.model, totals, data)
    after, J = lloyd(points(), first.model.centers)
    shares = (second.counts / (second.counts + 32))[:, np.newaxis]
    np.testing.assert_allclose(second.model.centers, after + shares * (after - means))
    assert second.error == pytest.approx(J)
    for step in (exchanged(np.inf, n_steps=9), exchanged(1.001 * first.error)):  # a last step; jumps follow
        np.testing.assert_allclose(step.model.centers, means)


@pytest.mark.parametrize("n_steps", [3, 9])
def test_a_rejected_extrapolation_returns_to_the_means(n_steps):
    first = exchanged(np.inf)
    totals, data = pass_of(first.model)
    progress = replace(first.stage.progress, last=0.5 * first.error, n_steps=n_steps)
    step = replace(first.stage, progress=progress).judge(first.model, totals, data)
    stage = step.stage.of if n_steps == 9 else step.stage
    assert (type(step), type(stage), stage.means) == (Undo, Exchange, None)
    assert isinstance(step.stage, Final) == (n_steps == 9)
    np.testing.assert_array_equal(step.model.centers, first.stage.means)
    np.testing.assert_array_equal(stage.progress.counts, first.counts)
    assert (stage.progress.n_steps, stage.progress.last) == (n_steps + 1, 0.5 * first.error)
    assert stage.standing(step.model) is step.model


def test_extrapolated_centers_without_reassigned_points_are_not_the_end():
    first = exchanged(np.inf)
    totals, data = pass_of(first.model, n_moved=0)
    stage = replace(first.stage, progress=replace(first.stage.progress, last=np.inf))
    step = stage.judge(first.model, totals, data)
    np.testing.assert_allclose(step.stage.means, lloyd(points(), first.model.centers)[0])


@pytest.mark.parametrize(("relative", "goes_on"), [(0.0079, False), (0.0081, True)])
def test_an_exchange_goes_on_while_it_gains_eight_times_tol(relative, goes_on):
    after = lloyd(points(), model().centers)[1]
    step = exchanged(after * (1 + relative))
    assert (type(step.stage), step.end) == (Exchange if goes_on else Lloyd, None)
    assert (step.then is None) == goes_on  # jumps follow if an exchange gains little


def test_an_exchange_ends_where_nothing_moves():
    step = exchanged(2 * lloyd(points(), model().centers)[1], n_moved=0)
    assert (type(step.stage), step.end) == (Lloyd, None)


def test_a_cluster_that_begins_anew_keeps_the_run_going():
    far = TiedSpherical(np.vstack([model().centers, np.full((1, D), 1e3)]), 1.0, 1e-20)
    totals, data = pass_of(far)
    before = Progress(last=totals.tally.error, stepped=True)
    step = Lloyd(Settings(10, 0.5), before).judge(far, totals, data)
    assert (step.end, step.n_relocated) == (None, 1)
    assert (step.counts > 0).all()
    farthest = squares(points(), model().centers).min(axis=1).argmax()
    assert step.stage.progress.sums[5].tolist() == points()[farthest].tolist()


def test_the_free_energy_of_a_partition_is_the_formula():
    J, W = 90.0, 30.0
    variance = J / W / D
    expected = -np.log(C) - D / 2 * np.log(2 * np.pi * variance) - J / (2 * variance * W)
    assert hard_free_energy(model(), J, W) == pytest.approx(expected)


def mixture_pass(assignment, n_kept=2, n_moved=5):
    totals = EStep(model(), LOOK, n_kept, assignment)(block(), None)[1]
    return replace(totals, tally=replace(totals.tally, n_moved=n_moved))


def em(n_kept=2, max_iter=10, tol=1e-3, assignment="soft", **state):
    return EM(MixtureSettings(max_iter, tol, n_kept, assignment), **state)


def test_a_step_of_a_mixture_is_the_m_step():
    totals, data = mixture_pass(soft_assignment), local(points())
    stage = em().with_prior(model(), data)
    step = stage.judge(model(), totals, data)
    expected = model().maximise(totals.moments, stage.prior)
    np.testing.assert_array_equal(step.model.centers, expected.centers)
    assert step.model.variance == expected.variance
    assert step.bound == pytest.approx(model().log_scale + totals.tally.log_sum / 60)
    assert totals.tally.error == step.error
    assert (step.end, step.stage.last, step.stage.n_steps) == (None, step.bound, 1)
    warm = Warmup(1, stage).judge(model(), totals, data)
    assert (warm.stage, warm.bound, warm.error) == (stage, step.bound, step.error)
    np.testing.assert_array_equal(warm.model.centers, model().centers)


def test_a_stage_of_a_mixture_has_the_prior_that_its_m_step_asks_for():
    data = local(points())
    found = em().with_prior(model(), data)
    assert (found.last, found.n_steps) == (np.inf, 0)
    assert isinstance(found.prior, Scatter)
    assert found.prior.squares == pytest.approx(np.square(points() - points().mean(axis=0)).sum())
    assert em().with_prior(Diag(model().centers, np.ones((C, D))), data).prior is None


@pytest.mark.parametrize(
    ("assignment", "change", "n_moved", "n_steps", "converged"),
    [
        ("soft", 0.9e-3, 5, 3, True),
        ("soft", 1.1e-3, 5, 3, False),
        ("soft", 1.0, 0, 3, False),
        ("hard", 1.0, 0, 3, True),
        ("hard", 1.0, 1, 3, False),
        ("hard", 1.0, 0, 0, False),
        ("hard", 0.9e-3, 5, 3, True),
        ("sampled", 0.9e-3, 0, 3, False),
    ],
)
def test_a_mixture_ends_on_f_or_where_nothing_moves_but_draws_go_on(assignment, change, n_moved, n_steps, converged):
    totals, data = mixture_pass(soft_assignment, n_moved=n_moved), local(points())
    for side in (-1, 1):
        bound = model().log_scale + totals.tally.log_sum / 60
        step = em(assignment=assignment, last=bound + side * change, n_steps=n_steps).judge(model(), totals, data)
        assert step.end == (End.CONVERGED if converged else None)
        assert isinstance(step.stage, Final) == converged
        assert em(n_steps=9).judge(model(), totals, data).end == End.MAX_ITER
        assert em(n_steps=8).judge(model(), totals, data).end is None


def test_passes_of_a_mixture_have_their_assignment():
    kinds = {n: proposed(em(n)) for n in (1, 2, C)}
    assert isinstance(kinds[C], ExactEStep)
    assert [kinds[n].n_kept for n in (1, 2)] == [1, 2]
    assert kinds[2].assignment == soft_assignment
    one = TiedSpherical(points(1), 1.0, 1e-20)
    assert isinstance(em(1).propose(one, one.components(), LOOK, KEY), EStep)
    assert isinstance(proposed(em(C, assignment="sampled")), DrawFromAll)
    assert proposed(em(assignment="hard")).assignment == hard_assignment


def test_the_loss_of_a_mixture_is_in_f_of_the_components_that_the_assignment_uses():
    for name in ("soft", "sampled", "hard"):
        loss = em(3, assignment=name).loss(model())
        assert (loss.scale, loss.only_best) == (model().scale, name == "hard")


def test_what_a_search_learns_of_a_pass():
    assert pass_of()[0].stats == SearchStats(60)
