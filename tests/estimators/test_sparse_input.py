"""k-means of sparse rows equals k-means of the same rows as a dense array, without making such an array."""

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csc_array, csr_array, csr_matrix
from sklearn.base import clone

import cprime
from cprime import KMeans, search

SEARCHES = ("full", "bounded", "graph", "exact", "estimated")


def documents(n=600, D=80, C=12, seed=0, dtype=np.float64):
    """Return rows (n, D) of C topics; each row has numbers in some of the columns of its topic."""
    rng = np.random.default_rng(seed)
    topics = rng.random((C, D)) < 0.2
    X = (0.5 + rng.random((n, D))) * topics[rng.integers(C, size=n)] * (rng.random((n, D)) < 0.7)
    X[:, 0] = 1.0  # no row is empty
    return X.astype(dtype)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", SEARCHES)
def test_a_fit_is_that_of_the_rows_as_an_array(kind, metric):
    X, w = documents(), np.random.default_rng(1).integers(0, 4, 600).astype(float)
    options = {"n_clusters": 20, "search": kind, "metric": metric, "random_state": 0}
    for weight in (None, w):
        found = KMeans(**options).fit(csr_array(X), sample_weight=weight)
        expected = KMeans(**options).fit(X, sample_weight=weight)
        np.testing.assert_array_equal(found.labels_, expected.labels_)
        np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, atol=1e-12)
        assert found.inertia_ == pytest.approx(expected.inertia_, rel=1e-10)
        assert found.n_iter_ == expected.n_iter_
        assert found.lower_bound_ == pytest.approx(expected.lower_bound_)
    assert isinstance(found.cluster_centers_, np.ndarray)


def test_many_clusters_and_jumps_equal_the_dense_fit():
    """Defaults for many clusters work: two-level seeding, graph search, exchange, jumps, audits, a certificate."""
    X = documents(4000, 120, 60, dtype=np.float32)
    options = {"n_clusters": 300, "search": "graph", "init": "two-level", "random_state": 0}
    found, dense = (KMeans(**options).fit(rows) for rows in (csr_array(X), X))
    plain = KMeans(300, search="full", init="two-level", random_state=0).fit(csr_array(X))
    assert found.inertia_ < plain.inertia_
    assert found.inertia_ == pytest.approx(dense.inertia_, rel=0.02)
    assert found.certificate_["agreement"] > 0.9
    assert set(found.history_["phase"]) == {"em"}


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.usefixtures("cells_for_few")
def test_what_a_fitted_one_says_of_other_rows(metric):
    X, other = documents(), documents(150, seed=5)
    km = KMeans(10, metric=metric, random_state=0).fit(csr_array(X))
    rows, w = csr_array(other), np.random.default_rng(2).random(150)
    np.testing.assert_array_equal(km.predict(rows), km.predict(other))
    np.testing.assert_array_equal(km.predict(rows, approximate=True), km.predict(other, approximate=True))
    assert km.certify(rows)["agreement"] == km.certify(other)["agreement"]
    np.testing.assert_allclose(km.transform(rows), km.transform(other), atol=1e-12)
    assert km.score(rows, sample_weight=w) == pytest.approx(km.score(other, sample_weight=w), rel=1e-12)
    np.testing.assert_allclose(km.bounds(rows), km.bounds(other), atol=1e-9)
    np.testing.assert_array_equal(km.fit_predict(csr_array(X)), km.labels_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(km)).predict(rows), km.predict(rows))


@pytest.mark.parametrize("jumps", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_batches_fit_as_dense_ones(metric, jumps):
    X = documents()
    found, expected = (KMeans(10, metric=metric, jumps=jumps, random_state=0) for _ in range(2))
    for begin in range(0, 600, 100):
        found.partial_fit(csr_array(X[begin : begin + 100]))
        expected.partial_fit(X[begin : begin + 100])
    np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, atol=1e-12)
    np.testing.assert_array_equal(found.predict(X), expected.predict(csr_array(X)))


