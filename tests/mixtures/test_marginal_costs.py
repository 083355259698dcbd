"""Costs of rows with missing values use all digits of the parameters, and ties are exact."""

import numpy as np
import pytest

from cprime import GaussianMixture
from cprime.kernels import ReadMissing

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")

FAMILIES = ("full", "tied", "diag", "spherical", "tied_spherical", "factors", "ppca")


def with_missing(X, share, seed=1):
    """Return a copy of the rows with random missing values; the first row has no values at all."""
    holed = X.copy()
    holed[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    holed[0] = np.nan
    return holed


def mixture(C, **more):
    gm = GaussianMixture(C, missing="marginal", random_state=0, **more)
    return gm.set_params(covariance_type__n_factors=1) if gm.covariance_type in ("factors", "ppca") else gm


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_single_precision_rounds_no_factor_of_a_marginal_density(covariance_type):
    """If a column is a weighted mean of others, the density depends on digits of the parameters below float32
    precision.
    """
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(50000, 10000, (3, 2000))
    X = np.column_stack([a, b, 0.3 * a + 0.7 * b, c])
    holed = X.copy()
    holed[rng.random(X.shape) < 0.1] = np.nan
    X, gm = X.astype(np.float32), mixture(1, covariance_type=covariance_type, max_iter=20).fit(holed.astype(np.float32))
    S, mean = gm._parameters().covariances.reshape(-1, 4, 4)[0], gm.means_[0].astype(np.float64)
    for missing in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]):
        there = np.delete(np.arange(4), missing)
        rows = X.copy()
        rows[:, missing] = np.nan
        np.testing.assert_allclose(
            gm.score_samples(rows), gm.marginal(there).score_samples(X[:, there]), rtol=0, atol=2e-4
        )
        pulls = np.linalg.solve(S[np.ix_(there, there)], S[np.ix_(there, missing)])
        filled = mean[missing] + (X[:, there] - mean[there]) @ pulls
        assert (np.abs(gm.impute(rows)[:, missing] - filled) < 1e-5 * S[missing, missing] ** 0.5).all()


@pytest.mark.parametrize("n_active", [None, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_without_values_cost_exactly_the_weight(family, dtype, n_active):
    """All components tie if weights are equal, so the lowest indices are active, whatever the covariances are."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = (rng.normal(size=(250, 4)) + 5 * rng.integers(0, 5, (250, 1))) * [1, 10, 3, 0.1]
        X = with_missing(X.astype(dtype), 0.3, seed)
        gm = mixture(5, covariance_type=family, weights="equal", n_active=n_active, max_iter=4).fit(X)
        shares = gm.predict_proba(X[:1])[0]
        active = n_active or 5
        np.testing.assert_array_equal(shares, np.where(np.arange(5) < active, dtype(1) / dtype(active), 0))
        assert gm.labels_[0] == gm.predict(X[:1])[0] == 0
        costs = gm._parameters().with_missing().components().best(ReadMissing()(X[:1]), 5)[1]
        assert len(np.unique(costs)) == 1
