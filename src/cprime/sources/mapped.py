"""Sources of files with the memory layout of an array: .npy files and memory maps.

Bytes are read, not mapped. If a file is truncated meanwhile, reading raises an error with the file's name, whereas
access to a map would end the process. Data that must be converted are read in slabs (ranges of rows of limited size).
"""

import errno
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from cprime._utils.files import Stamp
from cprime.sources.base import Source
from cprime.sources.kinds import NO_ARRAY, columns_of
from cprime.sources.tables import TableSource, table_of

SLAB_BYTES = 4 * 2**20
# If the beginnings of rows are at least this far apart in the file [bytes], each row is read separately, because it
# would take longer to read the bytes between them, too.
_APART = 2**16


class MappedSource(Source):
    """Source of an array (n, D) of one type in a file, in C or Fortran order.

    offset: position of the first row [bytes]    strides: of rows and columns [bytes]; None for C order without gaps
    lead: length of the prefix before the values of each row [bytes]
    """

    _keeps_narrow = True

    def __init__(
        self,
        stamp: Stamp,
        dtype: np.dtype,
        shape: tuple[int, int],
        offset: int,
        strides: tuple[int, int] | None = None,
        lead: int = 0,
        name: str | None = None,
    ) -> None:
        name = name or stamp.path
        super().__init__(name, *columns_of(name, shape, dtype), None, (stamp,))
        self._stored = dtype
        self._offset = offset
        self._row_bytes = lead + dtype.itemsize * shape[1]
        self._strides = strides or (self._row_bytes, dtype.itemsize)
        self._lead = lead
        self._place = repr((dtype.str, offset, self._strides, lead))

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        return self._is_plain(self.dtype) and self.n_rows <= self.chunk_rows

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        with open(self._files[0].path, "rb", buffering=0) as file:
            if not self._has_whole_rows():
                self._fill_apart(file, begin, end, out)
            elif self._is_plain(out.dtype) and out.flags.c_contiguous:
                self._read_bytes(file, self._offset + begin * self._strides[0], out.reshape(-1).view(np.uint8))
            else:
                for a, raw in self._slabs(file, begin, end):
                    out[a : a + len(raw)] = self._decode(raw, begin + a)

    def _fill_apart(self, file: BinaryIO, begin: int, end: int, out: NDArray) -> None:
        """Read rows begin to end, which are not contiguous in the file, into `out`.

        In Fortran order, columns are read one after the other; otherwise rows, with the bytes between them.
        """
        down, across = (abs(stride) for stride in self._strides)
        step = max(1, SLAB_BYTES // max(1, down)) if down < _APART else 1
        columns = [[j] for j in self._positions] if across > down else [range(len(self._kinds))]
        for i, chosen in enumerate(columns):
            for a in range(begin, end, step):
                b = min(end, a + step)
                values = self._run(file, a, b, chosen[0], len(chosen))
                if across > down:
                    out[a - begin : b - begin, i] = values[:, 0]
                else:
                    out[a - begin : b - begin] = self._pick(values)

    def _run(self, file: BinaryIO, begin: int, end: int, column: int, width: int) -> NDArray:
        """Return m rows of adjacent columns, (m, width), by reading all bytes from the first value to the last."""
        shape, place = (end - begin, width), begin * self._strides[0] + column * self._strides[1]
        reach = [stride * (length - 1) for stride, length in zip(self._strides, shape, strict=True)]
        before, behind = -sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)
        raw = np.empty(before + behind + self._stored.itemsize, np.uint8)
        self._read_bytes(file, self._offset + self._lead + place - before, raw)
        return np.ndarray(shape, self._stored, raw, before, self._strides)

    def _span(self) -> int:
        return super()._span() if self._has_whole_rows() else max(1, SLAB_BYTES // (8 * self.n_features))

    def _decode(self, raw: NDArray[np.uint8], begin: int) -> NDArray:
        """Return the chosen columns (m, D) in their stored type, from the bytes (m, row_bytes) of m rows.

        begin: index of the first row
        """
        values = np.ndarray((len(raw), len(self._kinds)), self._stored, raw, self._lead, self._strides)
        return self._pick(values)

    def _slabs(self, file: BinaryIO, begin: int, end: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Read rows begin to end in parts, and yield for each part its first row − begin, and its bytes (m, row_bytes).

        The array of bytes is reused for the next part.
        """
        step = max(1, SLAB_BYTES // self._strides[0])
        slab = np.empty((min(step, end - begin), self._strides[0]), np.uint8)
        behind = self._strides[0] - self._row_bytes
        for a in range(begin, end, step):
            raw = slab[: min(step, end - a)]
            self._read_bytes(file, self._offset + a * self._strides[0], raw.reshape(-1)[: raw.size - behind])
            yield a - begin, raw

    def _read_bytes(self, file: BinaryIO, place: int, out: NDArray[np.uint8]) -> None:
        file.seek(place)
        left = memoryview(out)
        while len(left):
            n = file.readinto(left)  # type: ignore[attr-defined]
            if not n:
                raise ValueError(f"{self._files[0].path} has changed since it was opened: it ends too soon")
            left = left[n:]

    def _is_plain(self, dtype: np.dtype) -> bool:
        """Return whether rows have the same bytes in the file as in an array of `dtype`, so no conversion is needed."""
        return (
            self._chosen is None
            and self._stored == dtype
            and self._strides == (dtype.itemsize * len(self._kinds), dtype.itemsize)
        )

    def _has_whole_rows(self) -> bool:
        """Return whether rows are nearly contiguous: not in Fortran order, with gaps of at most one row's length."""
        n = self._row_bytes
        return self._strides[1] == self._stored.itemsize and n <= self._strides[0] <= 2 * n


def open_npy(path: str | Path, vector: bool = False) -> Source:
    """Return the source of a .npy file; a structured array, whose fields become columns, is read into memory."""
    stamp = Stamp.from_path(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except NO_ARRAY as error:
        raise ValueError(f"{path} cannot be read as a .npy file: {error or 'it is empty'}") from error
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise MemoryError(f"{path} cannot be opened") from error
    if not isinstance(array, np.memmap):
        raise ValueError(f"{path} cannot be read as a .npy file: it holds none")
    if array.dtype.names is not None and array.ndim == 1:
        return TableSource(table_of(np.array(array)), str(path), (stamp,))
    return _of_map(array, stamp, str(path), vector)


def open_memmap(array: np.memmap) -> MappedSource | None:
    """Return the source of a memory map; None if its values are in no file (a computed array or copy-on-write map)."""
    filename = getattr(array, "filename", None)
    if filename is None or array.mode == "c" or getattr(array, "_mmap", None) is None or not os.path.exists(filename):
        return None
    if array.mode in ("r+", "w+"):
        array.flush()
    return _of_map(array, Stamp.from_path(filename), str(filename), False)


def _of_map(array: np.memmap, stamp: Stamp, name: str, vector: bool) -> MappedSource:
    n_rows, kinds = columns_of(name, array.shape, array.dtype, vector)
    strides = array.strides if array.ndim == 2 else (array.strides[0], array.itemsize)
    mapping = getattr(array, "_mmap")  # noqa: B009, what NumPy has mapped begins at a whole page
    page = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    start = np.frombuffer(mapping, np.uint8).ctypes.data
    offset = page + array.ctypes.data - start
    return MappedSource(stamp, array.dtype, (n_rows, len(kinds)), offset, (strides[0], strides[1]), name=name)