def test_other_formats_types_and_layouts_equal_the_dense_fit():
    X = documents(200)
    expected = KMeans(5, search="full", random_state=0).fit(X)
    unsorted = csr_array(X)[:, ::-1].tocsr()[:, ::-1].tocsr()
    wide, once = csr_array(X), csr_array(X)
    twice = csr_array((np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr), shape=X.shape)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for rows in (csr_matrix(X), coo_matrix(X), csc_array(X), unsorted, twice, wide):
        before = rows.copy()
        np.testing.assert_array_equal(KMeans(5, search="full", random_state=0).fit(rows).labels_, expected.labels_)
        assert abs(rows - before).nnz == 0
    counts = (3 * X).astype(np.int64)
    found = KMeans(5, search="full", random_state=0).fit(csr_array(counts))
    assert found.cluster_centers_.dtype == np.float64
    np.testing.assert_array_equal(found.labels_, KMeans(5, search="full", random_state=0).fit(counts).labels_)


def test_a_start_by_a_function_is_given_the_rows():
    X = csr_array(documents())
    seen = []

    def first(rows, n_clusters, random_state):
        seen.append(rows)
        return rows[:n_clusters].toarray()

    km = KMeans(6, init=first, random_state=0).fit(X)
    assert km.inertia_ == pytest.approx(KMeans(6, init=X[:6].toarray()).fit(X).inertia_)
    assert (seen[0] != X).nnz == 0


def test_empty_clusters_and_rows_of_zeros_are_fitted_as_dense():
    X = np.zeros((40, 6))
    X[:9, 2], X[9:20, 4] = 1.0, 2.0
    far = np.vstack([np.eye(6)[:2], 50 * np.ones((1, 6))])
    found, expected = (KMeans(3, init=far, search="full").fit(rows) for rows in (csr_array(X), X))
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert found.inertia_ == expected.inertia_ == 0
    assert found.n_relocated_ == expected.n_relocated_ > 0
    with pytest.raises(ValueError, match="no rows of zeros with metric='cosine', got 20"):
        KMeans(3, metric="cosine").fit(csr_array(X))


def test_what_is_wrong_is_said():
    X = csr_array(documents(50))
    bad = X.copy()
    bad.data[7] = np.nan
    for rows, message in ((bad, "NaN"), (1e200 * X, "float64 does not hold"), (X[:3], "n_samples=3 should be >=")):
        with pytest.raises(ValueError, match=message):
            KMeans(4).fit(rows)
    km = KMeans(4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="is expecting 80 features"):
        km.predict(X[:, :7].tocsr())
    for other in (cprime.GaussianMixture(2), cprime.SoftKMeans(2), cprime.FuzzyKMeans(2), cprime.KMedoids(2)):
        with pytest.raises(TypeError, match="Sparse data was passed"):
            other.fit(X)


def test_options_survive_a_clone_and_a_regrouped_copy_changes_nothing():
    X = csr_array(documents(2000, 60, dtype=np.float32))
    fits = [KMeans(30, search=search.Graph(regroup=copy), random_state=0) for copy in (True, False)]
    one, other = (clone(fit).fit(X) for fit in fits)
    assert one.inertia_ == pytest.approx(other.inertia_, rel=1e-3)


@pytest.mark.long
def test_memory_is_not_that_of_an_array():
    """Rows of 2¹⁸ columns with one number in 5000 need far less memory than the 2 GB of a dense array."""
    rng = np.random.default_rng(0)
    n, D, C = 1000, 2**18, 4
    columns = rng.integers(D, size=(n, 50))
    X = csr_array((rng.random(50 * n), columns.ravel(), np.arange(0, 50 * n + 1, 50)), shape=(n, D))
    tracemalloc.start()
    try:
        km = KMeans(C, random_state=0).fit(X)
        km.predict(X)
        km.transform(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 25 * 8 * C * D, f"{peak / 2**20:.0f} MiB"
