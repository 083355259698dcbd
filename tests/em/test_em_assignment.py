"""What kept components are given of a point: shares, sums, free energies and movers, written out."""

import numpy as np
import pytest
from em_data import KEY, C, D, block, kept, model, plain, points, squares, weights_of
from scipy.special import logsumexp

from cprime._random import Purpose
from cprime.block import Block, Kept
from cprime.em import Drawn, Hard, Soft, Winners, assignment_of
from cprime.em import assignment as module
from cprime.em.assignment import _drawn

weighted = pytest.mark.parametrize("weighted", [False, True])
NO_MOVES = np.zeros(60, dtype=bool)


def spread(ids, q):
    out = np.zeros((len(ids), C))
    np.put_along_axis(out, ids, q, axis=1)
    return out


def check(statistics, b, q, log_sum, entropy, J):
    """Sums of shares q (n, C), Σ w log Σ p less log_scale, Σ w H(q) and J."""
    w, X, centers = plain(b), b.X, model().centers
    np.testing.assert_allclose(statistics.counts, w @ q, rtol=1e-12)
    np.testing.assert_allclose(statistics.sums, (w[:, np.newaxis] * q).T @ X, rtol=1e-10, atol=1e-12)
    assert statistics.weight == pytest.approx(w.sum())
    assert statistics.squares == pytest.approx((w[:, np.newaxis] * q * squares(X, centers)).sum(), rel=1e-10)
    assert statistics.log_sum == pytest.approx(log_sum, rel=1e-10)
    assert statistics.entropy == pytest.approx(entropy, rel=1e-9, abs=1e-9)
    assert statistics.quantization_error == pytest.approx(J)


def truncated(found):
    """log Σ_{c∈K} exp(−d²/2σ²), and its shares (n, H)."""
    joint = -found.costs / (2 * model().variance)
    total = logsumexp(joint, axis=1)
    return total, np.exp(joint - total[:, np.newaxis])


@weighted
def test_soft_is_the_truncated_posterior(weighted):
    b = block(weighted)
    found, w = kept(b.X, model().centers, 3), plain(b)
    total, q = truncated(found)
    sums = Soft().of_kept(b, model(), found, None, NO_MOVES, 17.0)
    check(sums.statistics, b, spread(found.ids, q), w @ total, -(w @ (q * np.log(q)).sum(axis=1)), 17.0)
    assert sums.members is sums.movers is None


@weighted
@pytest.mark.parametrize("assignment", [Soft(), Hard()])
def test_all_go_to_the_best_of_one(assignment, weighted):
    """With one component kept, soft and hard are the same, to the bit."""
    b = block(weighted)
    found, w = kept(b.X, model().centers, 1), plain(b)
    sums = assignment.of_kept(b, model(), found, None, NO_MOVES, 17.0)
    log_sum = w @ -found.costs[:, 0] / (2 * model().variance)
    check(sums.statistics, b, spread(found.ids, np.ones((60, 1))), log_sum, 0.0, 17.0)
    assert sums.statistics.entropy == 0


@weighted
def test_hard_gives_all_to_the_best_of_several(weighted):
    b = block(weighted)
    found, w = kept(b.X, model().centers, 3), plain(b)
    sums = Hard().of_kept(b, model(), found, None, NO_MOVES, 17.0)
    log_sum = w @ -found.costs[:, 0] / (2 * model().variance)
    check(sums.statistics, b, spread(found.ids[:, :1], np.ones((60, 1))), log_sum, 0.0, 17.0)


@weighted
def test_drawn_gives_all_to_one_of_the_truncated_posterior(weighted):
    b = block(weighted, first=7)
    found, w = kept(b.X, model().centers, 3), plain(b)
    total, q = truncated(found)
    uniform = KEY.uniform(Purpose.POSTERIOR, 7, 60)
    place = (np.cumsum(q, axis=1) <= uniform[:, np.newaxis]).sum(axis=1)
    assert set(place) == {0, 1, 2}
    label = np.take_along_axis(found.ids, place[:, np.newaxis], axis=1)
    sums = Drawn(KEY).of_kept(b, model(), found, None, NO_MOVES, 17.0)
    check(sums.statistics, b, spread(label, np.ones((60, 1))), w @ total, -(w @ (q * np.log(q)).sum(axis=1)), 17.0)


