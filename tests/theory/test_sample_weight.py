"""Weights (METHODS 6): only their ratios matter."""

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans
from fits import centers_of, clustered, random_weights

EQUAL = {"covariance_type": "tied_spherical", "weights": "equal"}
NOT_CONVERGED = pytest.mark.filterwarnings("ignore:The fit did not converge")
ESTIMATORS = {
    "k-means": lambda start, n_iter: KMeans(6, init=start, tol=0, max_iter=n_iter),
    "lazy k-means": lambda start, n_iter: KMeans(6, init=start, tol=0, max_iter=n_iter, epsilon=0.2),
    **{
        f"mixture, C'={n_active}": lambda start, n_iter, n_active=n_active: GaussianMixture(
            6, n_active=n_active, means_init=start, tol=0, max_iter=n_iter, **EQUAL
        )
        for n_active in (1, 2, 4, 6)
    },
}


@NOT_CONVERGED
@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_weights_matter_and_only_their_ratios_do(make):
    X = clustered(140, 3, seed=2)
    weight = random_weights(140)
    one, many, none = (make(X[:6], 5).fit(X, sample_weight=w) for w in (weight, 1000 * weight, None))
    np.testing.assert_allclose(centers_of(one), centers_of(many), rtol=1e-10)
    assert one.lower_bound_ == pytest.approx(many.lower_bound_, rel=1e-12)
    assert np.abs(centers_of(one) - centers_of(none)).max() > 0.01
    ones = make(X[:6], 5).fit(X, sample_weight=np.ones(140))
    np.testing.assert_allclose(centers_of(ones), centers_of(none), rtol=1e-10)
    assert ones.lower_bound_ == pytest.approx(none.lower_bound_, rel=1e-12)
