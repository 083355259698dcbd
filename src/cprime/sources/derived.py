"""Sources made of another source: some of its rows, some of its columns, or all of it held in memory."""

import hashlib
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime.sources.arrays import ArraySource
from cprime.sources.base import Source, makes_result_of

# A subset of rows is selected from pieces of the other source of this number of bytes, to limit memory.
_PIECE_BYTES = 16 * 2**20


class DerivedSource(Source):
    """Base of sources that read from another source, `_base`."""

    _base: Source

    def close(self) -> None:
        super().close()
        self._base.close()

    def verify(self) -> None:
        super().verify()
        self._base.verify()

    def _copy(self) -> Self:
        new = super()._copy()
        new._base = self._base._copy()
        return new

    def _where(self, row: int) -> str:
        return self._base._where(row)

    def _column_of(self, j: int) -> str:
        return self._base._column_of(self._positions[j])


@makes_result_of("subset")
class SubsetSource(DerivedSource):
    """Source of some rows of another source, given by ascending indices, with their weights."""

    _keeps_narrow = True

    def __init__(self, base: Source, rows: NDArray[np.int64]) -> None:
        super().__init__(f"{len(rows)} rows of {base.name}", len(rows), (base.stored,) * base.n_features, base.columns)
        self._dtype = base.dtype
        self._base, self._rows, self._list_column = base, rows, base.list_column
        self._preparation = base.preparation
        self.in_memory = self._is_one_chunk = base.in_memory
        self._chunk_rows = base._chunk_rows
        if base.weights(0, 0) is not None:
            weights = np.concatenate([base.weights(*piece) for piece in _pieces(base)])
            self._weights = self.with_weights(weights[rows])._weights

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        rows = self._rows[begin:end]
        step = max(1, _PIECE_BYTES // (self.n_features * self._base.dtype.itemsize))
        for first in range(int(rows[0]), int(rows[-1]) + 1, step):
            last = min(first + step, int(rows[-1]) + 1)
            a, b = np.searchsorted(rows, [first, last])
            if a < b:
                out[a:b] = self._pick(self._base.read(first, last, self._wanted(out))[rows[a:b] - first])

    def _gather(self, rows: NDArray[np.int64], out: NDArray) -> None:
        out[...] = self._pick(self._base.take(self._rows[rows], self._wanted(out)))

    def _wanted(self, out: NDArray) -> np.dtype | None:
        return out.dtype if out.dtype == self._base.stored else None

    def _where(self, row: int) -> str:
        return self._base._where(int(self._rows[row]))

    def _identity(self) -> bytes:
        return self._base.fingerprint() + hashlib.blake2b(np.ascontiguousarray(self._rows), digest_size=32).digest()


def _pieces(source: Source) -> list[tuple[int, int]]:
    ends = np.cumsum(source.sizes)
    return [(int(end - size), int(end)) for size, end in zip(source.sizes, ends, strict=True)]


@makes_result_of("part")
class PartSource(DerivedSource):
    """Source of some columns of another source, by position, without weights. It reads whole rows of that source."""

    def __init__(self, base: Source, columns: NDArray[np.intp]) -> None:
        super().__init__(base.name, base.n_rows, (base.dtype,) * len(columns))
        self._base, self._columns = base, columns
        self._preparation = None if base.preparation is None else base.preparation.select(columns)
        self.in_memory = base.in_memory
        self._chunk_rows = base.chunk_rows

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        out[...] = self._pick(self._base.read(begin, end)[:, self._columns])

    def _gather(self, rows: NDArray[np.int64], out: NDArray) -> None:
        out[...] = self._pick(self._base.take(rows)[:, self._columns])

    def _column_of(self, j: int) -> str:
        return self._base._column_of(int(self._columns[self._positions[j]]))

    def _identity(self) -> bytes:
        return self._base.fingerprint() + hashlib.blake2b(self._columns.tobytes(), digest_size=32).digest()


AS_HELD = True  # value of `_weights_spec`: the base source has the weights, also if it is reopened


class MaterializedSource(DerivedSource, ArraySource):
    """Copy of all rows and weights of another source in memory, as one chunk. Reopening it reads that source again."""

    def __init__(self, base: Source) -> None:
        super().__init__(base.read(0, base.n_rows, base.stored), base.name, base.columns, base._files)
        self._base, self._list_column = base, base.list_column
        self._preparation = base.preparation
        weights = base.weights(0, base.n_rows)
        if weights is not None:
            self._weights = self.with_weights(weights)._weights
            self._weights_spec = None if base._weights_spec is None else AS_HELD
        self._opened_with = None if base.opened_from is None else {"held": base.opened_from}

    def _identity(self) -> bytes:
        return self._base.fingerprint()
