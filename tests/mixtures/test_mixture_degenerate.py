"""Collapsed components are repaired and logged; a fit never returns NaN and never crashes."""

import logging
import warnings

import numpy as np
import pytest
from mixture_data import DTYPES, FAMILIES, WEIGHTS, clustered, matrices, mixture
from sklearn.exceptions import ConvergenceWarning

from cprime import FuzzyKMeans, GaussianMixture, SoftKMeans, StudentTMixture, em
from cprime.em.diverse_starts import PartitionStart
from cprime.estimators import problems
from cprime.estimators.fitted import centers_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
    pytest.mark.filterwarnings("ignore:.* singular covariance"),
]
every_family = pytest.mark.parametrize("family", FAMILIES)
factors_too = pytest.mark.parametrize("family", [*FAMILIES, "factors", "ppca"])
every_weights = pytest.mark.parametrize("weights", WEIGHTS)
every_assignment = pytest.mark.parametrize("assignment", ["soft", "hard", "sampled"])


def assert_sound(gm, X):
    C, D = gm.means_.shape
    assert np.isfinite(gm.means_).all()
    assert np.isfinite(gm.lower_bounds_).all()
    assert np.isfinite(gm.lower_bound_)
    assert np.isfinite(gm.weights_).all()
    assert gm.weights_.sum(dtype=np.float64) == pytest.approx(1)
    covariances = gm._parameters().covariances_along(np.eye(D))
    assert np.isfinite(covariances).all()
    assert (np.linalg.eigvalsh(covariances) > 0).all()
    if hasattr(gm, "covariances_"):
        values = np.linalg.eigvalsh(matrices(gm.covariance_type, gm.covariances_, C, D).astype(np.float64))
        lost = 0.0 if gm.means_.dtype == np.float64 else D * np.finfo(np.float32).eps  # rounding of results in float32
        assert (values > -lost * values[:, -1:]).all()
        assert np.isfinite(np.asarray(gm.precisions_)).all()
        assert np.isfinite(np.asarray(gm.precisions_cholesky_)).all()
    assert np.isfinite(gm.score(X))
    probabilities = gm.predict_proba(X)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert np.isfinite(gm.bounds(X)).all()
    assert np.isfinite(gm.sample(20)[0]).all()


CASES = {
    "all equal": (np.full((40, 3), 1.1), 4),
    "few distinct": (np.repeat(clustered(6, 2), 15, axis=0), 9),
    "a constant feature": (np.column_stack([clustered(90, 2), np.full(90, 7.0)]), 5),
    "a feature twice": (np.column_stack([clustered(90, 2)] * 2), 5),
    "C near N": (clustered(20, 3), 18),
    "C = N": (clustered(12, 3), 12),
    "fewer points than features": (clustered(15, 40), 3),
    "one dimension": (clustered(60, 1), 6),
    "an outlier": (np.vstack([clustered(80, 2), [[1e6, -1e6]]]), 5),
    "one component": (clustered(50, 3), 1),
}


@factors_too
@every_weights
@every_assignment
@pytest.mark.parametrize("reg_covar", [0.0, 1e-6])
@pytest.mark.parametrize("name", CASES)
def test_mixtures_of_degenerate_data_are_sound(name, family, weights, assignment, reg_covar):
    X, C = CASES[name]
    for dtype in DTYPES:
        for n_active in (1, None) if C > 1 else (None,):
            gm = mixture(C, family, weights, assignment=assignment, n_active=n_active, reg_covar=reg_covar, max_iter=8)
            data = X.astype(dtype)
            assert_sound(gm.fit(data), data)


@factors_too
@pytest.mark.parametrize("search", ["graph", "exact", "estimated"])
@pytest.mark.parametrize("name", ["few distinct", "a constant feature", "C near N", "an outlier"])
def test_partial_searches_of_degenerate_data_are_sound(name, family, search):
    X, C = CASES[name]
    for n_active in (1, 3):
        gm = mixture(C, family, n_active=n_active, search=search, n_neighbors=3, reg_covar=0, max_iter=8).fit(X)
        assert_sound(gm, X)


