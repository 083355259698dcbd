"""`assign` finds the n nearest of given centers, by each metric, as a brute-force search of all pairs does."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import cprime
from cprime import KMeans

METRICS = ("euclidean", "cosine", "inner_product")


def all_distances(X, centers, metric):
    """Return the distances (or scalar products) of all rows to all centers, in float64."""
    X, centers = np.asarray(X, dtype=np.float64), np.asarray(centers, dtype=np.float64)
    if metric == "euclidean":
        return np.sqrt(np.square(X[:, np.newaxis] - centers).sum(axis=2))
    if metric == "cosine":
        units = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, centers))
        X, centers = units
        return 1 - X @ centers.T
    return X @ centers.T


def brute_force(X, centers, n, metric):
    every = all_distances(X, centers, metric)
    ids = np.argsort(-every if metric == "inner_product" else every, axis=1, kind="stable")[:, :n]
    return ids, np.take_along_axis(every, ids, axis=1)


def kinds_of_data(n, D):
    """Return matrices of several types without rows of zeros."""
    rng = np.random.default_rng(D)
    normal = rng.standard_normal((n, D))
    mostly_zeros = normal * (rng.random((n, D)) < 0.5)
    mostly_zeros[:, 0] = 1
    return {
        "float64": normal,
        "float32": normal.astype(np.float32),
        "float16": normal.astype(np.float16),
        "uint8": rng.integers(1, 255, (n, D)).astype(np.uint8),
        "sparse": csr_array(mostly_zeros),
        "fortran": np.asfortranarray(normal),
    }


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "uint8", "sparse", "fortran"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("n", "D", "C"), [(1, 1, 1), (300, 7, 40)])
def test_results_are_those_of_a_search_of_all_pairs(n, D, C, metric, kind):
    X, centers = kinds_of_data(n, D)[kind], np.random.default_rng(1).standard_normal((C, D)) + 0.1
    dense = X.toarray() if kind == "sparse" else X
    scale = np.abs(all_distances(dense, centers, metric)).max()
    for n_nearest in {1, min(4, C), C}:
        ids, distances = cprime.assign(X, centers, n_nearest, metric)
        expected, least = brute_force(dense, centers, n_nearest, metric)
        assert ids.dtype == np.int32
        assert distances.dtype == np.float64
        np.testing.assert_array_equal(ids.reshape(n, n_nearest), expected)
        np.testing.assert_allclose(distances.reshape(n, n_nearest), least, atol=1e-7 * scale, rtol=0)
        assert ids.shape == distances.shape == ((n,) if n_nearest == 1 else (n, n_nearest))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [3, 100])
def test_the_lower_of_two_equal_centers_comes_first(C, sparse, metric):
    rng = np.random.default_rng(0)
    X, half = rng.integers(1, 4, (50, 3)).astype(float), rng.integers(1, 3, (C, 3)).astype(float)
    centers = np.concatenate([half, half[::-1], half])
    for n in (1, 2, C, 3 * C):
        ids, _ = cprime.assign(csr_array(X) if sparse else X, centers, n, metric)
        if metric != "cosine":  # sums are exact, so all ties are equalities
            np.testing.assert_array_equal(ids.reshape(50, n), brute_force(X, centers, n, metric)[0])
        rank = np.full((50, 3 * C), 3 * C)
        np.put_along_axis(rank, ids.reshape(50, n), np.arange(n), axis=1)
        first, last = rank[:, :C], rank[:, 2 * C :]
        assert ((first < last) | (first == 3 * C)).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_results_are_those_of_a_fitted_k_means(metric, tmp_path):
    X = np.random.default_rng(0).standard_normal((500, 4)).astype(np.float32)
    fitted = KMeans(9, metric=metric, random_state=0).fit(X)
    np.save(tmp_path / "X.npy", X)
    for data in (X, tmp_path / "X.npy"):
        found, expected = cprime.assign(data, fitted.cluster_centers_, metric=metric), fitted.nearest(X)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-7)  # cosine: centers are scaled once more


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_are_accepted_by_their_columns_in_order(library):
    table_of = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    X = np.random.default_rng(0).standard_normal((40, 2))
    table = getattr(pytest.importorskip(library), table_of)({"b": X[:, 0], "a": X[:, 1]})
    for found, expected in zip(cprime.assign(table, np.eye(2)), cprime.assign(X, np.eye(2)), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_column_of_lists_is_a_matrix():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).standard_normal((40, 2))
    found = cprime.assign(pandas.DataFrame({"embedding": list(X)}), np.eye(2))
    np.testing.assert_array_equal(found[0], cprime.assign(X, np.eye(2))[0])


@pytest.mark.parametrize("metric", METRICS)
def test_threads_and_blocks_change_no_bit(metric, monkeypatch):
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((700, 5)).astype(np.float32), rng.standard_normal((60, 5)).astype(np.float32)
    one = cprime.assign(X, centers, 5, metric, n_threads=1)
    monkeypatch.setattr("cprime.estimators.given_centers._BLOCK", 1)
    three = cprime.assign(X, centers, 5, metric, n_threads=3)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, three, strict=True))


def test_scalar_products_of_very_different_lengths_are_told_apart():
    """A search by |x − c|² − |c|² would lose these products among the squares of lengths."""
    centers = np.float32([[1e6, 0], [0, 1e-3], [0, 2e-3], [-1e6, 0]])
    ids, products = cprime.assign(np.float32([[0, 1e-3], [0, -1e-3]]), centers, 2, "inner_product")
    np.testing.assert_array_equal(ids, [[2, 1], [0, 3]])
    np.testing.assert_allclose(products[0], [2e-6, 1e-6], rtol=1e-6)


def test_results_are_written_to_out(tmp_path):
    X, centers = np.random.default_rng(0).standard_normal((80, 3)), np.eye(3)
    distances = np.empty((80, 2))
    ids, found = cprime.assign(X, centers, 2, out=(tmp_path / "ids.npy", distances))
    assert found is distances
    expected = cprime.assign(X, centers, 2)
    np.testing.assert_array_equal(np.load(tmp_path / "ids.npy"), expected[0])
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_array_equal(distances, expected[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "manhattan"}, "metric must be one of"),
        ({"n_nearest": 4}, r"n_nearest must be at most len\(centers\)=3, got 4"),
        ({"n_nearest": 0}, "n_nearest"),
        ({"n_threads": 0}, "n_threads"),
        ({"centers": [[0.0, np.nan]]}, "Input centers contains NaN in row 0, column 1"),
        ({"centers": np.zeros((0, 2))}, "0 sample"),
        ({"centers": [[0.0, 1.0, 2.0]]}, "X has 2 columns, but centers have 3"),
        ({"centers": [[0.0, 1e200]]}, "centers"),
        ({"centers": [[0.0, 0.0]], "metric": "cosine"}, "centers must have no rows of zeros"),
        ({"X": [[0.0, 0.0]], "metric": "cosine"}, "X must have no rows of zeros"),
        ({"X": [[0.0, np.inf]]}, "X contains infinity"),
        ({"X": np.zeros((4, 3))}, "X has 3 columns, but centers have 2"),
        ({"out": np.empty(1)}, "out must be a tuple of 2"),
    ],
)
def test_bad_arguments_are_named(change, message):
    given = {"X": [[1.0, 2.0]], "centers": [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], **change}
    with pytest.raises((TypeError, ValueError), match=message):
        cprime.assign(**given)


@pytest.mark.parametrize("kind", kinds_of_data(60, 5))
@pytest.mark.parametrize("metric", METRICS[:2])
def test_bounds_of_sizes_are_kept_at_the_least_cost(kind, metric, tmp_path):
    X, centers = kinds_of_data(60, 5)[kind], kinds_of_data(10, 5)["float64"]
    dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
    every = all_distances(dense, centers, metric)
    costs = np.square(every) if metric == "euclidean" else every
    rows, slots = linear_sum_assignment(np.repeat(costs, 7, axis=1))
    out = tmp_path / "ids.npy", None
    ids, distances = cprime.assign(X, centers, metric=metric, size_max=7, out=out)
    assert np.bincount(ids).max() <= 7
    np.testing.assert_allclose(distances, every[np.arange(60), ids], rtol=1e-3, atol=1e-3)
    assert costs[np.arange(60), ids].sum() <= costs[rows, slots // 7].sum() * (1 + 1e-3)
    np.testing.assert_array_equal(np.load(out[0]), ids)
    least = cprime.assign(X, centers, metric=metric, size_min="0.5x", size_max="1.5x")[0]
    assert 3 <= np.bincount(least, minlength=10).min() <= np.bincount(least).max() <= 9


def test_bounds_of_sizes_do_not_depend_on_chunks_and_threads():
    X, centers = kinds_of_data(600, 5)["float64"], kinds_of_data(10, 5)["float64"]
    found = [
        cprime.assign(data, centers, size_max="1.1x", n_threads=n)
        for data in (X, cprime.open_data(X, chunk_rows=70))
        for n in (1, 2)
    ]
    for ids, distances in found[1:]:
        np.testing.assert_array_equal(ids, found[0][0])
        np.testing.assert_array_equal(distances, found[0][1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_nearest": 2}, "size_max and size_min need n_nearest=1"),
        ({"metric": "inner_product"}, "size_max and size_min need n_nearest=1 and distances"),
        ({"size_max": 5}, "size_max=5 allows 50 points in 10 clusters, got 60"),
        ({"size_max": "x"}, "size_max must be an integer"),
    ],
)
def test_bounds_of_sizes_that_cannot_be_are_named(given, message):
    X, centers = kinds_of_data(60, 5)["float64"], kinds_of_data(10, 5)["float64"]
    with pytest.raises(ValueError, match=message):
        cprime.assign(X, centers, **{"size_max": 7, **given})
