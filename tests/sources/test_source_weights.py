"""Weights of rows from columns, files and arrays."""

import numpy as np
import pytest
from source_formats import ALL, write_parquet

from cprime.sources import open_data

N = 60


@pytest.fixture
def X(rng):
    return rng.uniform(1, 2, size=(N, 3))


@pytest.fixture(params=ALL)
def source(request, X, tmp_path):
    return open_data(ALL[request.param](tmp_path, X), chunk_rows=23)


def test_weights_of_every_format_are_read(source, X, tmp_path):
    assert source.weights(0, N) is None
    w = np.arange(N)
    np.save(tmp_path / "w.npy", w)
    (tmp_path / "w").mkdir()
    np.save(tmp_path / "w" / "0.npy", w[:7])
    np.save(tmp_path / "w" / "1.npy", w[7:])
    for spec in (w, w.tolist(), w.astype("f4"), str(tmp_path / "w.npy"), tmp_path / "w.npy", str(tmp_path / "w")):
        weighted = source.with_weights(spec)
        assert weighted.weights(5, 23).dtype == np.float64
        assert np.array_equal(weighted.weights(5, 23), w[5:23])
        assert weighted.sizes == source.sizes
        assert np.array_equal(weighted.read(5, 23), X[5:23].astype(source.dtype))
        assert weighted.with_weights(None).weights(0, 1) is None
    assert source.weights(0, N) is None


def test_columns_that_are_weights_are_no_data(source, X):
    if source.columns is None:
        with pytest.raises(ValueError, match="sample_weight must be an array, a file or None, got 'b'"):
            source.with_weights("b")
        return
    weighted = source.with_weights("b")
    assert weighted.columns == ["a", "c"]
    assert np.array_equal(weighted.read(10, 50), X[10:50][:, [0, 2]])
    assert np.allclose(weighted.weights(10, 50), X[10:50, 1])
    chosen = source.select(["c"]).with_weights("b")
    assert chosen.columns == ["c"]
    assert np.array_equal(chosen.take([3]), X[[3]][:, [2]])
    assert np.array_equal(chosen.weights(0, N), X[:, 1])
    with pytest.raises(ValueError, match=r"one of its columns \['a', 'b', 'c'\] or None, got 'd'"):
        source.with_weights("d")


@pytest.mark.parametrize("name", ["npy", "npz", "parquet", "csv", "fvecs", "hdf5 contiguous", "zarr", "npy folder"])
def test_files_of_one_column_are_weights_and_others_are_refused(name, X, tmp_path):
    data = ALL[name](tmp_path, X)
    source = open_data(X)
    with pytest.raises(ValueError, match=r"sample_weight must be one column, .* has 3"):
        source.with_weights(data)
    weights = ALL[name](tmp_path, X[:, :1]) if name in ("npy", "zarr", "hdf5 contiguous", "fvecs") else None
    if weights is not None:
        assert np.allclose(source.with_weights(weights).weights(0, N), X[:, 0])


def test_arrays_with_one_axis_in_files_are_weights(X, tmp_path):
    h5py = pytest.importorskip("h5py")
    zarr = pytest.importorskip("zarr")
    w = np.arange(N, dtype="f4")
    np.savez(tmp_path / "w.npz", w=w)
    with h5py.File(tmp_path / "w.h5", "w") as file:
        file["w"] = w
    zarr.open(str(tmp_path / "w.zarr"), mode="w", shape=w.shape, chunks=(7,), dtype="f4")[:] = w
    for name in ("w.npz", "w.h5", "w.zarr"):
        weighted = open_data(X).with_weights(tmp_path / name)
        assert np.array_equal(weighted.weights(3, 50), w[3:50])
        with pytest.raises(ValueError, match=r"must hold a matrix|got an array of shape \(60,\)"):
            open_data(tmp_path / name)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_weights_are_finite_and_not_negative(X, tmp_path, bad):
    pa = pytest.importorskip("pyarrow")
    w = np.ones(N)
    w[[17, 30]] = bad
    np.save(tmp_path / "w.npy", w)
    write_parquet(tmp_path / "t.parquet", pa.table({"x": X[:, 0], "w": w}))
    expected = f"is {bad}, weights must be finite and not negative"
    with pytest.raises(ValueError, match=f"^sample_weight: row 17 {expected}"):
        open_data(X).with_weights(w)
    with pytest.raises(ValueError, match=rf"sample_weight of .*w\.npy: row 17 {expected}"):
        open_data(X).with_weights(tmp_path / "w.npy")
    with pytest.raises(ValueError, match=rf"sample_weight of .*t\.parquet: row 17 {expected}"):
        open_data(tmp_path / "t.parquet").with_weights("w")


def test_weights_are_one_for_each_row_and_not_all_zero(X, tmp_path):
    source = open_data(X)
    with pytest.raises(ValueError, match="sample_weight must have at least one positive entry, got zeros only"):
        source.with_weights(np.zeros(N))
    for wrong in (np.ones(N + 1), np.ones((N, 1)), np.float64(1)):
        with pytest.raises(ValueError, match=rf"sample_weight must have the shape \(60,\), got \({wrong.shape and ''}"):
            source.with_weights(wrong)
    with pytest.raises(ValueError, match="sample_weight must hold numbers, got 'a' in position"):
        source.with_weights(["a"] * N)
    np.save(tmp_path / "w.npy", np.ones(N - 1))
    with pytest.raises(ValueError, match=r"w\.npy has 59 rows, X has 60"):
        source.with_weights(tmp_path / "w.npy")
    with pytest.raises(FileNotFoundError, match=r"v\.npy does not exist"):
        source.with_weights(tmp_path / "v.npy")


def test_changed_weights_are_seen(X, tmp_path):
    np.save(tmp_path / "w.npy", np.ones(N))
    source = open_data(X).with_weights(tmp_path / "w.npy")
    np.save(tmp_path / "w.npy", np.ones(N + 1))
    with pytest.raises(ValueError, match=r"w\.npy has changed"):
        source.verify()