@pytest.mark.parametrize("family", ["spherical", "diag", "full"])
@pytest.mark.parametrize("assignment", ["soft", "hard"])
def test_a_component_with_one_point_is_repaired_and_logged(family, assignment, caplog):
    X = np.vstack([clustered(60, 2), [[100.0, 100.0]]])
    gm = mixture(2, family, assignment=assignment, n_active=None, means_init=X[[0, -1]], reg_covar=0, max_iter=5)
    with caplog.at_level(logging.INFO, logger="cprime"):
        gm.fit(X)
    assert_sound(gm, X)
    expected = "1 singular covariance(s) repaired" if family == "full" else "replaced by a small positive one"
    assert expected in caplog.text
    np.testing.assert_allclose(gm.means_[1], [100, 100])
    assert gm.labels_[-1] == 1


@pytest.mark.parametrize("family", ["tied", "full"])
def test_a_singular_covariance_is_repaired_and_logged(family, caplog):
    X = np.column_stack([clustered(90, 2)] * 2)
    with caplog.at_level(logging.INFO, logger="cprime"):
        gm = mixture(3, family, reg_covar=0, max_iter=5).fit(X)
    assert_sound(gm, X)
    assert "singular covariance" in caplog.text


@pytest.mark.parametrize("family", ["spherical", "diag", "full"])
@every_weights
def test_a_component_without_points_is_given_a_shape_and_logged(family, weights, caplog):
    """The mean of a component without points does not change, and its weight, if free, becomes zero."""
    X = clustered(80, 2)
    far = np.array([[1e4, 1e4]])
    gm = mixture(3, family, weights, n_active=1, means_init=np.vstack([X[:2], far]), max_iter=4)
    with caplog.at_level(logging.INFO, logger="cprime"):
        gm.fit(X)
    assert_sound(gm, X)
    assert "without points" in caplog.text
    np.testing.assert_array_equal(gm.means_[2], far[0])
    assert gm.weights_[2] == (0 if weights == "free" else pytest.approx(1 / 3))
    assert set(gm.labels_) == {0, 1}
    covariances = matrices(family, gm.covariances_, 3, 2)
    lows, highs = np.sort(np.linalg.eigvalsh(covariances[:2]).ravel())[[0, -1]]
    assert lows * (1 - 1e-9) <= np.linalg.eigvalsh(covariances[2]).min()
    assert np.linalg.eigvalsh(covariances[2]).max() <= highs * (1 + 1e-9)


@every_family
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_offset_moves_the_means_alone(family, dtype):
    """For multiples of 1/16, an offset of 4096 changes no difference, not even in single precision."""
    X = (np.round(16 * clustered(300, 3)) / 16).astype(dtype)
    near = mixture(4, family, n_active=None, means_init=X[:4], max_iter=5).fit(X)
    far = mixture(4, family, n_active=None, means_init=X[:4] + dtype(4096), max_iter=5).fit(X + dtype(4096))
    loose = 1 if dtype == np.float64 else 1e4
    np.testing.assert_allclose(far.means_ - 4096, near.means_, atol=1e-7 * loose)
    np.testing.assert_allclose(far.covariances_, near.covariances_, rtol=1e-6 * loose, atol=1e-7 * loose)
    np.testing.assert_allclose(far.lower_bounds_, near.lower_bounds_, atol=1e-7 * loose)


def test_covariances_of_rounding_are_repaired_in_a_few_steps(monkeypatch):
    """If rounding makes a variance negative, as for many equal points, the repair starts at that variance's size."""
    from cprime.model import covariance

    rng = np.random.default_rng(0)
    matrices = np.zeros((50, 3, 3))
    matrices[1:] = np.einsum("c,ij->cij", -(10.0 ** -rng.uniform(10, 40, 49)), np.eye(3))
    tried, factors = [], covariance._factors
    monkeypatch.setattr(covariance, "_factors", lambda given: tried.append(len(given)) or factors(given))
    found, _ = covariance.repaired(matrices, scale=covariance.DataScale(2.0, np.zeros((1, 1))))
    assert (np.linalg.eigvalsh(found) > 0).all()
    assert sum(n == 1 for n in tried) < 15 * len(matrices)


