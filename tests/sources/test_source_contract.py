"""The contract that every source fulfills, whatever its format."""

import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from source_formats import ALL, LANCE, NAMES, ONE_PRECISION, STORED, TEXT, dtype_of

from cprime.sources import Source, ahead, is_source_like, open_data

N = 100


STORED_TYPES = [(name, dtype) for name in ALL for dtype in ("f4", "f8") if dtype == "f8" or name not in ONE_PRECISION]


@pytest.fixture(params=STORED_TYPES, ids=", ".join)
def case(request):
    """Return a format and the type of the values that are written in it."""
    return request.param


@pytest.fixture
def name(case):
    return case[0]


@pytest.fixture
def X(case, rng):
    """Return values that are exact in float32, so that every format returns them unchanged."""
    return rng.normal(size=(N, 3)).astype("f4").astype(case[1])


@pytest.fixture
def data(name, X, tmp_path):
    return ALL[name](tmp_path, X)


@pytest.fixture
def source(data):
    return open_data(data, chunk_rows=23)


def test_a_source_knows_its_shape_and_chunks(name, source, X):
    assert isinstance(source, Source)
    assert source.shape == (N, 3)
    assert len(source) == source.n_rows
    assert source.dtype == dtype_of(name, X)
    assert source.sizes == (23, 23, 23, 23, 8)
    assert source.n_bytes > 0
    assert source.columns in (None, NAMES)
    assert source.name in repr(source)


def test_read_gives_the_rows(name, source, X):
    for begin, end in [(0, N), (0, 1), (5, 5), (36, 45), (40, 42), (3, 99), (N - 1, N), (10, 20), (15, 25)]:
        block = source.read(begin, end)
        assert block.flags.c_contiguous
        assert block.dtype == dtype_of(name, X)
        assert np.array_equal(block, X[begin:end])
        out = np.empty((end - begin, 3), "f4")
        source.read_into(begin, end, out)
        assert np.array_equal(out, X[begin:end])


def test_rows_that_are_not_there_are_refused(source):
    for begin, end in [(-1, 3), (5, 4), (0, N + 1)]:
        with pytest.raises(ValueError, match=f"rows {begin} to {end} are not among the {N} rows"):
            source.read_into(begin, end, np.empty((max(0, end - begin), 3), source.dtype))
    with pytest.raises(ValueError, match="not among the 100 rows"):
        source.take([3, N])


def test_passes_visit_the_chunks_in_order(source, X):
    ranges = [(a, min(a + 23, N)) for a in range(0, N, 23)]
    for _ in range(2):
        assert np.array_equal(np.concatenate([source.read(*each) for each in ranges]), X)
        assert np.array_equal(np.concatenate([block.copy() for block in ahead(source, ranges)]), X)


def test_take_keeps_order_and_repeats(source, X, rng):
    for rows in ([], [7], [99, 0, 50, 0, 49, 99], rng.permutation(N), range(N)):
        rows = np.array(rows, dtype=np.int64)
        block = source.take(rows)
        assert block.dtype == source.dtype
        assert np.array_equal(block, X[rows])
    assert np.array_equal(source.read(23, 46), X[23:46])


def test_columns_are_chosen_and_ordered(data, X):
    source = open_data(data, columns=[2, 0], chunk_rows=23)
    assert source.shape == (N, 2)
    assert np.array_equal(source.read(30, 60), X[30:60, [2, 0]])
    assert np.array_equal(source.take([60, 3]), X[[60, 3]][:, [2, 0]])
    if source.columns is not None:
        assert source.columns == ["c", "a"]
        named = open_data(data, columns=["c", "a"])
        assert np.array_equal(named.read(30, 60), X[30:60, [2, 0]])
        assert named.fingerprint() == source.fingerprint()
        assert np.array_equal(open_data(data, columns="c").read(0, N), X[:, [2]])
        with pytest.raises(ValueError, match="has no column 'd'; it has 'a', 'b', 'c'"):
            open_data(data, columns=["d"])
    else:
        with pytest.raises(ValueError, match="has no column names: columns must be numbers, got 'a'"):
            open_data(data, columns=["a"])
    assert np.array_equal(source.select(None).read(0, N), X)
    with pytest.raises(ValueError, match="has no column 3"):
        open_data(data, columns=[3])
    with pytest.raises(ValueError, match="must be distinct"):
        open_data(data, columns=[1, 1])
    with pytest.raises(ValueError, match="at least one column"):
        open_data(data, columns=[])


