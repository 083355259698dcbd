"""Methods and attributes of `GaussianMixture` beyond `fit`: posteriors, likelihoods, criteria, samples."""

import numpy as np
import pytest
from estimator_data import DTYPES, clustered, mixture
from scipy.sparse import csr_array
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from cprime import GaussianMixture

N, D, C = 150, 3, 6


@pytest.fixture(params=DTYPES)
def X(request):
    return 3 * clustered(N, D, request.param, spread=1.5)


def joint(X, gm):
    """Return log p(c, x_n), computed by SciPy, (n, C)."""
    cov = gm.variance_ * np.eye(D)
    columns = [multivariate_normal(mean, cov).logpdf(X) for mean in gm.means_.astype(float)]
    return np.column_stack(columns) - np.log(len(gm.means_))


@pytest.mark.parametrize("n_active", [1, 2, 5, 6, None])
def test_posteriors_dense_and_sparse(X, n_active):
    gm = mixture(C, n_active=n_active, random_state=0).fit(X)
    H = n_active or C
    dense, sparse = gm.predict_proba(X), gm.predict_proba(X, sparse=True)
    assert dense.shape == sparse.shape == (N, C)
    assert isinstance(sparse, csr_array)
    assert sparse.nnz == N * H
    assert sparse.has_canonical_format
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=4 * np.finfo(X.dtype).eps)
    log = joint(X, gm)
    outside = np.argsort(-log, axis=1)[:, H:]
    np.put_along_axis(log, outside, -np.inf, axis=1)
    np.testing.assert_allclose(dense, softmax(log, axis=1), rtol=1e-4, atol=1e-12)
    assert (np.take_along_axis(dense, outside, axis=1) == 0).all()
    assert np.array_equal(dense.argmax(axis=1), gm.predict(X))


def test_likelihood_of_points_is_scipys(X):
    gm = mixture(C, n_active=2, random_state=0).fit(X)
    other = np.concatenate([X, X + 3])
    np.testing.assert_allclose(gm.score_samples(other), logsumexp(joint(other, gm), axis=1), rtol=1e-5)
    close = 1e-12 if X.dtype == np.float64 else 1e-6
    assert gm.score(other) == pytest.approx(gm.score_samples(other).mean(), rel=close)
    weight = np.random.default_rng(0).random(2 * N)
    weighted = np.average(gm.score_samples(other), weights=weight)
    assert gm.score(other, sample_weight=weight) == pytest.approx(weighted, rel=close)


def test_information_criteria(X):
    gm = mixture(C, random_state=0).fit(X)
    likelihood = logsumexp(joint(X, gm), axis=1).sum()
    n_parameters = C * D + 1
    assert gm.bic(X) == pytest.approx(-2 * likelihood + n_parameters * np.log(N), rel=1e-5)
    assert gm.aic(X) == pytest.approx(-2 * likelihood + 2 * n_parameters, rel=1e-5)


def test_bic_finds_the_number_of_clusters():
    rng = np.random.default_rng(0)
    X = 30.0 * np.eye(4)[rng.integers(4, size=400)] + rng.standard_normal((400, 4))
    bic = {c: mixture(c, n_init=5, random_state=0).fit(X).bic(X) for c in range(1, 8)}
    assert min(bic, key=bic.__getitem__) == 4


def test_samples_are_draws_from_the_mixture(X):
    gm = mixture(C, random_state=0).fit(X)
    points, components = gm.sample(30_000)
    assert points.shape == (30_000, D)
    assert points.dtype == X.dtype
    assert components.dtype == np.int32
    assert (np.diff(components) >= 0).all()
    np.testing.assert_allclose(np.bincount(components) / 30_000, 1 / C, atol=0.01)
    for c in range(C):
        own = points[components == c].astype(float)
        np.testing.assert_allclose(own.mean(axis=0), gm.means_[c], atol=6 * np.sqrt(gm.variance_ / len(own)))
        np.testing.assert_allclose(np.cov(own.T), gm.variance_ * np.eye(D), atol=0.1 * gm.variance_)
    assert gm.score(points) == pytest.approx(gm.bounds(points).log_likelihood)
    again, _ = gm.sample(30_000)
    assert np.array_equal(points, again)
    other, _ = gm.set_params(random_state=1).sample(30_000)
    assert not np.array_equal(points, other)
    one, label = gm.sample()
    assert (one.shape, label.shape) == ((1, D), (1,))


