"""Fits with a conjugate prior: the M-step is that of the formulas and maximizes F, which never falls."""

from dataclasses import replace

import numpy as np
import pytest

from cprime import GaussianMixture, Prior, load
from cprime.em.expectation import GivenMoments
from cprime.estimators.priors import conjugate_prior
from cprime.execution import local
from cprime.model import PENALIZED

every_type = pytest.mark.parametrize("covariance_type", PENALIZED)


def groups(n=120, D=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, D)) * np.arange(1, D + 1) + 5 * rng.integers(3, size=n)[:, np.newaxis]


def expected_step(X, q, covariance_type, shrinkage, mean, dof, scale):
    """Return the means and covariances of Fraley & Raftery (2007), table 1, from the points."""
    counts, D, C = q.sum(axis=0), X.shape[1], q.shape[1]
    means = (q.T @ X + shrinkage * mean) / (counts + shrinkage)[:, np.newaxis]
    centers = q.T @ X / counts[:, np.newaxis]
    shift, off = X[:, np.newaxis] - centers, centers - mean
    within = np.einsum("nc,nci,ncj->cij", q, shift, shift)
    within += np.einsum("c,ci,cj->cij", shrinkage * counts / (shrinkage + counts), off, off)
    variances = np.diagonal(within, axis1=1, axis2=2)
    return means, {
        "full": lambda: (scale + within) / (counts + dof + D + 2)[:, np.newaxis, np.newaxis],
        "diag": lambda: (scale + variances) / (counts + dof + 3)[:, np.newaxis],
        "spherical": lambda: (scale + variances.sum(axis=1)) / (dof + (counts + 1) * D + 2),
        "tied": lambda: (scale + within.sum(axis=0)) / (len(X) + dof + D + 1 + C),
    }[covariance_type]()


@every_type
@pytest.mark.parametrize(("n", "D", "C"), [(2, 1, 1), (120, 3, 4)])
def test_an_m_step_is_that_of_the_formulas_and_maximizes_the_objective(covariance_type, n, D, C):
    X = groups(n, D)
    q = np.random.default_rng(1).dirichlet(np.ones(C), n)
    cov = np.atleast_2d(np.cov(X.T, bias=True)) / C ** (2 / D)
    scale = cov if covariance_type in ("full", "tied") else np.trace(cov) / D
    data, family = local(X), PENALIZED[covariance_type]
    prior = conjugate_prior(Prior(shrinkage=0.5), covariance_type, data, C)
    start = family.starting(X[:C].copy(), np.full(C, 1 / C), 0.0, hyper=prior)
    moments = data.each(GivenMoments(start, q))
    model = start.maximise(moments, None if start.prior is None else data.each(start.prior))
    means, covariances = expected_step(X, q, covariance_type, 0.5, X.mean(axis=0), D + 2, scale)
    np.testing.assert_allclose(model.centers, means, rtol=1e-9)
    np.testing.assert_allclose(model.covariances, covariances, rtol=1e-9, atol=1e-12)

    def objective(model):
        logs = (
            np.log(model.weights)
            - 0.5
            * np.array(
                [
                    np.linalg.slogdet(2 * np.pi * each)[1]
                    + np.einsum("ni,ij,nj->n", X - mean, np.linalg.inv(each), X - mean)
                    for mean, each in zip(model.centers, matrices(model), strict=True)
                ]
            ).T
        )
        return (q * logs).sum() + model.log_prior

    def matrices(model):
        eye = np.eye(D)
        return np.broadcast_to(
            {
                "full": lambda each: each,
                "tied": lambda each: each,
                "diag": lambda each: each[:, :, np.newaxis] * eye,
                "spherical": lambda each: each[:, np.newaxis, np.newaxis] * eye,
            }[covariance_type](model.covariances),
            (C, D, D),
        )

    best = objective(model)
    for factor in (0.99, 1.01):
        assert objective(replace(model, covariances=model.covariances * factor)) < best
        assert objective(replace(model, centers=model.centers * factor)) < best


@every_type
@pytest.mark.parametrize("shrinkage", [0.0, 0.01])
def test_no_component_is_singular_and_the_objective_never_falls(covariance_type, shrinkage):
    X = np.repeat(groups(12), 3, axis=0)
    given = {"covariance_type": covariance_type, "reg_covar": 0.0, "random_state": 0, "tol": 1e-9}
    fit = GaussianMixture(8, prior=Prior(shrinkage=shrinkage), max_iter=300, **given).fit(X)
    assert np.diff([*fit.lower_bounds_, fit.lower_bound_]).min() > -1e-12
    assert np.max(fit.precisions_) < 1000
    assert fit.bounds(X).free_energy == pytest.approx(fit.score(X))


def test_a_fit_with_a_prior_is_stored_continued_and_refuses_batches(tmp_path):
    X = groups()
    fit = GaussianMixture(3, prior=Prior(dof=7.0, mean=np.zeros(3)), random_state=0, tol=1e-8, max_iter=500).fit(X)
    fit.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.prior == fit.prior == Prior(dof=7.0, mean=[0.0, 0.0, 0.0])
    on = again.set_params(warm_start=True).fit(X)
    assert on.n_iter_ <= 2
    assert on.lower_bound_ >= fit.lower_bound_ - 1e-12
    with pytest.raises(ValueError, match="partial_fit needs prior=None"):
        fit.partial_fit(X)
    with pytest.raises(ValueError, match="prior needs covariance_type in"):
        GaussianMixture(2, covariance_type="tied_spherical", prior=Prior()).fit(X)
    with pytest.raises(ValueError, match="dof of prior must be above"):
        GaussianMixture(2, prior=Prior(dof=1.5)).fit(X)
