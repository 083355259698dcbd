"""Draws from all components, and the sums of reassigned points, written out."""

import numpy as np
import pytest
from em_data import KEY, C, D, block, kept, model, plain, squares
from scipy.special import logsumexp

from cprime._utils.random import Purpose
from cprime.em import (
    DrawFromAll,
    HardEStep,
    SampledAssignment,
)
from cprime.em import expectation as module
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import as_rows
from cprime.search import Lookup, SearchStats

weighted = pytest.mark.parametrize("weighted", [False, True])


@pytest.mark.parametrize("step", [1, 2**20, 7 * C + 1])
@weighted
def test_components_are_drawn_by_their_posterior(weighted, step, monkeypatch):
    """Draws are the same for every number of rows whose posteriors are computed at once."""
    monkeypatch.setattr(module, "_BLOCK", step)
    b = block(weighted, first=7)
    w = plain(b)
    joint = -squares(b.X, model().centers) / (2 * model().variance)
    total = logsumexp(joint, axis=1)
    q = np.exp(joint - total[:, np.newaxis])
    place = (np.cumsum(q, axis=1) <= b.uniform(KEY, Purpose.POSTERIOR)[:, np.newaxis]).sum(axis=1)
    J = w @ squares(b.X, model().centers).min(axis=1)
    entropy = -(w @ (q * np.log(q)).sum(axis=1))
    # log Σ p without the constants in log_scale: π_c = 1/C and the normalization
    nothing, totals = DrawFromAll(model(), SampledAssignment(KEY))(b, None)
    assert nothing is None
    moments, drawn, X = totals.moments, np.eye(C)[place], b.X.given()
    np.testing.assert_allclose(moments.counts, w @ drawn, rtol=1e-12)
    np.testing.assert_allclose(moments.sums, (w[:, np.newaxis] * drawn).T @ X, rtol=1e-10, atol=1e-12)
    assert moments.squares == pytest.approx((w[:, np.newaxis] * drawn * squares(X, model().centers)).sum(), rel=1e-10)
    assert (moments.weight, totals.tally.log_sum) == (pytest.approx(w.sum()), pytest.approx(w @ total, rel=1e-10))
    assert totals.tally.entropy == pytest.approx(entropy, rel=1e-9)
    assert totals.tally.error == pytest.approx(J)


def test_a_share_of_nothing_has_no_entropy():
    far = Block(as_rows(np.array([[0.0, 0, 0], [1e3, 0, 0]])))
    two = type(model())(np.array([[0.0, 0, 0], [1e3, 0, 0]]), 1.0, 1e-20)
    assert DrawFromAll(two, SampledAssignment(KEY))(far, None)[1].tally.entropy == 0.0


def test_draws_fall_where_the_sums_of_shares_pass_them():
    class ConstantDraws:
        def __init__(self, uniform):
            self.numbers = np.array([uniform])

        def uniform(self, key, purpose):
            return self.numbers

    shares = np.array([[0.25, 0.25, 0.5]])
    for uniform, place in ((0.0, 0), (0.2499, 0), (0.25, 1), (0.4999, 1), (0.5, 2), (0.9999, 2)):
        assert SampledAssignment(KEY).places(ConstantDraws(uniform), shares).tolist() == [[place]]
    assert SampledAssignment(KEY).places(ConstantDraws(1 - 1e-16), np.array([[0.5, 0.5 - 1e-12]])).tolist() == [[1]]


def assign(b, after, before=None, follow=False):
    """Return the totals of a k-means E-step whose search returns the given active sets."""

    def look(block, points, kept, components, n_kept):
        return Lookup(after, 0, SearchStats(block.n_weighted))

    return HardEStep(model(), look, follow=follow)(b, before)[1]


@weighted
def test_k_means_assigns_the_nearest_center(weighted):
    b = block(weighted)
    found, w = kept(b.X, model().centers, 1), plain(b)
    totals = assign(b, found)
    label = found.ids[:, 0]
    np.testing.assert_allclose(totals.moments.counts, np.bincount(label, w, C))
    np.testing.assert_allclose(totals.moments.sums, (w[:, np.newaxis] * np.eye(C)[label]).T @ b.X.given(), atol=1e-12)
    np.testing.assert_array_equal(totals.moments.members, np.bincount(label[w > 0], minlength=C))
    assert totals.moments.members.dtype == np.int64
    assert totals.tally.error == pytest.approx(w @ found.costs[:, 0])
    assert (totals.tally.log_sum, totals.tally.entropy) == (0.0, 0.0)
    assert totals.tally.weight == pytest.approx(w.sum())


@weighted
def test_movers_are_the_difference_of_the_sums(weighted):
    """Four points are reassigned; a component that neither gains nor loses a point is not listed."""
    b = block(weighted)
    after, w = kept(b.X, model().centers, 1), plain(b)
    label, before = after.ids[:, 0], after.ids[:, 0].copy()
    rows = np.flatnonzero((label < C - 1) & (w > 0))[[0, 3, 8, 9]]
    before[rows] = (label[rows] + 1) % (C - 1)
    moments = assign(b, after, ActiveSet(before[:, np.newaxis]), follow=True).moments
    assert moments.counts.dtype == np.float64
    np.testing.assert_allclose(moments.counts, np.bincount(label, w, C))
    new, old = ((w[:, np.newaxis] * np.eye(C)[found]).T @ b.X.given() for found in (label, before))
    touched = np.union1d(label[rows], before[rows])
    np.testing.assert_array_equal(moments.sums.ids, touched)
    assert moments.sums.ids.dtype == np.int32
    np.testing.assert_allclose(moments.sums.sums, (new - old)[touched], atol=1e-12)
    np.testing.assert_array_equal(moments.members, np.bincount(label[w > 0], minlength=C))
    still = assign(b, after, ActiveSet(after.ids), follow=True).moments.sums
    assert still.ids.shape == (0,)
    assert still.sums.shape == (0, D)
