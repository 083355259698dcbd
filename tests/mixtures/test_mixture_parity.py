"""If all components are active, fits and predictions equal scikit-learn's, iteration by iteration."""

import numpy as np
import pytest
from mixture_data import OF_SKLEARN, clustered, mixture, start_of
from sklearn.mixture import GaussianMixture as SklearnMixture

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore:Best performing initialization did not converge"),
    pytest.mark.filterwarnings("ignore:Initialization 1 did not converge"),
]
N, D, C = 300, 3, 5
CLOSE = {"rtol": 1e-7, "atol": 1e-9}


@pytest.fixture(scope="module")
def X():
    return clustered(N, D)


@pytest.mark.parametrize("reg_covar", [1e-6, 0.1])
@pytest.mark.parametrize("family", OF_SKLEARN)
def test_parameters_equal_scikit_learns_in_twenty_iterations(X, family, reg_covar):
    given = {"tol": 0, "reg_covar": reg_covar, **start_of(X, C, family)}
    bounds, models = [], []
    ours = mixture(C, family, n_active=None, max_iter=20, **given)

    def watch(row, standing):
        bounds.append(row["lower_bound"])
        models.append(standing._parameters())

    ours.set_params(callbacks=watch).fit(X)
    theirs = SklearnMixture(C, covariance_type=family, max_iter=1, warm_start=True, **given)
    for bound, model in zip(bounds, models, strict=True):
        theirs.fit(X)  # one more iteration
        assert bound == pytest.approx(theirs.lower_bound_, abs=1e-9)
        np.testing.assert_allclose(model.centers, theirs.means_, **CLOSE)
        np.testing.assert_allclose(model.weights, theirs.weights_, **CLOSE)
        np.testing.assert_allclose(model.covariances, theirs.covariances_, **CLOSE)
    assert len(bounds) == 20
    assert np.ptp(bounds) > 0.05


@pytest.mark.parametrize("n_iter", [1, 7])
@pytest.mark.parametrize("family", OF_SKLEARN)
def test_results_of_all_methods_equal_scikit_learns(X, family, n_iter):
    given = {"tol": 0, "max_iter": n_iter, **start_of(X, C, family)}
    other = clustered(70, D, seed=1)
    ours = mixture(C, family, n_active=None, **given).fit(X)
    theirs = SklearnMixture(C, covariance_type=family, **given).fit(X)
    for name in ("means_", "weights_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bounds_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), **CLOSE, err_msg=name)
    for name in ("predict_proba", "score_samples", "predict", "bic", "aic", "score"):
        np.testing.assert_allclose(getattr(ours, name)(other), getattr(theirs, name)(other), **CLOSE, err_msg=name)
    assert (ours.n_iter_, ours.converged_) == (theirs.n_iter_, theirs.converged_) == (n_iter, False)
    assert np.array_equal(ours.labels_, theirs.predict(X))
    assert np.array_equal(mixture(C, family, n_active=None, **given).fit_predict(X), theirs.predict(X))


@pytest.mark.parametrize("family", OF_SKLEARN)
@pytest.mark.parametrize("C", [1, 2, 7])
def test_parameters_are_counted_as_by_scikit_learn(X, family, C):
    ours = mixture(C, family, n_active=None, max_iter=2).fit(X)
    theirs = SklearnMixture(C, covariance_type=family, max_iter=2, random_state=0).fit(X)
    assert ours._parameters().n_parameters == theirs._n_parameters()
    equal = mixture(C, family, "equal", n_active=None, max_iter=2).fit(X)
    assert equal._parameters().n_parameters == theirs._n_parameters() - (C - 1)


def test_the_mixture_of_the_papers_counts_its_parameters(X):
    free, equal = (mixture(4, "tied_spherical", weights, max_iter=2).fit(X) for weights in ("free", "equal"))
    assert equal._parameters().n_parameters == 4 * D + 1
    assert free._parameters().n_parameters == 4 * D + 1 + 3


@pytest.mark.parametrize("family", OF_SKLEARN)
def test_it_stops_where_scikit_learn_stops(X, family):
    start = start_of(X, C, family)
    ours = mixture(C, family, n_active=None, **(start | {"tol": 1e-3, "max_iter": 300})).fit(X)
    theirs = SklearnMixture(C, covariance_type=family, max_iter=300, **start).fit(X)
    assert ours.converged_
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_allclose(ours.means_, theirs.means_, **CLOSE)


@pytest.mark.parametrize("family", OF_SKLEARN)
def test_starts_by_name_end_near_those_of_scikit_learn(family):
    """Random numbers differ from scikit-learn's, but both find well separated clusters."""
    rng = np.random.default_rng(0)
    X = 12.0 * np.eye(4)[rng.integers(4, size=400)] + rng.standard_normal((400, 4))
    theirs = SklearnMixture(4, covariance_type=family, random_state=0).fit(X)
    for name in ("auto", "kmeans", "k-means++", "random_from_data", "two-level"):
        ours = mixture(4, family, init_params=name, n_init=6, tol=1e-4).fit(X)
        assert ours.score(X) == pytest.approx(theirs.score(X), abs=1e-3), name
        order = [np.lexsort(np.round(gm.means_).T) for gm in (ours, theirs)]
        np.testing.assert_allclose(ours.means_[order[0]], theirs.means_[order[1]], atol=0.02)


@pytest.mark.parametrize("family", [*OF_SKLEARN, "tied_spherical"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_to_sklearn_gives_an_object_that_predicts_alike(X, family, dtype):
    data = X.astype(dtype)
    ours = mixture(C, family, max_iter=10).fit(data)
    theirs = ours.to_sklearn()
    assert isinstance(theirs, SklearnMixture)
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-4}
    for name in ("predict_proba", "score_samples"):
        np.testing.assert_allclose(getattr(theirs, name)(data), getattr(ours, name)(data), **close, err_msg=name)
    others = 1 - theirs.predict_proba(data).max(axis=1)
    np.testing.assert_allclose(ours.uncertainty(data), others, **close)
    truncated = mixture(C, family, n_active=1, max_iter=10, means_init=ours.means_).fit(data)
    assert truncated.uncertainty(data).max() > 0.1, "the posterior is over all components, for any n_active"
    more = C - 1 if family == "tied_spherical" else 0  # scikit-learn has one variance per component there
    assert theirs.bic(data) == pytest.approx(ours.bic(data) + more * np.log(N), rel=1e-3 * (dtype == np.float32) + 1e-9)
    assert np.array_equal(theirs.predict(data), ours.predict(data))
    assert theirs.sample(7)[0].shape == (7, D)
    assert theirs.lower_bound_ == ours.lower_bound_
    theirs.means_ += 1
    assert np.array_equal(ours.predict(data), mixture(C, family, max_iter=10).fit(data).predict(data))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("family", [*OF_SKLEARN, "tied_spherical"])
def test_onnx_export_predicts_alike(X, family):
    reason = "the optional packages skl2onnx and onnxruntime are not installed"
    skl2onnx = pytest.importorskip("skl2onnx", reason=reason)
    onnxruntime = pytest.importorskip("onnxruntime", reason=reason)
    data = X.astype(np.float32)
    ours = mixture(C, family, max_iter=10).fit(data)
    exported = skl2onnx.to_onnx(ours.to_sklearn(), data[:1])
    session = onnxruntime.InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    labels, probabilities = session.run(None, {session.get_inputs()[0].name: data})[:2]
    assert np.array_equal(labels.ravel(), ours.predict(data))
    np.testing.assert_allclose(probabilities, ours.predict_proba(data), atol=1e-3)
