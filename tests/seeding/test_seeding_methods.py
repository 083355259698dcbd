"""Properties of every seeding method: distinct rows of X, reproducible, weighted, independent of memory layout."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array
from seeding_data import DTYPES, METHODS, clustered
from sklearn.exceptions import ConvergenceWarning

from cprime.seeding import afk_mc2, kmeans_plusplus, two_level

methods = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
threaded_methods = pytest.mark.parametrize(
    "method", [kmeans_plusplus, afk_mc2, two_level], ids=["k-means++", "afk-mc2", "two-level"]
)
distant_methods = pytest.mark.parametrize("method", [kmeans_plusplus, afk_mc2], ids=["k-means++", "afk-mc2"])


def layouts(X, folder):
    """Return the data as a Fortran array, a strided view, a read-only array and a read-only memory map."""
    wide = np.full((2 * len(X), 2 * X.shape[1]), np.nan, dtype=X.dtype)
    wide[::2, ::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    np.save(folder / "X.npy", X)
    return [np.asfortranarray(X), wide[::2, ::2], frozen, np.load(folder / "X.npy", mmap_mode="r")]


@methods
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("D", [1, 2, 33])
@pytest.mark.parametrize("n_clusters", [1, 2, 64, 65, 150, 400])
def test_centers_are_distinct_rows(method, n_clusters, D, dtype):
    X = clustered(400, D, dtype)
    centers, indices = method(X, n_clusters, random_state=0)
    assert indices.dtype == np.int64
    assert indices.shape == (n_clusters,)
    assert len(np.unique(indices)) == n_clusters
    assert centers.dtype == dtype
    assert type(centers) is np.ndarray
    assert centers.flags.c_contiguous
    assert centers.flags.writeable
    assert not np.shares_memory(centers, X)
    np.testing.assert_array_equal(centers, X[indices])


@methods
def test_the_random_state_determines_the_centers(method):
    X = clustered(500, 4)
    first = method(X, 30, random_state=1)[1]
    np.testing.assert_array_equal(method(X, 30, random_state=1)[1], first)
    np.testing.assert_array_equal(method(X, 30, random_state=np.random.RandomState(1))[1], first)
    assert (method(X, 30, random_state=2)[1] != first).any()
    state = np.random.RandomState(1)
    assert (method(X, 30, random_state=state)[1] != method(X, 30, random_state=state)[1]).any()


@threaded_methods
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_number_of_threads_does_not_change_the_centers(method, dtype, weighted):
    X = clustered(20_011, 5, dtype)
    w = np.random.default_rng(0).exponential(size=len(X)) if weighted else None
    first = method(X, 90, sample_weight=w, random_state=1, n_threads=1)[1]
    for n_threads in (3, 8, None):
        other = method(X, 90, sample_weight=w, random_state=1, n_threads=n_threads)[1]
        np.testing.assert_array_equal(other, first)


@methods
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_rows_are_chosen_as_the_same_rows_of_an_array(method, weighted, dtype):
    X = clustered(700, 6, dtype)
    X[np.abs(X) < 3] = 0
    weight = np.random.default_rng(1).random(len(X)) if weighted else None
    centers, indices = method(X, 40, sample_weight=weight, random_state=0)
    for form in (csr_array, csc_matrix, coo_array):
        of_sparse, rows = method(form(X), 40, sample_weight=weight, random_state=0)
        np.testing.assert_array_equal(rows, indices)
        np.testing.assert_array_equal(of_sparse, centers)
        assert of_sparse.dtype == dtype


@methods
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_layout_gives_the_same_rows(method, dtype, tmp_path):
    X = clustered(300, 6, dtype)
    expected = method(X, 70, random_state=3)[1]
    for arranged in layouts(X, tmp_path):
        centers, indices = method(arranged, 70, random_state=3)
        np.testing.assert_array_equal(indices, expected)
        np.testing.assert_array_equal(centers, X[indices])
        assert type(centers) is np.ndarray
        assert centers.flags.c_contiguous


@methods
def test_lists_and_integers_are_taken(method):
    X = np.arange(24).reshape(12, 2)
    centers, indices = method(X.tolist(), 4, random_state=0)
    assert centers.dtype == np.float64
    np.testing.assert_array_equal(centers, X[indices])


@methods
@pytest.mark.parametrize("n_clusters", [1, 5, 40, 70])
def test_a_row_without_weight_waits_until_all_others_are_chosen(method, n_clusters):
    X = clustered(100, 3)
    w = np.zeros(100)
    weighted = np.random.default_rng(0).permutation(100)[:40]
    w[weighted] = np.random.default_rng(1).exponential(size=40) + 0.01
    for seed in range(5):
        indices = method(X, n_clusters, sample_weight=w, random_state=seed)[1]
        assert len(np.unique(indices)) == n_clusters
        assert set(indices[:40]) <= set(weighted)


@methods
def test_the_scale_of_the_weights_does_not_matter(method):
    X, w = clustered(200, 3), np.random.default_rng(0).exponential(size=200)
    expected = method(X, 20, sample_weight=w, random_state=0)[1]
    for scale in (2.0**-60, 2.0**60):
        np.testing.assert_array_equal(method(X, 20, sample_weight=scale * w, random_state=0)[1], expected)


@methods
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_offset_changes_nothing(method, dtype, offset):
    """For multiples of 1/16, differences are exact in float32 even near 1e6; means of cells are not."""
    if method is two_level and dtype == np.float32 and offset:
        offset = 16.0
    X = (np.random.default_rng(0).integers(-99, 99, size=(300, 3)) / 16).astype(dtype)
    np.testing.assert_array_equal(method(X + dtype(offset), 40, random_state=0)[1], method(X, 40, random_state=0)[1])


@distant_methods
@pytest.mark.parametrize("dtype", DTYPES)
def test_duplicates_are_chosen_only_after_all_distinct_rows(method, dtype):
    X = np.repeat(clustered(30, 2, dtype), 10, axis=0)
    for seed in range(5):
        centers, _ = method(X, 30, random_state=seed)
        assert len(np.unique(centers, axis=0)) == 30


@methods
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_fewer_distinct_points_than_clusters_give_one_warning(method, dtype, weighted):
    X = np.repeat(clustered(5, 2, dtype), 20, axis=0)
    w = np.where(np.arange(100) % 3 > 0, 1.0, 0.0) if weighted else None
    with pytest.warns(ConvergenceWarning, match=r"clusters \([1-5]\) found smaller than n_clusters \(12\)") as seen:
        centers, indices = method(X, 12, sample_weight=w, random_state=0)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert len(np.unique(indices)) == 12
    np.testing.assert_array_equal(centers, X[indices])
    if method in (kmeans_plusplus, afk_mc2):
        assert len(np.unique(centers, axis=0)) == 5
    with pytest.warns(ConvergenceWarning):
        np.testing.assert_array_equal(method(X, 12, sample_weight=w, random_state=0)[1], indices)
    if weighted:
        assert (w[indices] > 0).all()


@distant_methods
@pytest.mark.parametrize("dtype", DTYPES)
def test_far_outliers_are_found(method, dtype):
    X = clustered(300, 3, dtype)
    X[[17, 170]] = [[1e8, 0, 0], [0, -1e8, 0]]
    for seed in range(5):
        centers, indices = method(X, 6, random_state=seed)
        assert {17, 170} <= set(indices)
        assert np.isfinite(centers).all()


BAD_DATA = {
    "one dimension": (np.arange(5.0), {}, "Expected 2D array"),
    "not a number": (np.array([[0.0], [np.nan]]), {}, "NaN"),
    "infinity": (np.array([[0.0], [np.inf]]), {}, "infinity"),
    "empty": (np.empty((0, 2)), {}, "0 sample"),
    "too few rows": (np.ones((3, 1)), {"n_clusters": 4}, r"n_samples=3 should be >= n_clusters=4\."),
    "no clusters": (np.ones((3, 1)), {"n_clusters": 0}, "n_clusters == 0, must be >= 1"),
    "half a cluster": (np.ones((3, 1)), {"n_clusters": 1.5}, "n_clusters must be an instance of int"),
    "short weights": (np.ones((3, 1)), {"sample_weight": [1, 2]}, r"sample_weight.shape == \(2,\)"),
    "weight not a number": (np.ones((3, 1)), {"sample_weight": [1, 2, np.nan]}, "NaN"),
    "negative weight": (np.ones((3, 1)), {"sample_weight": [1, 2, -1]}, "Negative values in data passed"),
    "no weight": (np.ones((3, 1)), {"sample_weight": [0, 0, 0]}, "at least one non-zero"),
    "random state": (np.ones((3, 1)), {"random_state": "x"}, "cannot be used to seed"),
}


@methods
@pytest.mark.parametrize(("X", "arguments", "message"), BAD_DATA.values(), ids=BAD_DATA.keys())
def test_bad_input_is_refused(method, X, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        method(X, **({"n_clusters": 1} | arguments))


@pytest.mark.parametrize(("method", "name"), [(kmeans_plusplus, "n_local_trials"), (afk_mc2, "chain_length")])
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3"])
def test_counts_are_checked(method, name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        method(np.arange(10.0)[:, np.newaxis], 2, **{name: value})
