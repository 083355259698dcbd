"""Writers of every file and array format, each using the library of the format."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

NAMES = ["a", "b", "c"]
Writer = Callable[[Path, NDArray], Any]


def _table(X: NDArray, begin: int = 0, end: int | None = None) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.table({name: X[begin:end, j] for j, name in enumerate(NAMES)})


def _npy(folder: Path, X: NDArray) -> Path:
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def _npz(folder: Path, X: NDArray) -> Path:
    np.savez(folder / "x.npz", X=X, other=X + 1)
    return folder / "x.npz"


def _npy_folder(folder: Path, X: NDArray) -> Path:
    (folder / "parts").mkdir(exist_ok=True)
    np.save(folder / "parts" / "0.npy", X[:37])
    np.save(folder / "parts" / "1.npy", X[37:])
    return folder / "parts"


def write_parquet(path: Path, table: Any, rows: int = 19) -> Path:
    pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=rows)
    return path


def write_ipc(path: Path, table: Any, rows: int = 17, compression: str | None = None) -> Path:
    feather = pytest.importorskip("pyarrow.feather")
    feather.write_feather(table, path, compression=compression or "uncompressed", chunksize=rows)
    return path


def _parquet_folder(folder: Path, X: NDArray) -> Path:
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "_SUCCESS").write_bytes(b"")
    write_parquet(folder / "parts" / "part-0.parquet", _table(X, 0, 41))
    write_parquet(folder / "parts" / "part-1.parquet", _table(X, 41, 41))
    write_parquet(folder / "parts" / "part-2.parquet", _table(X, 41).select(["c", "a", "b"]))
    return folder / "parts"


def _ipc_folder(folder: Path, X: NDArray) -> Path:
    (folder / "parts").mkdir(exist_ok=True)
    write_ipc(folder / "parts" / "0.arrow", _table(X, 0, 5), compression="zstd")
    write_ipc(folder / "parts" / "1.arrow", _table(X, 5))
    return folder / "parts"


def _dataset(folder: Path, X: NDArray) -> Any:
    return pytest.importorskip("pyarrow.dataset").dataset(_parquet_folder(folder, X), format="parquet")


def _csv(folder: Path, X: NDArray) -> Path:
    pytest.importorskip("pyarrow")
    rows = [",".join(repr(float(value)) for value in row) for row in X]
    (folder / "x.csv").write_text("\n".join([",".join(NAMES), *rows]) + "\n")
    return folder / "x.csv"


def _tsv(folder: Path, X: NDArray) -> Path:
    target = _csv(folder, X).rename(folder / "x.tsv")
    target.write_text(target.read_text().replace(",", "\t"))
    return target


def _json_lines(folder: Path, X: NDArray) -> Path:
    pytest.importorskip("pyarrow")
    rows = [dict(zip(NAMES, map(float, row), strict=True)) for row in X]
    (folder / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder / "x.jsonl"


def _gzipped(folder: Path, X: NDArray) -> Path:
    with gzip.open(folder / "x.npy.gz", "wb") as file:
        np.save(file, X)
    return folder / "x.npy.gz"


def _zstandard(folder: Path, X: NDArray) -> Path:
    with pytest.importorskip("pyarrow").CompressedOutputStream(str(folder / "x.csv.zst"), "zstd") as file:
        file.write(_csv(folder, X).read_bytes())
    return folder / "x.csv.zst"


def _zarr(folder: Path, X: NDArray) -> Path:
    zarr = pytest.importorskip("zarr")
    array = zarr.open(str(folder / "x.zarr"), mode="w", shape=X.shape, chunks=(13, 2), dtype=X.dtype)
    array[:] = X
    return folder / "x.zarr"


def _zarr_array(folder: Path, X: NDArray) -> Any:
    return pytest.importorskip("zarr").open(str(_zarr(folder, X)), mode="r")


def _lance(folder: Path, X: NDArray) -> Path:
    """Write fragments of 29 rows, some of them deleted; the remaining rows are X. Return their path."""
    lance = pytest.importorskip("lance")
    path = folder / "x.lance"
    table = _table(np.insert(X, 31, -7.5, axis=0))
    lance.write_dataset(table, path, mode="overwrite", max_rows_per_file=29).delete("a = -7.5")
    return path


def _hdf5(folder: Path, X: NDArray) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("deep/X", data=X, chunks=(13, 2), compression="gzip")
        file.create_dataset("ids", data=np.arange(len(X)))
    return folder / "x.h5"


def _hdf5_contiguous(folder: Path, X: NDArray) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "x.hdf5", "w") as file:
        file["X"] = X
    return folder / "x.hdf5"


def _fvecs(folder: Path, X: NDArray) -> Path:
    rows = np.empty(len(X), [("dimension", "<i4"), ("values", "<f4", X.shape[1:])])
    rows["dimension"], rows["values"] = X.shape[1], X
    rows.tofile(folder / "x.fvecs")
    return folder / "x.fvecs"


def _fbin(folder: Path, X: NDArray) -> Path:
    header = np.array(X.shape, "<u4").tobytes()
    (folder / "x.fbin").write_bytes(header + X.astype("<f4").tobytes())
    return folder / "x.fbin"


def _pandas(folder: Path, X: NDArray) -> Any:
    return pytest.importorskip("pandas").DataFrame(X, columns=NAMES)


def _polars(folder: Path, X: NDArray) -> Any:
    return pytest.importorskip("polars").DataFrame(X, schema=NAMES)


IN_MEMORY: dict[str, Writer] = {
    "array": lambda folder, X: X,
    "list": lambda folder, X: X.tolist(),
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": lambda folder, X: _table(X),
    "record batch": lambda folder, X: _table(X).to_batches()[0],
}
STORED: dict[str, Writer] = {
    "memmap": lambda folder, X: np.load(_npy(folder, X), mmap_mode="r"),
    "npy": _npy,
    "npz": _npz,
    "npy folder": _npy_folder,
    "parquet": lambda folder, X: write_parquet(folder / "x.parquet", _table(X)),
    "feather": lambda folder, X: write_ipc(folder / "x.feather", _table(X), compression="zstd"),
    "ipc": lambda folder, X: write_ipc(folder / "x.ipc", _table(X)),
    "parquet folder": _parquet_folder,
    "arrow folder": _ipc_folder,
    "dataset": _dataset,
    "csv": _csv,
    "tsv": _tsv,
    "json lines": _json_lines,
    "gzip": _gzipped,
    "zstandard": _zstandard,
    "zarr": _zarr,
    "zarr array": _zarr_array,
    "lance": _lance,
    "lance data set": lambda folder, X: pytest.importorskip("lance").dataset(_lance(folder, X)),
    "hdf5": _hdf5,
    "hdf5 contiguous": _hdf5_contiguous,
    "fvecs": _fvecs,
    "fbin": _fbin,
}
ALL = {**IN_MEMORY, **STORED}
LANCE = ("lance", "lance data set")
TEXT = ("csv", "tsv", "json lines", "zstandard")
ONE_PRECISION = (*TEXT, "list", "fvecs", "fbin")  # these have float64 or float32, whatever the type of X


def dtype_of(name: str, X: NDArray) -> np.dtype:
    """Return the data type that a source of X in that format has."""
    if name in ONE_PRECISION:
        return np.dtype("f8" if name in (*TEXT, "list") else "f4")
    return X.dtype
