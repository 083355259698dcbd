"""Fuzzy k-means: its objectives, its limits, and the mixture that is equivalent to its entropy form."""

import itertools

import numpy as np
import pytest
from family_data import (
    DTYPES,
    EQUAL,
    TOLERANCE,
    bezdek,
    entropy_objective,
    miyamoto,
    power_objective,
    quadratic_objective,
    umayahara,
    weighted_means,
)

from cprime import FuzzyKMeans, GaussianMixture, KMeans, SoftKMeans
from cprime.em import fuzzy
from cprime.seeding import random_rows
from fits import clustered, squared_distances

RULES = {
    "m=1.3": {"m": 1.3},
    "m=2": {"m": 2.0},
    "m=4": {"m": 4.0},
    "entropy": {"regularizer": "entropy", "regularization": 1.5},
    "quadratic": {"regularizer": "quadratic", "regularization": 4.0},
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def memberships(squared, rule, n_active):
    if "m" in rule:
        return bezdek(squared, rule["m"], n_active)
    make = {"entropy": miyamoto, "quadratic": umayahara}[rule["regularizer"]]
    return make(squared, rule["regularization"], n_active)


def rule_of(rule):
    if "m" in rule:
        return fuzzy.Power(rule["m"])
    return fuzzy.REGULARIZED[rule["regularizer"]](rule["regularization"])


def objective(squared, u, rule, weight=1.0):
    if "m" in rule:
        return power_objective(squared, u, rule["m"], weight)
    make = {"entropy": entropy_objective, "quadratic": quadratic_objective}[rule["regularizer"]]
    return make(squared, u, rule["regularization"], weight)


@every_rule
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_active", [1, 2, 5])
def test_memberships_and_objective_are_the_textbooks(rule, dtype, n_active):
    X = clustered(120, 3, dtype)
    fit = FuzzyKMeans(5, init=X[:5], n_active=n_active, max_iter=4, tol=0, **rule).fit(X)
    squared = squared_distances(X[10:], fit.cluster_centers_)
    expected = memberships(squared, rule, n_active)
    found = fit.predict_proba(X[10:])
    np.testing.assert_allclose(found, expected, atol=TOLERANCE[dtype])
    assert (found > 0).sum(axis=1).max() <= n_active
    assert np.array_equal(fit.predict_proba(X[10:], sparse=True).toarray(), found)
    if rule.get("regularizer") != "quadratic":  # whose memberships may be 0
        assert (found > 0).sum(axis=1).max() == n_active
        assert fit.predict_proba(X, sparse=True).nnz == 120 * n_active
    assert -fit.score(X[10:]) == pytest.approx(objective(squared, expected, rule), rel=TOLERANCE[dtype])
    assert -fit.score(X) == pytest.approx(fit.objective_, rel=1e-12)
    assert np.array_equal(fit.labels_, fit.predict(X))
    assert fit.inertia_ == pytest.approx(squared_distances(X, fit.cluster_centers_).min(axis=1).sum(), rel=1e-5)


@every_rule
@pytest.mark.parametrize("n_active", [2, 4])
def test_a_fit_ends_where_centers_are_the_means_of_their_memberships(rule, n_active):
    X = clustered(150, 2)
    weight = np.random.default_rng(1).random(150)
    fit = FuzzyKMeans(4, init=X[:4], n_active=n_active, tol=1e-15, max_iter=3000, **rule).fit(X, sample_weight=weight)
    assert fit.converged_
    u = fit.predict_proba(X)
    means = weighted_means(X, weight[:, np.newaxis] * u ** rule.get("m", 1.0))
    np.testing.assert_allclose(fit.cluster_centers_, means, atol=1e-5)
    assert fit.objective_ == pytest.approx(
        objective(squared_distances(X, fit.cluster_centers_), u, rule, weight), rel=1e-9
    )


@every_rule
def test_no_other_memberships_and_no_other_kept_set_do_better(rule, rng):
    squared = rng.exponential(size=(40, 6))
    u = memberships(squared, rule, 3)
    least = np.array([objective(squared[[n]], u[[n]], rule) for n in range(40)])
    made = rule_of(rule)(np.sort(squared)[:, :3])
    np.testing.assert_allclose(made.costs, least, rtol=1e-12)
    for kept in itertools.combinations(range(6), 3):
        other = np.zeros_like(u)
        other[:, kept] = rng.dirichlet(np.ones(3), size=40)
        values = [objective(squared[[n]], other[[n]], rule) for n in range(40)]
        assert (np.array(values) >= least - 1e-12).all()


def test_m_towards_one_is_k_means():
    X = clustered(400, 3)
    plain = KMeans(6, init=X[:6], tol=0, search="full").fit(X)
    apart = []
    for m in (1.5, 1.1, 1.01):
        fit = FuzzyKMeans(6, m=m, init=plain.cluster_centers_, tol=0).fit(X)
        apart.append(np.abs(fit.cluster_centers_ - plain.cluster_centers_).max())
    assert apart[0] > apart[1] > apart[2]
    hard = FuzzyKMeans(6, m=1 + 1e-6, init=X[:6], tol=0).fit(X)
    assert np.array_equal(hard.labels_, plain.labels_)
    np.testing.assert_allclose(hard.cluster_centers_, plain.cluster_centers_, atol=1e-3)
    assert hard.objective_ == pytest.approx(plain.inertia_, rel=1e-4)


@every_rule
def test_one_kept_cluster_is_k_means(rule):
    X = clustered(400, 3)
    plain = KMeans(6, init=X[:6], tol=0, search="full").fit(X)
    fit = FuzzyKMeans(6, n_active=1, init=X[:6], tol=0, **rule).fit(X)
    assert np.array_equal(fit.labels_, plain.labels_)
    np.testing.assert_allclose(fit.cluster_centers_, plain.cluster_centers_, rtol=1e-12)
    assert fit.objective_ == pytest.approx(plain.inertia_, rel=1e-12)


def test_larger_exponents_make_memberships_more_alike():
    X = clustered(400, 3)
    unequal = []
    for m in (1.5, 2, 4, 16, 64):
        fit = FuzzyKMeans(6, m=m, init=X[:6] + 0.1, tol=1e-12).fit(X)
        unequal.append(np.abs(fit.predict_proba(X + 0.1) - 1 / 6).mean())
    assert unequal == sorted(unequal, reverse=True)
    assert unequal[0] > 0.2
    assert unequal[-1] < 0.02


def test_seeds_that_are_points_do_not_hold_the_centers():
    X = clustered(400, 3, n_clusters=20)
    weight = np.random.default_rng(0).random(400)
    seeded = FuzzyKMeans(20, m=6, init="random", random_state=0).fit(X, sample_weight=weight)
    start = random_rows(X, 20, sample_weight=weight, random_state=0)[0]
    rows = KMeans(20, init=start, max_iter=1, tol=0, search="full").fit(X, sample_weight=weight)
    held = FuzzyKMeans(20, m=6, init=X[:20]).fit(X, sample_weight=weight)
    means = FuzzyKMeans(20, m=6, init=rows.cluster_centers_).fit(X, sample_weight=weight)
    assert np.array_equal(seeded.cluster_centers_, means.cluster_centers_)
    assert held.n_iter_ < 5 < seeded.n_iter_
    assert seeded.objective_ < 0.9 * held.objective_


def test_points_on_centers_belong_to_these_alone():
    X = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0], [1.0, 1.0]])
    fit = FuzzyKMeans(3, init=[[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]], max_iter=1).fit(X)
    fit.cluster_centers_ = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    u = fit.predict_proba(X)
    assert u[:2].tolist() == [[0.5, 0, 0.5], [0, 1, 0]]
    np.testing.assert_allclose(u[2], np.array([1 / 100, 1 / 25, 1 / 100]) * 100 / 6)
    assert np.isfinite(u).all()
    assert -fit.score(X[:2]) == 0
    repeated = np.repeat(X[:2], 5, axis=0)
    exact = FuzzyKMeans(2, init=X[:2]).fit(repeated)
    assert exact.objective_ == 0
    assert exact.converged_
    assert np.array_equal(exact.cluster_centers_, X[:2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_active", [2, 5])
@pytest.mark.parametrize("variance", [0.3, 1.0, 4.0])
def test_entropy_is_soft_k_means_step_by_step(dtype, n_active, variance):
    X = clustered(200, 3, dtype)
    weight = np.random.default_rng(2).random(200)
    for n_iter in (1, 2, 5, 30):
        common = {"init": X[:5], "n_active": n_active, "tol": 0, "max_iter": n_iter}
        soft = SoftKMeans(5, stiffness=1 / (2 * variance), **common).fit(X, sample_weight=weight)
        fit = FuzzyKMeans(5, regularizer="entropy", regularization=2 * variance, **common).fit(X, sample_weight=weight)
        np.testing.assert_allclose(fit.cluster_centers_, soft.cluster_centers_, atol=TOLERANCE[dtype])
        np.testing.assert_allclose(fit.predict_proba(X), soft.predict_proba(X), atol=10 * TOLERANCE[dtype])
        bound = -np.log(5) - 1.5 * np.log(2 * np.pi * variance)
        bound -= np.array([*fit.objectives_, fit.objective_]) / (2 * variance * weight.sum())
        np.testing.assert_allclose(bound, [*soft.lower_bounds_, soft.lower_bound_], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("n_active", [2, 5])
def test_entropy_at_its_variance_is_the_isotropic_mixture(n_active):
    X = clustered(300, 2, n_clusters=5)
    mixture = GaussianMixture(5, n_active=n_active, means_init=X[:5], tol=1e-13, max_iter=5000, **EQUAL).fit(X)
    constant = 2 * mixture.variance_
    fit = FuzzyKMeans(
        5, regularizer="entropy", regularization=constant, n_active=n_active, init=mixture.means_, tol=1e-14
    ).fit(X)
    np.testing.assert_allclose(fit.cluster_centers_, mixture.means_, atol=1e-4)
    np.testing.assert_allclose(fit.predict_proba(X), mixture.predict_proba(X), atol=1e-4)
    elsewhere = FuzzyKMeans(
        5, regularizer="entropy", regularization=2 * constant, n_active=n_active, init=mixture.means_, tol=1e-14
    ).fit(X)
    assert np.abs(elsewhere.cluster_centers_ - mixture.means_).max() > 0.05


def test_regularization_by_default_is_that_of_the_start():
    X = clustered(200, 3)
    weight = np.random.default_rng(2).random(200)
    fit = FuzzyKMeans(5, regularizer="entropy", init=X[:5], max_iter=3).fit(X, sample_weight=weight)
    squares = (weight * squared_distances(X, X[:5]).min(axis=1)).sum()
    assert fit.regularization_ == pytest.approx(2 * squares / (3 * weight.sum()), rel=1e-12)
    soft = SoftKMeans(5, init=X[:5], max_iter=3, tol=0).fit(X, sample_weight=weight)
    assert soft.stiffness_ == pytest.approx(1 / fit.regularization_, rel=1e-12)
    np.testing.assert_allclose(fit.cluster_centers_, soft.cluster_centers_, rtol=1e-9)
    assert (fit.m_, FuzzyKMeans(2).fit(X).m_, FuzzyKMeans(2).fit(X).regularization_) == (1.0, 2.0, None)


@every_rule
@pytest.mark.parametrize("n_active", [2, 5])
def test_blocks_of_rows_change_nothing(rule, n_active, monkeypatch):
    X = clustered(200, 3)
    whole = FuzzyKMeans(5, init=X[:5], n_active=n_active, max_iter=5, tol=0, **rule).fit(X)
    monkeypatch.setattr(fuzzy, "_BLOCK", 37 * 5)
    parts = FuzzyKMeans(5, init=X[:5], n_active=n_active, max_iter=5, tol=0, **rule).fit(X)
    np.testing.assert_allclose(parts.cluster_centers_, whole.cluster_centers_, rtol=1e-12)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=1e-10)


def test_it_stops_by_tol_and_says_so():
    X = clustered(500, 2, n_clusters=12)
    fit = FuzzyKMeans(12, init=X[:12], tol=1e-3).fit(X)
    values = np.array(fit.objectives_)
    change = -np.diff(values) / values[1:]
    assert fit.converged_
    assert fit.n_iter_ == len(values)
    assert (change[:-1] > 1e-3).all()
    assert change[-1] <= 1e-3
    assert not FuzzyKMeans(12, init=X[:12], tol=0, max_iter=3).fit(X).converged_
    assert (fit.history_["n_distances"] == 500 * 12).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"m": 1.0}, ValueError, "m must be > 1"),
        ({"m": 0.5}, ValueError, "m == 0.5"),
        ({"m": 1e4}, ValueError, "m must be > 1 and, so that"),
        ({"m": "2"}, TypeError, "m must be an instance of"),
        ({"regularizer": "cubic"}, ValueError, "regularizer must be one of"),
        ({"regularizer": "entropy", "regularization": 0.0}, ValueError, "regularization must be > 0, got 0.0"),
        ({"regularization": "large"}, ValueError, "regularization must be 'auto' or a number > 0, got 'large'"),
        ({"n_active": 4}, ValueError, "n_active must be at most n_clusters=3, got 4"),
        ({"n_active": 0}, ValueError, "n_active == 0"),
        ({"n_init": 0}, ValueError, "n_init == 0"),
        ({"tol": np.inf}, ValueError, "tol must be finite"),
        ({"n_clusters": 41}, ValueError, "n_samples=40 should be >= n_clusters=41"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        FuzzyKMeans(**({"n_clusters": 3} | arguments)).fit(clustered(40, 2))
