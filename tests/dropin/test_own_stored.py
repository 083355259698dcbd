"""The drop-in classes on rows of narrow types find the results of a float64 copy, without copying all rows."""

from functools import partial

import numpy as np
import pytest
from sklearn import clone

import narrow
from cprime.kernels import NarrowRows
from cprime.sklearn import KMeans, MiniBatchKMeans
from cprime.sklearn.nearest import variances
from narrow import TYPES, recorded

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FITS = {
    "k-means": KMeans(5, random_state=0, max_iter=4),
    "random rows": KMeans(5, init="random", random_state=0, n_init=2, tol=0, max_iter=4),
    "mini-batches": MiniBatchKMeans(5, random_state=0, n_init=2, batch_size=64, max_iter=3),
    "mini-batches, tol": MiniBatchKMeans(5, init="random", random_state=0, n_init=1, batch_size=64, tol=0.1),
}
N, D = 3000, 4
numbers = partial(narrow.numbers, n=N, D=D)


@pytest.fixture(autouse=True)
def widened(monkeypatch):
    """Return the numbers of rows converted at once, with all limits for small data set low."""
    monkeypatch.setattr("cprime.sklearn.kmeans.SAME_DRAWS", 0)
    monkeypatch.setattr("cprime.sklearn.nearest._PIECE", 100 * D)
    return recorded(monkeypatch)


def assert_same(ours, theirs, X):
    for name in ("cluster_centers_", "labels_", "inertia_", "n_iter_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name, strict=True)
    for name in ("predict", "transform", "score"):
        found, expected = getattr(ours, name)(X), getattr(theirs, name)(X.astype(np.float64))
        np.testing.assert_array_equal(found, expected, err_msg=name, strict=True)


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_have_the_bits_of_the_wider_copy(fit, weighted, widened):
    X, w = numbers(np.uint8), np.random.default_rng(1).uniform(0.5, 2, N) if weighted else None
    ours = clone(fit).fit(X, sample_weight=w)
    theirs = clone(fit).fit(X.astype(np.float64), sample_weight=w)
    assert_same(ours, theirs, X)
    assert max(widened) < N


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES.keys())
def test_narrow_types_fit_as_float64(dtype):
    X = numbers(dtype)
    start = X[:3].astype(np.float64)
    ours = KMeans(3, init=start, n_init=1).fit(X)
    assert_same(ours, KMeans(3, init=start, n_init=1).fit(X.astype(np.float64)), X)
    assert ours.cluster_centers_.dtype == np.float64


def test_a_function_sees_numbers():
    X, seen = numbers(np.uint8), []
    KMeans(3, init=lambda Y, n, random_state: seen.append(Y) or Y[:n], n_init=1).fit(X)
    np.testing.assert_allclose(seen[0], X - X.mean(axis=0))


@pytest.mark.parametrize("columns", [1, D])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32], ids=["uint8", "float32"])
def test_variances_are_numpys(dtype, columns):
    X = numbers(dtype)[:, :columns]
    wide = X.astype(np.float64) if dtype == np.uint8 else np.ascontiguousarray(X)
    rows = NarrowRows(X, np.float64) if dtype == np.uint8 else wide
    np.testing.assert_array_equal(variances(rows), np.var(wide, axis=0), strict=True)


@pytest.mark.parametrize("estimator", [KMeans(3), MiniBatchKMeans(3)], ids=["KMeans", "MiniBatchKMeans"])
def test_what_cannot_be_is_said(estimator):
    X = numbers(np.float16)
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=3"):
        clone(estimator).fit(X[:2])
    fitted = clone(estimator).fit(X)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        fitted.predict(X[:, :3])
    X[7, 2] = np.inf
    for call in (clone(estimator).fit, fitted.predict):
        with pytest.raises(ValueError, match="Input X contains infinity"):
            call(X)
