"""Updates by batches: learning rates, running means, and sums that move towards those of the batch, written out."""

import numpy as np
import pytest
from em_data import KEY, C, D, block, model, plain, squares

from cprime.em import EM, MixtureSettings, k_means_step, mixture_step
from cprime.em.online import rate
from cprime.execution import local
from cprime.model import Tied, TiedSpherical


@pytest.mark.parametrize("decay", [0.6, 1.0])
def test_rates_fall_with_the_weight_seen(decay):
    np.testing.assert_allclose(
        rate(np.array([2.0, 0.0, 5.0]), np.array([100.0, 0.0, 5.0]), decay)[:2], [2 / 100**decay, 0]
    )
    assert rate(5.0, 5.0, decay) == min(1.0, 5 / 5**decay)
    assert rate(0.9, 0.5, decay) == 1.0


def data(weighted, factor=1.0):
    """Return the points as an execution and as an array, and their weights times a factor if they have any."""
    b = block(weighted)
    w = plain(b) * (factor if weighted else 1.0)
    return local(b.X.given(), w if weighted else None), b.X.given(), w


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decay", [0.7, 1.0])
def test_centers_move_by_rates_of_their_own(decay, weighted):
    batch, X, w = data(weighted, 0.1)
    far = TiedSpherical(np.vstack([model().centers, np.full((1, D), 1e3)]), 2.0, 1e-20)
    counts = np.array([0.0, 10.0, 50.0, 3.0, 7.0, 4.0])
    new, seen, totals = k_means_step(far, counts, batch, decay)
    label = squares(X, far.centers).argmin(axis=1)
    won = np.bincount(label, w, C + 1)
    np.testing.assert_allclose(seen, counts + won)
    expected = far.centers.copy()
    for c in range(C):
        mean = np.average(X[label == c], axis=0, weights=w[label == c])
        eta = min(1.0, won[c] / (counts[c] + won[c]) ** decay)
        expected[c] += eta * (mean - expected[c])
    np.testing.assert_allclose(new.centers, expected, rtol=1e-10)
    J = w @ squares(X, far.centers).min(axis=1)
    share = min(1.0, w.sum() / seen.sum() ** decay)
    assert new.variance == pytest.approx((1 - share) * 2.0 + share * J / w.sum() / D)
    assert totals.error == pytest.approx(J)


@pytest.mark.parametrize("decay", [0.7, 1.0])
@pytest.mark.parametrize("family", ["tied_spherical", "tied"])
def test_sums_of_a_mixture_move_towards_those_of_the_batch(family, decay):
    """The scatter, from which the M-step computes the covariance, moves too."""
    batch, X, w = data(True)
    start = (
        TiedSpherical(model().centers, 2.0, 1e-20)
        if family == "tied_spherical"
        else Tied(model().centers, np.diag([1.0, 2, 3]))
    )
    counts = np.array([10.0, 20.0, 5.0, 30.0, 35.0])
    stage = EM(MixtureSettings(1, 0.0, C))
    new, seen, totals = mixture_step(start, counts, batch, stage, decay, KEY)
    eta, found = min(1.0, w.sum() / (100 + w.sum()) ** decay), totals.moments
    old = counts / 100
    mixed = (1 - eta) * old + eta * found.counts / w.sum()
    means = ((1 - eta) * old[:, np.newaxis] * start.centers + eta * found.sums / w.sum()) / mixed[:, np.newaxis]
    np.testing.assert_allclose(new.centers, means, rtol=1e-10)
    np.testing.assert_allclose(seen, (100 + w.sum()) * mixed)
    within = 2.0 * np.eye(D) if family == "tied_spherical" else np.diag([1.0, 2, 3])
    before = within + np.einsum("c,ci,cj->ij", old, start.centers, start.centers)
    second = (1 - eta) * before + eta * np.einsum("n,ni,nj->ij", w, X, X) / w.sum()
    covariance = second - np.einsum("c,ci,cj->ij", mixed, means, means)
    expected = np.trace(covariance) / D if family == "tied_spherical" else covariance
    np.testing.assert_allclose(new.covariances, expected, rtol=1e-9, atol=1e-12)


def test_the_first_batch_is_a_step_of_em():
    batch, *_ = data(True)
    stage = EM(MixtureSettings(1, 0.0, C))
    new, seen, totals = mixture_step(model(), np.zeros(C), batch, stage, 0.7, KEY)
    step = stage.with_prior(model(), batch).judge(model(), totals, batch)
    np.testing.assert_allclose(new.centers, step.model.centers)
    assert new.variance == pytest.approx(step.model.variance)
    np.testing.assert_allclose(seen, totals.moments.counts)
