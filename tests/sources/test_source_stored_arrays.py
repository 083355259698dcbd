"""Errors specific to vector search files, HDF5 and Zarr."""

import sys

import numpy as np
import pytest
from source_formats import STORED

from cprime.sources import open_data


def vecs(path, rows, dtype):
    path.write_bytes(b"".join(np.int32(len(row)).tobytes() + np.asarray(row, dtype).tobytes() for row in rows))
    return path


def test_bytes_are_read_as_float32(tmp_path, rng):
    X = rng.integers(0, 256, size=(50, 5))
    vecs(tmp_path / "x.bvecs", X, "u1")
    (tmp_path / "x.u8bin").write_bytes(np.array(X.shape, "<u4").tobytes() + X.astype("u1").tobytes())
    (tmp_path / "x.i8bin").write_bytes(np.array(X.shape, "<u4").tobytes() + (X - 128).astype("i1").tobytes())
    (tmp_path / "x.f16bin").write_bytes(np.array(X.shape, "<u4").tobytes() + (X / 4).astype("<f2").tobytes())
    for name, expected in (("x.bvecs", X), ("x.u8bin", X), ("x.i8bin", X - 128), ("x.f16bin", X / 4)):
        source = open_data(tmp_path / name)
        assert source.dtype == np.float32
        assert np.array_equal(source.read(3, 40), expected[3:40])
        assert np.array_equal(source.select([4, 1]).take([40, 3]), expected[[40, 3]][:, [4, 1]])


def test_rows_of_another_dimension_are_named(tmp_path):
    path = vecs(tmp_path / "x.fvecs", [[1, 2], [3, 4], [5, 6]], "f4")
    content = bytearray(path.read_bytes())
    content[12] = 7
    path.write_bytes(content)
    source = open_data(path)
    assert np.array_equal(source.read(0, 1), [[1, 2]])
    for read in (lambda: source.read(0, 3), lambda: source.take([2, 1])):
        with pytest.raises(ValueError, match=r"x\.fvecs: row 1 has the dimension 7, expected 2 as in row 0"):
            read()


def test_sizes_of_vector_files_fit_exactly(tmp_path):
    path = vecs(tmp_path / "x.fvecs", [[1, 2], [3, 4]], "f4")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match=r"multiple of 12 bytes \(2 values a row\), as 12 or 24, found 21"):
        open_data(path)
    path.write_bytes(np.int32(-2).tobytes() * 3)
    with pytest.raises(ValueError, match="dimension of its rows, at least 1, got -2"):
        open_data(path)
    (tmp_path / "x.fbin").write_bytes(np.array([2, 3], "<u4").tobytes() + bytes(25))
    with pytest.raises(ValueError, match=r"x\.fbin: expected 32 bytes for 2 rows of 3 values, found 33"):
        open_data(tmp_path / "x.fbin")
    (tmp_path / "x.fbin").write_bytes(np.array([0, 2**30], "<u4").tobytes())
    with pytest.raises(ValueError, match=r"x\.fbin must have at most 16777216 columns, got 1073741824"):
        open_data(tmp_path / "x.fbin")
    (tmp_path / "x.fbin").write_bytes(b"123")
    with pytest.raises(ValueError, match=r"x\.fbin: expected at least 8 bytes, found 3"):
        open_data(tmp_path / "x.fbin")
    (tmp_path / "x.fbin").write_bytes(np.array([0, 3], "<u4").tobytes())
    with pytest.raises(ValueError, match="must have at least one row"):
        open_data(tmp_path / "x.fbin")


@pytest.mark.parametrize("suffix", [".h5", ".zarr"])
def test_arrays_are_chosen_by_key(suffix, tmp_path, rng):
    path = tmp_path / f"x{suffix}"
    a, b = rng.normal(size=(2, 30, 2))
    if suffix == ".h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["a"], file["deep/b"], file["text"] = a, b, ["x", "y"]
    else:
        group = pytest.importorskip("zarr").open_group(str(path), mode="w")
        for name, values in (("a", a), ("deep/b", b), ("c", b)):
            group.create_array(name, shape=values.shape, dtype=values.dtype)[:] = values
    assert np.array_equal(open_data(path, key="a").read(0, 30), a)
    assert np.array_equal(open_data(path, key="deep/b").read(3, 20), b[3:20])
    with pytest.raises(ValueError, match="2 matrices: choose with key="):
        open_data(path)
    with pytest.raises(ValueError, match="has no array 'z'"):
        open_data(path, key="z")
    if suffix == ".h5":
        with pytest.raises(ValueError, match="got an array of shape"):
            open_data(path, key="text")


def test_types_are_converted_block_by_block(tmp_path, rng):
    h5py = pytest.importorskip("h5py")
    zarr = pytest.importorskip("zarr")
    X = rng.integers(0, 2, size=(40, 3))
    for dtype, read in (("f2", "f4"), ("u1", "f4"), ("?", "f4"), ("i8", "f8"), (">f4", "f4")):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file["X"] = X.astype(dtype)
        zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=X.shape, chunks=(7, 3), dtype=dtype)[:] = X.astype(dtype)
        for name in ("x.h5", "x.zarr"):
            source = open_data(tmp_path / name)
            assert source.dtype == read
            assert np.array_equal(source.read(5, 33), X[5:33])


def test_complex_numbers_are_refused(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=(4, 2), chunks=(2, 2), dtype="c8")
    with pytest.raises(ValueError, match=r"x\.zarr must hold numbers, got values of type complex64"):
        open_data(tmp_path / "x.zarr")


@pytest.mark.parametrize("name", ["x.h5", "x.zarr"])
def test_what_is_no_such_file_is_named(name, tmp_path):
    for library in ("h5py", "zarr"):
        pytest.importorskip(library)
    (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(ValueError, match=rf"{name} cannot be read"):
        open_data(tmp_path / name)
    (tmp_path / "folder.zarr").mkdir()
    with pytest.raises(ValueError, match=r"folder\.zarr cannot be read as a Zarr array"):
        open_data(tmp_path / "folder.zarr")


def test_an_open_dataset_is_read_as_it_is(tmp_path, rng):
    h5py = pytest.importorskip("h5py")
    X = rng.normal(size=(20, 2))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        source = open_data(file.create_dataset("X", data=X))
        assert np.array_equal(source.select([1]).read(3, 9), X[3:9, [1]])


@pytest.mark.parametrize("stored", ["npy", "npz", "npy folder", "hdf5", "zarr"])
def test_integer_names_of_rows_are_exact(stored, tmp_path):
    large = 2**53 + 1  # float64 cannot represent it
    X = np.tile([[7, large], [8, large + 2], [9, -large]], (10, 1))
    names = open_data(STORED[stored](tmp_path, X)).as_stored(["1"])
    assert names.read_stored(0, 30)["1"].tolist() == X[:, 1].tolist()
    assert names.read_stored(1, 2)["1"].tolist() == [large + 2]


@pytest.mark.parametrize(
    ("stored", "library"), [("zarr", "zarr"), ("hdf5", "h5py"), ("parquet", "pyarrow"), ("csv", "pyarrow")]
)
def test_a_missing_library_is_named(stored, library, tmp_path, rng, monkeypatch):
    path = STORED[stored](tmp_path, rng.normal(size=(20, 3)))
    for module in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"needs {library}, which is missing: pip install {library}"):
        open_data(path)
