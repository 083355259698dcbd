"""KMeans(metric="cosine"): spherical k-means."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from cprime import KMeans, load, open_data
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


def test_iterations_are_the_plain_ones():
    X = directions(dtype=np.float64)
    start = X[:20].copy()
    km = KMeans(20, metric="cosine", init=start, search="full", tol=0).fit(X)
    U, centers = unit(X), unit(start)
    for _ in range(km.n_iter_):
        labels = (U @ centers.T).argmax(axis=1)
        centers = unit(np.stack([U[labels == c].sum(axis=0) for c in range(20)]))
    assert np.allclose(km.cluster_centers_, centers)


def test_lengths_as_weights_make_k_means_of_inner_products():
    X = directions(dtype=np.float64)
    start, lengths = X[:20].copy(), np.linalg.norm(X, axis=1)
    km = KMeans(20, metric="cosine", init=start, search="full", tol=0).fit(X, sample_weight=lengths)
    centers = unit(start)
    for _ in range(km.n_iter_):
        labels = (X @ centers.T).argmax(axis=1)
        centers = unit(np.stack([X[labels == c].sum(axis=0) for c in range(20)]))
    assert np.allclose(km.cluster_centers_, centers)
    assert lengths.sum() - km.inertia_ / 2 == pytest.approx((X @ km.cluster_centers_.T).max(axis=1).sum())


def test_lengths_of_rows_do_not_matter():
    X = directions(dtype=np.float64)
    scaled = X * np.random.default_rng(1).uniform(0.1, 10, size=(len(X), 1))
    a, b = (KMeans(20, metric="cosine", random_state=0).fit(data) for data in (X, scaled))
    assert np.array_equal(a.labels_, b.labels_)


def test_batches_find_directions_and_files_keep_them(tmp_path):
    X = directions()
    km = KMeans(20, metric="cosine", random_state=0)
    for batch in np.array_split(X, 10):
        km.partial_fit(batch)
    assert np.allclose(np.linalg.norm(km.cluster_centers_, axis=1), 1, atol=1e-6)
    best = KMeans(20, metric="cosine", random_state=0, n_init=3).fit(X)
    assert km.score(X) > 1.5 * best.score(X)
    km.save(tmp_path / "model.safetensors")
    assert np.array_equal(load(tmp_path / "model.safetensors").predict(X), km.predict(X))


@pytest.mark.parametrize("kind", ["array", "sparse", "file", "lists"])
def test_rows_of_zeros_are_refused_by_number_unless_their_weight_is_zero(kind, tmp_path):
    X = directions(100)
    X[[40, 73]] = 0
    np.save(tmp_path / "x.npy", X)
    rows = {
        "array": lambda: X,
        "sparse": lambda: csr_array(X),
        "file": lambda: open_data(tmp_path / "x.npy", chunk_rows=30),
        "lists": lambda: X.tolist(),
    }[kind]()
    message = r"got 2: rows 40, 73\. Leave such rows out"
    if kind == "file":  # chunks of a file are checked one after the other, so one row may be reported alone
        message = r"x\.npy must .*: rows? 40(, 73)?\. Leave such rows out"
    km = KMeans(5, metric="cosine", init=X[:5])
    with pytest.raises(ValueError, match=message):
        km.fit(rows)
    weights = np.ones(100)
    weights[[40, 73]] = 0
    km.fit(rows, sample_weight=weights)
    there = weights > 0
    alone = KMeans(5, metric="cosine", init=X[:5]).fit(X[there])
    np.testing.assert_allclose(km.cluster_centers_, alone.cluster_centers_, atol=1e-6)
    assert km.labels_.shape == (100,)
    with pytest.raises(ValueError, match=message):
        km.predict(rows)


def test_what_has_no_direction_is_refused():
    with pytest.raises(ValueError, match="init must have no rows of zeros"):
        KMeans(2, metric="cosine", init=np.zeros((2, 8))).fit(directions(100))
    with pytest.raises(ValueError, match="metric must be one of"):
        KMeans(2, metric="manhattan").fit(directions(100))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_exchanges_and_jumps_end_lower(sparse, weighted):
    X = directions(6000, 16, np.float64, n_clusters=200)
    X = csr_array(np.where(np.abs(X) > 5, X, 0.0) + np.eye(1, 16)) if sparse else X
    w = np.random.default_rng(2).exponential(size=6000) if weighted else None
    search, found = Graph(65 if sparse else 17), []
    for seed in range(3):
        fits = [
            KMeans(200, metric="cosine", search=search, jumps=jumps, random_state=seed).fit(X, sample_weight=w)
            for jumps in (False, True)
        ]
        assert np.diff(fits[1].lower_bounds_).min() > -1e-9
        assert np.allclose(np.linalg.norm(fits[1].cluster_centers_, axis=1), 1)
        found.append([fit.inertia_ for fit in fits])
    plain, exchanged = np.mean(found, axis=0)
    assert exchanged < 0.99 * plain


def test_many_clusters_start_in_two_levels_and_are_as_quick_as_euclidean_ones():
    """Cosine k-means with many clusters starts in two levels and needs about as many distances as Euclidean k-means."""
    X = directions(30_000, 8, np.float64, n_clusters=300)
    X = unit(X)
    cosine, euclidean = (KMeans(300, metric=metric, random_state=0).fit(X) for metric in ("cosine", "euclidean"))
    assert cosine.neighbors_ is not None
    assert cosine.history_["n_distances"].sum() < 1.5 * euclidean.history_["n_distances"].sum()
    means = unit(euclidean.cluster_centers_)
    assert (unit(X) * cosine.cluster_centers_[cosine.predict(X)]).sum() > 0.999 * (X @ means.T).max(axis=1).sum()


@pytest.mark.parametrize("unit", [np.float32(2.0**-147), np.float64(2.0**-600)])
def test_the_shortest_rows_have_a_direction(unit):
    """Tiny rows are normalized accurately, even if they or their squares are subnormal."""
    X = np.tile(np.array([-6, 7, 1], dtype=unit.dtype) * unit, (20, 1))
    km = KMeans(1, metric="cosine", random_state=0).fit(X)
    np.testing.assert_allclose(km.cluster_centers_[0], np.array([-6, 7, 1]) / 86**0.5, rtol=1e-6)
    assert km.inertia_ < 1e-12
    with pytest.raises(ValueError, match="X must have no rows of zeros with metric='cosine', got 1"):
        km.predict(np.zeros((1, 3), unit.dtype))


@pytest.mark.parametrize(
    "fit",
    [
        lambda X: KMeans(2, metric="cosine", semi_supervised=True, random_state=0).fit(X, [0] * 10 + [1] * 10),
        lambda X: KMeans(1, metric="cosine", size_max=20, random_state=0).fit(X),
        lambda X: KMeans(4, metric="cosine", random_state=0).fit(X).update(X, n_clusters=1),
    ],
    ids=["labels", "sizes", "union of clusters"],
)
def test_points_whose_sum_is_zero_leave_the_center_as_it_is(fit):
    X = np.repeat([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], 5, axis=0)
    found = fit(X)
    np.testing.assert_allclose(np.linalg.norm(found.cluster_centers_, axis=1), 1)
    assert np.isfinite(found.inertia_)
