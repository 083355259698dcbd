"""Source of sparse rows in memory."""

import hashlib
import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime.kernels import Rows, SparseRows
from cprime.sources.arrays import ArraySource
from cprime.sources.base import Source
from cprime.sources.kinds import columns_of


class SparseSource(Source):
    """Source of sparse rows in memory, as one chunk; `read` returns `SparseRows` with all columns."""

    in_memory = True
    _is_one_chunk = True
    sparse = True

    def __init__(self, rows: SparseRows, name: str = "X") -> None:
        super().__init__(name, *columns_of(name, rows.shape, rows.dtype))
        self._rows = rows

    @property
    def n_bytes(self) -> int:
        return self._rows.nbytes

    @property
    def n_bytes_read(self) -> int:
        return self._rows.nbytes

    def read(self, begin: int, end: int, dtype: Any = None) -> Any:
        self._check_range(begin, end)
        return self._rows[begin:end].as_type(self.dtype)

    def take(self, rows: ArrayLike, dtype: Any = None) -> Any:
        return self._rows[np.asarray(rows, dtype=np.int64)].as_type(self.dtype)

    def subset(self, rows: NDArray[np.int64]) -> Source:
        part = SparseSource(self._rows[np.asarray(rows, dtype=np.int64)], f"{len(rows)} rows of {self.name}")
        weights = self.weights(0, self.n_rows)
        return part.as_type(self.dtype).with_weights(None if weights is None else weights[rows])

    def select(self, columns: Any) -> "SparseSource":
        if columns is not None:
            raise ValueError(f"columns must be None for sparse data, of which all are read, got {columns!r}.")
        return self

    def check_finite(self, X: Any, begin: int, gaps: bool = False) -> None:
        found = SparseRows.from_scipy(X).not_finite()
        if found is not None:
            row, column, value = found
            raise ValueError(f"{self._where(begin + row)}, column {column}: {value}; values must be finite")

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        out[...] = self._rows[begin:end].dense()

    def _identity(self) -> bytes:
        found = hashlib.blake2b(digest_size=32)
        for array in (*self._rows.entries, np.diff(self._rows.begins)):
            found.update(zlib.crc32(memoryview(np.ascontiguousarray(array)).cast("B")).to_bytes(4, "little"))
        return b"sparse" + found.digest()


def source_of(rows: Rows) -> Source:
    """Return the source of dense or sparse rows in memory."""
    return SparseSource(rows) if isinstance(rows, SparseRows) else ArraySource(rows.given(), dtype=rows.dtype)