@pytest.mark.parametrize("step", [1, 2**20, 7 * C + 1])
@weighted
def test_drawn_from_all_components(weighted, step, monkeypatch):
    """However many rows have their posteriors at a time."""
    monkeypatch.setattr(module, "_BLOCK", step)
    b = block(weighted, first=7)
    w = plain(b)
    joint = -squares(b.X, model().centers) / (2 * model().variance)
    total = logsumexp(joint, axis=1)
    q = np.exp(joint - total[:, np.newaxis])
    place = (np.cumsum(q, axis=1) <= KEY.uniform(Purpose.POSTERIOR, 7, 60)[:, np.newaxis]).sum(axis=1)
    J = w @ squares(b.X, model().centers).min(axis=1)
    entropy = -(w @ (q * np.log(q)).sum(axis=1))
    # log Σ p less what log_scale leaves out: π_c = 1/C and the normaliser
    check(Drawn(KEY).of_all(b, model()), b, np.eye(C)[place], w @ total, entropy, J)


def test_a_share_of_nothing_has_no_entropy():
    far = Block(np.array([[0.0, 0, 0], [1e3, 0, 0]]))
    two = type(model())(np.array([[0.0, 0, 0], [1e3, 0, 0]]), 1.0, 1e-20)
    assert Drawn(KEY).of_all(far, two).entropy == 0.0


def test_draws_fall_where_the_sums_of_shares_pass_them():
    shares = np.array([[0.25, 0.25, 0.5]])
    for uniform, place in ((0.0, 0), (0.2499, 0), (0.25, 1), (0.4999, 1), (0.5, 2), (0.9999, 2)):
        assert _drawn(shares, np.array([uniform])).tolist() == [[place]]
    assert _drawn(np.array([[0.5, 0.5 - 1e-12]]), np.array([1 - 1e-16])).tolist() == [[1]]


@weighted
def test_winners_of_a_k_means(weighted):
    b = block(weighted)
    found, w = kept(b.X, model().centers, 1), plain(b)
    sums = Winners().of_kept(b, model(), found, None, NO_MOVES, 17.0)
    label = found.ids[:, 0]
    np.testing.assert_allclose(sums.statistics.counts, np.bincount(label, w, C))
    np.testing.assert_allclose(sums.statistics.sums, (w[:, np.newaxis] * np.eye(C)[label]).T @ b.X, atol=1e-12)
    np.testing.assert_array_equal(sums.members, np.bincount(label[w > 0], minlength=C))
    assert sums.members.dtype == np.int64
    assert (sums.statistics.squares, sums.statistics.quantization_error, sums.movers) == (17.0, 17.0, None)
    assert (sums.statistics.log_sum, sums.statistics.entropy) == (0.0, 0.0)
    assert sums.statistics.weight == pytest.approx(w.sum())


@weighted
def test_movers_are_the_difference_of_the_sums(weighted):
    """Of four points that go elsewhere; one component neither gains nor loses and is not named."""
    b = block(weighted)
    after, w = kept(b.X, model().centers, 1), plain(b)
    label, before = after.ids[:, 0], after.ids[:, 0].copy()
    rows = np.flatnonzero((label < C - 1) & (w > 0))[[0, 3, 8, 9]]
    before[rows] = (label[rows] + 1) % (C - 1)
    moved = before != label
    sums = Winners(True).of_kept(b, model(), after, Kept(before[:, np.newaxis]), moved, 17.0)
    assert sums.statistics.sums.shape == (C, 0)
    assert sums.statistics.counts.dtype == np.float64
    np.testing.assert_allclose(sums.statistics.counts, np.bincount(label, w, C))
    new, old = ((w[:, np.newaxis] * np.eye(C)[found]).T @ b.X for found in (label, before))
    touched = np.union1d(label[rows], before[rows])
    np.testing.assert_array_equal(sums.movers.ids, touched)
    assert sums.movers.ids.dtype == np.int32
    np.testing.assert_allclose(sums.movers.sums, (new - old)[touched], atol=1e-12)
    np.testing.assert_array_equal(sums.members, np.bincount(label[w > 0], minlength=C))
    still = Winners(True).of_kept(b, model(), after, Kept(after.ids), NO_MOVES, 17.0).movers
    assert still.ids.shape == (0,)
    assert still.sums.shape == (0, D)


@pytest.mark.parametrize("assignment", [Hard(), Winners()])
def test_what_keeps_the_best_has_no_sums_over_all(assignment):
    with pytest.raises(NotImplementedError, match="keeps what a search has found"):
        assignment.of_all(block(), model())


def test_assignments_by_name():
    assert assignment_of("soft", KEY) == Soft()
    assert assignment_of("hard", KEY) == Hard()
    assert assignment_of("posterior", KEY) == Drawn(KEY)


def test_soft_sums_over_all_are_those_of_the_model():
    found, expected = Soft().of_all(block(True), model()), model().expect_all(block(True))
    np.testing.assert_array_equal(found.sums, expected.sums)
    assert found.log_sum == expected.log_sum


def test_weights_of_the_tests_hold_zeros():
    assert (weights_of() == 0).any()
    assert len(points()) == 60
