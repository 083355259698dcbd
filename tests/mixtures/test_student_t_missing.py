"""Mixtures of t distributions of data with missing values, compared with EM in plain NumPy (Liu & Rubin 1995)."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import digamma
from scipy.stats import kstest, multivariate_t, t

from cprime import GaussianMixture, StudentTMixture

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")
TYPES = ("full", "tied", "diag", "spherical", "tied_spherical")
C, D = 3, 3
MEANS = 6.0 * np.array([[0, 0, 0], [1, 1, 0], [0, 1, 1]])


def points(n=150, dtype=np.float64):
    """Return rows of clusters with heavy tails and random missing values; the first row has no values at all."""
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((n, D)) @ (np.eye(D) + 0.5) / np.sqrt(rng.chisquare(4, (n, 1)) / 4)
    X = (MEANS[np.arange(n) % C] + noise).astype(dtype)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[0] = np.nan
    return X


def mixture(kind="full", **given):
    more = {"missing": "marginal", "n_active": None, "momentum": False, "reg_covar": 0.0, "tol": 0.0, "max_iter": 3}
    return StudentTMixture(C, covariance_type=kind, means_init=MEANS, **{**more, **given})


def matrices(tm):
    """Return the scale matrices of all components: (C, D, D)."""
    scale, eye = np.asarray(tm.covariances_, dtype=np.float64), np.eye(D)
    return {
        "full": lambda: scale,
        "tied": lambda: np.repeat(scale[np.newaxis], C, axis=0),
        "diag": lambda: scale[:, :, np.newaxis] * eye,
        "spherical": lambda: scale[:, np.newaxis, np.newaxis] * eye,
        "tied_spherical": lambda: np.full((C, 1, 1), scale) * eye,
    }[tm.covariance_type]()


def joint(tm, X):
    """Return log π_c t(x_o; μ_o, Σ_oo, ν_c) of the observed values of every row, by SciPy: (n, C)."""
    out = np.zeros((len(X), C))
    for c, S in enumerate(matrices(tm)):
        for i, x in enumerate(X):
            o = ~np.isnan(x)
            if o.any():
                out[i, c] = multivariate_t(tm.means_[c][o], S[np.ix_(o, o)], df=tm.dof_[c]).logpdf(x[o])
    return out + np.log(tm.weights_)


def step(tm, X):
    """Compute one iteration of PX-EM; return weights, means, Σ q u, sums of scatter, and degrees of freedom."""
    log = joint(tm, X)
    q = np.exp(log - np.logaddexp.reduce(log, axis=1, keepdims=True))
    means, mass, scatter, dof = [], [], [], []
    for c, S in enumerate(matrices(tm)):
        nu, filled, u, target = tm.dof_[c], np.empty_like(X), np.empty(len(X)), np.empty(len(X))
        covariance = np.zeros((D, D))
        for i, x in enumerate(X):
            o, m = ~np.isnan(x), np.isnan(x)
            pull, known = S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)]), x[o] - tm.means_[c][o]
            distance = known @ np.linalg.solve(S[np.ix_(o, o)], known)
            u[i], half = (nu + o.sum()) / (nu + distance), (nu + o.sum()) / 2
            target[i] = u[i] - 1 - (digamma(half) - np.log((nu + distance) / 2))  # u − 1 − E[log u]
            filled[i, o], filled[i, m] = x[o], tm.means_[c][m] + pull @ known
            covariance[np.ix_(m, m)] += q[i, c] * (S[np.ix_(m, m)] - pull @ S[np.ix_(o, m)])
        weight = q[:, c] * u
        means.append(weight @ filled / weight.sum())
        mass.append(weight.sum())
        scatter.append((weight[:, np.newaxis] * (filled - means[-1])).T @ (filled - means[-1]) + covariance)
        wanted = q[:, c] @ target / q[:, c].sum()
        dof.append(brentq(lambda nu, wanted=wanted: np.log(nu / 2) - digamma(nu / 2) - wanted, 0.1, 1e6))
    return q.sum(axis=0) / len(X), np.array(means), np.array(mass), np.array(scatter), np.array(dof)


@pytest.mark.parametrize("kind", TYPES)
def test_an_iteration_is_that_of_px_em(kind):
    X = points()
    before, found = mixture(kind).fit(X), mixture(kind, max_iter=4).fit(X)
    weights, means, mass, scatter, dof = step(before, X)
    each = scatter / mass[:, np.newaxis, np.newaxis]
    N = weights * len(X)
    pooled = scatter.sum(axis=0) / (N.sum() * (dof @ mass) / (dof @ N))
    expected = {
        "full": lambda: each,
        "tied": lambda: pooled,
        "diag": lambda: np.diagonal(each, axis1=1, axis2=2),
        "spherical": lambda: np.trace(each, axis1=1, axis2=2) / D,
        "tied_spherical": lambda: np.trace(pooled) / D,
    }[kind]()
    np.testing.assert_allclose(found.weights_, weights, rtol=1e-9)
    np.testing.assert_allclose(found.means_, means, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.covariances_, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.dof_, dof, rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", TYPES)
def test_densities_are_those_of_the_observed_values(kind, dtype):
    X = points(dtype=dtype)
    tm, close = mixture(kind).fit(X), 1e-9 if dtype == np.float64 else 2e-4
    expected = joint(tm, X)
    likelihood = np.logaddexp.reduce(expected, axis=1)
    np.testing.assert_allclose(tm.score_samples(X), likelihood, atol=close)
    np.testing.assert_allclose(tm.predict_proba(X), np.exp(expected - likelihood[:, np.newaxis]), atol=close)
    assert tm.lower_bound_ == pytest.approx(likelihood.mean(), abs=close)


@pytest.mark.parametrize("more", [{}, {"n_active": 2}, {"dof": "shared"}, {"dof": 3.0}])
@pytest.mark.parametrize("kind", TYPES)
def test_the_free_energy_never_falls(kind, more):
    assert (np.diff(mixture(kind, max_iter=25, **more).fit(points()).lower_bounds_) >= -1e-9).all()


@pytest.mark.parametrize("kind", TYPES)
def test_of_many_degrees_of_freedom_it_is_the_gaussian_mixture(kind):
    X = points()
    tm = mixture(kind, dof=1e9, max_iter=10).fit(X)
    given = {"missing": "marginal", "n_active": None, "momentum": False, "reg_covar": 0.0, "tol": 0.0, "max_iter": 10}
    gm = GaussianMixture(C, covariance_type=kind, means_init=MEANS, **given).fit(X)
    for name in ("means_", "covariances_", "weights_", "lower_bound_"):
        np.testing.assert_allclose(getattr(tm, name), getattr(gm, name), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(tm.impute(X), gm.impute(X), atol=1e-5)
    np.testing.assert_allclose(tm.score_outliers(X), 1, atol=1e-6)


def test_outliers_are_found_by_their_observed_values():
    X = points()
    X[7] = [np.nan, 60.0, np.nan]
    assert mixture(max_iter=20).fit(X).score_outliers(X).argmin() == 7


def test_draws_have_the_conditional_distribution():
    tm = StudentTMixture(missing="marginal")
    tm.weights_, tm.means_, tm.dof_ = np.ones(1), np.array([[1.0, 2.0]]), np.array([2.5])
    tm.covariances_, tm.n_features_in_ = np.array([[[2.0, 1.0], [1.0, 3.0]]]), 2
    drawn = tm.impute(np.tile([4.0, np.nan], (20_000, 1)), sample=True, random_state=0)[:, 1]
    center, spread = 2 + 3 / 2, (3 - 1 / 2) * (2.5 + 9 / 2) / 3.5
    assert kstest((drawn - center) / np.sqrt(spread), t(3.5).cdf).pvalue > 0.01


def test_batches_with_missing_values_reach_the_fit_of_all_rows():
    X = points(1500)
    tm, whole = mixture(max_iter=15), mixture(max_iter=15).fit(X)
    for batch in np.split(X, 5):
        tm.partial_fit(batch)
    assert tm.score(X) > whole.score(X) - 0.05
