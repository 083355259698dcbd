"""Laws: points with labels keep their clusters if this is requested, and fixed centers and components stay."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cprime
from cprime import GaussianMixture, KMeans
from cprime.datasets import clusters

COVARIANCES = ("full", "diag", "spherical", "tied", "tied_spherical", "factors", "ppca")
SIZES = {"few": (3, 40), "more": (12, 1500)}


def labelled(size, seed=0):
    """Return points, their number of clusters, and wrong labels of some points, −1 for the others."""
    C, n = SIZES[size]
    X = clusters(n, C, 4, random_state=seed).data
    rng = np.random.RandomState(seed)
    y = np.full(n, -1)
    known = rng.choice(n, n // 10, replace=False)
    y[known] = rng.randint(C, size=len(known))
    return X, C, y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "options", [{}, {"init": "random"}, {"metric": "cosine"}, {"jumps": True}, {"search": "full"}, {"n_init": 2}]
)
def test_points_with_labels_keep_their_cluster(options, size, seed):
    X, C, y = labelled(size)
    fitted = KMeans(C, semi_supervised=True, random_state=seed, **options).fit(X, y)
    assert (fitted.labels_[y >= 0] == y[y >= 0]).all()
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) if "metric" in options else X
    J = np.square(rows - fitted.cluster_centers_[fitted.labels_]).sum()
    assert fitted.inertia_ == pytest.approx(J)
    nearest = fitted.predict(X)
    assert (fitted.labels_[y < 0] == nearest[y < 0]).all()


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("options", [{}, {"n_active": 2, "search": "full"}, {"assignment": "hard"}])
@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("size", SIZES)
def test_points_with_labels_belong_to_their_component_alone(options, covariance_type, size):
    X, C, y = labelled(size)
    fitted = GaussianMixture(
        C,
        semi_supervised=True,
        covariance_type=covariance_type,
        reg_covar=1e-4,
        max_iter=30,
        tol=0,
        random_state=0,
        **options,
    )
    fitted.fit(X, y)
    assert (fitted.labels_[y >= 0] == y[y >= 0]).all()
    assert (np.diff(fitted.lower_bounds_) > -1e-3).all()
    assert fitted.lower_bound_ < fitted.score(X)


@pytest.mark.parametrize("size", SIZES)
def test_with_all_labels_one_m_step_is_the_answer(size):
    X, C, _ = labelled(size)
    y = np.arange(len(X)) % C
    weights = np.random.RandomState(0).uniform(0.5, 2, len(X))
    means = np.array([np.average(X[y == c], axis=0, weights=weights[y == c]) for c in range(C)])
    fitted = KMeans(C, semi_supervised=True, random_state=0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(fitted.cluster_centers_, means, rtol=1e-5, atol=1e-5)
    mixture = GaussianMixture(C, semi_supervised=True, reg_covar=0, random_state=0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(mixture.means_, means, rtol=1e-5, atol=1e-5)
    for c in range(C):
        expected = np.cov(X[y == c].T, aweights=weights[y == c], bias=True)
        np.testing.assert_allclose(mixture.covariances_[c], expected, rtol=1e-4, atol=1e-4)
        assert mixture.weights_[c] == pytest.approx(weights[y == c].sum() / weights.sum(), rel=1e-5)


@pytest.mark.parametrize("n_free", [0, 1, 5])
def test_centers_of_empty_clusters_move_to_points_without_labels_only(n_free):
    """A point with a label of another cluster cannot be the point of an empty one; the fit converges all the same."""
    X, C, _ = labelled("few")
    y = np.where(np.arange(len(X)) < n_free, -1, 0)
    far = np.vstack([X[:1], np.full((C - 1, X.shape[1]), 1e3)])
    fitted = KMeans(C, semi_supervised=True, init=far, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted.fit(X, y)
    assert fitted.converged_
    assert fitted.n_relocated_ == np.count_nonzero(fitted.counts_[1:]) == min(n_free, C - 1)
    assert [str(each.message).split(". ")[1] for each in caught] == (
        ["Possibly due to labels in y that leave too few points for other clusters."] if n_free < C - 1 else []
    )


def test_labels_of_data_in_chunks_are_those_of_the_array(tmp_path):
    X, C, y = labelled("more")
    np.save(tmp_path / "X.npy", X)
    chunks = cprime.open_data(tmp_path / "X.npy", chunk_rows=400)
    init = X[:C].copy()
    for make in (
        lambda: KMeans(C, semi_supervised=True, init=init, n_threads=1),
        lambda: GaussianMixture(
            C, semi_supervised=True, means_init=init, covariance_type="diag", max_iter=500, n_threads=1
        ),
    ):
        one, other = make().fit(X, y), make().fit(chunks, y)
        assert (one.labels_ == other.labels_).all()
        assert (other.labels_[y >= 0] == y[y >= 0]).all()


def test_targets_of_another_step_are_no_labels():
    X, C, _ = labelled("few")
    targets = np.arange(len(X)) % C
    expected = KMeans(C, random_state=0).fit(X)
    mixture = GaussianMixture(C, random_state=0).fit(X)
    for y in (targets, targets.astype(float), targets.astype(str), list(targets), np.where(targets, 1, -1)):
        assert (KMeans(C, random_state=0).fit(X, y).cluster_centers_ == expected.cluster_centers_).all()
        assert (KMeans(C, random_state=0).fit_predict(X, y) == expected.labels_).all()
        assert (GaussianMixture(C, random_state=0).fit(X, y).means_ == mixture.means_).all()
    make_pipeline(StandardScaler(), KMeans(C, random_state=0)).fit(X, targets)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cls", [KMeans, GaussianMixture])
def test_fit_predict_uses_labels_as_fit_does(cls, size):
    X, C, y = labelled(size)
    estimator = cls(C, semi_supervised=True, random_state=0)
    expected = clone(estimator).fit(X, y).labels_
    assert (estimator.fit_predict(X, y) == expected).all()
    assert (expected[y >= 0] == y[y >= 0]).all()
    assert (clone(estimator).fit(X).labels_[y >= 0] != y[y >= 0]).any()


@pytest.mark.parametrize(
    "options", [{}, {"search": "graph", "n_clusters": 200}, {"metric": "cosine"}, {"init": "two-level"}]
)
def test_fixed_centers_stay(options):
    X = clusters(20_000, 60, 6, random_state=0).data
    fixed = X[:3] + 0.5
    fitted = KMeans(**{"n_clusters": 20, "random_state": 0, "fixed": fixed, **options}).fit(X)
    expected = fixed / np.linalg.norm(fixed, axis=1, keepdims=True) if "metric" in options else fixed
    np.testing.assert_allclose(fitted.cluster_centers_[:3], expected, rtol=1e-6)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) if "metric" in options else X
    if "metric" not in options:
        means = [rows[fitted.labels_ == c].mean(axis=0) for c in range(3, 20)]
        np.testing.assert_allclose(fitted.cluster_centers_[3:20], means, atol=0.3)
    labels = fitted.labels_ if fitted.final_assignment_ == "exact" else fitted.predict(X)
    J = np.square(rows - fitted.cluster_centers_[labels]).sum()
    assert fitted.inertia_ == pytest.approx(J, rel=1e-3)


def test_fixed_center_without_points_is_not_moved():
    X = clusters(500, 4, 3, random_state=0).data
    fixed = X[:1] + 1e3
    with pytest.warns(match="Number of distinct clusters"):
        fitted = KMeans(5, fixed=fixed, random_state=0).fit(X)
    assert fitted.converged_
    assert (fitted.cluster_centers_[0] == fixed[0].astype(fitted.cluster_centers_.dtype)).all()
    assert (fitted.counts_[1:] > 0).all()


@pytest.mark.parametrize("with_labels", [False, True])
@pytest.mark.parametrize("n_components", [5, 20])
@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
def test_fixed_components_stay(covariance_type, n_components, with_labels):
    X = clusters(2000, 5, 3, random_state=0).data
    known = GaussianMixture(n_components, covariance_type=covariance_type, max_iter=300, random_state=0).fit(X)
    fixed, y = (known.means_[:2] + 0.1, known.covariances_[:2]), known.labels_
    again = clone(known).set_params(fixed=fixed, semi_supervised=with_labels, reg_covar=0.0, tol=1e-4)
    labels = np.where(np.arange(len(y)) % 10, -1, y) if with_labels else None
    for fitted in (again.fit(X, labels), clone(again).set_params(means_init=known.means_).fit(X, labels)):
        np.testing.assert_allclose(fitted.means_[:2], fixed[0], rtol=1e-6)
        np.testing.assert_allclose(fitted.covariances_[:2], fixed[1], rtol=1e-4)
        assert not np.isin(known.means_, fitted.means_).any()
        assert (np.diff(fitted.lower_bounds_) > -1e-6).all()
    warm = known.set_params(warm_start=True, fixed=fixed)
    assert (warm.fit(X[::2]).means_[:2] == fixed[0]).all()


def test_bad_input_names_argument_value_and_expectation():
    X, _, y = labelled("few")
    y[:2] = 1
    out_of_range = np.where(y == 1, 3, y)
    mixture, variances = partial(GaussianMixture, 3, covariance_type="diag"), np.ones((2, 4))
    for make, labels, message in [
        (
            lambda: KMeans(3, semi_supervised=True),
            y[:5],
            r"y must have one label for each of the 40 rows, got shape \(5,\)",
        ),
        (
            lambda: KMeans(3, semi_supervised=True),
            np.where(y == 1, -2, y),
            "y must have labels from −1 .unknown. to 2, got -2 in row",
        ),
        (
            lambda: GaussianMixture(3, semi_supervised=True),
            out_of_range,
            "y must have labels from −1 .unknown. to 2, got 3 in row",
        ),
        (
            lambda: KMeans(3, semi_supervised=True),
            y * 0.5,
            "y must be integers, −1 for unknown, got values of type float",
        ),
        (
            lambda: KMeans(3, semi_supervised=True, search="graph"),
            y,
            "y with labels needs search='auto' or 'full', got 'graph'",
        ),
        (
            lambda: KMeans(3, semi_supervised=True, size_max=np.full(3, 20)),
            y,
            r"y with labels needs size_max=None, got array\(\[20",
        ),
        (lambda: KMeans(3, semi_supervised=True, epsilon=0.1), y, "y with labels needs epsilon=0.0, got 0.1"),
        (
            lambda: KMeans(3, fixed=X[:4]),
            None,
            r"fixed must have shape \(m, 4\), with m from 1 to 3, the number of components, got \(4, 4\)",
        ),
        (lambda: KMeans(3, fixed=X[:1] * np.nan), None, "fixed contains NaN"),
        (lambda: KMeans(3, fixed=[]), None, "fixed: Expected 2D array"),
        (lambda: mixture(fixed=[]), None, r"fixed must be a pair \(means, covariances\) of known components, got \[\]"),
        (lambda: KMeans(3, fixed=X[:1], jumps=True), None, "jumps=True needs fixed=None"),
        (lambda: KMeans(3, fixed=X[:1], size_max=20), None, "fixed needs size_max=None"),
        (lambda: mixture(fixed=[0]), None, r"fixed must be a pair \(means, covariances\) of known components, got"),
        (lambda: mixture(fixed=(X[:4], variances)), None, r"the means of fixed must have shape \(m, 4\), with m from"),
        (
            lambda: mixture(fixed=(X[:1], variances)),
            None,
            r"the covariances of fixed must have shape \(1, 4\) for covariance_type='diag', got \(2, 4\)",
        ),
        (lambda: mixture(fixed=(X[:2], -variances)), None, "the covariances of fixed must be > 0"),
        (lambda: mixture(fixed=(X[:2], variances), covariance_type="tied"), None, "fixed needs covariance_type in"),
    ]:
        with pytest.raises(ValueError, match=message):
            make().fit(X, labels)
    gaps = X.copy()
    gaps[0, 0] = np.nan
    with pytest.raises(ValueError, match="fixed needs complete rows"):
        KMeans(3, fixed=X[:1], missing="marginal").fit(gaps)
    with pytest.raises(TypeError, match="semi_supervised must be a bool, got 1"):
        KMeans(3, semi_supervised=1).fit(X, y)
    for estimator in (KMeans(3, fixed=X[:1]), mixture(fixed=(X[:2], variances))):
        with pytest.raises(ValueError, match="partial_fit needs fixed=None"):
            estimator.partial_fit(X)
