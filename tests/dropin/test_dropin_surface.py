"""The drop-in classes behave as scikit-learn's: signatures, clones, data frames, routing, pickles, results."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.base
import sklearn.cluster
import sklearn.mixture
from scipy.sparse import csc_array, csr_array
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import cprime
import cprime.sklearn as ours

THEIRS = {
    name: getattr(sklearn.cluster, name, None) or getattr(sklearn.mixture, name)
    for name in ours.__all__
    if name not in ("patch", "unpatch")
}
CLASSES = [name for name, value in THEIRS.items() if inspect.isclass(value)]
DRAWS_BY_WEIGHT = "normalized_sample_weight" in inspect.getsource(sklearn.cluster.MiniBatchKMeans.fit)
every_class = pytest.mark.parametrize("name", CLASSES)


def made(name, **params):
    size = "n_components" if name.endswith("GaussianMixture") else "n_clusters"
    return getattr(ours, name)(**{size: 3, "random_state": 0} | params)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(1)
    return np.concatenate([rng.normal(center, 0.7, size=(60, 3)) for center in (0.0, 4.0, 9.0)])


@pytest.mark.parametrize("name", THEIRS)
def test_signatures_are_scikit_learns(name):
    here, there = getattr(ours, name), THEIRS[name]
    assert inspect.signature(here) == inspect.signature(there)
    if inspect.isclass(there):
        public = {member for member in dir(there) if not member.startswith("_") and callable(getattr(there, member))}
        assert public <= set(dir(here))
        for member in public:
            names = [
                [(p.name, p.kind, p.default) for p in inspect.signature(getattr(cls, member)).parameters.values()]
                for cls in (here, there)
            ]
            assert names[0] == names[1], member


@every_class
def test_an_estimator_looks_like_scikit_learns(name, X):
    estimator = made(name)
    assert isinstance(estimator, THEIRS[name])
    assert isinstance(estimator, sklearn.base.BaseEstimator)
    assert estimator.get_params() == THEIRS[name](**estimator.get_params()).get_params()
    assert sklearn.base.clone(estimator).get_params() == estimator.get_params()
    assert repr(estimator) == repr(THEIRS[name](**estimator.get_params()))
    assert name in estimator.fit(X)._repr_html_()
    assert sklearn.utils.get_tags(estimator).transformer_tags == sklearn.utils.get_tags(THEIRS[name]()).transformer_tags


@every_class
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_results_are_those_of_scikit_learn(name, dtype, X):
    X = X.astype(dtype)
    if name == "MiniBatchKMeans" and not DRAWS_BY_WEIGHT:
        pytest.skip("this scikit-learn draws its batches otherwise")
    fixed = {"tol": 0, "max_iter": 20} if name == "BayesianGaussianMixture" else {}  # bounds are at other steps
    here, there = made(name, **fixed).fit(X), THEIRS[name](**made(name, **fixed).get_params()).fit(X)
    if name.endswith("GaussianMixture") and there.weights_.dtype != dtype:
        pytest.skip("this scikit-learn makes mixtures of float32 double")
    rtol = 1e-9 if dtype is np.float64 else 2e-3
    for attribute, expected in vars(there).items():
        if not attribute.endswith("_") or attribute == "lower_bound_":  # ours is that of the final parameters
            continue
        if fixed and attribute == "lower_bounds_":  # scikit-learn's, after M-steps, lie between ours, after E-steps
            found = [*here.lower_bounds_, here.lower_bound_]
            assert np.diff(np.ravel(np.column_stack([found[:-1], expected]))).min() > -0.01 * (dtype == np.float32)
            continue
        found = getattr(here, attribute)
        assert type(found) is type(expected) or isinstance(found, type(expected) | float), attribute
        if isinstance(expected, np.ndarray):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), attribute
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol, err_msg=attribute)
    for method in ("predict", "fit_predict", "transform", "predict_proba", "score_samples"):
        if hasattr(there, method):
            found, expected = getattr(here, method)(X), getattr(there, method)(X)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), method
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol, err_msg=method)
    for method in ("score", "bic", "aic"):
        if hasattr(there, method):
            assert getattr(here, method)(X) == pytest.approx(getattr(there, method)(X), rel=rtol)


@every_class
def test_pickles_and_copies_predict_alike(name, X):
    fitted = made(name).fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X), fitted.predict(X))


@every_class
def test_tables_have_names(name, X):
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = made(name).fit(table)
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert fitted.n_features_in_ == 3
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        fitted.predict(X)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(table.rename(columns={"a": "z"}))
    if hasattr(fitted, "transform"):
        prefix = name.lower()
        assert list(fitted.get_feature_names_out()) == [f"{prefix}{i}" for i in range(3)]
        frame = fitted.set_output(transform="pandas").transform(table)
        assert list(frame.columns) == [f"{prefix}{i}" for i in range(3)]
        assert fitted.fit_transform(table).equals(fitted.transform(table))


@pytest.mark.parametrize("name", ["KMeans", "MiniBatchKMeans"])
def test_weights_are_routed(name, X):
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = made(name).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), estimator)
        weights = np.linspace(0.5, 1.5, len(X))
        pipeline.fit(X, sample_weight=weights)
        found = cross_validate(estimator, X, params={"sample_weight": weights}, cv=3)
        assert np.isfinite(found["test_score"]).all()


def test_a_grid_search_finds_the_number_of_components(X):
    folds = KFold(3, shuffle=True, random_state=0)
    choices = {"n_components": [1, 3], "covariance_type": ["full", "diag"]}
    search = GridSearchCV(made("GaussianMixture"), choices, cv=folds)
    assert search.fit(X).best_params_["n_components"] == 3


@every_class
def test_arguments_are_refused_in_scikit_learns_words(name, X):
    wrong = {"tol": -1.0, "max_iter": -1 if name.endswith("GaussianMixture") else 0, "random_state": "x"}
    for argument, value in wrong.items():
        errors = []
        for cls in (getattr(ours, name), THEIRS[name]):
            with pytest.raises(ValueError, match=f"'{argument}' parameter of {name}") as error:
                cls(**{argument: value}).fit(X)
            errors.append(str(error.value))
        assert errors[0] == errors[1]
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        getattr(ours, name)(search="graph")
    X = X.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        made(name).fit(X)
    with pytest.raises(ValueError, match="Divide X by a constant"):
        made(name).fit(np.where(np.isnan(X), 1e200, X))


@pytest.mark.parametrize("name", ["KMeans", "MiniBatchKMeans", "BisectingKMeans"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_are_those_of_an_array(name, dtype, X, handed_over):
    if name == "MiniBatchKMeans" and not DRAWS_BY_WEIGHT:
        pytest.skip("this scikit-learn draws its batches otherwise")
    X = np.where(X > 0.3, X, 0).astype(dtype)
    sparse = csr_array(X)
    here, there = (
        made(name, init="random").fit(sparse),
        THEIRS[name](**made(name, init="random").get_params()).fit(sparse),
    )
    assert here.cluster_centers_.dtype == dtype
    np.testing.assert_allclose(here.cluster_centers_, there.cluster_centers_, rtol=1e-4, atol=1e-4)
    assert np.array_equal(here.labels_, there.labels_)
    for rows in (sparse, X, csc_array(X)):
        assert np.array_equal(here.predict(rows), there.predict(sparse))
        np.testing.assert_allclose(here.transform(rows), there.transform(sparse), rtol=1e-3, atol=2e-3)
        assert here.score(rows) == pytest.approx(there.score(sparse), rel=1e-4)
    assert handed_over == []


def test_dense_and_sparse_batches_may_follow_each_other(X):
    km, dense = made("MiniBatchKMeans"), made("MiniBatchKMeans")
    for i in range(8):
        km.partial_fit(csr_array(X) if i % 2 else X)
        dense.partial_fit(X)
    assert km.n_steps_ == 8
    np.testing.assert_allclose(km.cluster_centers_, dense.cluster_centers_)


def test_nothing_is_fitted_without_iterations(X, handed_over):
    gm = made("GaussianMixture", max_iter=0, means_init=X[[0, 70, 150]]).fit(X)
    assert np.array_equal(gm.means_, X[[0, 70, 150]])
    assert gm.cprime_ is None
    assert handed_over == ["GaussianMixture: max_iter=0 fits nothing; scikit-learn's own code runs"]


def test_functions_are_those_of_the_classes(X):
    centers, labels, inertia, n_iter = ours.k_means(X, 3, random_state=0, return_n_iter=True)
    km = made("KMeans").fit(X)
    assert np.array_equal(centers, km.cluster_centers_)
    assert np.array_equal(labels, km.labels_)
    assert (inertia, n_iter) == (km.inertia_, km.n_iter_)
    assert len(ours.k_means(X, 3)) == 3
    found, expected = (f(X, 3, random_state=0) for f in (ours.kmeans_plusplus, sklearn.cluster.kmeans_plusplus))
    assert np.array_equal(found[1], expected[1])
    with pytest.raises(TypeError, match="unexpected keyword argument 'metric'"):
        ours.k_means(X, 3, metric="cosine")


@pytest.mark.long
def test_many_clusters_are_searched_in_part(handed_over):
    X = np.random.default_rng(0).normal(size=(60_000, 4)).astype(np.float32)
    km = ours.KMeans(600, random_state=0, max_iter=20).fit(X)
    assert km.cprime_.certificate_["agreement"] > 0.9
    centers, rows = ours.kmeans_plusplus(X, 600, random_state=0)
    assert np.array_equal(X[rows], centers)
    of_sparse = ours.kmeans_plusplus(csr_array(X), 600, random_state=0)
    assert np.array_equal(of_sparse[1], rows)
    assert np.array_equal(of_sparse[0], centers)
    assert handed_over == []
    exact = ours.KMeans(600, random_state=0, max_iter=20, algorithm="elkan").fit(X)
    assert exact.cprime_.certificate_ is None
    assert km.inertia_ < 1.02 * exact.inertia_


def test_what_is_underneath_can_be_stored(X, tmp_path):
    for fitted in (made("KMeans").fit(X), made("GaussianMixture").fit(X)):
        fitted.cprime_.save(tmp_path / "model")
        assert np.array_equal(cprime.load(tmp_path / "model").predict(X), fitted.predict(X))


def test_attributes_that_are_replaced_count(X):
    km = made("KMeans").fit(X)
    km.cluster_centers_ = km.cluster_centers_[::-1]
    assert np.array_equal(km.predict(X), 2 - km.labels_)
    gm = made("GaussianMixture").fit(X)
    other = made("GaussianMixture")
    for name in ("weights_", "means_", "precisions_cholesky_"):  # attributes with which users build a mixture by hand
        setattr(other, name, getattr(gm, name))
    other.n_features_in_ = 3
    np.testing.assert_allclose(other.score_samples(X), gm.score_samples(X))


def test_single_weights_whose_sum_is_above_one_can_be_drawn_from():
    X = np.repeat(np.random.default_rng(0).normal(size=(6, 2)), 15, axis=0).astype(np.float32)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        gm = made("GaussianMixture", n_components=9, covariance_type="diag", init_params="kmeans").fit(X)
    assert gm.sample(50)[0].shape == (50, 2)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Number of distinct clusters:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [getattr(ours, name)() for name in CLASSES],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": "scikit-learn's draws of starts, which fail it there too"
        for kind in ("dense", "sparse")
        if not isinstance(estimator, ours.GaussianMixture | ours.BayesianGaussianMixture)
    },
)
def test_estimator_passes_scikit_learns_checks(estimator, check):
    check(estimator)
