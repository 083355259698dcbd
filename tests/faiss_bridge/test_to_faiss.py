"""`to_faiss` returns an index of the centers whose search results equal the estimator's predictions."""

import sys

import numpy as np
import pytest

from cprime import FuzzyKMeans, KMeans, KMedians, KMedoids, SoftKMeans
from cprime.datasets import clusters

MAKERS = {
    "k-means": lambda: KMeans(5, random_state=0),
    "cosine": lambda: KMeans(5, metric="cosine", random_state=0),
    "soft k-means": lambda: SoftKMeans(5, random_state=0),
    "fuzzy k-means": lambda: FuzzyKMeans(5, random_state=0),
    "k-medoids": lambda: KMedoids(5, metric="euclidean"),
    "k-medoids, cosine": lambda: KMedoids(5, metric="cosine"),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_index_finds_what_is_predicted(kind, dtype):
    faiss = pytest.importorskip("faiss", reason="faiss is not installed")
    X = clusters(400, 5, 4, random_state=0).data.astype(dtype)
    fitted = MAKERS[kind]().fit(X)
    index = fitted.to_faiss()
    assert isinstance(index, faiss.IndexFlatIP if "cosine" in kind else faiss.IndexFlatL2)
    np.testing.assert_array_equal(index.search(X.astype(np.float32), 1)[1].ravel(), fitted.predict(X))
    ivf = faiss.IndexIVFFlat(index, X.shape[1], 5, index.metric_type)
    ivf.train(X[:1].astype(np.float32))  # only trains the lists, because the quantizer has its centers already
    ivf.add(X.astype(np.float32))
    assert [ivf.get_list_size(i) for i in range(5)] == np.bincount(fitted.predict(X), minlength=5).tolist()


def test_other_metrics_and_a_missing_library_are_named(monkeypatch):
    X = clusters(60, 3, 2, random_state=0).data
    with pytest.raises(ValueError, match="metric='euclidean' or 'cosine', got 'manhattan'"):
        KMedoids(3, metric="manhattan").fit(X).to_faiss()
    with pytest.raises(ValueError, match="metric='euclidean' or 'cosine', got 'cityblock'"):
        KMedians(3, random_state=0).fit(X).to_faiss()
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match="pip install faiss-cpu"):
        KMeans(3, random_state=0).fit(X).to_faiss()
