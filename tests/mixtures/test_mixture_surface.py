"""The public interface of general mixtures: initialization, errors, samples, precision."""

import re

import numpy as np
import pytest
from mixture_data import DTYPES, FAMILIES, WEIGHTS, clustered, joint_of, matrices, mixture, start_of
from scipy.sparse import csr_array
from scipy.special import logsumexp, softmax
from sklearn.base import clone

from cprime import KMeans
from fits import outcome

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")
N, D, C = 240, 3, 5
SHAPES = {"tied_spherical": (), "spherical": (C,), "diag": (C, D), "tied": (D, D), "full": (C, D, D)}
every_family = pytest.mark.parametrize("family", FAMILIES)
every_weights = pytest.mark.parametrize("weights", WEIGHTS)


@pytest.fixture(scope="module")
def X():
    return clustered(N, D)


@every_family
@every_weights
@pytest.mark.parametrize("dtype", DTYPES)
def test_attributes_have_the_shapes_of_scikit_learn(X, family, weights, dtype):
    gm = mixture(C, family, weights, max_iter=4).fit(X.astype(dtype))
    for name in ("covariances_", "precisions_", "precisions_cholesky_"):
        assert np.shape(getattr(gm, name)) == SHAPES[family]
        assert np.asarray(getattr(gm, name)).dtype == (np.float64 if family == "tied_spherical" else dtype)
    assert (gm.means_.dtype, gm.weights_.dtype) == (dtype, dtype)
    close = 1e-8 if dtype == np.float64 else 1e-5
    assert gm.weights_.sum() == pytest.approx(1)
    assert (weights == "equal") == (np.ptp(gm.weights_) == 0)
    assert hasattr(gm, "variance_") == (family == "tied_spherical")
    covariances = matrices(family, gm.covariances_, C, D)
    precisions = matrices(family, gm.precisions_, C, D)
    np.testing.assert_allclose(covariances @ precisions, np.broadcast_to(np.eye(D), (C, D, D)), atol=close)
    if family in ("full", "tied"):
        roots = np.broadcast_to(gm.precisions_cholesky_, (C, D, D))
        assert np.array_equal(roots, np.triu(roots))
        slack = {"rtol": close, "atol": close * precisions.max()}
        np.testing.assert_allclose(roots @ roots.transpose(0, 2, 1), precisions, **slack)


@every_family
@every_weights
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_active", [1, 2, None])
def test_probabilities_and_likelihoods_are_those_of_the_formula(X, family, weights, dtype, n_active):
    data = X.astype(dtype)
    gm = mixture(C, family, weights, n_active=n_active, max_iter=4).fit(data)
    other = np.concatenate([data, data + dtype(2)])
    joint = joint_of(gm, other)
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 2e-3, "atol": 2e-4}
    np.testing.assert_allclose(gm.score_samples(other), logsumexp(joint, axis=1), **close)
    dense, sparse = gm.predict_proba(other), gm.predict_proba(other, sparse=True)
    H = n_active or C
    assert isinstance(sparse, csr_array)
    assert sparse.nnz == len(other) * H
    assert sparse.has_canonical_format
    np.testing.assert_allclose(sparse.toarray(), dense, atol=1e-5 if dtype == np.float32 else 1e-12)
    np.put_along_axis(joint, np.argsort(-joint, axis=1)[:, H:], -np.inf, axis=1)
    np.testing.assert_allclose(dense, softmax(joint, axis=1), **close)
    np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=1e-12 if dtype == np.float64 else 1e-6)
    assert {dense.dtype, sparse.dtype, gm.score_samples(other).dtype} == {np.dtype(dtype)}
    weight = np.random.default_rng(0).random(len(other))
    weighted = np.average(gm.score_samples(other), weights=weight)
    assert gm.score(other, sample_weight=weight) == pytest.approx(weighted, rel=1e-12 if dtype == np.float64 else 1e-6)
    with np.errstate(all="raise"):  # probabilities too small for the type are 0
        np.testing.assert_allclose(gm.predict_proba(100 * data).sum(axis=1), 1, rtol=1e-6)


