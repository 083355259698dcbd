"""Poisson mixtures of rows with exposures and with missing values: EM in plain NumPy, batches, wrong arguments."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp
from scipy.stats import poisson

from cprime import Exposed, PoissonMixture

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")


RATES = np.array([[1.0, 3, 9], [4, 1, 2], [8, 8, 1], [2, 9, 5]])


def counts(n=400, C=4, missing=False):
    rng = np.random.default_rng(0)
    exposure = rng.uniform(0.5, 20, size=n)
    X = rng.poisson(exposure[:, np.newaxis] * RATES[rng.integers(C, size=n)]).astype(float)
    if missing:
        X[::7, 1] = X[3::11, 2] = np.nan
    return X, exposure


def log_joint(X, exposure, weights, rates):
    """Return log π_c p(x | c) of the observed counts of each row, (n, C)."""
    there = ~np.isnan(X)[:, np.newaxis]
    logs = poisson.logpmf(np.nan_to_num(X)[:, np.newaxis], exposure[:, np.newaxis, np.newaxis] * rates)
    return np.log(weights) + np.where(there, logs, 0).sum(axis=2)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("exposed", [False, True], ids=["plain", "exposed"])
@pytest.mark.parametrize("n_active", [None, 2])
def test_every_iteration_is_truncated_em(n_active, exposed, missing):
    C = 4
    X, exposure = counts(missing=missing)
    exposure = exposure if exposed else np.ones(len(X))
    rows = Exposed(X, exposure) if exposed else X
    rng, steps = np.random.default_rng(2), []
    w, weights = rng.integers(0, 3, len(X)), rng.dirichlet(np.full(C, 9.0))
    rates = RATES * rng.uniform(0.8, 1.25, size=RATES.shape)
    pm = PoissonMixture(C, n_active=n_active, rates_init=rates, weights_init=weights, max_iter=6, tol=0, search="full")
    pm.set_params(missing="marginal" if missing else "error")
    pm.momentum = False  # plain EM
    pm.set_params(callbacks=lambda row, now: steps.append((now.rates_, now.weights_, row["lower_bound"])))
    pm.fit(rows, sample_weight=w)
    there = ~np.isnan(X)
    for found_rates, found_weights, bound in steps:
        logs = log_joint(X, exposure, weights, rates)
        rank = (-logs).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        logs = np.where(rank < (n_active or C), logs, -np.inf)
        total = logsumexp(logs, axis=1, keepdims=True)
        assert bound == pytest.approx((w @ total)[0] / w.sum(), rel=1e-10)
        q = w[:, np.newaxis] * np.exp(logs - total)
        rates = (q.T @ np.nan_to_num(X)) / (q.T @ (there * exposure[:, np.newaxis]))
        weights = q.sum(axis=0) / q.sum()
        np.testing.assert_allclose(found_rates, rates, rtol=1e-9)
        np.testing.assert_allclose(found_weights, weights, rtol=1e-9)
    assert len(steps) == 6
    logs = log_joint(X, exposure, weights, rates)
    np.testing.assert_allclose(pm.score_samples(rows), logsumexp(logs, axis=1), rtol=1e-9)
    np.testing.assert_array_equal(pm.predict(rows), logs.argmax(axis=1))
    np.testing.assert_allclose(pm.predict_proba(rows).sum(axis=1), 1)
    assert pm.bic(rows) == pytest.approx(-2 * logsumexp(logs, axis=1).sum() + (C * 4 - 1) * np.log(len(X)))


def test_an_exposure_of_one_changes_nothing():
    X, _ = counts()
    plain, exposed = (
        PoissonMixture(4, rates_init=X[:4] + 1, max_iter=20).fit(Z) for Z in (X, Exposed(X, np.ones(400)))
    )
    np.testing.assert_allclose(exposed.rates_, plain.rates_, rtol=1e-8)
    assert exposed.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-10)


def test_batches_reach_the_rates_of_a_fit():
    X, exposure = counts(4000, 2)
    whole, batches = (PoissonMixture(2, random_state=0, n_active=None) for _ in range(2))
    whole.fit(Exposed(X, exposure))
    for _ in range(3):
        for rows in np.split(np.arange(4000), 8):
            batches.partial_fit(Exposed(X[rows], exposure[rows]))
    order = [each.rates_[:, 0].argsort() for each in (whole, batches)]
    np.testing.assert_allclose(batches.rates_[order[1]], whole.rates_[order[0]], rtol=0.02)


@pytest.mark.parametrize(
    ("exposure", "message"),
    [
        (np.ones(3), r"exposure must have shape \(400,\), one number for each row, got \(3,\)"),
        (np.r_[np.ones(399), 0], r"exposure must have finite numbers above 0, got 0.0 in row 399"),
        (np.r_[np.ones(399), np.nan], r"exposure must .*finite|exposure.*NaN"),
    ],
)
def test_wrong_exposures_are_refused(exposure, message):
    with pytest.raises(ValueError, match=message):
        PoissonMixture(2).fit(Exposed(counts()[0], exposure))


def test_exposures_of_sparse_rows_and_wrong_counts_are_refused():
    X, exposure = counts()
    with pytest.raises(TypeError, match="X must be dense to have an exposure"):
        PoissonMixture(2).fit(Exposed(csr_array(X), exposure))
    with pytest.raises(ValueError, match="X must have integers 0, 1, 2, … in column 0"):
        PoissonMixture(2).fit(Exposed(np.where(X[0, 0] == X, 1.5, X), exposure))
    with pytest.raises(ValueError, match="X must have a value in every column, got none in column 1"):
        PoissonMixture(2, missing="marginal").fit(Exposed(np.where([0, 1, 0], np.nan, X), exposure))
