"""Reading DATA: arrays and tables from files, checked so far that a fit cannot fail on them later.

Owns which file endings there are and what a usable matrix is; `tables` reads the formats that have columns.
"""

from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

TABLE_SUFFIXES = (".csv", ".parquet", ".feather")
SUFFIXES = (".npy", ".npz", *TABLE_SUFFIXES)
_CHUNK = 1 << 22
_N_SHOWN = 5


@dataclass(frozen=True)
class Request:
    """What to take from a file: an array of an .npz by `key`, columns by name, one column as weights."""

    key: str | None = None
    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    sample_weight: str | None = None
    dtype: str | None = None
    header: bool | None = None


@dataclass(frozen=True)
class Data:
    """A checked matrix X (n, D), float32 or float64; its column names and its weights (n,) if it has them."""

    X: np.ndarray
    columns: list[str] | None
    sample_weight: np.ndarray | None


def read(path: Path, request: Request) -> Data:
    """Read DATA as `request` says.

    Raises ValueError or OSError with a message that names the file and what is wrong with it: the column
    that is not numeric, the rows with NaN or infinity, the shape.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path} has an unknown ending {suffix!r}: expected one of {', '.join(SUFFIXES)}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if request.key is not None and suffix != ".npz":
        raise ValueError(f"--key names an array of an .npz file, got {path}")
    if suffix in TABLE_SUFFIXES:
        from cprime.cli.tables import read_table

        data = read_table(path, request)
    else:
        data = _read_arrays(path, request)
    _check_shape(path, data.X)
    _check_finite(path, data.X)
    if data.sample_weight is not None:
        _check_weights(path, data)
    return data


def select(path: Path, names: list[str], request: Request) -> list[str]:
    """The names of the columns that are data, in the order asked for."""
    for name in (*(request.columns or ()), *request.drop):
        if name not in names:
            raise ValueError(f"{path} has no column {name!r}; it has {_listed(names)}")
    kept = list(request.columns) if request.columns is not None else names
    return [name for name in kept if name not in request.drop and name != request.sample_weight]


def common_dtype(dtypes: list[np.dtype]) -> np.dtype:
    """The narrower of float32 and float64 that holds the given types; 64-bit integers may be rounded."""
    dtype = np.result_type(np.float32, *dtypes)
    return np.dtype(np.float32) if dtype == np.float32 else np.dtype(np.float64)


def _read_arrays(path: Path, request: Request) -> Data:
    """A .npy file as a memory map, or one array of a .npz file."""
    weights = None
    try:
        if path.suffix.lower() == ".npy":
            if request.sample_weight is not None:
                raise ValueError(f"--sample-weight needs a table or an .npz file, got {path}")
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                if request.sample_weight is not None:
                    weights = arrays[_array_name(path, arrays.files, request.sample_weight)]
                names = [name for name in arrays.files if name != request.sample_weight]
                array = arrays[_array_name(path, names, request.key)]
    except (EOFError, BadZipFile, ValueError) as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path} cannot be read as a {path.suffix} file: {error or 'it is empty'}") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{path} is not numeric: it holds values of type {array.dtype}")
    _check_shape(path, array)
    if request.columns is not None or request.drop:
        names = [str(j) for j in range(array.shape[1])]
        array = array[:, [int(name) for name in select(path, names, request)]]
    dtype = np.dtype(request.dtype) if request.dtype else common_dtype([array.dtype])
    return Data(np.asanyarray(array, dtype=dtype), None, weights)


def _array_name(path: Path, names: list[str], wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in names:
            raise ValueError(f"{path} has no array {wanted!r}; it has {_listed(names)}")
        return wanted
    if len(names) == 1:
        return names[0]
    if "X" in names:
        return "X"
    raise ValueError(f"{path} has {len(names)} arrays and none is called X: choose with --key from {_listed(names)}")


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return f"{shown} and {len(names) - 12} more" if len(names) > 12 else shown or "none"


def _check_shape(path: Path, array: np.ndarray) -> None:
    if array.ndim != 2:
        raise ValueError(f"{path} must hold a matrix (rows, columns), got an array of shape {array.shape}")
    if 0 in array.shape:
        raise ValueError(f"{path} must have at least one row and one column of data, got shape {array.shape}")


def _check_finite(path: Path, X: np.ndarray) -> None:
    """Raise if a row holds NaN or infinity, naming the first few."""
    bad: list[int] = []
    count = 0
    step = max(1, _CHUNK // X.shape[1])
    for start in range(0, len(X), step):
        rows = np.flatnonzero(~np.isfinite(X[start : start + step]).all(axis=1))
        count += len(rows)
        bad.extend((start + rows[: _N_SHOWN - len(bad)]).tolist())
    if count:
        shown = ", ".join(map(str, bad)) + (", …" if count > len(bad) else "")
        raise ValueError(
            f"{path} has a missing value, NaN or infinity in {count} of {len(X)} rows: {shown} (the first is row 0)"
        )


def _check_weights(path: Path, data: Data) -> None:
    weights = data.sample_weight
    assert weights is not None
    if weights.shape != (len(data.X),):
        raise ValueError(f"{path}: the weights must have one value per row, got shape {weights.shape}")
    if weights.dtype.kind not in "biuf":
        raise ValueError(f"{path}: the weights are not numeric: they have the type {weights.dtype}")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise ValueError(
            f"{path}: the weights must be finite and not negative, got {weights[wrong[0]]} in row {wrong[0]}"
        )
