"""Results written in pieces to arrays, memory maps and files are bit-identical to those computed at once."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from cprime import GaussianMixture, KMeans, open_data
from cprime.execution import results

N, D, C = 700, 3, 6
X = (np.random.default_rng(0).normal(size=(N, D)) + np.arange(N)[:, np.newaxis] % C).astype(np.float32)
KM = KMeans(C, random_state=0).fit(X)
GM = GaussianMixture(C, n_active=2, covariance_type="diag", random_state=0, tol=0.1).fit(X)
WAYS = {
    "k-means predict": KM.predict,
    "k-means approximate": lambda X, **more: KM.predict(X, approximate=True, **more),
    "k-means transform": KM.transform,
    "mixture predict": GM.predict,
    "mixture proba": GM.predict_proba,
    "mixture score": GM.score_samples,
}
any_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.fixture
def small_pieces(monkeypatch):
    """Limit pieces to 256 rows, as if the data were far larger."""
    monkeypatch.setattr(results, "CHUNK_BYTES", 1)


def arrays(found):
    if isinstance(found, tuple):
        return found
    return (found.data, found.indices, found.indptr) if isinstance(found, csr_array) else (found,)


@pytest.mark.parametrize(
    "way",
    [*WAYS.values(), KM.nearest, GM.nearest, lambda X: GM.predict_proba(X, sparse=True)],
    ids=[*WAYS, "k-means nearest", "mixture nearest", "mixture sparse"],
)
def test_pieces_give_what_all_rows_at_once_give(way, small_pieces, monkeypatch, tmp_path):
    np.save(tmp_path / "X.npy", X.astype(np.float64))
    found = [way(data) for data in (X, open_data(X, chunk_rows=300), open_data(tmp_path / "X.npy", chunk_rows=300))]
    monkeypatch.undo()
    for once in (way(X), *found):
        for a, b in zip(arrays(once), arrays(found[0]), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=2e-6)
    assert {array.flags.owndata or array.base.nbytes <= 2 * array.nbytes for array in arrays(found[0])} == {True}


def test_cosine_and_sparse_rows_go_by_pieces_too(small_pieces, monkeypatch):
    km = KMeans(C, metric="cosine", random_state=0).fit(X)
    rows = csr_array(np.where(X.max(axis=1, keepdims=True) == X, X, 0).astype(np.float32))
    found = [*km.nearest(X), *km.nearest(rows)]
    monkeypatch.undo()
    for a, b in zip(found, [*km.nearest(X), *km.nearest(rows)], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@any_way
def test_an_array_that_is_given_is_filled_and_returned(way, tmp_path):
    expected = way(X)
    mapped = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", expected.dtype, expected.shape)
    assert way(X, out=mapped) is mapped
    np.testing.assert_array_equal(mapped, expected)


@any_way
def test_a_path_becomes_a_file(way, small_pieces, tmp_path):
    expected, path = way(X), tmp_path / "out.npy"
    found = way(X, out=path)
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.load(path), expected)
    assert np.load(path).dtype == expected.dtype
    assert list(tmp_path.iterdir()) == [path]


def test_two_results_have_two_places(tmp_path):
    labels, distances = KM.nearest(X)
    found = GM.nearest(X, out=(None, tmp_path / "distances.npy"))
    np.testing.assert_array_equal(found[1], GM.nearest(X)[1])
    np.testing.assert_array_equal(found[0], GM.predict(X))
    given = np.empty(N, np.int32), np.empty(N)
    KM.nearest(X, out=given)
    np.testing.assert_array_equal(given[0], labels)
    np.testing.assert_array_equal(given[1], distances)


READ_ONLY = np.empty(N, np.int32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("out", "error", "words"),
    [
        (np.empty(N, np.int64), ValueError, r"dtype int32, got one of .* dtype int64"),
        (np.empty((N, 1), np.int32), ValueError, r"got one of shape \(700, 1\)"),
        (READ_ONLY, ValueError, "read-only"),
        ("labels.csv", ValueError, r"the path of a \.npy file, got 'labels\.csv'"),
        (3, TypeError, "got int"),
    ],
)
def test_other_places_are_refused(out, error, words):
    with pytest.raises(error, match=f"out must be .*{words}"):
        KM.predict(X, out=out)


@pytest.mark.parametrize("out", [3, (None,), (None, None, None)])
def test_two_results_need_two_places(out):
    with pytest.raises(ValueError, match="out must be a tuple of 2"):
        KM.nearest(X, out=out)


@pytest.mark.parametrize("place", ["same.npy", np.empty(N)], ids=["file", "array"])
def test_two_results_do_not_share_one(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="out must be a tuple of 2 different outputs"):
        KM.nearest(X, out=(place, tmp_path / place if isinstance(place, str) else place))


def test_sparse_results_have_no_place_of_their_own(tmp_path):
    for out in (tmp_path / "p.npy", np.empty((N, C), np.float32)):
        with pytest.raises(ValueError, match="out must be None where sparse=True"):
            GM.predict_proba(X, sparse=True, out=out)
    assert not list(tmp_path.iterdir())


def test_a_file_of_a_prediction_that_fails_is_not_there(tmp_path):
    bad = X.copy()
    bad[-1, 0] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(ValueError, match="row 699"):
        KM.predict(open_data(tmp_path / "bad.npy", chunk_rows=300), out=tmp_path / "l.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.npy"]


@pytest.mark.parametrize(
    ("way", "answer"),
    [
        (KM.predict, 4),
        (KM.nearest, 12),
        (KM.transform, 4 * C),
        (GM.nearest, 12),
        (GM.score_samples, 4),
        (lambda X: GM.predict_proba(X, sparse=True), 2 * 8 + 4),
    ],
    ids=["predict", "nearest", "transform", "mixture nearest", "score", "sparse"],
)
def test_nothing_is_held_twice(way, answer, monkeypatch):
    monkeypatch.setattr(results, "CHUNK_ROWS", 2000)
    many = np.tile(X, (100, 1))
    tracemalloc.start()
    way(many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < answer * len(many) + 500_000
