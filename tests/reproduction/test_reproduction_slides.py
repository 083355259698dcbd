"""Formulas of the lecture slides' k-means and EM agree with other code, and their entry detects wrong formulas."""

from itertools import product

import numpy as np
import pytest
from reproduction.bishop import START, HalfSteps, half_steps, standardised
from reproduction.report import Report, as_json, from_json
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture as Peer

from reproduction import Context, entry, slides, slides_em

CONTEXT = Context(runs=3)


@pytest.fixture
def mixture(rng):
    """Return points (60, 3) and parameters of two components."""
    factors = rng.standard_normal((2, 3, 3)) + 2 * np.eye(3)
    parameters = slides.Parameters(
        np.array([0.3, 0.7]), rng.standard_normal((2, 3)), factors @ factors.transpose(0, 2, 1)
    )
    return rng.standard_normal((60, 3)) * 2, parameters


def unmet(result):
    return [row.quantity for row in result.rows if row.met is False]


def test_responsibilities_and_likelihood_are_those_of_the_densities(mixture):
    X, at = mixture
    joint = np.column_stack([w * multivariate_normal(m, S).pdf(X) for w, m, S in zip(*at, strict=True)])
    np.testing.assert_allclose(slides.e_step(X, at), joint / joint.sum(axis=1, keepdims=True), rtol=1e-10)
    assert slides.log_likelihood(X, at) == pytest.approx(np.log(joint.sum(axis=1)).sum())


def test_m_step_takes_weighted_moments(mixture):
    X, at = mixture
    gamma = slides.e_step(X, at)
    found = slides.m_step(X, gamma)
    np.testing.assert_allclose(found.weights, gamma.mean(axis=0))
    for k in range(2):
        np.testing.assert_allclose(found.means[k], np.average(X, axis=0, weights=gamma[:, k]))
        np.testing.assert_allclose(found.covariances[k], np.cov(X.T, aweights=gamma[:, k], ddof=0))


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_cycles_are_those_of_scikit_learn():
    X = standardised()
    start = slides.Parameters(np.full(2, 0.5), START, np.tile(np.eye(2), (2, 1, 1)))
    run = slides.expectation_maximisation(X, start, 7)
    peer = Peer(
        2,
        weights_init=start.weights,
        means_init=START,
        precisions_init=start.covariances,
        reg_covar=0,
        tol=0,
        max_iter=7,
    ).fit(X)
    for name, found in run.parameters[-1]._asdict().items():
        np.testing.assert_allclose(found, getattr(peer, f"{name}_"), rtol=1e-9, atol=1e-12)
    assert run.responsibilities.shape == (7, len(X), 2)


def test_the_lower_bound_touches_the_likelihood_at_the_posterior_alone(mixture, rng):
    X, at = mixture
    gamma, likelihood = slides.e_step(X, at), slides.log_likelihood(X, at)
    assert slides.lower_bound(X, gamma, at) == pytest.approx(likelihood)
    assert slides.lower_bound(X, rng.dirichlet([1, 1], len(X)), at) < likelihood - 1
    hard = slides.one_hot(gamma.argmax(axis=1), 2)
    assert slides.lower_bound(X, hard, at) == pytest.approx((hard * slides.log_joint(X, at)).sum())


def test_cost_gradient_and_centers_of_k_means(mixture, rng):
    X, at = mixture
    labels = rng.integers(2, size=len(X))
    z = slides.one_hot(labels, 2)
    assert slides.cost(X, at.means, z) == pytest.approx(np.square(X - at.means[labels]).sum())
    np.testing.assert_allclose(slides.center_update(X, z), [X[labels == k].mean(axis=0) for k in range(2)])
    numeric = np.zeros((2, 3))
    for place in np.ndindex(2, 3):
        step = np.zeros((2, 3))
        step[place] = 1e-4
        numeric[place] = (slides.cost(X, at.means + step, z) - slides.cost(X, at.means - step, z)) / 2e-4
    np.testing.assert_allclose(slides.gradient(X, at.means, z), numeric, rtol=1e-6)


