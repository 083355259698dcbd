"""What follows from a pass: parameters, whether it counts, and when a run is at its end."""

from dataclasses import replace

import numpy as np
import pytest
from em_data import KEY, C, D, block, kept, model, points, squares

from cprime.block import Kept
from cprime.em import EStep, ExactEStep, Hard, KMeansRule, MixtureRule, Soft, Totals, Winners, hard_free_energy
from cprime.em.k_means_rule import KMeansState, exchange_factors
from cprime.em.mixture_rule import MixtureState
from cprime.em.rules import Step
from cprime.execution import local
from cprime.model import Diag, Scatter, TiedSpherical
from cprime.search import Full, Seen
from cprime.statistics import Movers, Statistics

LOOK = Full().look(None, model().components(), None, KEY)


def pass_of(parameters=None, n_moved=5, n_changed=None, movers=None, X=None, weight=None):
    """Totals of a k-means pass over the points, as if some had moved; the data, on which points keep their winners."""
    data = local(points() if X is None else X, weight)
    totals = data.each(EStep(parameters or model(), LOOK, 1, Winners()))
    data.commit()
    changed = n_moved if n_changed is None else n_changed
    found = Totals(totals.statistics, totals.n_distances, n_moved, changed, totals.seen, totals.members, movers)
    return found, data


def lloyd(X, centers):
    """Means of the nearest points, and Σ ‖x − mean‖²."""
    labels = squares(X, centers).argmin(axis=1)
    means = np.array([X[labels == c].mean(axis=0) for c in range(len(centers))])
    return means, np.square(X - means[labels]).sum()


RUNNING = KMeansState(last=np.inf, n_steps=3, stepped=True)


def test_a_step_of_k_means_is_lloyds():
    totals, data = pass_of()
    step = KMeansRule(10, 1e-3).judge(model(), RUNNING, totals, data)
    X, (means, after) = points(), lloyd(points(), model().centers)
    J = squares(X, model().centers).min(axis=1).sum()
    np.testing.assert_allclose(step.model.centers, means)
    assert step.model.variance == pytest.approx(after / X.size)
    assert pytest.approx(J) == step.J
    assert step.bound == pytest.approx(-D / 2 * np.log(2 * np.pi * np.e * J / X.size) - np.log(C))
    assert (step.accept, step.converged, step.done) == (True, False, False)
    assert step.statistics.log_sum == pytest.approx(-X.size / 2)
    state = step.state
    assert (state.last, state.n_steps, state.stepped, state.settled) == (step.J, 4, True, False)
    assert (state.exchanging, state.n_relocated, state.n_heavy, state.few) == (False, 0, 60, True)
    np.testing.assert_array_equal(state.counts, totals.statistics.counts)
    np.testing.assert_array_equal(state.peak, totals.statistics.counts)
    np.testing.assert_array_equal(state.sums, totals.statistics.sums)


def test_a_pass_before_the_first_step_changes_the_variance_alone():
    totals, _ = pass_of()
    step = KMeansRule(10, 1e-3).warm(model(), RUNNING, totals)
    assert step.model.variance == pytest.approx(totals.statistics.quantization_error / 180)
    np.testing.assert_array_equal(step.model.centers, model().centers)
    assert step.state is RUNNING
    assert (step.accept, step.converged, step.done) == (True, False, False)
    assert step.bound == pytest.approx(hard_free_energy(model(), step.J, 60.0))
    assert totals.statistics.quantization_error == step.J


@pytest.mark.parametrize(("relative", "converged"), [(0.0009, True), (0.0011, False), (0.5, False)])
@pytest.mark.parametrize("side", [-1, 1])
def test_it_ends_where_j_has_changed_by_no_more_than_tol_of_it(relative, converged, side):
    totals, data = pass_of()
    J = totals.statistics.quantization_error
    state = KMeansState(last=J * (1 + side * relative), n_steps=3, stepped=True)
    step = KMeansRule(10, 1e-3).judge(model(), state, totals, data)
    assert (step.converged, step.done) == (converged, converged)


