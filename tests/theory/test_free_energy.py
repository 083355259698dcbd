"""The free energy of given responsibilities: a bound, tight for the posteriors, and what truncated EM raises."""

import numpy as np
import pytest
from scipy.special import softmax

from cprime import GaussianMixture, KMeans, StudentTMixture
from cprime.theory import Gaussians, free_energy

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 2))[RNG.integers(9, size=300)] * 4 + RNG.normal(size=(300, 2))
W = RNG.exponential(size=300)
FITS = {
    "full": GaussianMixture(4, random_state=0),
    "spherical, truncated": GaussianMixture(6, covariance_type="spherical", n_active=2, search="full", random_state=0),
    "equal": GaussianMixture(5, covariance_type="tied_spherical", weights="equal", random_state=0),
    "t": StudentTMixture(3, random_state=0),
    "k-means": KMeans(5, random_state=0),
}


def responsibilities(fit):
    return np.eye(5)[fit.predict(X)] if isinstance(fit, KMeans) else fit.predict_proba(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weight", [None, W], ids=["equal", "weighted"])
@pytest.mark.parametrize("name", FITS)
def test_truncated_posteriors_have_the_bound_of_the_fit(name, weight):
    fit = FITS[name].fit(X, sample_weight=weight)
    bounds = fit.bounds(X, sample_weight=weight)
    found = free_energy(fit, X, responsibilities(fit), sample_weight=weight)
    assert found == pytest.approx(bounds.free_energy, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_no_responsibilities_exceed_the_log_likelihood(seed):
    P = Gaussians.spherical(X[:4], [1.0, 2.0, 0.5, 1.5], [0.1, 0.2, 0.3, 0.4])
    log_joint = P.log_densities(X) + np.log(P.weights)
    exact = float(np.logaddexp.reduce(log_joint, axis=1).mean())
    assert free_energy(P, X, softmax(log_joint, axis=1)) == pytest.approx(exact, abs=1e-12)
    other = np.random.default_rng(seed).dirichlet(np.ones(4), len(X))
    gap = float((other * (np.log(other) - np.log(softmax(log_joint, axis=1)))).sum(axis=1).mean())
    assert free_energy(P, X, other) == pytest.approx(exact - gap, abs=1e-9)


def test_blocks_of_rows_change_nothing(monkeypatch):
    P, q = Gaussians.spherical(X[:3], 1.0), np.full((300, 3), 1 / 3)
    expected = free_energy(P, X, q)
    monkeypatch.setattr("cprime.theory.partition._VALUES", 7)
    assert free_energy(P, X, q) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.full((300, 2), 0.5), r"q must have the shape \(300, 3\), one row for each point, got \(300, 2\)"),
        (np.full((300, 3), 0.5), "Rows of q must sum to 1, row 0 sums to 1.5"),
        (np.tile([1.5, -0.5, 0], (300, 1)), "q must be nonnegative and finite"),
        (np.tile([np.nan, 0.5, 0.5], (300, 1)), "q must be nonnegative and finite"),
    ],
)
def test_other_responsibilities_are_refused(q, message):
    with pytest.raises(ValueError, match=message):
        free_energy(Gaussians.spherical(X[:3], 1.0), X, q)
