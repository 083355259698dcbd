"""Sources of vector search formats: .fvecs, .bvecs, .fbin, .f16bin, .u8bin and .i8bin, all little-endian."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cprime._utils.files import Stamp
from cprime.sources.mapped import MappedSource

_VECS: dict[str, np.dtype] = {".fvecs": np.dtype("<f4"), ".bvecs": np.dtype("u1")}
_BIN: dict[str, np.dtype] = {
    ".fbin": np.dtype("<f4"),
    ".f16bin": np.dtype("<f2"),
    ".u8bin": np.dtype("u1"),
    ".i8bin": np.dtype("i1"),
}
_DIMENSION = np.dtype("<i4")


class VecsSource(MappedSource):
    """Source of rows that each begin with their dimension (int32), which must be the same for all rows.

    A different dimension raises ValueError when the row is read.
    """

    def _decode(self, raw: NDArray[np.uint8], begin: int) -> NDArray:
        found = np.ndarray((len(raw),), _DIMENSION, raw, 0, self._strides[:1])
        wrong = np.flatnonzero(found != len(self._kinds))
        if len(wrong):
            raise ValueError(
                f"{self._where(begin + int(wrong[0]))} has the dimension {found[wrong[0]]}, "
                f"expected {len(self._kinds)} as in row 0"
            )
        return super()._decode(raw, begin)


def open_vecs(path: str | Path, vector: bool = False) -> MappedSource:
    """Return the source of a .fvecs or .bvecs file."""
    stamp = Stamp.from_path(path)
    dtype = _VECS[Path(path).suffix.lower()]
    D = _header(path, stamp, 1, _DIMENSION)[0]
    if D < 1:
        raise ValueError(f"{path} must begin with the dimension of its rows, at least 1, got {D}")
    row = _DIMENSION.itemsize + D * dtype.itemsize
    n, rest = divmod(stamp.size, row)
    if rest:
        raise ValueError(
            f"{path} is cut short, or its rows differ: expected a multiple of {row} bytes ({D} values a row), as "
            f"{n * row} or {(n + 1) * row}, found {stamp.size}"
        )
    return VecsSource(stamp, dtype, (n, D), 0, lead=_DIMENSION.itemsize, name=str(path))


def open_bin(path: str | Path, vector: bool = False) -> MappedSource:
    """Return the source of a .fbin or similar file: it holds the numbers of rows and columns, then the values."""
    stamp = Stamp.from_path(path)
    dtype = _BIN[Path(path).suffix.lower()]
    n, D = _header(path, stamp, 2, np.dtype("<u4"))
    expected = 8 + n * D * dtype.itemsize
    if stamp.size != expected:
        raise ValueError(f"{path}: expected {expected} bytes for {n} rows of {D} values, found {stamp.size}")
    return MappedSource(stamp, dtype, (n, D), 8, name=str(path))


def _header(path: str | Path, stamp: Stamp, count: int, dtype: np.dtype) -> list[int]:
    """Return the first `count` numbers of a file, such as its numbers of rows and columns."""
    if stamp.size < count * dtype.itemsize:
        raise ValueError(f"{path}: expected at least {count * dtype.itemsize} bytes, found {stamp.size}")
    return np.fromfile(path, dtype, count).tolist()
