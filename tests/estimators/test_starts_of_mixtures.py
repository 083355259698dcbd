"""Initialization of mixtures: given means, precisions and weights, and warm starts."""

import numpy as np
import pytest
from estimator_data import mixture

from cprime import GaussianMixture, KMeans, PoissonMixture, StudentTMixture, em
from cprime.datasets import old_faithful
from cprime.execution import local
from cprime.kernels import as_rows
from cprime.model import FAMILIES
from cprime.model.decomposed import Decomposed
from cprime.model.student_t import STUDENT_T
from fits import clustered, outcome

# Families whose first M-step has a closed form here; tests/model/test_decomposed.py has the others.
CLOSED = [family for family in FAMILIES.values() if not issubclass(family, Decomposed)]


@pytest.fixture
def X():
    return clustered(200, 3, spread=1.5)


def first_bound(gm):
    """Return F of the initial parameters."""
    return gm.lower_bounds_[0]


@pytest.mark.parametrize("family", [*CLOSED, *STUDENT_T.values()], ids=lambda family: family.__name__)
@pytest.mark.parametrize("gaps", [False, True])
def test_covariances_of_given_means_are_about_these_means(X, family, gaps):
    """Means, weights and covariances are those of an M-step whose means are fixed; noise of factors is not a matrix."""
    X, w = X + 100, np.random.default_rng(0).integers(0, 3, 200).astype(float)
    means = X[[0, 60, 120, 180]] + 0.3
    model = family.starting(means, np.full(4, 0.25), 0.0)
    if gaps and issubclass(family, tuple(STUDENT_T.values())):
        pytest.skip("t distributions have no missing values")
    found = em.hard_start(local(as_rows(X), w), model.with_missing() if gaps else model, True, keeps_centers=True)
    label = np.square(X[:, np.newaxis] - means).sum(axis=2).argmin(axis=1)
    moved = X - means[label]
    each = np.array([(w * (label == c) * moved.T) @ moved / w[label == c].sum() for c in range(4)])
    shares = np.bincount(label, w, 4) / w.sum()
    if "tied" in family.covariance_type:
        each[:] = np.tensordot(shares, each, axes=1)
    variances = np.diagonal(each, axis1=1, axis2=2)
    if family.covariance_type in ("spherical", "tied_spherical", "ppca"):
        variances = np.broadcast_to(variances.mean(axis=1, keepdims=True), variances.shape)
    np.testing.assert_array_equal(found.centers, means)
    np.testing.assert_allclose(found.weights, shares, rtol=1e-12)
    if family.covariance_type == "ppca":
        np.testing.assert_allclose(found.variances.mean(axis=1), variances[:, 0], rtol=1e-9)
    else:
        np.testing.assert_allclose(found.variances, variances, rtol=1e-9)
    if family.full or family.covariance_type == "tied":
        np.testing.assert_allclose(found.covariances_along(np.eye(3)), each, rtol=1e-9, atol=1e-9)


def test_means_may_be_init_params(X):
    for fit in (mixture(4), GaussianMixture(4), StudentTMixture(4)):
        given = fit.set_params(init_params=X[:4]).fit(X)
        expected = fit.__class__(**fit.get_params() | {"init_params": "auto", "means_init": X[:4]}).fit(X)
        assert outcome(given) == outcome(expected)
    few = X[:3]  # as many points and components as columns
    expected = outcome(mixture(3).set_params(means_init=few).fit(few))
    assert outcome(mixture(3).set_params(init_params=few).fit(few)) == expected
    rates = np.abs(X[:4]) + 1
    counts = np.abs(X).round()
    given = PoissonMixture(4, init_params=rates).fit(counts)
    assert outcome(given) == outcome(PoissonMixture(4, rates_init=rates).fit(counts))


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("covariance_type", FAMILIES)
@pytest.mark.parametrize("weights", ["free", "equal"])
def test_a_fit_may_start_from_labels_or_responsibilities(X, covariance_type, weights):
    """The first F is that of the parameters of an M-step; responsibilities of 0 and 1 are labels."""
    w = np.random.default_rng(0).integers(1, 3, 200)
    q = np.random.default_rng(1).dirichlet(np.ones(4), size=200)
    labels = q.argmax(axis=1)
    given = {"covariance_type": covariance_type, "weights": weights, "reg_covar": 1e-6, "tol": 0, "max_iter": 3}
    fits = [GaussianMixture(4, init_params=init, **given) for init in (labels, np.eye(4)[labels], q)]
    hard, same, soft = (fit.fit(X + 1000, sample_weight=w) for fit in fits)
    np.testing.assert_allclose(same.lower_bounds_, hard.lower_bounds_, rtol=1e-9)
    for fit, shares in ((hard, np.eye(4)[labels]), (soft, q)):
        shares = shares * w[:, np.newaxis]
        means = shares.T @ (X + 1000) / shares.sum(axis=0)[:, np.newaxis]
        if covariance_type in ("factors", "ppca") or FAMILIES[covariance_type] not in CLOSED:
            continue
        moved = X + 1000 - means[:, np.newaxis]
        each = np.einsum("nc,cni,cnj->cij", shares, moved, moved) / shares.sum(axis=0)[:, np.newaxis, np.newaxis]
        pi = shares.sum(axis=0) / shares.sum()
        reg = 0 if covariance_type == "tied_spherical" else 1e-6
        if "tied" in covariance_type:
            each = np.tensordot(pi, each, axes=1)[np.newaxis]
        variances = np.diagonal(each, axis1=1, axis2=2)
        matrices = np.linalg.inv(each + reg * np.eye(3))
        precisions = {
            "full": matrices,
            "tied": matrices[0],
            "diag": 1 / (variances + reg),
            "spherical": 1 / (variances.mean(axis=1) + reg),
            "tied_spherical": 1 / float(variances.mean(axis=1)[0]),
        }[covariance_type]
        start = {"means_init": means, "precisions_init": precisions, "weights_init": pi if weights == "free" else None}
        expected = GaussianMixture(4, **start, **given).fit(X + 1000, sample_weight=w)
        np.testing.assert_allclose(fit.lower_bounds_, expected.lower_bounds_, rtol=1e-6)


