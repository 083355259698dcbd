"""Lance data sets: pieces and fragments, versions, rows by index, and errors for unreadable ones."""

import pickle
import shutil
import sys

import numpy as np
import pytest

from cprime.sources import lance_dataset, open_data

N, D = 300, 5


@pytest.fixture
def lance():
    return pytest.importorskip("lance")


def table(X, first=0):
    """Return a table with lists of numbers, names and a column of numbers."""
    pa = pytest.importorskip("pyarrow")
    rows = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), D)
    number = np.arange(first, first + len(X))
    return pa.table({"id": [f"doc {n}" for n in number], "number": number, "embedding": rows})


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, D), dtype=np.float32)


@pytest.fixture
def path(lance, X, tmp_path, monkeypatch):
    """Write four fragments, in which rows 80 to 110 and 299 are deleted; pieces have 64 rows. Return the path."""
    monkeypatch.setattr(lance_dataset, "_PIECE_ROWS", 64)
    path = tmp_path / "x.lance"
    lance.write_dataset(table(X), path, max_rows_per_file=90).delete("number between 80 and 110 or number = 299")
    return path


KEPT = np.r_[:80, 111 : N - 1]


def test_rows_are_in_order_from_any_piece(path, X):
    source, expected = open_data(path, columns="embedding"), X[KEPT]
    assert source.shape == expected.shape
    for begin, end in ((0, len(source)), (63, 66), (128, 128), (130, 261), (10, 20), (250, 268)):
        assert np.array_equal(source.read(begin, end), expected[begin:end])
    rows = [267, 0, 85, 84, 0, 191, *range(60, 200)]
    assert np.array_equal(source.take(rows), expected[rows])
    numbers = open_data(path, columns="number")
    assert np.array_equal(numbers.take(rows)[:, 0], KEPT[rows])
    names = source.as_stored(["id"])
    assert names.read_stored(70, 90)["id"].to_pylist() == [f"doc {n}" for n in KEPT[70:90]]


def test_a_data_set_is_one_version(lance, path, X):
    before = lance.dataset(path)
    source = open_data(before, columns="embedding")
    fingerprint = source.fingerprint()
    moved = shutil.copytree(path, path.parent / "moved" / path.name)
    assert open_data(moved, columns="embedding").fingerprint() == fingerprint
    lance.write_dataset(table(X[:20], N), path, mode="append")
    newest = open_data(path, columns="embedding")
    assert np.array_equal(newest.read(0, len(newest)), np.concatenate([X[KEPT], X[:20]]))
    again = open_data(before, columns="embedding")
    assert again.fingerprint() != newest.fingerprint()
    for older in (source, again, pickle.loads(pickle.dumps(again))):
        assert np.array_equal(older.read(0, len(older)), X[KEPT])
    with pytest.raises(ValueError, match=r"x\.lance has changed since it was opened"):
        source.verify()


def test_bytes_stay_bytes(lance, tmp_path):
    X = np.arange(N * D, dtype=np.uint8).reshape(N, D)
    source = open_data(lance.write_dataset(table(X), tmp_path / "x.lance"), columns="embedding")
    assert source.stored == np.uint8
    assert np.array_equal(source.read(7, 90, np.uint8), X[7:90])
    assert np.array_equal(source.take([200, 3], np.uint8), X[[200, 3]])


def test_a_list_of_another_length_is_named(lance, X, tmp_path):
    pa = pytest.importorskip("pyarrow")
    rows = [row[: D - (n == 200)].tolist() for n, row in enumerate(X)]
    path = tmp_path / "x.lance"
    lance.write_dataset(pa.table({"embedding": pa.array(rows, pa.list_(pa.float32()))}), path)
    source = open_data(path)
    for read in (lambda: source.read(100, N), lambda: source.take([250, 200, 30])):
        with pytest.raises(ValueError, match=rf"x\.lance: row 200 has a list of {D - 1} numbers, expected {D}"):
            read()


def test_folders_that_are_no_data_set_are_refused(lance, path, tmp_path):
    (tmp_path / "empty.lance").mkdir()
    (tmp_path / "file.lance").write_text("text")
    for name in ("empty.lance", "file.lance"):
        with pytest.raises(ValueError, match=rf"{name} cannot be read as a Lance data set: "):
            open_data(tmp_path / name)
    source = open_data(path, columns="embedding")
    shutil.rmtree(path / "data")
    for read in (lambda: source.read(0, 10), lambda: source.take([3])):
        with pytest.raises(ValueError, match=r"x\.lance cannot be read as a Lance data set: "):
            read()
    with pytest.raises(ValueError, match=r"key names an array of a file that holds several, got .*x\.lance"):
        open_data(path, key="embedding")


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    (tmp_path / "x.lance").mkdir()
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(ImportError, match="needs lance, which is missing: pip install pylance"):
        open_data(tmp_path / "x.lance")