FAMILIES = ["full", "diag", "spherical", "factors", "ppca"]


@pytest.mark.parametrize("distance", [30.0, 1e15])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_component_of_one_point_gets_the_same_variance_in_every_family(family, distance):
    """The variance is 1e-10 of the others' mean variance, but at least the squared spacing of floats at the mean."""
    X = clustered(400, 2).astype(np.float64)
    X[-1] = distance
    gm = GaussianMixture(2, covariance_type=family, reg_covar=0.0, means_init=[X[:-1].mean(axis=0), X[-1]], max_iter=5)
    gm.fit(X)
    np.testing.assert_array_equal(gm.means_[1], X[-1])
    usual = X[:-1].var(axis=0).mean()
    if family in ("factors", "ppca"):  # for these families the noise is repaired; the loadings are 0
        usual = gm.noise_variances_[0].mean()
    expected = max(1e-10 * usual, (np.finfo(np.float64).eps * distance) ** 2)
    np.testing.assert_allclose(1 / gm._parameters().least_variances[1], 1 / expected, rtol=1e-3)
    assert np.isfinite(gm.score_samples(X)).all()


def tables():
    """Return rounded numbers with many equal values: a few points share a plane or coincide."""
    return np.random.default_rng(3).normal(size=(90, 3)).round(0) + np.repeat(3 * np.eye(3), 30, axis=0)


@pytest.mark.parametrize("family", ["spherical", "diag", "full"])
def test_a_start_that_has_collapsed_wins_over_no_other(family, monkeypatch, caplog):
    X, runs, run = tables(), [], em.run

    def seen(*args):
        runs.append(run(*args))
        return runs[-1]

    monkeypatch.setattr("cprime.em.solving.run", seen)
    n_decided = 0
    for C in (4, 7, 10):
        runs.clear()
        caplog.clear()
        with caplog.at_level(logging.INFO, "cprime"):
            gm = GaussianMixture(C, covariance_type=family, init_params="random", n_init=12, random_state=0).fit(X)
        bounds = np.array([fit.bound for fit in runs])
        collapsed = np.array([fit.model.n_collapsed for fit in runs])
        sound = np.flatnonzero(collapsed == 0) if (collapsed == 0).any() else np.arange(12)
        assert gm.lower_bound_ == bounds[sound].max()
        assert caplog.text.count("collapsed onto a few points") == np.count_nonzero(collapsed)
        n_decided += collapsed[bounds.argmax()] > 0
    assert n_decided > 0 or family == "spherical"


def test_what_all_components_lack_is_no_collapse():
    """A constant column is a property of the data and does not count as a collapse of components."""
    X = np.column_stack([clustered(200, 2, np.float64), np.ones(200)])
    gm = GaussianMixture(4, covariance_type="diag", n_init=3, random_state=0).fit(X)
    model = gm._parameters(gm.reg_covar)
    assert (model.least_variances <= 2 * gm.reg_covar).all()
    assert model.n_collapsed == 0


def test_several_starts_are_of_different_kinds(monkeypatch):
    kinds, place = [], problems.place

    def seen(data, n_components, init, *given):
        kinds.append(init)
        return place(data, n_components, init, *given)

    monkeypatch.setattr(problems, "place", seen)
    X = clustered(300, 2, np.float64)
    GaussianMixture(4, n_init=5, random_state=0).fit(X)
    partitions = [PartitionStart("ward", "raw"), PartitionStart("ward", "columns")]
    assert kinds == ["jumps", "k-means++", "random", *partitions]
    for init, expected in (("random_from_data", "random"), ("k-means++", "k-means++")):
        kinds.clear()
        GaussianMixture(4, init_params=init, n_init=2, random_state=0).fit(X)
        assert kinds == [expected] * 2