def test_rows_are_read_in_either_precision(source, X):
    for dtype in ("f4", "f8"):
        other = source.as_type(dtype)
        assert other.dtype == dtype
        for block in (other.read(20, 70), other.take(np.arange(20, 70)), next(ahead(other, [(20, 70)]))):
            assert block.dtype == dtype
            assert np.array_equal(block, X[20:70])
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got int32"):
        source.as_type("i4")


def test_a_source_is_opened_as_itself(source):
    assert open_data(source) is source
    assert open_data(source, chunk_rows=50).sizes == (50, 50)
    assert open_data(source, columns=[1]).n_features == 1
    with pytest.raises(ValueError, match="chunk_rows == 0, must be >= 1"):
        open_data(source, chunk_rows=0)
    with pytest.raises(TypeError, match="chunk_rows must be an instance of int, not float"):
        open_data(source, chunk_rows=2.0)
    with pytest.raises(ValueError, match="key names an array"):
        open_data(source, key="X")


def test_sources_of_the_same_rows_do_not_disturb_each_other(source, X):
    other = source.with_chunk_rows(11)
    for begin in range(0, N - 10, 10):
        assert np.array_equal(source.read(begin, begin + 10), X[begin : begin + 10])
        assert np.array_equal(other.read(N - begin - 10, N - begin), X[N - begin - 10 : N - begin])
    source.close()
    assert np.array_equal(source.read(0, N), X)


def test_pickled_sources_read_the_same(source, X):
    source.read(0, 10)
    other = pickle.loads(pickle.dumps(source.with_weights(np.arange(N))))
    assert other.sizes == source.sizes
    assert other.columns == source.columns
    assert np.array_equal(other.read(5, 80), X[5:80])
    assert np.array_equal(other.take([50, 2]), X[[50, 2]])
    assert np.array_equal(other.weights(3, 6), [3, 4, 5])
    assert other.select([0]).fingerprint() == source.with_weights(np.arange(N)).select([0]).fingerprint()


def test_data_of_other_libraries_are_told_from_plain_arrays(name, data, source):
    assert is_source_like(data) == (name in STORED)
    assert is_source_like(source)


# Two Lance data sets that are written alike differ by names and times: test_source_lance.py moves one.
@pytest.mark.parametrize("case", [case for case in STORED_TYPES if case[0] not in LANCE], ids=", ".join)
def test_fingerprints_tell_data_apart(name, X, tmp_path):
    def opened(folder, values, seconds):
        (tmp_path / folder).mkdir()
        data = ALL[name](tmp_path / folder, values)
        for path in (tmp_path / folder).rglob("*"):
            os.utime(path, (seconds, seconds))
        return open_data(data)

    source = opened("first", X, 10)
    assert source.fingerprint() == opened("moved", X, 10).with_chunk_rows(3).fingerprint()
    others = [opened("other", X + 1, 20), source.select([0]), source.select([0, 2, 1]), source.with_weights(np.ones(N))]
    others += [source.as_type("f8" if source.dtype == "f4" else "f4"), source.with_weights(np.arange(N))]
    assert len({each.fingerprint() for each in [source, *others]}) == 7


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
@pytest.mark.parametrize("case", [(name, "f8") for name in ALL], ids=", ".join)
def test_values_that_are_not_finite_are_named(name, X, tmp_path, bad):
    X[[45, 60], [1, 2]] = bad
    source = open_data(ALL[name](tmp_path, X))
    source.check_finite(source.read(0, 45), 0)
    row = {"npy folder": "1.npy: row 8 (row 45 of all)", "arrow folder": "1.arrow: row 40 (row 45 of all)"}
    row |= dict.fromkeys(("parquet folder", "dataset"), "part-2.parquet: row 4 (row 45 of all)")
    with pytest.raises(ValueError, match="values must be finite") as error:
        source.check_finite(source.read(40, 90), 40)
    column = "1" if source.columns is None else "'b'"
    assert f"{row.get(name, f'{source.name}: row 45')}, column {column}: {bad}; values" in str(error.value)
    assert "2 of the 50 rows from row 40 on" in str(error.value)


