"""Truncated against exact computation, and components drawn from the posterior."""

from types import SimpleNamespace

import numpy as np
import pytest
from mixture_data import FAMILIES, THREADS, WEIGHTS, clustered, joint_of, matrices, mixture, start_of
from scipy.special import logsumexp

from cprime import em, kernels, search
from cprime._utils.random import Key
from cprime.execution.block import Block
from cprime.kernels import as_rows, computing
from cprime.model.interface import Responsibilities
from fits import outcome, random_weights

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")
N, D, C = 240, 3, 5
SECOND = dict.fromkeys(("spherical", "diag", "full"), "second") | {"tied_spherical": "squares"}
every_family = pytest.mark.parametrize("family", FAMILIES)
every_weights = pytest.mark.parametrize("weights", WEIGHTS)


def model_of(X, family, weights):
    """Return the parameters of a mixture, as a model, after two iterations of a fit to X."""
    return mixture(C, family, weights, max_iter=2, **start_of(X, C, family, weights=weights)).fit(X)._parameters()


def expected(X, model, n_active, sample_weight=None, assignment="soft", iteration=0):
    """Return the sufficient statistics of one E-step in one thread."""
    key = Key(0, iteration=iteration)
    look = search.Full().look(None, model.components(), key)
    step = em.EM(em.MixtureSettings(1, 0.0, n_active, assignment)).propose(model, model.components(), look, key)
    with computing(1):
        totals = step(Block(as_rows(X), sample_weight), None)[1]
    return SimpleNamespace(**(vars(totals.tally) | vars(totals.moments)))


@every_family
@every_weights
@pytest.mark.parametrize("weighted", [False, True])
def test_keeping_all_by_the_truncated_path_is_exact_em(family, weights, weighted):
    X, w = clustered(N, D), random_weights(N) if weighted else None
    model = model_of(X, family, weights)
    exact, block = expected(X, model, C, w), Block(as_rows(X), w)
    kept, costs = model.components().best(block.embedded(model.embed), C)
    posterior = kernels.posterior(costs, model.scale)
    cost = block.weighted_sum(posterior.mean)
    found = model.summarise(block, Responsibilities(kept, posterior.responsibilities, cost))
    counts, sums = found.counts, found.sums
    np.testing.assert_allclose(counts, exact.counts, rtol=1e-10)
    np.testing.assert_allclose(sums, exact.sums, rtol=1e-9, atol=1e-9)
    if family != "tied":  # the M-step of tied uses the scatter of all points instead
        second = (getattr(one, SECOND[family]) for one in (found, exact))
        np.testing.assert_allclose(*second, rtol=1e-9, atol=1e-8)
    assert block.weighted_sum(posterior.log_sum) == pytest.approx(exact.log_sum, rel=1e-11)
    joint = joint_of(mixture_of(model, family, weights), X)
    r = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    w = np.ones(N) if w is None else w
    np.testing.assert_allclose(exact.counts, w @ r, rtol=1e-9)
    assert exact.entropy == pytest.approx(-(w[:, None] * r * np.log(np.maximum(r, 1e-300))).sum(), rel=1e-9)
    nearest = np.square(X - model.centers[joint.argmax(axis=1)]).sum(axis=1)
    J = w @ nearest if family == "tied_spherical" else np.nan
    assert exact.error == pytest.approx(J, rel=1e-10, nan_ok=True)


def mixture_of(model, family, weights):
    """Return an unfitted estimator whose fitted attributes are set to the parameters of a model."""
    gm = mixture(C, family, weights)
    gm.means_, gm.covariances_ = model.centers, model.covariances
    gm.weights_ = np.full(C, 1 / C) if model.weights is None else model.weights
    return gm


@every_family
@pytest.mark.parametrize("n_active", [C, 3])
def test_draws_from_the_posterior_are_right_on_average(family, n_active):
    X, w = clustered(N, D), random_weights(N)
    model = model_of(X, family, "free")
    soft, n_draws = expected(X, model, n_active, w), 400
    draws = [expected(X, model, n_active, w, "sampled", iteration) for iteration in range(n_draws)]
    for name in ("counts", "sums", *([SECOND[family]] if family != "tied" else [])):  # tied uses the scatter instead
        values = np.array([getattr(draw, name) for draw in draws])
        error = 5 * values.std(axis=0) / np.sqrt(n_draws) + 1e-9 * np.abs(getattr(soft, name)).max()
        assert (np.abs(values.mean(axis=0) - getattr(soft, name)) <= error).all(), name
    assert np.std([draw.counts for draw in draws], axis=0).max() > 0
    for draw in draws[:5]:
        assert draw.log_sum == pytest.approx(soft.log_sum, rel=1e-10)
        assert draw.entropy == pytest.approx(soft.entropy, rel=1e-8)
        assert draw.error == pytest.approx(soft.error, rel=1e-10, nan_ok=True)
        assert draw.counts.sum() == pytest.approx(w.sum())
        prior = None if model.prior is None else model.prior(Block(as_rows(X), w), None)[1]
        new = model.maximise(draw, prior)
        assert np.isfinite(new.centers).all()
        assert (np.linalg.eigvalsh(matrices(family, new.covariances, C, D)) > 0).all()


@every_family
@pytest.mark.parametrize("n_active", [None, 3])
def test_stochastic_em_runs_on_is_repeatable_and_near_em(family, n_active):
    X = clustered(N, D)
    given = {"n_active": n_active, "max_iter": 30, **start_of(X, C, family)}
    fits = [mixture(C, family, assignment="sampled", n_threads=t, **given).fit(X) for t in THREADS]
    assert fits[0].n_iter_ == 30
    assert not fits[0].converged_
    assert len({tuple(outcome(fit).items()) for fit in fits}) == 1
    other = mixture(C, family, assignment="sampled", **(given | {"random_state": 1})).fit(X)
    assert outcome(other)["means_"] != outcome(fits[0])["means_"]
    soft = mixture(C, family, **given).fit(X)
    assert fits[0].score(X) > soft.score(X) - 0.4
    assert soft.score(X) > mixture(C, family, **(given | {"max_iter": 1})).fit(X).score(X) + 0.01


def test_a_new_rule_is_used_in_passes_over_all_components(monkeypatch):
    monkeypatch.setitem(em.ASSIGNMENTS, "best", em.ASSIGNMENTS["hard"]._replace(is_single=False))
    X = np.random.default_rng(0).standard_normal((300, 3))
    found, hard, soft = (
        mixture(C, "diag", "free", assignment=name, max_iter=5, random_state=0, tol=0).fit(X)
        for name in ("best", "hard", "soft")
    )
    assert found.n_active_ == C
    np.testing.assert_allclose(found.means_, hard.means_, rtol=1e-9)
    assert np.abs(found.means_ - soft.means_).max() > 0.01