@every_family
@pytest.mark.parametrize("dtype", DTYPES)
def test_nearest_gives_labels_and_mahalanobis_distances(X, family, dtype):
    data = X.astype(dtype)
    gm = mixture(C, family, "free", max_iter=4).fit(data)
    labels, distances = gm.nearest(data + dtype(0.5))
    np.testing.assert_array_equal(labels, gm.predict(data + dtype(0.5)))
    assert distances.dtype == np.float64
    difference = (data + dtype(0.5)).astype(np.float64) - gm.means_[labels]
    inverse = np.linalg.inv(matrices(family, gm.covariances_, C, D))[labels]
    expected = np.sqrt(np.einsum("nd,nde,ne->n", difference, inverse, difference))
    np.testing.assert_allclose(distances, expected, rtol=1e-9 if dtype == np.float64 else 1e-3)


@every_family
@pytest.mark.parametrize("weights", WEIGHTS)
def test_samples_have_the_moments_of_the_mixture(X, family, weights):
    gm = mixture(C, family, weights, max_iter=10).fit(X)
    points, label = gm.sample(60_000)
    assert (points.dtype, label.dtype) == (np.float64, np.int32)
    assert (np.diff(label) >= 0).all()
    np.testing.assert_allclose(np.bincount(label, minlength=C) / 60_000, gm.weights_, atol=0.01)
    covariances = matrices(family, gm.covariances_, C, D)
    for c in range(C):
        own = points[label == c]
        scale = np.sqrt(np.trace(covariances[c]))
        np.testing.assert_allclose(own.mean(axis=0), gm.means_[c], atol=6 * scale / np.sqrt(len(own)))
        np.testing.assert_allclose(np.cov(own.T), covariances[c], atol=8 * scale**2 / np.sqrt(len(own)))
    assert np.array_equal(gm.sample(10)[0], gm.sample(10)[0])
    assert [part.shape for part in gm.sample()] == [(1, D), (1,)]


@every_family
@every_weights
def test_parameters_that_are_given_stay_in_the_first_e_step(X, family, weights):
    """Each given parameter is used in the first E-step; the others come from the hard assignment to the given means."""
    start = start_of(X, C, family, weights=weights)
    models = {}
    for names in (
        [],
        ["means_init"],
        ["precisions_init"],
        ["weights_init"],
        ["means_init", "precisions_init"],
        list(start),
    ):
        given = {name: start[name] for name in names if name in start}
        gm = mixture(C, family, weights, max_iter=1, n_active=None, init_params="random", **given)
        first = []
        gm.set_params(callbacks=lambda row, *, first=first: first.append(row["lower_bound"]))
        models[tuple(names)] = first[0] if gm.fit(X) is None else gm.lower_bounds_[0]
    whole = mixture(C, family, weights, max_iter=1, **start)
    whole.fit(X)
    covariances = matrices(
        family,
        np.linalg.inv(start["precisions_init"]) if family in ("tied", "full") else 1 / start["precisions_init"],
        C,
        D,
    )
    reference = mixture(C, family, weights)
    reference.means_, reference.weights_ = start["means_init"], start.get("weights_init", np.full(C, 1 / C))
    reference.covariance_type, reference.covariances_ = "full", covariances
    assert whole.lower_bounds_[0] == pytest.approx(logsumexp(joint_of(reference, X), axis=1).mean(), rel=1e-12)
    assert models[tuple(start)] == pytest.approx(whole.lower_bounds_[0], rel=1e-12)
    assert all(np.isfinite(value) for value in models.values())
    assert len({round(value, 9) for value in models.values()}) >= len(models) - (weights == "equal") * 1


@every_family
def test_given_means_stay_and_covariances_are_about_them(X, family):
    start = start_of(X, C, family)["means_init"]
    label = np.square(X[:, None] - start).sum(axis=2).argmin(axis=1)
    given = mixture(C, family, means_init=start, max_iter=1, n_active=None).fit(X).lower_bounds_[0]
    shares = np.bincount(label, minlength=C) / N
    differences = X - start[label]
    each = np.array([differences[label == c].T @ differences[label == c] / (label == c).sum() for c in range(C)])
    expected = mixture(C, "full")
    eye, reg = np.eye(D), 1e-6
    pooled = np.tensordot(shares, each, axes=1)
    expected.covariances_ = {
        "tied_spherical": np.broadcast_to(np.trace(pooled) / D * eye, (C, D, D)),
        "spherical": (np.trace(each, axis1=1, axis2=2) / D + reg)[:, None, None] * eye,
        "diag": each * eye + reg * eye,
        "tied": np.broadcast_to(pooled + reg * eye, (C, D, D)),
        "full": each + reg * eye,
    }[family]
    expected.means_, expected.weights_ = start, shares
    assert given == pytest.approx(logsumexp(joint_of(expected, X), axis=1).mean(), rel=1e-9)