@pytest.mark.parametrize("n_active", [3, 1], ids=["exact", "truncated"])
@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
@pytest.mark.parametrize("family", [GaussianMixture, StudentTMixture])
def test_single_precision_sees_narrow_components_that_lie_far_apart(family, covariance_type, n_active):
    """The likelihood equals that of a fit in float64 for a column of few large values that are exact in float32."""
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.normal(size=500), rng.choice([1e6, 2000001, 3.5e6], size=500)])
    given = {"covariance_type": covariance_type, "n_active": n_active, "random_state": 0}
    single, double = (family(3, **given).fit(X.astype(dtype)) for dtype in (np.float32, np.float64))
    assert single.lower_bound_ == pytest.approx(double.lower_bound_, abs=1e-4)
    assert single.bic(X.astype(np.float32)) < family(1, **given | {"n_active": 1}).fit(X).bic(X)


@pytest.mark.parametrize("weights", ["free", "equal"])
@pytest.mark.parametrize("n_active", [3, 1], ids=["exact", "truncated"])
def test_single_precision_sees_narrow_components_of_one_covariance_that_lie_far_apart(n_active, weights):
    """Whitened rows lie as far from the origin as the number of standard deviations between the components."""
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.normal(size=500), rng.choice([1e4, 20001, 3.5e4], size=500)])
    given = {"covariance_type": "tied", "n_active": n_active, "weights": weights, "random_state": 0}
    single, double = (GaussianMixture(3, **given).fit(X.astype(dtype)) for dtype in (np.float32, np.float64))
    assert single.lower_bound_ == pytest.approx(double.lower_bound_, abs=0.1)  # float64 resolves 10⁻⁸
    np.testing.assert_allclose(single.score_samples(X.astype(np.float32)).mean(), single.lower_bound_, atol=1e-4)


def test_a_sentinel_value_has_the_density_of_its_own_component():
    """If three of 1,000 rows contain 9999999 in place of a number, their densities agree with those in float64."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2)).astype(np.float32)
    X[[3, 500, 900], 1] = 9999999
    gm = GaussianMixture(3, random_state=0).fit(X)
    double = GaussianMixture(3, random_state=0).fit(X.astype(np.float64))
    np.testing.assert_allclose(gm.score_samples(X), double.score_samples(X.astype(np.float64)), atol=1e-3)


FROM_GROUPS = {"n_active": 5, "reg_covar": 0.02, "max_iter": 8, "tol": 0, "momentum": False}


@pytest.mark.parametrize(
    "soft",
    [
        *(
            pytest.param(GaussianMixture(40, covariance_type=name, **FROM_GROUPS), id=name)
            for name in ("spherical", "diag")
        ),
        pytest.param(SoftKMeans(40, stiffness=1, max_iter=3), id="soft k-means"),
        pytest.param(FuzzyKMeans(40, regularizer="entropy", regularization=1.0, max_iter=3), id="fuzzy k-means"),
    ],
)
def test_no_mean_is_subnormal_where_all_near_points_are_zero(soft):
    """Group j of the points is at e_j d_j, so coordinate j of other means is 0, but for two effects.

    Responsibilities of far points may be subnormal. And if a start is not 0 there, the mean becomes 0 only up to
    rounding errors; each iteration makes it smaller, until it is below the least normal number.
    """
    C, each = 40, 25
    places = np.diag(np.linspace(0.5, 10, C))
    noise = np.random.default_rng(0).normal(size=(C * each, 1))
    X = np.column_stack([np.repeat(places, each, axis=0), noise]).astype(np.float32)
    start = (np.column_stack([places, np.zeros(C)]) + 0.1).astype(np.float32)
    soft.set_params(**{"init" if hasattr(soft, "init") else "init_params": start})
    means = np.abs(centers_of(soft.fit(X)))
    assert not ((means > 0) & (means < np.finfo(np.float32).tiny)).any()


@pytest.mark.parametrize(("covariance_type", "C"), [("full", 1), ("full", 3), ("tied", 3), ("diag", 1)])
def test_a_singular_covariance_is_warned_of_unless_it_is_regularized(covariance_type, C):
    X = np.random.default_rng(0).normal(size=(200, 3))
    estimator = GaussianMixture(C, covariance_type=covariance_type, reg_covar=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.fit(X * [1e-3, 1, 1e3])
    X[:, 2] = 7 if covariance_type == "diag" else X[:, 0] - X[:, 1]
    with pytest.warns(ConvergenceWarning, match=f"^{C} component.* singular covariance"):
        estimator.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.set_params(reg_covar=1e-6).fit(X)
