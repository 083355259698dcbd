"""Methods and attributes of `GaussianMixture` beyond `fit`: posteriors, likelihoods, criteria, samples."""

import numpy as np
import pytest
from estimator_data import DTYPES, mixture
from sklearn.exceptions import ConvergenceWarning

from cprime import GaussianMixture
from fits import clustered

N, D, C = 150, 3, 6


@pytest.fixture(params=DTYPES)
def X(request):
    return 3 * clustered(N, D, request.param, spread=1.5)


@pytest.mark.long
def test_bic_finds_the_number_of_clusters():
    rng = np.random.default_rng(0)
    X = 30.0 * np.eye(4)[rng.integers(4, size=400)] + rng.standard_normal((400, 4))
    bic = {c: mixture(c, n_init=5, random_state=0).fit(X).bic(X) for c in range(1, 8)}
    assert min(bic, key=bic.__getitem__) == 4


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