def test_it_ends_where_nothing_has_moved_since_a_step():
    for stepped in (False, True):
        totals, data = pass_of(n_moved=0, n_changed=1)
        step = KMeansRule(10, 0.0).judge(model(), KMeansState(stepped=stepped), totals, data)
        assert (step.converged, step.done, step.state.settled, step.state.stepped) == (stepped, stepped, False, True)
        totals, data = pass_of(n_moved=1)
        assert not KMeansRule(10, 0.0).judge(model(), KMeansState(stepped=stepped), totals, data).converged


def test_no_change_at_all_needs_no_step():
    totals, data = pass_of(n_moved=0)
    step = KMeansRule(10, 0.0).judge(model(), RUNNING, totals, data)
    assert step.state.settled
    np.testing.assert_array_equal(step.model.centers, model().centers)
    assert step.state.stepped
    assert not KMeansRule(10, 0.0).needs_last(step)
    first = KMeansRule(10, 0.0).judge(model(), KMeansState(), totals, data)
    assert not first.state.settled


@pytest.mark.parametrize("n_steps", [8, 9, 10])
def test_it_is_done_with_the_last_step_that_is_allowed(n_steps):
    totals, data = pass_of()
    step = KMeansRule(10, 0.0).judge(model(), KMeansState(n_steps=n_steps, stepped=True), totals, data)
    assert (step.done, step.converged) == (n_steps >= 9, False)


def test_points_on_their_centers_have_no_relative_change():
    X = np.repeat(points(C), 3, axis=0)
    centers = TiedSpherical(points(C), 1.0, 1e-20)
    totals, data = pass_of(centers, X=X)
    assert totals.statistics.quantization_error == 0
    for last, tol, converged in ((0.0, 1e-3, True), (0.9, 0.8, False), (0.9, 0.95, True)):
        step = KMeansRule(10, tol).judge(centers, KMeansState(last=last, stepped=True), totals, data)
        assert step.converged == converged


@pytest.mark.parametrize(
    ("converged", "settled", "epsilon", "needed"),
    [(True, True, 0.0, False), (True, False, 0.0, True), (False, True, 0.0, True), (True, True, 0.5, True)],
)
def test_a_last_pass_is_needed_unless_the_last_one_saw_what_is_returned(converged, settled, epsilon, needed):
    step = Step(model(), KMeansState(settled=settled), True, converged, True, 0.0, 0.0, None)
    assert KMeansRule(10, 0.0, epsilon).needs_last(step) is needed
    assert MixtureRule(10, 0.0, 2).needs_last(step) is True


def test_what_a_pass_of_k_means_is():
    few, many = KMeansState(sums=np.zeros((C, D)), few=True), KMeansState(sums=np.zeros((C, D)))
    for state, incremental, moves in ((few, True, True), (few, False, False), (many, True, False)):
        rule = KMeansRule(10, 0.0, 0.25, incremental=incremental)
        assert rule.propose(model(), state, LOOK, KEY, False).assignment == Winners(moves)
    nothing = KMeansRule(10, 0.0, incremental=True).propose(model(), KMeansState(few=True), LOOK, KEY, False)
    assert nothing.assignment == Winners(False)
    assert KMeansRule(10, 0.0).propose(model(), few, LOOK, KEY, False).assignment == Winners(False)
    plain = KMeansRule(10, 0.0, 0.25)
    proposed, last = (plain.propose(model(), few, LOOK, KEY, end) for end in (False, True))
    assert (proposed.n_kept, proposed.epsilon, last.epsilon) == (1, 0.25, 0.0)
    assert (plain.finds_variance, plain.scale(model())) == (False, None)
    assert plain.judged(found := Kept(np.zeros((2, 1), np.int32))) is found


@pytest.mark.parametrize(("n_moved", "few"), [(15, True), (16, False)])
def test_sums_are_corrected_while_a_quarter_of_the_points_move_at_most(n_moved, few):
    totals, data = pass_of(n_moved=n_moved)
    assert KMeansRule(10, 0.0).judge(model(), RUNNING, totals, data).state.few is few


