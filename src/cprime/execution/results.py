"""Outputs to which results are written block by block, so that no second copy of them is in memory.

An output is a new array, an array or memory map from the caller, or a .npy file. `kept_entries` makes dense or sparse
arrays of the values of a few components of each row.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from cprime._utils.files import NpyWriter, replacing
from cprime.kernels import Floats
from cprime.sources.base import CHUNK_BYTES, CHUNK_ROWS

_LEAST_ROWS = 256  # least number of rows per piece, because a kernel prepares the components once per piece


def cuts(begin: int, end: int, n_bytes: float) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each of the pieces into which rows begin … end − 1 are cut.

    Pieces are so small that their memory is bounded.    n_bytes: number of bytes of a row or of its result
    """
    step = min(CHUNK_ROWS, max(_LEAST_ROWS, int(CHUNK_BYTES / max(n_bytes, 1))))
    for first in range(begin, end, step):
        yield first, min(first + step, end)


class Result:
    """Output for the results of n_rows rows: `write` appends a block, `value` is the complete result.

    The result is an array (n_rows,) or (n_rows, width), or a CSR array with equally many entries in each row. A single
    block with all rows is not copied unless `out` is given.
    """

    def __init__(self, n_rows: int, dtype: Any, out: NDArray | None = None) -> None:
        self.value: Any = out
        self._n_rows, self._dtype, self._end = n_rows, dtype, 0
        self._entries: tuple[NDArray, NDArray] | None = None

    def write(self, part: Any) -> None:
        n = part.shape[0]
        begin, self._end = self._end, self._end + n
        if n == self._n_rows and self.value is None:
            self.value = part.astype(self._dtype, copy=False)
        elif issparse(part):
            self._write_entries(part, begin)
        else:
            if self.value is None:
                self.value = np.empty((self._n_rows, *part.shape[1:]), self._dtype)
            self.value[begin : self._end] = part

    def _write_entries(self, part: Any, begin: int) -> None:
        n, n_columns = part.shape
        H = part.nnz // n
        if self._entries is None:
            ids = np.int32 if max(self._n_rows * H, n_columns) < 2**31 else np.int64
            self._entries = np.empty(self._n_rows * H, self._dtype), np.empty(self._n_rows * H, ids)
        values, columns = self._entries
        values[begin * H : self._end * H], columns[begin * H : self._end * H] = part.data, part.indices
        if self._end == self._n_rows:
            begins = np.arange(0, self._n_rows * H + 1, H, dtype=columns.dtype)
            self.value = csr_array((values, columns, begins), shape=(self._n_rows, n_columns))
            self.value.has_canonical_format = True


class _ResultFile:
    """Output to a .npy file, written at a temporary path and then renamed; `value` is a read-only memory map of it."""

    def __init__(self, n_rows: int, dtype: Any, path: Path, stack: ExitStack) -> None:
        self._path, self._dtype = path, dtype
        self._rows = NpyWriter(stack.enter_context(stack.enter_context(replacing(path)).open("wb")), n_rows)

    def write(self, part: Any) -> None:
        self._rows.write(part.astype(self._dtype, copy=False))

    @property
    def value(self) -> NDArray:
        return np.load(self._path, mmap_mode="r")


@contextmanager
def places(n_rows: int, width: int | None, dtypes: tuple[Any, ...], out: Any) -> Iterator[list[Result | _ResultFile]]:
    """Context manager that yields a list of outputs for results (n_rows,) or (n_rows, width), one per dtype.

    Files are complete only after the end of the context.

    out: None for new arrays, or a tuple with one entry per dtype: None, an array of the result's shape and dtype, or
        the path of a .npy file

    Raises
    ------
    TypeError, ValueError
        If `out` has any other type, shape or dtype.
    """
    shape, n = (n_rows,) if width is None else (n_rows, width), len(dtypes)
    outs = (None,) * n if out is None else out
    if not isinstance(outs, tuple) or len(outs) != n:
        raise ValueError(f"out must be a tuple of {n} items, one for each result, got {out!r}.")
    taken = [os.path.realpath(one) for one in outs if isinstance(one, str | os.PathLike)]
    arrays = [id(one) for one in outs if isinstance(one, np.ndarray)]
    if len({*taken, *arrays}) < len(taken) + len(arrays):
        raise ValueError(f"out must be a tuple of {n} different outputs, got {out!r}.")
    with ExitStack() as stack:
        yield [_place(shape, dtype, one, stack) for dtype, one in zip(dtypes, outs, strict=True)]


def _place(shape: tuple[int, ...], dtype: Any, out: Any, stack: ExitStack) -> Result | _ResultFile:
    if out is None:
        return Result(shape[0], dtype)
    if isinstance(out, np.ndarray):
        if out.shape != shape or out.dtype != dtype:
            raise ValueError(
                f"out must be an array of shape {shape} and dtype {np.dtype(dtype)}, got one of shape {out.shape} and "
                f"dtype {out.dtype}."
            )
        if not out.flags.writeable:
            raise ValueError("out must be an array that can be written, got a read-only one.")
        return Result(shape[0], dtype, out)
    if not isinstance(out, str | os.PathLike):
        raise TypeError(f"out must be an array or the path of a .npy file, got {type(out).__name__}.")
    if Path(out).suffix != ".npy":
        raise ValueError(f"out must be an array or the path of a .npy file, got {os.fspath(out)!r}.")
    return _ResultFile(shape[0], dtype, Path(out), stack)


def kept_entries(kept: NDArray[np.int32], values: Floats, n_components: int, sparse: bool) -> Floats | csr_array:
    """Return an array (n, C) that is zero except for H entries in each row; CSR if `sparse`, otherwise dense.

    kept (n, H): column index of each entry, distinct in each row    values (n, H): value of each entry
    """
    n, H = kept.shape
    if sparse:
        begins = np.arange(0, n * H + 1, H, dtype=np.int32 if n * H < 2**31 else np.int64)
        result = csr_array((values.ravel(), kept.ravel(), begins), shape=(n, n_components))
        result.sort_indices()
        return result
    dense = np.zeros((n, n_components), dtype=values.dtype)
    np.put_along_axis(dense, kept.astype(np.intp), values, axis=1)
    return dense
