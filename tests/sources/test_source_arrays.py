"""Sources of arrays in memory, of memory maps and of NumPy files."""

import pickle

import numpy as np
import pytest

from cprime.sources import is_source_like, open_data


def test_array_is_one_chunk_and_is_not_copied(rng):
    X = rng.normal(size=(50, 3))
    source = open_data(X)
    block = source.read(0, 50)
    assert source.sizes == (50,)
    assert source.in_memory
    assert np.shares_memory(block, X)
    assert not block.flags.writeable
    assert X.flags.writeable


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        *((stored, "f4") for stored in (np.float16, np.uint8, np.int16, ">f4", bool)),
        *((stored, "f8") for stored in (np.int32, np.int64, np.float64, np.longdouble)),
    ],
)
def test_precision_is_the_narrower_that_holds_the_values(stored, read, rng):
    X = rng.integers(0, 2, size=(20, 3)).astype(stored)
    source = open_data(X)
    assert source.dtype == read
    assert source.read(2, 9).dtype == read
    assert np.array_equal(source.read(2, 9), X[2:9])
    assert source.as_type("f4").read(2, 9).dtype == np.float32


def test_views_of_memory_maps_are_read_where_they_are(tmp_path, rng):
    X = rng.normal(size=(40, 6))
    np.save(tmp_path / "x.npy", X)
    whole = np.load(tmp_path / "x.npy", mmap_mode="r")
    for part in (np.s_[:], np.s_[5:30], np.s_[:, 2:], np.s_[::3], np.s_[::-1], np.s_[3:, ::2], np.s_[:, :5]):
        mapped = whole[part]
        source = open_data(mapped)
        assert source.n_bytes == (tmp_path / "x.npy").stat().st_size
        for again in (source, pickle.loads(pickle.dumps(source))):
            assert np.array_equal(again.read(1, again.n_rows), X[part][1:])
            assert np.array_equal(again.as_type("f4").read(1, again.n_rows), X[part][1:].astype("f4"))
            assert np.array_equal(again.take([3, 0, 3]), X[part][[3, 0, 3]])
            out = np.empty((again.n_rows, again.n_features))
            again.read_into(0, again.n_rows, out)
            assert np.array_equal(out, X[part])


def test_maps_that_are_in_no_file_are_arrays(tmp_path, rng):
    X = rng.normal(size=(40, 6))
    np.save(tmp_path / "x.npy", X)
    changed = np.load(tmp_path / "x.npy", mmap_mode="c")
    changed[0] = 7
    assert np.array_equal(open_data(changed).read(0, 1), np.full((1, 6), 7.0))
    assert open_data(changed + 1).sizes == (40,)
    assert is_source_like(changed)


def test_columns_first_are_read_as_rows(tmp_path, rng):
    X = rng.normal(size=(40, 6))
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    for source in (open_data(tmp_path / "x.npy"), open_data(np.asfortranarray(X))):
        block = source.read(3, 20)
        assert block.flags.c_contiguous
        assert np.array_equal(block, X[3:20])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"must hold a matrix \(rows, columns\), got an array of shape \(3,\)"),
        (np.zeros((3, 2, 2)), r"got an array of shape \(3, 2, 2\)"),
        (np.zeros((0, 2)), "must have at least one row"),
        (np.zeros((2, 0)), "must have at least one column"),
        (np.zeros((3, 2), complex), "must hold numbers, got values of type complex128"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_named(array, message, tmp_path):
    with pytest.raises(ValueError, match=f"X {message}" if message.startswith("must") else message):
        open_data(array)
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", X=array)
    with pytest.raises(ValueError, match=rf"x\.npy.*{message}"):
        open_data(tmp_path / "x.npy")
    with pytest.raises(ValueError, match=r"x\.npz"):
        open_data(tmp_path / "x.npz", key="X")


def test_text_is_refused(tmp_path):
    array = np.array([["1", "2"], ["3", "a"]])
    with pytest.raises(ValueError, match="X must hold numbers, got '1' in row 0, column 0: leave that column out"):
        open_data(array)
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(ValueError, match=r"x\.npy must hold numbers, got values of type <U1"):
        open_data(tmp_path / "x.npy")


def test_objects_are_refused(tmp_path):
    with pytest.raises(ValueError, match="X must hold numbers, got values of type object"):
        open_data(np.array([[1, None]]))
    np.save(tmp_path / "x.npy", np.array([[1, None]]))
    with pytest.raises(ValueError, match=r"x\.npy cannot be read"):
        open_data(tmp_path / "x.npy")


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_what_is_no_file_of_numpy_is_named(suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    for content in (b"", b"no numbers"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"x{suffix} cannot be read as a {suffix} file"):
            open_data(path)
    if suffix == ".npy":
        np.save(path, np.zeros((50, 4)))
        path.write_bytes(path.read_bytes()[:-8])
        with pytest.raises(ValueError, match=r"x\.npy cannot be read"):
            open_data(path)


def test_a_file_that_shrinks_is_seen_when_it_is_read(tmp_path, rng):
    np.save(tmp_path / "x.npy", rng.normal(size=(50, 4)))
    source = open_data(tmp_path / "x.npy").as_type("f4")
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"x\.npy has changed since it was opened: it ends too soon"):
        source.read(0, 50)


def test_arrays_of_npz_are_chosen_by_key(tmp_path, rng):
    a, b = rng.normal(size=(2, 9, 2))
    np.savez(tmp_path / "x.npz", a=a, b=b, ids=np.arange(9))
    assert np.array_equal(open_data(tmp_path / "x.npz", key="b").read(0, 9), b)
    with pytest.raises(ValueError, match=r"has 2 matrices: choose with key= from 'a', 'b'"):
        open_data(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"has no array 'c'; it has 'a', 'b', 'ids'"):
        open_data(tmp_path / "x.npz", key="c")
    with pytest.raises(ValueError, match="key names an array"):
        open_data(a, key="b")
    np.savez(tmp_path / "y.npz", a=a, ids=np.arange(9))
    assert np.array_equal(open_data(tmp_path / "y.npz").read(0, 9), a)


def test_endings_and_paths_are_checked(tmp_path):
    (tmp_path / "x.dat").write_bytes(b"1")
    with pytest.raises(ValueError, match=r"x\.dat has an unknown ending '\.dat': expected one of \.npy"):
        open_data(tmp_path / "x.dat")
    with pytest.raises(FileNotFoundError, match=r"y\.npy does not exist"):
        open_data(str(tmp_path / "y.npy"))
