"""Results of a fitted mixture do not depend on parameters changed after the fit, nor on the unit of the weights."""

import numpy as np
import pytest

from cprime import GaussianMixture
from cprime.search import Graph

FAMILIES = ("full", "tied", "diag", "spherical", "tied_spherical", "factors", "ppca")


def blobs(dtype=np.float64):
    rng = np.random.default_rng(0)
    return (rng.standard_normal((300, 2)) + np.repeat([[0, 0], [6, 0], [0, 6]], 100, axis=0)).astype(dtype)


def test_a_fitted_mixture_keeps_its_kind():
    X = blobs()
    gm = GaussianMixture(3, random_state=0).fit(X)
    before = gm.score(X), gm.predict_proba(X), gm.bic(X)
    gm.set_params(n_components=2, covariance_type="diag", weights="equal")
    assert gm.score(X) == before[0]
    assert np.array_equal(gm.predict_proba(X), before[1])
    assert gm.bic(X) == before[2]
    assert gm.sample(10)[0].shape == (10, 2)
    assert gm.to_sklearn().covariance_type == "full"


def test_no_attribute_of_another_family_stays():
    gm = GaussianMixture(3, covariance_type="tied_spherical", random_state=0).fit(blobs())
    assert gm.variance_ == gm.covariances_
    assert not hasattr(gm.set_params(covariance_type="full").fit(blobs()), "variance_")


@pytest.mark.parametrize("unit", [1e40, 1e-44])
@pytest.mark.parametrize("n_active", [1, 2, None])
@pytest.mark.parametrize("covariance_type", FAMILIES)
def test_the_unit_of_weights_does_not_matter_in_single_precision(covariance_type, n_active, unit):
    X, given = blobs(np.float32), {"covariance_type": covariance_type, "n_active": n_active, "random_state": 0}
    a = GaussianMixture(3, **given).fit(X)
    b = GaussianMixture(3, **given).fit(X, sample_weight=np.full(300, unit))
    assert np.allclose(a.means_, b.means_, atol=1e-4)
    assert b.counts_.sum() == pytest.approx(300 * unit)


def test_given_weights_do_not_disturb_the_first_variance():
    X = blobs()
    for weights in ([1 / 3] * 3, [0.8, 0.1, 0.1]):
        gm = GaussianMixture(3, covariance_type="tied_spherical", weights_init=weights, random_state=0).fit(X)
        assert gm.variance_ == pytest.approx(1, abs=0.15)
        assert gm.n_iter_ < 10


def test_a_tied_covariance_far_from_the_origin_keeps_its_digits():
    X = (np.round(64 * blobs()) / 64).astype(np.float32)
    far = X + np.float32(2**17)
    near, there = (GaussianMixture(3, covariance_type="tied", random_state=0).fit(data) for data in (X, far))
    assert there.lower_bound_ == pytest.approx(near.lower_bound_, abs=1e-3)


def test_certificate_of_a_hard_assignment_is_of_its_own_bound():
    X = np.random.default_rng(0).standard_normal((3000, 2))
    gm = GaussianMixture(30, assignment="hard", n_active=3, search=Graph(certificate=3000), random_state=0).fit(X)
    gap = gm.bounds(X).free_energy - gm.lower_bound_
    assert gm.certificate_["shortfall"] == pytest.approx(gap, abs=1e-9)