@pytest.mark.parametrize(
    ("n", "init", "message"),
    [
        (200, np.zeros((5, 3)), r"means of shape \(3, 3\), labels of shape \(200,\) or .* \(200, 3\), got .*\(5, 3\)"),
        (200, np.zeros(200), "labels from 0 to n_components - 1 = 2, got"),
        (200, np.repeat([0, 3], 100), "labels from 0 to n_components - 1 = 2, got"),
        (200, np.repeat([0, 1], 100), r"points of each component, got none of \[2\]"),
        (200, np.ones((200, 3)), "responsibilities that are not negative and sum to 1"),
    ],
)
def test_a_wrong_array_of_init_params_is_an_error_that_names_it(X, n, init, message):
    with pytest.raises(ValueError, match=f"init_params .*{message}"):
        GaussianMixture(3, init_params=init).fit(X[:n])


def test_the_start_of_bishop_finds_the_two_groups_of_eruptions():
    X = old_faithful().data
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for name in ("means_init", "init_params"):
        for seed in range(3):
            gm = GaussianMixture(2, random_state=seed, **{name: [[-1.5, 1], [1.5, -1]]}).fit(Z)
            np.testing.assert_allclose(gm.weights_, [0.356, 0.644], atol=0.001)
            assert gm.lower_bound_ == pytest.approx(-385.46 / 272, abs=1e-4)
    # Covariances about means of the points, not about the given ones, ended in another optimum from this start.
    gm = GaussianMixture(2, means_init=[[-1, 1.5], [1, -1.5]]).fit(Z)
    np.testing.assert_allclose(gm.weights_, [0.644, 0.356], atol=0.001)


@pytest.mark.parametrize("n_active", [1, 3, None])
def test_without_a_precision_the_variance_is_that_of_k_means(X, n_active):
    """The initial variance is (14) of Lücke & Forster for the initial means; for C′ = 1 the first bound is (15)."""
    weight = np.random.default_rng(0).random(200)
    gm = mixture(5, n_active=n_active, means_init=X[:5]).fit(X, sample_weight=weight)
    nearest = np.square(X[:, np.newaxis] - X[:5]).sum(axis=2).min(axis=1)
    variance = np.average(nearest, weights=weight) / 3
    same = mixture(5, n_active=n_active, means_init=X[:5], precisions_init=1 / variance).fit(X, sample_weight=weight)
    assert first_bound(gm) == pytest.approx(first_bound(same), rel=1e-12)
    np.testing.assert_allclose(gm.means_, same.means_, rtol=1e-9)
    if n_active == 1:
        assert first_bound(gm) == pytest.approx(-np.log(5) - 1.5 * np.log(2 * np.pi * np.e * variance), rel=1e-12)


def test_equal_weights_may_be_given(X):
    given = mixture(4, weights_init=np.full(4, 0.25), random_state=0).fit(X)
    assert outcome(given) == outcome(mixture(4, random_state=0).fit(X))


def test_means_may_be_those_of_a_fitted_estimator(X):
    km = KMeans(4, random_state=0).fit(X)
    of_estimator = mixture(4, init_params=km).fit(X)
    assert outcome(of_estimator) == outcome(mixture(4, means_init=km.cluster_centers_).fit(X))
    again = mixture(4, init_params=of_estimator).fit(X)
    assert first_bound(again) > first_bound(of_estimator)


def test_a_converged_fit_stays_where_it_is_in_a_warm_start(X):
    gm = mixture(5, random_state=0, tol=1e-4, warm_start=True).fit(X)
    bound = gm.lower_bound_
    gm.fit(X)
    assert gm.n_iter_ == 1  # compared with the last iteration of the previous fit
    assert gm.lower_bound_ == pytest.approx(bound, abs=1e-3)
    assert gm.lower_bound_ >= bound
    assert first_bound(gm) == pytest.approx(bound, rel=1e-12)


def test_without_warm_start_a_fit_forgets_the_one_before(X):
    gm = mixture(5, random_state=0).fit(X + 100)
    assert outcome(gm.fit(X)) == outcome(mixture(5, random_state=0).fit(X))


def test_warm_start_needs_means_of_the_same_shape(X):
    gm = mixture(5, random_state=0, warm_start=True).fit(X)
    with pytest.raises(ValueError, match="warm_start goes on from a fit with n_components=5, got n_components=6"):
        gm.set_params(n_components=6).fit(X)
    with pytest.raises(ValueError, match=r"warm_start.*\(5, 2\).*\(5, 3\)"):
        gm.set_params(n_components=5).fit(X[:, :2])


def test_warm_start_takes_the_dtype_of_the_new_data(X):
    gm = mixture(5, random_state=0, warm_start=True).fit(X)
    assert gm.fit(X.astype(np.float32)).means_.dtype == np.float32