@pytest.mark.parametrize("K", [1, 2, 3, 7, 9])
def test_dynamic_program_finds_the_best_of_all_assignments(K, rng):
    x = np.append(rng.integers(0, 20, 6) + 1000.0, 1003.5)
    best = np.inf
    for labels in map(np.array, product(range(min(K, 3)), repeat=len(x))):
        best = min(best, sum(np.square(x[labels == k] - x[labels == k].mean()).sum() for k in np.unique(labels)))
    assert slides.line_optimum(x, K) == pytest.approx(best if K <= 3 else 0.0, abs=1e-9)


def test_library_and_formulas_begin_at_the_same_start():
    run = slides_em.both(standardised(), START, CONTEXT)
    assert len(run.models) == len(run.formulas.parameters) == slides_em.N_CYCLES + 1
    assert len(run.bounds) == slides_em.N_CYCLES
    np.testing.assert_array_equal(run.models[0].centers, START)
    np.testing.assert_array_equal(run.models[0].covariances, [np.eye(2)] * 2)
    assert np.ptp([model.centers for model in run.models], axis=0).min() > 0.5


def test_everything_that_is_stated_holds_and_is_drawn_from_its_json():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    item = entry("slides-em")
    result = item.compute(CONTEXT)
    assert unmet(result) == []
    assert all(row.met for row in result.rows if row.published is not None and "worst" not in row.quantity)
    item.draw(from_json(as_json(Report(result, {}))).result, figure)
    assert len(figure.axes) == 12


def test_one_run_has_no_other_start_to_compare_with():
    rows = {row.quantity: row for row in slides_em.compute(Context(runs=1)).rows}
    assert rows["k-means: J of the worst start, in J of the best"].met is None


def test_a_posterior_without_weights_is_seen(monkeypatch):
    right = slides.e_step
    monkeypatch.setattr(
        slides, "e_step", lambda X, at: right(X, at._replace(weights=np.full(len(at.weights), 1 / len(at.weights))))
    )
    found = unmet(slides_em.compute(CONTEXT))
    assert "EM, E-step: γ, largest difference of GaussianMixture from the formula" in found
    assert "EM: log-likelihood less its lower bound at q = γ, largest" in found
    assert "EM: F of GaussianMixture, largest difference from the formula's L" in found


def test_an_m_step_that_misses_the_maximum_is_seen(monkeypatch):
    right = slides.m_step

    def wide(X, gamma):
        found = right(X, gamma)
        return found._replace(covariances=found.covariances * 1.1)

    monkeypatch.setattr(slides, "m_step", wide)
    found = unmet(slides_em.compute(CONTEXT))
    assert "EM, M-step: Σ, largest difference" in found
    assert "M-step: changes of π, μ and Σ that raise the lower bound" in found
    assert "EM: largest fall of the lower bound in an M-step" in found


def test_k_means_that_misses_its_centers_or_its_end_is_seen(monkeypatch):
    def shifted(X, start, context):
        run = half_steps(X, start, context)
        centers = run.centers + 0.1 * np.arange(len(run.centers))[:, np.newaxis, np.newaxis]
        return HalfSteps(centers, run.labels, run.errors[::-1, ::-1])

    monkeypatch.setattr(slides_em, "half_steps", shifted)
    found = unmet(slides_em.compute(CONTEXT))
    for part in (
        "rise of J in an E-step",
        "rise of J in an M-step",
        "nearer",
        "lower J",
        "Σ z x",
        "Newton",
        "unchanged",
    ):
        assert any(part in quantity for quantity in found), part


def test_an_optimum_on_the_line_that_is_none_is_seen(monkeypatch):
    monkeypatch.setattr(slides, "line_optimum", lambda x, K: 0.9)
    monkeypatch.setattr(slides_em.KMeans1D, "_error", lambda *_: 1e3)
    assert {quantity for quantity in unmet(slides_em.compute(CONTEXT)) if quantity.startswith("one dimension")} == {
        "one dimension: KMeans1D against dynamic programming, difference of J, of J",
        "one dimension: starts of k-means that end below it",
    }
