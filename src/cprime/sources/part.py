"""Source of some columns of another source whose rows are lists of numbers."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from cprime.sources.base import Source


class PartSource(Source):
    """Source of some columns, given by position, of another source. It reads whole rows and has no weights."""

    def __init__(self, base: Source, columns: NDArray[np.intp]) -> None:
        super().__init__(base.name, base.n_rows, (base.dtype,) * len(columns))
        self._base, self._columns = base, columns
        self.in_memory = base.in_memory
        self._chunk_rows = base.chunk_rows

    def close(self) -> None:
        self._base.close()

    def verify(self) -> None:
        self._base.verify()

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        out[...] = self._pick(self._base.read(begin, end)[:, self._columns])

    def _gather(self, rows: NDArray[np.int64], out: NDArray) -> None:
        out[...] = self._pick(self._base.take(rows)[:, self._columns])

    def _where(self, row: int) -> str:
        return self._base._where(row)

    def _column_of(self, j: int) -> str:
        return self._base._column_of(int(self._columns[self._positions[j]]))

    def _identity(self) -> bytes:
        return self._base.fingerprint() + hashlib.blake2b(self._columns.tobytes(), digest_size=32).digest()
