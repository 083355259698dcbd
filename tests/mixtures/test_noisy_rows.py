"""Mixtures of rows with known errors: densities by SciPy, EM steps by NumPy, limits of no error and of large errors."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from cprime import Factors, GaussianMixture, KMeans, Noisy

TYPES = ("full", "diag", "spherical", "tied", "tied_spherical")
SHAPES = ("variances", "matrices")


def rows(n=60, D=3, shape="variances", seed=0):
    """Return two clusters with errors (n, D), the errors' variances (n, D) or matrices (n, D, D), and the true rows."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) + 4 * (rng.random((n, 1)) < 0.4)
    if shape == "variances":
        errors = rng.uniform(0, 2, (n, D))
        return true + np.sqrt(errors) * rng.normal(size=(n, D)), errors, true
    roots = rng.normal(size=(n, D, D)) / np.sqrt(D)
    return true + np.einsum("nde,ne->nd", roots, rng.normal(size=(n, D))), roots @ roots.transpose(0, 2, 1), true


def matrices(errors):
    return np.einsum("nd,de->nde", errors, np.eye(errors.shape[1])) if errors.ndim == 2 else errors


def full(gm):
    """Return the covariances of a fitted mixture as matrices (C, D, D)."""
    (C, D), given = gm.means_.shape, np.asarray(gm.covariances_)
    eye = np.eye(D)
    return {
        "full": lambda: given,
        "tied": lambda: np.broadcast_to(given, (C, D, D)),
        "diag": lambda: given[:, :, np.newaxis] * eye,
        "spherical": lambda: given[:, np.newaxis, np.newaxis] * eye,
        "tied_spherical": lambda: np.broadcast_to(given * eye, (C, D, D)),
    }[gm.covariance_type]()


def logs(gm, X, errors):
    """Return log π_c p(x_n | c) of noisy rows by SciPy: (n, C)."""
    found = [
        [np.log(weight) + multivariate_normal.logpdf(x, mean, covariance + S) for x, S in zip(X, errors, strict=True)]
        for weight, mean, covariance in zip(gm.weights_, gm.means_, full(gm), strict=True)
    ]
    return np.transpose(found)


def step(gm, X, errors, weights, reg_covar=1e-6):
    """Return weights, means and full covariances after an EM step (Bovy et al. 2011, eq. 13 to 16)."""
    log = logs(gm, X, errors)
    q = np.exp(log - logsumexp(log, axis=1, keepdims=True)) * weights[:, np.newaxis]
    means, covariances = [], []
    for c, (mean, own) in enumerate(zip(gm.means_, full(gm), strict=True)):
        gains = own @ np.linalg.inv(own + errors)
        b = mean + np.einsum("nde,ne->nd", gains, X - mean)
        B = own - gains @ own
        means.append(q[:, c] @ b / q[:, c].sum())
        off = b - means[-1]
        covariances.append(np.einsum("n,nde->de", q[:, c], off[:, :, np.newaxis] * off[:, np.newaxis] + B))
        covariances[-1] = covariances[-1] / q[:, c].sum() + reg_covar * np.eye(len(mean))
    return q.sum(axis=0) / weights.sum(), np.array(means), np.array(covariances)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize(("n", "D"), [(1, 1), (60, 3)])
def test_densities_and_labels_are_those_of_sums_of_covariances(n, D, covariance_type, shape):
    X, errors, _ = rows(max(n, 2), D, shape)
    gm = GaussianMixture(min(n, 2), covariance_type=covariance_type, max_iter=3, random_state=0)
    gm.fit(Noisy(X, errors))
    X, errors = X[:n], errors[:n]
    noisy, expected = Noisy(X, errors), logs(gm, X, matrices(errors))
    np.testing.assert_allclose(gm.score_samples(noisy), logsumexp(expected, axis=1), rtol=1e-9)
    np.testing.assert_array_equal(gm.predict(noisy), expected.argmax(axis=1))
    proba = np.exp(expected - logsumexp(expected, axis=1, keepdims=True))
    np.testing.assert_allclose(gm.predict_proba(noisy), proba, atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("covariance_type", TYPES)
def test_an_iteration_is_the_step_of_extreme_deconvolution(covariance_type, shape):
    X, errors, _ = rows(shape=shape)
    weights = np.random.default_rng(1).uniform(0.1, 3, len(X))
    options = {"covariance_type": covariance_type, "tol": 0, "momentum": False, "random_state": 0}
    one, two = (GaussianMixture(2, max_iter=i, **options).fit(Noisy(X, errors), sample_weight=weights) for i in (1, 2))
    reg_covar = 0.0 if covariance_type == "tied_spherical" else 1e-6  # there it is the least variance
    pi, means, covariances = step(one, X, matrices(errors), weights, reg_covar)
    pooled = np.broadcast_to(np.einsum("c,cde->de", pi, covariances), covariances.shape)
    expected = {
        "full": covariances,
        "tied": pooled,
        "diag": covariances * np.eye(3),
        "spherical": np.trace(covariances, axis1=1, axis2=2)[:, np.newaxis, np.newaxis] / 3 * np.eye(3),
        "tied_spherical": np.trace(pooled, axis1=1, axis2=2)[:, np.newaxis, np.newaxis] / 3 * np.eye(3),
    }[covariance_type]
    np.testing.assert_allclose(two.weights_, pi, rtol=1e-9)
    np.testing.assert_allclose(two.means_, means, rtol=1e-8)
    np.testing.assert_allclose(full(two), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"n_active": 2}, {"n_active": 2, "search": "graph"}, {"assignment": "hard"}])
