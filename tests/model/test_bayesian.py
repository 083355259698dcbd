"""Variational Bayes: numbers are scikit-learn's from the same responsibilities, and the bound never falls."""

import re

import numpy as np
import pytest
import sklearn.mixture
from scipy.special import betaln, gammaln

from cprime import BayesianGaussianMixture, load
from cprime.em.expectation import GivenMoments
from cprime.execution import local
from cprime.kernels import as_rows
from cprime.model import BAYESIAN, BayesianPrior

TYPES = ("full", "tied", "diag", "spherical")
WEIGHTS = ("dirichlet_process", "dirichlet_distribution")
every_type = pytest.mark.parametrize("covariance_type", TYPES)
every_prior_of_weights = pytest.mark.parametrize("weights", WEIGHTS)


def groups(n=240, D=3):
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n, D)) + np.array([0, 6, 14])[rng.integers(3, size=n), np.newaxis]) @ rng.normal(
        size=(D, D)
    )


def theirs(X, q, covariance_type, weights, reg_covar):
    """Return scikit-learn's mixture after one M-step, and its lower bound for these responsibilities."""
    found = sklearn.mixture.BayesianGaussianMixture(
        n_components=q.shape[1],
        covariance_type=covariance_type,
        weight_concentration_prior_type=weights,
        mean_precision_prior=0.3,
        degrees_of_freedom_prior=X.shape[1] + 1.5,
        reg_covar=reg_covar,
    )
    found._check_parameters(X)
    with np.errstate(divide="ignore"):
        logs = np.log(q)
    found._initialize(X, q)
    found._set_parameters(found._get_parameters())
    return found, found._compute_lower_bound(np.where(q > 0, logs, 0.0), None)


def left_out(model, N):
    """Return the constants of the evidence lower bound that scikit-learn leaves out."""
    prior, C, D = model.hyper, model.n_components, model.n_features
    nu, gammas = prior.strength, gammaln(0.5 * (prior.strength - np.arange(D))).sum()
    scatter = prior.scatter if prior.scatter.ndim == 2 else np.diag(np.broadcast_to(prior.scatter, D))
    wishart = 0.5 * nu * (D * np.log(2) - np.linalg.slogdet(scatter)[1]) + gammas
    alpha = prior.concentration
    weights = C * betaln(1, alpha) if prior.is_process else C * gammaln(alpha) - gammaln(C * alpha)
    return -N * D / 2 * np.log(2 * np.pi) - C * wishart + C * D / 2 * np.log(prior.mean_precision) - weights


@every_type
@every_prior_of_weights
@pytest.mark.parametrize("reg_covar", [0.0, 1e-3])
@pytest.mark.parametrize(("n", "D", "C"), [(2, 1, 1), (240, 3, 6)])
def test_an_m_step_and_its_bound_are_scikit_learns(covariance_type, weights, n, D, C, reg_covar):
    X, rng = groups(n, D), np.random.default_rng(1)
    q = rng.dirichlet(np.full(C, 0.2), n)
    q[:, C - 1] *= C == 1  # the last of several components has no points
    q /= q.sum(axis=1, keepdims=True)
    there, bound = theirs(X, q, covariance_type, weights, reg_covar)
    prior = BayesianPrior(
        there.mean_prior_,
        0.3,
        np.asarray(there.covariance_prior_),
        D + 1.5,
        reg_covar,
        concentration=1 / C,
        is_process=weights == "dirichlet_process",
    )
    data = local(X)
    start = BAYESIAN[covariance_type].starting(X[np.arange(C)], np.full(C, 1 / C), 0.0, hyper=prior)
    model = start.maximise(data.each(GivenMoments(start, q)), None if start.prior is None else data.each(start.prior))
    for name, found in {"means_": model.centers, "weights_": model.weights, **model.attributes()}.items():
        expected = np.array(getattr(there, name))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max(), err_msg=name)
    rows = as_rows(X)
    np.testing.assert_allclose(model.responsibilities(rows), there.predict_proba(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.log_likelihood(rows), there.score_samples(X), rtol=1e-8)
    logs = there._estimate_weighted_log_prob(X)
    entropy = -(q * np.log(np.where(q > 0, q, 1))).sum()
    if reg_covar:
        return  # scikit-learn's form of the bound holds for an M-step without an addition to the variances
    assert (q * logs).sum() + entropy + model.log_prior == pytest.approx(bound + left_out(model, n), rel=1e-8)


@every_type
@every_prior_of_weights
@pytest.mark.parametrize("n_active", [None, 2])
def test_the_bound_is_below_the_exact_one_and_components_vanish(covariance_type, weights, n_active):
    X, rng = groups(600), np.random.default_rng(2)
    given = {"covariance_type": covariance_type, "weight_concentration_prior_type": weights, "tol": 1e-8}
    given |= {"weight_concentration_prior": 1e-3, "max_iter": 3000, "means_init": X[rng.permutation(600)[:7]]}
    fit = BayesianGaussianMixture(7, n_active=n_active, **given).fit(X)
    bounds = [*fit.lower_bounds_, fit.lower_bound_]
    assert np.diff(bounds).min() > -1e-12
    exact = fit.bounds(X)
    assert exact.free_energy == pytest.approx(fit.lower_bound_)
    assert exact.free_energy <= exact.log_likelihood + 1e-12 < fit.score(X)
    assert np.sort(fit.weights_)[: 7 - fit.n_effective_].max(initial=0.0) < 0.004
    if covariance_type == "full":
        assert fit.n_effective_ == 3


def test_momentum_raises_the_same_bound():
    X = groups(2000)
    fits = [
        BayesianGaussianMixture(20, momentum=momentum, max_iter=2000, tol=1e-8, random_state=0).fit(X)
        for momentum in (False, True)
    ]
    assert fits[1].n_iter_ < fits[0].n_iter_
    assert fits[1].lower_bound_ > fits[0].lower_bound_ - 0.01
    assert np.diff(fits[1].lower_bounds_).min() > -1e-12


@every_type
def test_a_posterior_goes_to_files_and_to_scikit_learn(covariance_type, tmp_path):
    X = groups()
    fit = BayesianGaussianMixture(4, covariance_type=covariance_type, random_state=0, max_iter=300).fit(X)
    fit.save(tmp_path / "model")
    again, there = load(tmp_path / "model"), fit.to_sklearn()
    assert np.array_equal(again.score_samples(X), fit.score_samples(X))
    np.testing.assert_allclose(there.predict_proba(X), fit.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(there.score_samples(X), fit.score_samples(X), rtol=1e-8)
    on = again.set_params(warm_start=True, max_iter=2).fit(X)
    assert on.lower_bound_ >= fit.lower_bound_ - 1e-12
    assert on.converged_


def test_a_prior_that_is_none_is_refused_by_name():
    X = groups()
    for name, value, message in (
        ("covariance_prior", -np.eye(3), "covariance_prior must be symmetric and positive definite"),
        ("covariance_prior", np.ones(3), "covariance_prior must have finite numbers of shape"),
        ("mean_prior", [1.0], "mean_prior must have n_features=3 finite numbers"),
        ("degrees_of_freedom_prior", 2.0, "degrees_of_freedom_prior must be above n_features - 1 = 2, got 2.0"),
        ("weight_concentration_prior_type", "beta", "weight_concentration_prior_type must be one of"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            BayesianGaussianMixture(3, **{name: value}).fit(X)
    assert not hasattr(BayesianGaussianMixture(3), "partial_fit")