def corrected(peaks, wrong=7.0):
    """The sums after a pass of movers, from sums of before that are wrong by a number everywhere."""
    totals, data = pass_of()
    counts, sums = totals.statistics.counts, totals.statistics.sums
    moved = np.array([1, 3], np.int32), np.ones((2, D))
    before = sums + wrong
    before[moved[0]] -= 1
    state = KMeansState(last=np.inf, stepped=True, counts=counts, sums=before, peak=peaks(counts))
    statistics = Statistics(counts, np.zeros((C, 0)), 60.0, 0.0, 0.0, 0.0, totals.statistics.quantization_error)
    totals = Totals(statistics, 0, 2, 2, totals.seen, totals.members, Movers(*moved))
    kept_sums = before.copy()
    step = KMeansRule(10, 0.0).judge(model(), state, totals, data)
    np.testing.assert_array_equal(before, kept_sums)
    return step.state, sums, counts


def test_movers_are_added_to_the_sums_of_before():
    state, sums, counts = corrected(lambda counts: 64 * counts)
    np.testing.assert_allclose(state.sums, sums + 7)
    np.testing.assert_array_equal(state.peak, 64 * counts)
    state, sums, counts = corrected(lambda counts: counts / 2)
    np.testing.assert_array_equal(state.peak, counts)


def test_sums_are_made_anew_where_a_component_has_lost_nearly_all():
    state, sums, counts = corrected(lambda counts: np.where(np.arange(C) == 2, 65 * counts, counts))
    np.testing.assert_allclose(state.sums, sums, rtol=1e-12)
    np.testing.assert_array_equal(state.peak, counts)


def test_what_has_left_an_empty_component_leaves_nothing():
    """Its peak is no reason to make sums anew, and its sums are 0 whatever rounding says."""
    totals, data = pass_of()
    counts, members = totals.statistics.counts.copy(), totals.members.copy()
    counts[2], members[2] = 0.0, 0
    sums = totals.statistics.sums + 7
    state = KMeansState(stepped=True, counts=counts, sums=sums, peak=np.full(C, counts.max()))
    statistics = Statistics(counts, np.zeros((C, 0)), 60.0, 0.0, 0.0, 0.0, 1.0)
    nothing = Movers(np.empty(0, np.int32), np.empty((0, D)))
    rule = KMeansRule(10, 0.0)
    found, peak = rule._with_sums(state, Totals(statistics, 0, 0, 0, totals.seen, members, nothing), statistics, data)
    np.testing.assert_array_equal(found.sums[2], 0)
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(found.sums[others], sums[others])
    np.testing.assert_array_equal(peak, np.full(C, counts.max()))
    light = replace(statistics, counts=np.full(C, 0.25))  # below a 64th of the peak: made anew
    again, peak = rule._with_sums(state, Totals(light, 0, 0, 0, totals.seen, members, nothing), light, data)
    np.testing.assert_allclose(again.sums, totals.statistics.sums)
    assert peak.tolist() == light.counts.tolist()


def test_factors_are_those_of_hartigan():
    """J falls by W/(W − w) d² where a point leaves and rises by W/(W + w) d² where it arrives."""
    factors = exchange_factors(np.array([1.0, 4.0, 0.0, 10.0]), 2.0, np.float64)
    np.testing.assert_allclose(factors.inside, [1 / 0.002, 2.0, 0.0, 10 / 8])
    np.testing.assert_allclose(factors.outside, [1 / 3, 4 / 6, 0.002 / 2, 10 / 12])
    assert exchange_factors(np.ones(2), 1.0, np.float32).inside.dtype == np.float32
    assert exchange_factors(np.ones(2), 1.0, np.float32).outside.dtype == np.float32
    X, labels = points(7), np.array([0, 0, 0, 0, 1, 1, 1])

    def J(labels):
        return sum(np.square(X[labels == c] - X[labels == c].mean(axis=0)).sum() for c in (0, 1))

    moved = labels.copy()
    moved[2] = 1
    means = np.array([X[labels == c].mean(axis=0) for c in (0, 1)])
    here, there = np.square(X[2] - means).sum(axis=1)
    factors = exchange_factors(np.array([4.0, 3.0]), 1.0, np.float64)
    assert J(moved) - J(labels) == pytest.approx(factors.outside[1] * there - factors.inside[0] * here)


