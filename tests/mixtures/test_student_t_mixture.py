"""Public interface of mixtures of t distributions: all that `GaussianMixture` offers, and robustness to outliers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_t

import cprime
from cprime import GaussianMixture, StudentTMixture
from cprime.selection import sweep
from cprime.theory import Gaussians

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]
C, D = 12, 3
TYPES = ("full", "diag", "spherical", "tied", "tied_spherical")


def places(n_components=C):
    return 10.0 * np.array(list(np.ndindex(3, 2, 2)))[:n_components]


def points(n=1200, n_components=C, dtype=np.float64):
    """Return points of clusters with t-distributed noise of three degrees of freedom."""
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((n, D)) / np.sqrt(rng.chisquare(3, (n, 1)) / 3)
    return (places(n_components)[np.arange(n) % n_components] + noise).astype(dtype)


def mixture(n_components=C, **given):
    fixed = {"random_state": 0, "max_iter": 15, "tol": 1e-300, "reg_covar": 0.0}
    return StudentTMixture(n_components, **{**fixed, "init_params": places(n_components), **given})


def same(one, other):
    names = ("means_", "covariances_", "weights_", "dof_", "labels_", "lower_bound_")
    return all(np.asarray(getattr(one, n)).tobytes() == np.asarray(getattr(other, n)).tobytes() for n in names)


@pytest.mark.parametrize("kind", TYPES)
def test_of_many_degrees_of_freedom_it_is_the_gaussian_mixture(kind):
    X, w = points(600, 3), np.random.default_rng(2).integers(0, 3, 600)
    given = {"covariance_type": kind, "max_iter": 30, "tol": 1e-300, "init_params": places(3), "reg_covar": 0.0}
    ours = StudentTMixture(3, dof=1e9, **given).fit(X, sample_weight=w)
    theirs = GaussianMixture(3, momentum=False, **given).fit(X, sample_weight=w)
    for name in ("means_", "covariances_", "precisions_cholesky_", "weights_", "lower_bound_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-6)
    assert_array_equal(ours.labels_, theirs.labels_)
    assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-6)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert_allclose(ours.bic(X), theirs.bic(X), rtol=1e-7)
    assert_allclose(ours.score_outliers(X), 1, atol=1e-6)


@pytest.mark.parametrize("kind", TYPES)
def test_momentum_finds_the_same_sooner_and_never_falls(kind):
    X = points()
    plain, faster = (mixture(covariance_type=kind, momentum=m, max_iter=60, tol=1e-5).fit(X) for m in (False, True))
    assert faster.n_iter_ <= plain.n_iter_
    assert (np.diff(faster.lower_bounds_) >= -1e-9).all()
    assert_allclose(faster.lower_bound_, plain.lower_bound_, atol=1e-3)


def test_momentum_of_few_components_is_for_estimates():
    X = points(600, 3)
    for dof, momentum in (("estimate", True), (4.0, False)):
        assert same(mixture(3, dof=dof).fit(X), mixture(3, dof=dof, momentum=momentum).fit(X))


def test_outliers_move_nothing_and_are_told():
    rng = np.random.default_rng(3)
    X = np.vstack([rng.standard_normal((400, 2)), rng.standard_normal((400, 2)) + 9, rng.uniform(-60, 60, (40, 2))])
    tm, gm = (kind(2, init_params=X[[0, 400]], max_iter=200).fit(X) for kind in (StudentTMixture, GaussianMixture))
    assert_allclose(tm.means_, [[0, 0], [9, 9]], atol=0.2)
    assert np.abs(gm.means_ - [[0, 0], [9, 9]]).max() > 1
    scores = tm.score_outliers(X)
    far = np.min([np.linalg.norm(X - c, axis=1) for c in (0, 9)], axis=0) > 6
    assert scores[far].max() < scores[:800].min()
    assert scores.min() > 0
    assert_allclose(scores.mean(), 1, atol=0.01)
    assert_allclose(tm.nearest(X)[1][:400].mean(), np.sqrt(np.pi / 2) / np.sqrt(tm.covariances_[0, 0, 0]), rtol=0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", TYPES)
def test_every_family_comes_back_and_goes_on(kind, dtype, tmp_path):
    X = points(200, 2, dtype)
    tm = mixture(2, covariance_type=kind, max_iter=4).fit(X)
    tm.save(tmp_path / "model.safetensors")
    loaded = cprime.load(tmp_path / "model.safetensors")
    assert same(loaded, tm)
    assert_array_equal(loaded.predict_proba(X), tm.predict_proba(X))
    parts = mixture(2, covariance_type=kind)
    assert parts.partial_fit(X).partial_fit(X).score(X) > parts.fit(X).score(X) - 0.2
    again = mixture(2, covariance_type=kind, means_init=tm.means_, precisions_init=tm.precisions_, max_iter=1).fit(X)
    assert again.lower_bounds_[0] > tm.lower_bound_ - 0.2


def test_a_damaged_file_is_refused(tmp_path):
    tm = mixture(2).fit(points(50, 2))
    tm.dof_ = np.array([1.0, -1.0])
    with pytest.raises(ValueError, match="dof_ is not what a fit leaves, C = 2"):
        tm.save(tmp_path / "model.safetensors")
    del tm.dof_
    with pytest.raises(ValueError, match="has no dof_"):
        tm.save(tmp_path / "model.safetensors")
    with pytest.raises(AttributeError, match="no attribute 'dof_'"):
        tm.predict(points(50, 2))


def test_batches_reach_the_fit_of_all_rows():
    X = points(6000, 4)
    rows = np.random.default_rng(5).permutation(len(X))
    tm, whole = mixture(4), mixture(4).fit(X)
    for batch in np.split(X[rows], 12):
        tm.partial_fit(batch)
    assert_allclose(tm.score(X), whole.score(X), atol=0.01)
    assert_allclose(tm.means_, whole.means_, atol=0.1)
    assert_allclose(tm.counts_.sum(), 6000)


def test_a_warm_start_goes_on():
    X = points()
    once, twice = mixture(max_iter=10, momentum=False).fit(X), mixture(max_iter=5, momentum=False, warm_start=True)
    twice.fit(X).fit(X)
    assert_allclose(twice.dof_, once.dof_, rtol=1e-9)
    assert_allclose(twice.means_, once.means_, rtol=1e-9)
    fixed = mixture(2, dof=4.0, warm_start=True).fit(points(50, 2))
    with pytest.raises(ValueError, match=r"a fit with dof=4\.0, got dof=5"):
        fixed.set_params(dof=5.0).fit(points(50, 2))
    assert_array_equal(fixed.dof_, 4)
    fixed.set_params(dof="estimate").fit(points(50, 2))
    with pytest.raises(ValueError, match="a fit with dof='estimate', got dof=5"):
        fixed.set_params(dof=5.0).partial_fit(points(50, 2))


def test_a_sweep_finds_the_number_of_components():
    X = points(300, 3)
    found = sweep(mixture(tol=1e-3, reg_covar=1e-6, init_params="auto"), X, range(2, 5), n_init=1, random_state=0)
    assert found.best_n_components() == 3
    assert_array_equal(found.n_parameters, [2 * 10 + 1, 3 * 10 + 2, 4 * 10 + 3])


def test_what_is_of_gaussians_alone_says_so():
    tm = mixture(2).fit(points(60, 2))
    with pytest.raises(AttributeError, match=r"scikit-learn has no mixture of t distributions.* GaussianMixture"):
        _ = tm.to_sklearn
    with pytest.raises(TypeError, match="must be a KMeans or GaussianMixture, got StudentTMixture"):
        Gaussians.from_estimator(tm)


def test_precisions_of_its_own_and_given_weights():
    X, precisions = points(200, 2), np.full((2, D), 0.5)
    tm = mixture(2, covariance_type="diag", means_init=places(2), precisions_init=precisions, weights_init=[0.25, 0.75])
    assert_allclose(tm.fit(X).means_, places(2), atol=0.5)


def test_draws_are_as_the_data():
    tm = mixture(2, dof=5.0).fit(points(400, 2))
    drawn, labels = tm.set_params(random_state=1).sample(20_000)
    assert (np.diff(labels) >= 0).all()
    assert_allclose(tm.fit(drawn).score(drawn), tm.score(drawn), rtol=1e-9)
    for c in range(2):
        covariance = np.cov(drawn[labels == c].T)
        assert_allclose(np.diag(covariance), np.diag(tm.covariances_[c]) * 5 / 3, rtol=0.2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_t_mixtures_of_degenerate_data_are_finite(dtype):
    one = StudentTMixture().fit(np.array([[1.0, 2.0]], dtype=dtype))
    assert_array_equal(one.means_, [[1, 2]])
    equal = StudentTMixture(2, init_params="random", random_state=0).fit(np.ones((9, 2), dtype=dtype))
    assert np.isfinite(equal.score(np.ones((9, 2), dtype=dtype)))
    far = StudentTMixture(covariance_type="diag").fit(np.array([[0.0], [1.0], [2.0], [1e3]], dtype=dtype))
    assert np.isfinite(far.lower_bound_)
    assert_allclose(far.means_, 1, atol=0.5)


def test_the_report_names_it():
    pytest.importorskip("jinja2")
    assert "mixture of t distributions" in mixture(2).fit(points(60, 2)).report(points(60, 2)).html


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"dof": 0.0}, ValueError, "dof must be > 0, got 0.0"),
        ({"dof": -1}, ValueError, "dof must be > 0, got -1"),
        ({"dof": True}, TypeError, "dof must be 'estimate', 'shared' or a number > 0, got True"),
        ({"dof": 10**400}, ValueError, r"dof must be at most 1\.798e\+308, got a larger integer"),
        ({"dof": np.inf}, ValueError, "dof must be finite"),
        ({"dof": "auto"}, ValueError, "dof must be 'estimate', 'shared' or a number > 0, got 'auto'"),
        ({"dof": None}, TypeError, "dof must be .estimate., .shared. or a number > 0, got None"),
        ({"covariance_type": "factors"}, ValueError, r"one of \['full', 'diag', .*\], got 'factors'"),
        ({"n_active": 13}, ValueError, "n_active must be at most n_components=12, got 13"),
    ],
)
def test_arguments_that_are_none(given, error, text):
    with pytest.raises(error, match=text):
        mixture(**given).fit(points())


@pytest.mark.parametrize("kind", TYPES)
def test_marginals_have_the_degrees_of_freedom_and_can_be_saved(kind, tmp_path):
    """Some coordinates of a t distribution again have a t distribution with the same ν."""
    tm = mixture(3, covariance_type=kind, max_iter=3).fit(points(300, 3))
    part = tm.marginal([2, 0])
    assert isinstance(part, StudentTMixture)
    assert_array_equal(part.dof_, tm.dof_)
    covariances = {
        "full": lambda: tm.covariances_,
        "tied": lambda: [tm.covariances_] * 3,
        "diag": lambda: [np.diag(v) for v in tm.covariances_],
        "spherical": lambda: [v * np.eye(D) for v in tm.covariances_],
        "tied_spherical": lambda: [tm.covariances_ * np.eye(D)] * 3,
    }[kind]()
    X = points(20)[:, [2, 0]]
    densities = [
        w * multivariate_t(mean[[2, 0]], np.asarray(S)[np.ix_([2, 0], [2, 0])], dof).pdf(X)
        for w, mean, S, dof in zip(tm.weights_, tm.means_, covariances, tm.dof_, strict=True)
    ]
    assert_allclose(part.score_samples(X), np.log(np.sum(densities, axis=0)), rtol=1e-9)
    part.save(tmp_path / "part.safetensors")
    assert_array_equal(cprime.load(tmp_path / "part.safetensors").score_samples(X), part.score_samples(X))


def test_what_gaussians_alone_can_do():
    tm = mixture(2).fit(points(100, 2))
    for call in (lambda: tm.condition([0], [1.0]), lambda: tm.regress(points(5), [0])):
        with pytest.raises(ValueError, match="need Gaussian components"):
            call()
