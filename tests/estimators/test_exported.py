"""Fitted k-means can be converted to scikit-learn's class and to ONNX."""

import numpy as np
import pandas as pd
import pytest
import sklearn.cluster
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from cprime import KMeans


@pytest.fixture
def X(rng):
    return (rng.normal(size=(300, 4)) + 5 * rng.integers(3, size=(300, 1))).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_scikit_learns_own_predicts_alike(X, dtype, metric):
    X = X.astype(dtype)
    ours = KMeans(5, metric=metric, random_state=0).fit(X)
    theirs = ours.to_sklearn()
    last = theirs[-1] if isinstance(theirs, Pipeline) else theirs
    assert type(last) is sklearn.cluster.KMeans
    assert last.cluster_centers_.dtype == dtype
    assert not np.shares_memory(last.cluster_centers_, ours.cluster_centers_)
    assert np.array_equal(theirs.predict(X), ours.predict(X))
    if metric == "euclidean":
        np.testing.assert_allclose(theirs.transform(X), ours.transform(X), rtol=1e-3, atol=1e-3)
        assert theirs.score(X) == pytest.approx(ours.score(X), rel=1e-4)
        assert theirs.inertia_ == ours.inertia_


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_names_of_columns_are_kept(X, metric):
    table = pd.DataFrame(X, columns=list("abcd"))
    theirs = KMeans(5, metric=metric, random_state=0).fit(table).to_sklearn()
    assert list(theirs.feature_names_in_) == list("abcd")
    assert theirs.predict(table).shape == (300,)


def test_what_is_not_fitted_has_no_centers_to_give():
    with pytest.raises(NotFittedError):
        KMeans(5).to_sklearn()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_onnx_export_predicts_alike(X, metric):
    reason = "the optional packages skl2onnx and onnxruntime are not installed"
    skl2onnx = pytest.importorskip("skl2onnx", reason=reason)
    onnxruntime = pytest.importorskip("onnxruntime", reason=reason)
    ours = KMeans(5, metric=metric, random_state=0).fit(X)
    exported = skl2onnx.to_onnx(ours.to_sklearn(), X[:1])
    session = onnxruntime.InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    (labels,) = session.run(["label"], {session.get_inputs()[0].name: X})
    assert np.array_equal(labels.ravel(), ours.predict(X))
