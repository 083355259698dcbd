"""KMeans(metric="cosine"): spherical k-means."""

import numpy as np
import pytest

from cprime import KMeans, load
from cprime.search import Graph


def directions(n=2000, D=8, dtype=np.float32, seed=0, n_clusters=20):
    rng = np.random.default_rng(seed)
    places = 3 * rng.standard_normal((n_clusters, D))
    X = places[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, D))
    return (X * rng.exponential(size=(n, 1)) * 10).astype(dtype)


def unit(X):
    X = X.astype(np.float64)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("search", ["full", "graph", "exact", "estimated"])
def test_centers_are_unit_and_labels_those_of_greatest_cosine(search, dtype):
    X = directions(dtype=dtype)
    km = KMeans(20, metric="cosine", search=search, random_state=0).fit(X)
    assert km.cluster_centers_.dtype == dtype
    assert np.allclose(np.linalg.norm(km.cluster_centers_, axis=1), 1, atol=1e-6)
    cosine = unit(X) @ km.cluster_centers_.T.astype(np.float64)
    assert np.array_equal(km.predict(X), cosine.argmax(axis=1))
    if search == "full":
        assert km.inertia_ == pytest.approx(2 * (1 - cosine.max(axis=1)).sum(), rel=1e-4)
        assert np.array_equal(km.labels_, km.predict(X))
    assert km.score(X) == pytest.approx(-2 * (1 - cosine.max(axis=1)).sum(), rel=1e-4)
    assert np.allclose(km.transform(X), 1 - cosine, atol=1e-5)


@pytest.mark.parametrize("search", ["full", "graph", "exact", "estimated"])
def test_bound_never_falls_and_agrees_with_plain_iterations(search):
    X = directions(dtype=np.float64)
    start = X[:20].copy()
    value = search
    km = KMeans(20, metric="cosine", init=start, search=value, tol=0).fit(X)
    assert np.diff(km.lower_bounds_).min() > -1e-9
    if search == "full":
        U, centers = unit(X), unit(start)
        for _ in range(km.n_iter_):
            labels = (U @ centers.T).argmax(axis=1)
            centers = unit(np.stack([U[labels == c].sum(axis=0) for c in range(20)]))
        assert np.allclose(km.cluster_centers_, centers)


def test_lengths_of_rows_do_not_matter():
    X = directions(dtype=np.float64)
    scaled = X * np.random.default_rng(1).uniform(0.1, 10, size=(len(X), 1))
    a, b = (KMeans(20, metric="cosine", random_state=0).fit(data) for data in (X, scaled))
    assert np.array_equal(a.labels_, b.labels_)


def test_weights_are_repetitions():
    X = directions(400, dtype=np.float64)
    weights = np.random.default_rng(1).integers(0, 4, size=400)
    given = {"metric": "cosine", "init": X[:20]}
    a = KMeans(20, **given).fit(X, sample_weight=weights)
    b = KMeans(20, **given).fit(np.repeat(X, weights, axis=0))
    assert np.allclose(a.cluster_centers_, b.cluster_centers_)


def test_batches_and_files(tmp_path):
    X = directions()
    km = KMeans(20, metric="cosine", random_state=0)
    for batch in np.array_split(X, 10):
        km.partial_fit(batch)
    assert np.allclose(np.linalg.norm(km.cluster_centers_, axis=1), 1, atol=1e-6)
    best = KMeans(20, metric="cosine", random_state=0, n_init=3).fit(X)
    assert km.score(X) > 1.5 * best.score(X)
    km.save(tmp_path / "model.safetensors")
    assert np.array_equal(load(tmp_path / "model.safetensors").predict(X), km.predict(X))


def test_what_has_no_direction_is_refused():
    X = directions(100)
    X[3] = 0
    with pytest.raises(ValueError, match="X must have no rows of zeros with metric='cosine', got 1"):
        KMeans(5, metric="cosine").fit(X)
    with pytest.raises(ValueError, match="init must have no rows of zeros"):
        KMeans(2, metric="cosine", init=np.zeros((2, 8))).fit(directions(100))
    with pytest.raises(ValueError, match="metric must be one of"):
        KMeans(2, metric="manhattan").fit(directions(100))
    with pytest.raises(ValueError, match="exchange=True needs epsilon=0 and metric='euclidean'"):
        KMeans(2, metric="cosine", search=Graph(), exchange=True).fit(directions(100))
