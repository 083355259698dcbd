"""Sources of arrays in memory, dense and sparse, and of .npz files."""

import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cprime._utils.files import Stamp
from cprime._utils.number_types import is_narrow
from cprime._utils.values import cached
from cprime.kernels import SparseRows
from cprime.sources.base import Source
from cprime.sources.kinds import NO_ARRAY, choose_array, columns_of


class ArraySource(Source):
    """Source of an array in memory. Its rows are one chunk, unless `chunk_rows` is set or it is a memory map.

    dtype: type that `read` returns, see `Source`; None is float32 if it can hold all values, otherwise float64
    """

    in_memory = True
    _is_one_chunk = True

    def __init__(
        self,
        array: NDArray,
        name: str = "X",
        names: Sequence[str] | None = None,
        files: Sequence[Stamp] = (),
        mapped: bool = False,
        vector: bool = False,
        dtype: np.dtype | None = None,
    ) -> None:
        n_rows, kinds = columns_of(name, array.shape, array.dtype, vector)
        super().__init__(name, n_rows, kinds, names, files)
        self._array = np.asarray(array).reshape(n_rows, len(kinds))
        self._is_one_chunk = not mapped
        self._dtype = dtype

    @property
    def n_bytes(self) -> int:
        return super().n_bytes or self._array.nbytes

    @property
    def stored(self) -> np.dtype:
        return self._array.dtype if is_narrow(self._array.dtype) else self.dtype

    def read(self, begin: int, end: int, dtype: DTypeLike | None = None) -> NDArray:
        self._check_range(begin, end)
        block = self._pick(self._array[begin:end])
        if block.dtype != (dtype or self.dtype) or not block.flags.c_contiguous:
            return super().read(begin, end, dtype)
        view = block.view()
        view.flags.writeable = False
        return view

    def take(self, rows: ArrayLike, dtype: DTypeLike | None = None) -> NDArray:
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows):
            self._check_range(int(rows.min()), int(rows.max()) + 1)
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(self._pick(self._array[rows]), dtype or self.dtype)

    @property
    def is_plain(self) -> bool:
        as_it_is = self._chosen is None and self._array.dtype == self.stored
        return type(self) is ArraySource and as_it_is and self._names is None and not self._files

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        np.copyto(out, self._pick(self._array[begin:end]), casting="unsafe")

    def _identity(self) -> bytes:
        values, found = self._array, hashlib.blake2b(digest_size=32)
        for begin in range(0, self.n_rows, step := self._default_chunk_rows()):
            piece = memoryview(np.ascontiguousarray(values[begin : begin + step])).cast("B")
            found.update(zlib.crc32(piece).to_bytes(4, "little"))  # CRC is faster than a cryptographic hash.
        return values.dtype.str.encode() + found.digest()


class NpzSource(ArraySource):
    """Source of one array of an .npz file, loaded into memory; an unpickled source loads the file again."""

    def __init__(self, path: str | Path, key: str | None = None, vector: bool = False) -> None:
        stamp = Stamp.from_path(path)
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                wanted = {name: arrays[name] for name in arrays.files if key not in arrays.files or name == key}
        except NO_ARRAY as error:
            raise ValueError(f"{path} cannot be read as a .npz file: {error or 'it is empty'}") from error
        found = {
            name: array for name, array in wanted.items() if isinstance(array, np.ndarray)
        }  # Items of the file that are not arrays, for which NumPy returns bytes, are left out.
        self._key = choose_array(str(path), {name: array.shape for name, array in found.items()}, key, vector)
        self._vector = vector
        super().__init__(found[self._key], str(path), None, (stamp,), vector=vector)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_array"}

    def _copy(self) -> Self:
        new = super()._copy()
        new._array = self._array
        return new

    @cached
    def _array(self) -> NDArray:
        """Return the array in memory; the first call in an unpickled source loads it from the file."""
        return type(self)(self._files[0].path, self._key, self._vector)._array

    def _identity(self) -> bytes:
        return self._key.encode()


class SparseSource(Source):
    """Source of sparse rows in memory, as one chunk; `read` returns `SparseRows` with all columns."""

    in_memory = True
    _is_one_chunk = True
    sparse = True

    def __init__(self, rows: SparseRows, name: str = "X", files: Sequence[Stamp] = (), place: str = "") -> None:
        super().__init__(name, *columns_of(name, rows.shape, rows.dtype), None, files)
        self._rows = rows
        self._place = place

    @property
    def n_bytes(self) -> int:
        return self._rows.nbytes

    @property
    def read_bytes(self) -> int:
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

    def check_finite(self, X: Any, begin: int, has_missing: bool = False) -> None:
        found = SparseRows.from_scipy(X).not_finite()
        if found is not None:
            row, column, value = found
            raise ValueError(f"{self._where(begin + row)}, column {column}: {value}; values must be finite")

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        out[...] = self._rows[begin:end].dense()

    def read_stored(self, begin: int, end: int) -> dict[str, Any]:
        return {"values": self._rows[begin:end].dense()}

    def _identity(self) -> bytes:
        if self._files:
            return super()._identity()
        found = hashlib.blake2b(digest_size=32)
        for array in (*self._rows.entries, np.diff(self._rows.begins)):
            found.update(zlib.crc32(memoryview(np.ascontiguousarray(array)).cast("B")).to_bytes(4, "little"))
        return b"sparse" + found.digest()