def test_the_bound_never_falls_and_no_number_of_threads_changes_a_bit(options):
    X, errors, _ = rows(200, 2)
    fits = [
        GaussianMixture(6, random_state=0, n_threads=n, max_iter=200, **options).fit(Noisy(X, errors)) for n in (1, 3)
    ]
    bounds = np.array(fits[0].lower_bounds_)
    assert (np.diff(bounds) > -1e-5).all()
    assert bounds[-1] > bounds[0]
    assert fits[0].means_.tobytes() == fits[1].means_.tobytes()
    assert fits[0].covariances_.tobytes() == fits[1].covariances_.tobytes()


@pytest.mark.parametrize("covariance_type", TYPES)
def test_rows_without_error_give_the_plain_mixture(covariance_type):
    X, _, _ = rows(100)
    options = {
        "covariance_type": covariance_type,
        "tol": 1e-8,
        "max_iter": 1000,
        "means_init": X[:2],
        "momentum": False,
    }
    plain = GaussianMixture(2, **options).fit(X)
    noisy = GaussianMixture(2, **options).fit(Noisy(X, np.zeros(3)))
    assert noisy.lower_bound_ == pytest.approx(plain.lower_bound_, abs=1e-6)
    np.testing.assert_allclose(noisy.means_, plain.means_, atol=1e-3)
    np.testing.assert_allclose(noisy.impute(Noisy(X, np.zeros(3))), X, rtol=1e-7)
    np.testing.assert_array_equal(noisy.impute(X), X)


def test_errors_far_beyond_the_data_are_missing_values():
    X, _, _ = rows(200, 2)
    hidden = np.random.default_rng(3).random(X.shape) < 0.2
    hidden[:, 0] &= ~hidden[:, 1]
    options = {"n_components": 2, "means_init": X[:2], "momentum": False, "tol": 1e-7, "max_iter": 500}
    marginal = GaussianMixture(missing="marginal", **options).fit(np.where(hidden, np.nan, X))
    noisy = GaussianMixture(**options).fit(Noisy(X, np.where(hidden, 1e12, 0)))
    np.testing.assert_allclose(noisy.means_, marginal.means_, atol=2e-3)
    np.testing.assert_allclose(noisy.covariances_, marginal.covariances_, atol=2e-2)


def test_a_fit_finds_the_density_of_true_rows_and_comes_nearer_to_them():
    X, errors, true = rows(2000, 2, "matrices")
    noisy, options = Noisy(X, errors), {"n_init": 2, "random_state": 0, "tol": 1e-5, "max_iter": 1000}
    gm, best, plain = (GaussianMixture(2, **options).fit(each) for each in (noisy, true, X))
    assert gm.score(true) > best.score(true) - 0.01
    assert plain.score(true) < best.score(true) - 0.1
    assert np.square(gm.impute(noisy) - true).mean() < 0.8 * np.square(X - true).mean()
    drawn = gm.impute(noisy, sample=True, random_state=0)  # as spread as true rows, which expected rows are not
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(true.T), rtol=0.1, atol=0.1)
    assert np.trace(np.cov(gm.impute(noisy).T)) < np.trace(np.cov(true.T)) < np.trace(np.cov(X.T))


def test_batches_and_tables_with_errors_are_rows_like_others():
    pandas = pytest.importorskip("pandas")
    X, errors, true = rows(2000, 2)
    frame = pandas.DataFrame(X, columns=["a", "b"])
    gm = GaussianMixture(2, random_state=0).fit(Noisy(frame, pandas.DataFrame(errors)))
    assert gm.feature_names_in_.tolist() == ["a", "b"]
    batches = GaussianMixture(2, random_state=0)
    for begin in range(0, 2000, 500):
        batches.partial_fit(Noisy(X[begin : begin + 500], errors[begin : begin + 500]))
    named = pandas.DataFrame(true, columns=["a", "b"])
    assert batches.score(true) > gm.score(named) - 0.1


@pytest.mark.parametrize(
    ("estimator", "noisy", "message"),
    [
        (KMeans(2), Noisy(np.eye(3), np.ones(3)), "without errors for KMeans"),
        (GaussianMixture(1, covariance_type=Factors(1)), Noisy(np.eye(3), np.ones(3)), "covariance_type=Factors"),
        (GaussianMixture(1, missing="marginal"), Noisy(np.eye(3), np.ones(3)), "missing must be 'error'"),
        (GaussianMixture(1, checkpoint="x"), Noisy(np.eye(3), np.ones(3)), "checkpoint must be None"),
        (GaussianMixture(1), Noisy(np.eye(3), np.ones(2)), r"covariance must have shape \(3, 3\), \(3,\)"),
        (GaussianMixture(1), Noisy(np.eye(3), -np.ones(3)), "no negative or infinite variances, got -1"),
        (GaussianMixture(1), Noisy(np.eye(3), np.full(3, np.inf)), "infinite"),
        (GaussianMixture(1), Noisy(np.eye(2), np.tile([[1.0, 2.0], [2.0, 1.0]], (2, 1, 1))), "negative"),
        (GaussianMixture(1), Noisy(np.eye(2), np.tile([[3.0, 1.0], [2.0, 3.0]], (2, 1, 1))), "symmetric"),
        (GaussianMixture(1), Noisy(np.eye(3) * np.nan, np.ones(3)), "NaN"),
    ],
)
def test_what_cannot_be_computed_is_refused(estimator, noisy, message):
    with pytest.raises((TypeError, ValueError), match=message):
        estimator.fit(noisy)
