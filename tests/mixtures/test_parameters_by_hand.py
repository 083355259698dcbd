"""A mixture whose parameters are set as attributes predicts what scikit-learn's mixture predicts."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture as SklearnMixture

import cprime
import cprime.sklearn

RNG = np.random.default_rng(0)
X = RNG.normal(scale=2, size=(60, 2))
MEANS = np.array([[0.0, 0.5], [3.0, 3.0], [-2.0, 1.0]])
WEIGHTS = np.array([0.2, 0.5, 0.3])
_ROOTS = np.tril(RNG.normal(scale=0.3, size=(3, 2, 2))) + 0.8 * np.eye(2)
FULL = _ROOTS @ _ROOTS.transpose(0, 2, 1)
COVARIANCES = {
    "full": FULL,
    "tied": FULL[0],
    "diag": FULL.diagonal(0, 1, 2),
    "spherical": np.array([0.5, 1.0, 2.0]),
}
KINDS = pytest.mark.parametrize("kind", COVARIANCES)


def factors(kind):
    covariances = COVARIANCES[kind]
    if kind in ("diag", "spherical"):
        return 1 / np.sqrt(covariances)
    return np.linalg.inv(np.linalg.cholesky(covariances)).swapaxes(-1, -2)


def by_hand(cls, kind, dtype=np.float64, **changes):
    gm = cls(3, covariance_type=kind, random_state=0)
    attributes = {
        "weights_": WEIGHTS,
        "means_": MEANS,
        "covariances_": COVARIANCES[kind],
        "precisions_cholesky_": factors(kind),
    }
    for name, value in (attributes | changes).items():
        if value is not None:
            setattr(gm, name, np.asarray(value, dtype=dtype))
    return gm


@KINDS
@pytest.mark.parametrize("cls", [cprime.GaussianMixture, cprime.sklearn.GaussianMixture])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_says_what_scikit_learns_says(cls, kind, dtype):
    ours, theirs = by_hand(cls, kind, dtype), by_hand(SklearnMixture, kind)
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=tolerance)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=tolerance)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=tolerance)
    drawn, components = ours.sample(5000)
    assert np.bincount(components) / 5000 == pytest.approx(WEIGHTS, abs=0.03)
    assert drawn.mean(axis=0) == pytest.approx(WEIGHTS @ MEANS, abs=0.15)


@KINDS
def test_covariances_or_their_factors_will_do(kind):
    whole = by_hand(cprime.GaussianMixture, kind)
    for missing in ("covariances_", "precisions_cholesky_"):
        part = by_hand(cprime.GaussianMixture, kind, **{missing: None})
        np.testing.assert_allclose(part.score_samples(X), whole.score_samples(X))
        np.testing.assert_allclose(part.nearest(X)[1], whole.nearest(X)[1])
        np.testing.assert_allclose(getattr(part, missing), getattr(whole, missing), atol=1e-12)


def test_the_mixture_of_the_papers_has_one_variance():
    gm = by_hand(cprime.GaussianMixture, "spherical", covariances_=[1.5] * 3, precisions_cholesky_=None)
    paper = cprime.GaussianMixture(3, covariance_type="tied_spherical")
    paper.means_, paper.weights_, paper.covariances_ = MEANS, WEIGHTS, 1.5
    np.testing.assert_allclose(paper.score_samples(X), gm.score_samples(X))


def test_means_need_not_be_arrays_of_floats():
    gm = by_hand(cprime.GaussianMixture, "diag", means_=[[0, 0], [3, 3], [-2, 1]])
    other = by_hand(cprime.GaussianMixture, "diag")
    for means in (np.array([[0, 0], [3, 3], [-2, 1]]), [[0, 0], [3, 3], [-2, 1]]):
        other.means_ = means
        assert np.array_equal(other.predict_proba(X), gm.predict_proba(X))
        assert np.array_equal(other.sample(50)[0], gm.sample(50)[0])


def test_weights_set_by_hand_count_whatever_the_argument_says():
    gm = by_hand(cprime.GaussianMixture, "diag").set_params(weights="equal")
    np.testing.assert_allclose(gm.score_samples(X), by_hand(SklearnMixture, "diag").score_samples(X))


def test_it_can_be_reported_bounded_and_handed_over_but_not_stored(tmp_path):
    gm = by_hand(cprime.GaussianMixture, "full")
    assert gm.bounds(X).kl_gap < 1e-12
    assert np.array_equal(gm.to_sklearn().predict(X), gm.predict(X))
    with pytest.raises(ValueError, match=r"^estimator must have the attributes that a fit sets: it has no "):
        gm.save(tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("missing", "named"), [(("weights_",), "weights_"), (("covariances_", "precisions_cholesky_"), "covariances_")]
)
def test_what_is_missing_is_named(missing, named):
    gm = by_hand(cprime.GaussianMixture, "full", **dict.fromkeys(missing))
    with pytest.raises(AttributeError, match=named):
        gm.predict(X)


def test_an_unfitted_mixture_has_none_of_it():
    gm = cprime.GaussianMixture(3)
    implied = ("n_active_", "covariance_type_", "equal_weights_", "covariances_", "precisions_", "precisions_cholesky_")
    assert not any(hasattr(gm, name) for name in implied)
