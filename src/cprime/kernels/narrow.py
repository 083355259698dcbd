"""Rows of narrow types (8-bit integers, bool, 16-bit floats), which kernels widen when they read them.

Results are bit-identical to those for the same numbers in the wider type. A widened copy of all rows is made only if
the rows are short and few.
"""

from collections.abc import Iterator
from math import gcd
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime import _core
from cprime._utils.number_types import NAMES, bits_of, code_of
from cprime._utils.threads import resolve_threads
from cprime._utils.values import cached
from cprime.kernels.measures import Floats
from cprime.kernels.rows import LEAST_LENGTH, Dense, Doubles, Rows

# Rows are converted to a wider type for operations in NumPy in pieces of this size in bytes, to limit memory.
_PIECE_BYTES = 16 * 2**20
# Rows are converted to a wider type once for all passes if they are short, so that each conversion takes a notable part
# of a pass, and few. Limits: 16 numbers in a row, and 32 MiB for all converted rows.
_SHORT, _FEW_BYTES = 16, 32 * 2**20
# NumPy's sums convert this many numbers at a time.
# If the sizes of pieces are multiples of it, the sum of a column does not depend on the division into pieces.
_BUFFER = 8192


def wide_bytes(n: int, n_features: int, dtype: np.dtype) -> int:
    """Return the size in bytes of the float copy of n rows of a narrow type in a fit; 0 if the fit makes no copy.

    A fit converts short rows to floats once, because their conversion would take a notable part of the time of each
    pass. Long rows, and rows whose copy would be large, are converted in each pass.
    n_features: numbers in a row    dtype: float32 or float64, the type of the copy
    """
    n_bytes = n * n_features * dtype.itemsize
    return n_bytes if n_features <= _SHORT and n_bytes <= _FEW_BYTES else 0


class NarrowRows(Rows):
    """n rows of D numbers of a narrow type (uint8, int8, bool, float16, bfloat16); kernels compute in `dtype`.

    array (m, D): stored rows    dtype: float32 or float64
    order (n,) int64: index in `array` of each row; None means all rows of `array` in their order
    lengths (m,): numbers by which the rows of `array` are divided when they are read, or None
    """

    copied_when_ordered: ClassVar[bool] = False

    def __init__(
        self,
        array: NDArray,
        dtype: DTypeLike = np.float32,
        order: NDArray[np.int64] | None = None,
        lengths: Floats | None = None,
    ):
        code = code_of(array.dtype)
        if code is None:
            raise TypeError(f"X must be of one of {NAMES}, got {array.dtype}")
        if array.ndim != 2:
            raise ValueError(f"X must be two-dimensional, got {array.ndim} dimension(s)")
        side_by_side = array.shape[1] <= 1 or array.strides[1] == array.itemsize
        whole = array.strides[0] % array.itemsize == 0 and array.flags.aligned
        self.array = array if side_by_side and whole and len(array) else np.require(array, None, ["C", "A"])
        self.dtype = np.dtype(dtype)
        self.order, self.lengths = order, lengths
        self.shape = len(self.array if order is None else order), self.array.shape[1]
        self.nbytes = self.array.nbytes + (0 if lengths is None else lengths.nbytes)
        self._code: int = code

    @cached
    def core(self) -> Any:
        kind = _core.StoredRows32 if self.dtype == np.float32 else _core.StoredRows64
        return kind(bits_of(self.array), self._code, self.order, self.lengths)

    def __repr__(self) -> str:
        return f"<NarrowRows {len(self)} x {self.shape[1]}, {self.array.dtype} as {self.dtype}>"

    def __getitem__(self, rows: slice | NDArray, /) -> Self:
        if isinstance(rows, slice):
            if self.order is not None:
                return self._with(self.array, np.ascontiguousarray(self.order[rows]), self.lengths)
            lengths = None if self.lengths is None else np.ascontiguousarray(self.lengths[rows])
            return self._with(self.array[rows], None, lengths)
        numbers = np.flatnonzero(rows) if rows.dtype == bool else rows
        numbers = numbers if self.order is None else self.order[numbers]
        lengths = None if self.lengths is None else self.lengths[numbers]
        return self._with(np.take(self.array, numbers, axis=0), None, lengths)

    def __reduce__(self) -> Any:
        return type(self), (self.array, self.dtype, self.order, self.lengths)

    def _with(self, array: NDArray, order: NDArray[np.int64] | None, lengths: Floats | None) -> Self:
        return type(self)(array, self.dtype, order, lengths)

    def ordered(self, order: NDArray[np.int64]) -> Self:
        return self._with(self.array, order if self.order is None else self.order[order], self.lengths)

    def as_type(self, dtype: DTypeLike) -> Self:
        """Return the same rows as an object whose computations are in float32 or float64."""
        lengths = None if self.lengths is None else self.lengths.astype(dtype)
        return type(self)(self.array, dtype, self.order, lengths)

    def dense(self) -> Floats:
        out = np.empty(self.shape, dtype=self.dtype)
        self.core.widen(out, resolve_threads(None))
        return out

    def given(self) -> Any:
        if self.lengths is not None:
            return self.dense()
        return self.array if self.order is None else self.array[self.order]

    def converted(self, n_all: int) -> Rows:
        return Dense(self.dense()) if wide_bytes(n_all, self.shape[1], self.dtype) else self

    def _pieces(self) -> Iterator[tuple[slice, Floats]]:
        """Yield consecutive pieces of the rows, each as a slice and as an array in the wider type."""
        least = _BUFFER // gcd(_BUFFER, max(1, self.shape[1]))
        step = least * max(1, _PIECE_BYTES // (least * max(1, self.shape[1]) * self.dtype.itemsize))
        for begin in range(0, len(self), step):
            piece = slice(begin, min(begin + step, len(self)))
            yield piece, self[piece].dense()

    def not_finite(self) -> tuple[int, int, Any] | None:
        for piece, rows in self._pieces() if self.array.dtype.kind not in "biu" else ():
            found = Dense(rows).not_finite()
            if found is not None:
                return piece.start + found[0], found[1], found[2]
        return None

    def normalized(self, order: NDArray[np.int64] | None = None) -> tuple[Rows, Doubles]:
        """Return rows divided by their Euclidean lengths, in the order of the indices `order`, and the lengths (n,).

        The stored rows are not copied, because kernels divide when they read. A copy in a wider type is made only if
        some row's length is so small that its square underflows, or if rows are divided by `lengths` already.
        """
        rows, lengths = self if order is None else self.ordered(order), np.empty(len(self))
        if rows.lengths is None:
            for piece, wide in rows._pieces():
                lengths[piece] = Dense(wide).normalized()[1]
        if rows.lengths is not None or (lengths < LEAST_LENGTH[self.dtype]).any():
            return Dense(rows.dense()).normalized()
        every = np.ones(len(self.array), dtype=self.dtype)
        every[slice(None) if rows.order is None else rows.order] = lengths
        return self._with(self.array, rows.order, every), lengths

    def times(self, factors: Floats) -> Dense:
        return Dense(self.dense() * factors)

    def widened(self) -> Self:
        array = self.array if self.order is None else self.array[self.order]
        lengths = self.lengths if self.lengths is None or self.order is None else self.lengths[self.order]
        return self._with(np.column_stack([array, np.zeros(len(array), dtype=array.dtype)]), None, lengths)

    def projected(self, direction: Doubles, origin: Doubles | None = None) -> NDArray:
        found = [Dense(rows).projected(direction, origin) for _, rows in self._pieces()]
        return np.concatenate(found) if found else Dense(self.dense()).projected(direction, origin)