def test_attributes_agree_with_each_other(X):
    gm = mixture(C, n_active=3, random_state=0).fit(X)
    assert gm.means_.shape == (C, D)
    assert gm.weights_.tolist() == [X.dtype.type(1 / C)] * C
    assert gm.covariances_ == gm.variance_
    assert gm.precisions_ == pytest.approx(1 / gm.variance_)
    assert gm.precisions_cholesky_ == pytest.approx(gm.variance_**-0.5)
    assert gm.n_active_ == 3
    assert gm.converged_
    assert gm.history_.shape == (gm.n_iter_,)
    assert gm.lower_bounds_ == gm.history_["lower_bound"].tolist()
    assert gm.lower_bound_ >= gm.lower_bounds_[-1]
    assert (gm.history_["n_distances"] == N * C).all()
    assert (gm.history_["seconds"] > 0).all()
    assert gm.n_features_in_ == D


@pytest.mark.parametrize("n_active", [1, 3, None])
def test_error_in_the_history_is_that_of_the_nearest_components(X, n_active):
    start = X[:C]
    gm = mixture(C, n_active=n_active, means_init=start, precisions_init=1.0, tol=100.0).fit(X)
    J = np.square(X[:, np.newaxis].astype(float) - start).sum(axis=2).min(axis=1).sum()
    assert gm.history_["quantization_error"][0] == pytest.approx(J, rel=1e-5)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_active", [1, None])
def test_of_other_families_no_error_is_measured(X, n_active, missing):
    X = np.where(np.arange(X.size).reshape(X.shape) % 7 == 0, np.nan, X) if missing else X
    for family in ("full", "tied", "diag", "spherical", "factors", "tied_spherical"):
        gm = GaussianMixture(3, covariance_type=family, n_active=n_active, missing="marginal", max_iter=2, tol=100.0)
        errors = gm.set_params(random_state=0).fit(X).history_["quantization_error"]
        assert np.isnan(errors).all() == (family != "tied_spherical")


@pytest.mark.parametrize(("C", "expected"), [(1, 1), (16, 16), (17, 5), (40, 5)])
def test_auto_keeps_all_of_few_and_five_of_many(C, expected):
    X = clustered(120, 2)
    assert mixture(C, random_state=0).fit(X).n_active_ == expected


@pytest.mark.parametrize("n_active", [1, 2, None])
def test_it_stops_once_the_bound_changes_by_less_than_tol(n_active):
    X = clustered(600, 2, spread=1.0)
    gm = mixture(8, n_active=n_active, means_init=X[:8], tol=1e-3).fit(X)
    change = np.abs(np.diff(gm.lower_bounds_))
    assert gm.converged_
    assert (change[:-1] >= 1e-3).all()
    assert change[-1] < 1e-3


def test_it_warns_when_iterations_did_not_suffice():
    X = clustered(600, 2, spread=1.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=2") as caught:
        gm = mixture(8, means_init=X[:8], max_iter=2).fit(X)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert (gm.n_iter_, gm.converged_) == (2, False)


def test_least_variance_is_kept():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 10, axis=0)
    assert mixture(2, random_state=0, reg_covar=0.25).fit(X).variance_ == 0.25
    assert mixture(2, random_state=0).fit(X).variance_ == pytest.approx(1e-6)
    free = clustered(300, 2)
    assert mixture(3, random_state=0, reg_covar=1e-6).fit(free).variance_ > 0.5


def test_more_components_kept_find_higher_bounds_and_smaller_gaps(X):
    fits = [mixture(C, n_active=h, means_init=X[:C], tol=1e-8, max_iter=5000).fit(X) for h in (1, 2, 3, 6)]
    gaps = [fit.bounds(X).kl_gap for fit in fits]
    assert (np.diff(gaps) < 0).all()
    assert gaps[0] > 0.1
    assert gaps[-1] == pytest.approx(0, abs=1e-5)
