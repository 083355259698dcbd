"""For degenerate data, an array and a sparse array give the same k-means, or the same error."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

import cprime.sklearn
from cprime import KMeans
from cprime.search import Papers

pytestmark = [
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]


def counts(n=60, D=4, seed=0):
    """Return integers (n, D), many of them zero, so that sums have no rounding."""
    rng = np.random.default_rng(seed)
    return np.round(3 * rng.standard_normal((n, D))) * (rng.random((n, D)) < 0.6)


X = counts()
EVERY_OTHER = np.arange(60) % 2.0
FIRST_TWO = (np.arange(60) < 2).astype(float)
# Rows, number of clusters, weights
DATA: dict[str, tuple[np.ndarray, int, np.ndarray | None]] = {
    "no column varies": (np.full((20, 3), 2.5), 3, None),
    "one column is constant": (np.column_stack([X, np.full(60, 7.0)]), 3, None),
    "columns of zeros": (np.column_stack([X, np.zeros((60, 3))]), 3, None),
    "only zeros": (np.zeros((20, 3)), 3, None),
    "negative zeros": (np.where(X == 0, -0.0, X), 3, None),
    "duplicates": (np.repeat(X[:6], 10, axis=0), 3, None),
    "fewer distinct rows than clusters": (np.repeat(X[:3], 10, axis=0), 6, None),
    "two distinct rows": (np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0), 5, None),
    "many clusters, fewer distinct rows": (np.repeat(counts(20, 3), 3, axis=0), 50, None),
    "one row": (X[:1], 1, None),
    "one row of zeros": (np.zeros((1, 3)), 1, None),
    "a cluster for each row": (X[:12], 12, None),
    "a cluster for each row, with duplicates": (np.vstack([X[:6], X[:6]]), 12, None),
    "one row more than clusters": (X[:13], 12, None),
    "one cluster": (X, 1, None),
    "one column": (X[:, :1], 3, None),
    "unit vectors": (np.eye(12), 5, None),
    "wider than long": ((np.random.default_rng(0).random((10, 500)) < 0.02) * 1.0, 3, None),
    "mostly rows of zeros": (np.vstack([np.zeros((50, 4)), X[:5]]), 4, None),
    "ties": (np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 0.0]] * 4), 2, None),
    "huge": (X * 2.0**100, 3, None),
    "tiny": (X * 2.0**-100, 3, None),
    "too huge": (X * 2.0**600, 3, None),
    "too tiny": (X * 2.0**-600, 3, None),
    "columns of different scale": (X * 2.0 ** np.array([-26, 0, 13, 26]), 3, None),
    "an offset": (X + 2.0**27, 3, None),
    "weights of zero": (X, 3, EVERY_OTHER),
    "fewer rows with weight than clusters": (X, 3, FIRST_TWO),
    "huge weights": (X, 3, np.full(60, 2.0**660)),
    "tiny weights": (X, 3, np.full(60, 2.0**-660)),
    "weights of many scales": (X, 3, 2.0 ** np.random.default_rng(0).integers(-33, 33, 60)),
}
# By default, centers jump (leave local optima) for dense arrays but not for sparse arrays.
SAME: dict[str, Callable[..., Any]] = {
    f"{search}, {init}": partial(KMeans, search=search, init=init, jumps=False, random_state=0)
    for search, init in [
        *(("full", init) for init in ("k-means++", "k-means||", "random", "afk-mc2", "two-level")),
        ("bounded", "k-means++"),
        ("exact", "k-means++"),
    ]
}
SOUND: dict[str, Callable[..., Any]] = {
    "default": partial(KMeans, random_state=0),
    "graph": partial(KMeans, search="graph", random_state=0),
    "estimated": partial(KMeans, search="estimated", random_state=0),
    "random lists": partial(
        KMeans, search=Papers("exact", n_neighbors=8, start="random"), init="random", random_state=0
    ),
    "cosine": partial(KMeans, metric="cosine", random_state=0),
    "scikit-learn's KMeans": partial(cprime.sklearn.KMeans, random_state=0),
    "scikit-learn's MiniBatchKMeans": partial(cprime.sklearn.MiniBatchKMeans, random_state=0),
    "scikit-learn's BisectingKMeans": partial(cprime.sklearn.BisectingKMeans, random_state=0),
}
every_case = pytest.mark.parametrize(("rows", "C", "weights"), DATA.values(), ids=DATA.keys())


def outcome(make: Callable[..., Any], C: int, rows: Any, weights: np.ndarray | None) -> Any:
    """Return the fitted estimator, or the type of its error."""
    try:
        return make(C).fit(rows, sample_weight=weights)
    except (ValueError, TypeError) as error:
        return type(error)


@every_case
@pytest.mark.parametrize("make", SAME.values(), ids=SAME.keys())
def test_sparse_rows_have_the_fit_of_dense_ones(make, rows, C, weights):
    dense, sparse = (outcome(make, C, data, weights) for data in (rows, csr_array(rows)))
    if isinstance(dense, type):
        assert dense is sparse
        return
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_array_equal(sparse.predict(csr_array(rows)), dense.predict(rows))
    assert dense.cluster_centers_.shape == (C, rows.shape[1])
    scale = np.abs(rows).max() or 1.0
    np.testing.assert_allclose(sparse.cluster_centers_ / scale, dense.cluster_centers_ / scale, rtol=0, atol=1e-12)
    assert sparse.n_iter_ == dense.n_iter_


@every_case
@pytest.mark.parametrize("make", SOUND.values(), ids=SOUND.keys())
def test_a_fit_of_both_or_of_neither(make, rows, C, weights):
    dense, sparse = (outcome(make, C, data, weights) for data in (rows, csr_array(rows)))
    if isinstance(dense, type):
        assert dense is sparse
        return
    for fitted, data in ((dense, rows), (sparse, csr_array(rows))):
        assert fitted.cluster_centers_.shape == (C, rows.shape[1])
        assert np.isfinite(fitted.cluster_centers_).all()
        assert np.isfinite(fitted.transform(data)).all()
        assert fitted.predict(data).max() < C
    assert np.isfinite(dense.inertia_) == np.isfinite(sparse.inertia_)


@every_case
def test_labels_are_nearest_centers(rows, C, weights):
    scale = np.abs(rows).max() or 1.0
    for data in (rows, csr_array(rows)):
        fitted = outcome(partial(KMeans, random_state=0), C, data, weights)
        if isinstance(fitted, type):
            continue
        squares = cdist(rows / scale, fitted.cluster_centers_ / scale, "sqeuclidean")
        own = squares[np.arange(len(rows)), fitted.labels_]
        np.testing.assert_allclose(own, squares.min(axis=1), rtol=1e-9, atol=1e-12)