@every_family
@every_weights
@pytest.mark.parametrize("n_active", [2, None])
def test_warm_start_goes_on_where_the_fit_before_ended(X, family, weights, n_active):
    start = start_of(X, C, family, weights=weights)
    whole = mixture(C, family, weights, n_active=n_active, max_iter=9, **start).fit(X)
    parts = mixture(C, family, weights, n_active=n_active, max_iter=4, warm_start=True, **start).fit(X)
    parts.set_params(max_iter=5).fit(X)
    np.testing.assert_allclose(parts.means_, whole.means_, atol=1e-9)
    np.testing.assert_allclose(parts.covariances_, whole.covariances_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(parts.lower_bounds_, whole.lower_bounds_[4:], rtol=1e-10)
    with pytest.raises(ValueError, match="warm_start goes on from a fit with n_components=5, got n_components=6"):
        parts.set_params(n_components=6).fit(X)


def test_warm_start_needs_covariances_of_the_family(X):
    gm = mixture(C, "diag", max_iter=2, warm_start=True).fit(X)
    with pytest.raises(ValueError, match="a fit with covariance_type='diag', got covariance_type='full'"):
        gm.set_params(covariance_type="full").fit(X)


@every_family
def test_fits_from_every_start_converge(X, family):
    km = KMeans(C, random_state=0).fit(X)
    for init in ("kmeans", "k-means++", "random", "random_from_data", "afk-mc2", "two-level", km, X[:C]):
        gm = mixture(C, family, init_params=init, tol=1e-3, max_iter=300).fit(X)
        assert gm.converged_
        assert np.array_equal(gm.labels_, gm.predict(X))
    same = [mixture(C, family, init_params=name, max_iter=3).fit(X) for name in ("random", "random_from_data")]
    assert outcome(same[0]) == outcome(same[1])
    assert outcome(clone(same[0]).fit(X)) == outcome(same[0])


P = {"spherical": np.ones(C), "diag": np.ones((C, D)), "tied": np.eye(D), "full": np.tile(np.eye(D), (C, 1, 1))}
REFUSED = [
    *((family, "precisions_init", P[family][1:], ["precisions_init", family, str(SHAPES[family])]) for family in P),
    *((family, "precisions_init", np.full_like(P[family], np.nan), ["precisions_init", "finite"]) for family in P),
    *((family, "precisions_init", -P[family], ["precisions_init"]) for family in P),
    ("full", "precisions_init", P["full"] + np.triu(np.ones((D, D)), 1), ["precisions_init", "symmetric"]),
    ("tied", "precisions_init", np.ones((D, D)), ["precisions_init", "positive definite"]),
    ("full", "weights_init", [0.5, 0.5], ["weights_init", "n_components=5", "0.5"]),
    ("full", "weights_init", [0.5, 0.5, 0.5, -0.5, 0.0], ["weights_init", "not negative"]),
    ("diag", "weights_init", [0.3] * 5, ["weights_init", "sum to 1", "0.3"]),
    ("diag", "means_init", np.ones((4, 3)), ["(4, 3)", "5"]),
    ("diag", "means_init", np.ones((5, 2)), ["(5, 2)", "3"]),
    ("full", "reg_covar", -1.0, ["reg_covar", "-1.0", ">= 0"]),
    ("full", "init_params", "best", ["'best'", "'k-means++'", "'random'"]),
    ("full", "search", "graph", ["search='graph'", "n_active < n_components"]),
]


@pytest.mark.parametrize(
    ("family", "argument", "value", "words"), REFUSED, ids=[f"{f}-{a}-{w[-1]}" for f, a, _, w in REFUSED]
)
def test_an_error_names_the_argument(X, family, argument, value, words):
    gm = mixture(C, family, n_active=None).set_params(**{argument: value})
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        gm.fit(X)
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)
    assert not hasattr(gm, "means_")
