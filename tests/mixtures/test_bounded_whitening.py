"""Fits with bounded search equal those with full search, although each whitening needs new distance bounds."""

import numpy as np
import pytest
from mixture_data import DTYPES, WEIGHTS, clustered, joint_of, mixture

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")

C = 12


def stretched(dtype=np.float64, seed=0):
    """Return points whose clusters have elongated covariances, so that the whitening changes much during a fit."""
    return np.ascontiguousarray(clustered(1500, 3, seed=seed, n_clusters=8) * [12.0, 1.0, 0.2], dtype=dtype)


def start(X, weights, seed=1):
    """Return initial parameters: means at random points and, if free, random weights."""
    rng = np.random.default_rng(seed)
    given = {"init_params": X[rng.choice(len(X), C, replace=False)].astype(np.float64)}
    return given | ({"weights_init": rng.dirichlet(np.full(C, 3))} if weights == "free" else {})


def both(X, family, weights, **changes):
    given = {"n_active": 1, "max_iter": 40} | start(X, weights) | changes
    return (mixture(C, family, weights, search=search, **given).fit(X) for search in ("full", "bounded"))


def assert_same_fit(full, bounded, dtype):
    """Check that two fits are equal except for rounding, with identical labels."""
    share = 2e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_array_equal(bounded.labels_, full.labels_)
    np.testing.assert_allclose(bounded.lower_bounds_, full.lower_bounds_, rtol=0, atol=share)
    np.testing.assert_allclose(bounded.means_, full.means_, rtol=0, atol=share * np.abs(full.means_).max())
    np.testing.assert_allclose(bounded.covariances_, full.covariances_, rtol=share, atol=share)
    np.testing.assert_allclose(bounded.weights_, full.weights_, rtol=0, atol=share)
    assert bounded.lower_bound_ == pytest.approx(full.lower_bound_, abs=share)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("family", ["tied", "tied_spherical"])
@pytest.mark.parametrize("assignment", ["soft", "hard"])
def test_fits_by_bounds_are_those_of_the_full_search(family, weights, assignment, dtype):
    full, bounded = both(stretched(dtype), family, weights, assignment=assignment)
    assert full.n_iter_ > 8
    assert_same_fit(full, bounded, dtype)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_labels_are_the_most_probable_components_at_every_length_of_a_fit(weights):
    X = stretched(seed=3)
    for max_iter in (3, 6, 9, 15):
        full, bounded = both(X, "tied", weights, max_iter=max_iter)
        joint = joint_of(bounded, X)
        np.testing.assert_array_equal(bounded.labels_, joint.argmax(axis=1))
        assert bounded.lower_bound_ == pytest.approx(joint.max(axis=1).mean(), abs=1e-9)
        assert_same_fit(full, bounded, np.float64)