def test_only_an_exchange_has_factors_and_not_before_counts_are_known():
    rule, counts = KMeansRule(10, 0.0, exchange=True), np.array([2.0, 4.0, 6.0, 8.0, 10.0])
    assert rule.begin(model(), None) == KMeansState(exchanging=True)
    assert KMeansRule(10, 0.0).begin(model(), None) == KMeansState(exchanging=False)
    assert rule.factors(model(), KMeansState(exchanging=True)) is None
    assert rule.factors(model(), KMeansState(counts=counts, n_heavy=15)) is None
    found = rule.factors(model(), KMeansState(exchanging=True, counts=counts, n_heavy=15))
    np.testing.assert_array_equal(found.inside, exchange_factors(counts, 2.0, np.float64).inside)


def exchanged(last, tol=1e-3, n_moved=5, n_steps=3, max_iter=10):
    totals, data = pass_of(n_moved=n_moved, n_changed=n_moved)
    state = KMeansState(last=last, n_steps=n_steps, stepped=True, exchanging=True)
    return KMeansRule(max_iter, tol, exchange=True).judge(model(), state, totals, data)


def test_an_exchange_is_judged_by_the_means_that_follow():
    after = lloyd(points(), model().centers)[1]
    step = exchanged(np.inf)
    assert pytest.approx(after) == step.J
    assert step.bound == pytest.approx(hard_free_energy(model(), after, 60.0))
    assert step.state.last == step.J
    assert (step.accept, step.converged, step.state.exchanging) == (True, False, True)


def test_an_exchange_that_would_raise_j_does_not_count():
    after = lloyd(points(), model().centers)[1]
    step = exchanged(after * 0.99)
    assert (step.accept, step.converged, step.done) == (False, False, False)
    np.testing.assert_array_equal(step.model.centers, model().centers)
    assert (step.state.exchanging, step.state.n_steps, step.state.last) == (False, 4, after * 0.99)
    assert exchanged(after * 0.99, n_steps=9).done
    assert not exchanged(after * 0.99, n_steps=8).done
    assert exchanged(after * 1.01).accept


@pytest.mark.parametrize(("relative", "goes_on"), [(0.0079, False), (0.0081, True)])
def test_an_exchange_goes_on_while_it_gains_eight_times_tol(relative, goes_on):
    after = lloyd(points(), model().centers)[1]
    step = exchanged(after * (1 + relative))
    assert step.state.exchanging == goes_on
    assert not step.converged


def test_an_exchange_ends_where_nothing_moves():
    after = lloyd(points(), model().centers)[1]
    totals, data = pass_of(n_moved=0, n_changed=1)
    state = KMeansState(last=2 * after, stepped=True, exchanging=True)
    step = KMeansRule(10, 1e-3, exchange=True).judge(model(), state, totals, data)
    assert (step.state.exchanging, step.converged) == (False, False)


def test_a_cluster_that_begins_anew_keeps_the_run_going():
    far = TiedSpherical(np.vstack([model().centers, np.full((1, D), 1e3)]), 1.0, 1e-20)
    totals, data = pass_of(far)
    J = totals.statistics.quantization_error
    state = KMeansState(last=J, stepped=True, n_relocated=2)
    step = KMeansRule(10, 0.5).judge(far, state, totals, data)
    assert (step.converged, step.state.n_relocated, step.state.settled) == (False, 3, False)
    assert (step.state.counts > 0).all()
    assert step.state.sums[5].tolist() == points()[squares(points(), model().centers).min(axis=1).argmax()].tolist()


def test_the_free_energy_of_a_partition():
    J, W = 90.0, 30.0
    variance = J / W / D
    expected = -np.log(C) - D / 2 * np.log(2 * np.pi * variance) - J / (2 * variance * W)
    assert hard_free_energy(model(), J, W) == pytest.approx(expected)


def mixture_pass(assignment, parameters=None, n_kept=2, n_moved=5):
    parameters = parameters or model()
    look = Full().look(None, parameters.components(), None, KEY)
    totals = EStep(parameters, look, n_kept, assignment)(block(), None)[1]
    return Totals(totals.statistics, totals.n_distances, n_moved, n_moved, totals.seen)