def test_large_finite_values_are_finite(rng):
    X = np.full((10, 3), np.finfo("f4").max, dtype="f4")
    open_data(X).check_finite(X, 0)


@pytest.mark.parametrize("name", [name for name in ALL if name not in ("fvecs", "fbin")])  # these store float32
def test_values_that_float32_does_not_hold_are_not_finite(name, tmp_path):
    X = np.ones((N, 3))
    X[7, 2] = 1e300
    source = open_data(ALL[name](tmp_path, X)).as_type("f4")
    for block in (source.read(0, N), source.take(range(N))):
        with pytest.raises(ValueError, match=r"row 7.* inf; values must be finite"):
            source.check_finite(block, 0)


@pytest.mark.parametrize("stored", STORED)
def test_files_that_change_or_vanish_are_seen(stored, tmp_path, rng):
    source = open_data(STORED[stored](tmp_path, rng.normal(size=(N, 3)))).with_weights(np.ones(N))
    source.verify()
    assert source._files
    pickle.loads(pickle.dumps(source)).verify()
    path = Path(source._files[-1].path)
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    os.utime(files[0], ns=(0, 10**18 * 3))
    with pytest.raises(ValueError, match=rf"{path.name} has changed since it was opened: it was written to"):
        source.verify()
    with files[0].open("ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match=rf"{path.name} has changed since it was opened: from \d+ bytes to \d+"):
        source.verify()
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(ValueError, match=rf"{path.name} has vanished since it was opened"):
        source.verify()


@pytest.mark.parametrize("stored", [name for name in STORED if name not in ("zarr", "zarr array", *LANCE, *TEXT[:3])])
def test_files_that_are_cut_short_are_named(stored, tmp_path, rng):
    source = open_data(STORED[stored](tmp_path, rng.normal(size=(N, 3))))
    path = Path(source._files[-1].path)
    content = path.read_bytes()
    for keep in (len(content) - 7, 2):
        path.write_bytes(content[:keep])
        with pytest.raises(ValueError, match=rf"{path.name}"):
            open_data(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=rf"{path.name}"):
        open_data(path)


@pytest.mark.parametrize("name", ["memmap", "npy", "parquet", "ipc", "feather", "csv", "fvecs", "fbin"])
def test_a_file_that_is_cut_short_while_open_is_no_other_data(name, rng, tmp_path):
    source = open_data(STORED[name](tmp_path, rng.normal(size=(N, 3)))).as_type("f4")
    path = Path(source._files[0].path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=path.name):
        source.read(0, N)


@pytest.mark.parametrize(
    ("shape", "chunk_rows"),
    [
        ((2**17, 1024), 2**17),
        ((2**17 + 1, 1024), 2**15),
        ((2**22, 1), 2**22),
        ((2**22 + 1, 1), 2**22),
    ],
)
def test_default_chunks_are_whole_files_of_512_mib_or_parts_of_128_mib(shape, chunk_rows, tmp_path):
    np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, shape)  # a sparse file, which takes no space
    assert open_data(tmp_path / "x.npy").chunk_rows == chunk_rows