def test_a_step_of_a_mixture_is_the_m_step():
    totals = mixture_pass(Soft())
    rule, data = MixtureRule(10, 1e-3, 2), local(points())
    state = rule.begin(model(), data)
    step = rule.judge(model(), state, totals, data)
    expected = model().maximise(totals.statistics, state.scatter)
    np.testing.assert_array_equal(step.model.centers, expected.centers)
    assert step.model.variance == expected.variance
    assert step.bound == pytest.approx(model().log_scale + totals.statistics.log_sum / 60)
    assert totals.statistics.quantization_error == step.J
    assert (step.accept, step.converged, step.done) == (True, False, False)
    assert (step.state.last, step.state.n_steps, step.state.stepped) == (step.bound, 1, True)
    warm = rule.warm(model(), state, totals)
    assert (warm.state, warm.accept, warm.converged, warm.done) == (state, True, False, False)
    assert (warm.bound, warm.J) == (step.bound, step.J)
    np.testing.assert_array_equal(warm.model.centers, model().centers)


def test_the_first_state_of_a_mixture_has_the_scatter_that_its_m_step_asks_for():
    data = local(points())
    found = MixtureRule(10, 0.0, 2).begin(model(), data)
    assert (found.last, found.n_steps, found.stepped) == (np.inf, 0, False)
    assert isinstance(found.scatter, Scatter)
    assert found.scatter.squares == pytest.approx(np.square(points() - points().mean(axis=0)).sum())
    assert MixtureRule(10, 0.0, 2).begin(Diag(model().centers, np.ones((C, D))), data).scatter is None


@pytest.mark.parametrize(
    ("assignment", "change", "n_moved", "stepped", "converged"),
    [
        ("soft", 0.9e-3, 5, True, True),
        ("soft", 1.1e-3, 5, True, False),
        ("soft", 1.0, 0, True, False),
        ("hard", 1.0, 0, True, True),
        ("hard", 1.0, 1, True, False),
        ("hard", 1.0, 0, False, False),
        ("hard", 0.9e-3, 5, True, True),
        ("posterior", 0.9e-3, 0, True, False),
    ],
)
def test_a_mixture_ends_on_f_or_where_nothing_moves_but_draws_go_on(assignment, change, n_moved, stepped, converged):
    totals, data = mixture_pass(Soft(), n_moved=n_moved), local(points())
    for side in (-1, 1):
        bound = model().log_scale + totals.statistics.log_sum / 60
        state = MixtureState(None, bound + side * change, 3, stepped)
        rule = MixtureRule(10, 1e-3, 2, assignment)
        step = rule.judge(model(), state, totals, data)
        assert (step.converged, step.done) == (converged, converged)
        assert rule.judge(model(), MixtureState(None, np.inf, 9), totals, data).done
        assert not rule.judge(model(), MixtureState(None, np.inf, 8), totals, data).done


def test_what_a_pass_of_a_mixture_is():
    kinds = {n: MixtureRule(10, 0.0, n).propose(model(), None, LOOK, KEY, False) for n in (1, 2, C)}
    assert isinstance(kinds[C], ExactEStep)
    assert [kinds[n].n_kept for n in (1, 2)] == [1, 2]
    assert kinds[2].assignment == Soft()
    one = TiedSpherical(points(1), 1.0, 1e-20)
    assert isinstance(MixtureRule(10, 0.0, 1).propose(one, None, LOOK, KEY, False), EStep)
    two = TiedSpherical(points(2), 1.0, 1e-20)
    assert isinstance(MixtureRule(10, 0.0, 2, "hard").propose(two, None, LOOK, KEY, False), ExactEStep)
    rule = MixtureRule(10, 0.0, 2, "hard")
    assert rule.propose(model(), None, LOOK, KEY, True).assignment == Hard()
    assert (rule.finds_variance, rule.factors(model(), None)) == (False, None)
    assert rule.scale(model()) == model().scale


def test_what_counts_of_kept_sets():
    found = kept(points(), model().centers, 3)
    for name in ("soft", "posterior"):
        assert MixtureRule(10, 0.0, 3, name).judged(found) is found
    best = MixtureRule(10, 0.0, 3, "hard").judged(found)
    np.testing.assert_array_equal(best.ids, found.ids[:, :1])
    np.testing.assert_array_equal(best.costs, found.costs[:, :1])
    assert MixtureRule(10, 0.0, 3, "hard").judged(Kept(found.ids)).costs is None


def test_seen_of_a_pass():
    assert pass_of()[0].seen == Seen(60, 60)
