"""Rows that are mostly zeros, as a value that stands wherever the rows of an array do.

`Sparse` has what is asked of rows everywhere: their number, shape and dtype, some of them by slice or number; and the
kernels, each of which serves both kinds (`of_rows`). Nothing makes an array of all rows by accident: NumPy gets none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

from cprime._range import MOST_COLUMNS

Floats = NDArray[np.floating]
P = ParamSpec("P")
R = TypeVar("R")


class Sparse:
    """n rows of D numbers, of which those that are not zero are stored.

    values (m,) float32 or float64, columns (m,) int32: of row i the entries begins[i] … begins[i + 1] − 1, each row's
    columns rising; begins (n + 1,) int64. The arrays are not to be changed.
    """

    def __init__(self, values: Floats, columns: NDArray[np.int32], begins: NDArray[np.int64], n_columns: int):
        if values.dtype not in (np.float32, np.float64):
            raise TypeError(f"values must be float32 or float64, got {values.dtype}")
        if n_columns > MOST_COLUMNS:
            raise ValueError(f"X must have at most {MOST_COLUMNS} columns, got {n_columns}")
        self.values = _contiguous(values, values.dtype)
        self.columns = _contiguous(columns, np.int32)
        self.begins = _contiguous(begins, np.int64)
        self.shape = len(begins) - 1, int(n_columns)

    ndim = 2

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def itemsize(self) -> int:
        return self.values.itemsize

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.columns.nbytes + self.begins.nbytes

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<Sparse {self.shape[0]} x {self.shape[1]}, {self.values.size} entries, {self.dtype}>"

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{self!r} is no array: `dense` makes one of a few rows")

    def __getitem__(self, rows: slice | NDArray[np.integer] | NDArray[np.bool_]) -> Sparse:
        """Some of the rows, in the order asked for; those of a slice share memory with these."""
        if isinstance(rows, slice):
            begin, end, step = rows.indices(len(self))
            if step == 1:
                return Sparse(self.values, self.columns, self.begins[begin : max(begin, end) + 1], self.shape[1])
            rows = np.arange(begin, end, step)
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        lengths = np.diff(self.begins)[rows]
        begins = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(begins[-1]) + np.repeat(self.begins[:-1][rows] - begins[:-1], lengths)
        return Sparse(self.values[entries], self.columns[entries], begins, self.shape[1])

    @property
    def entries(self) -> tuple[Floats, NDArray[np.int32]]:
        """Values and columns of the rows' entries, row after row."""
        part = slice(self.begins[0], self.begins[-1])
        return self.values[part], self.columns[part]

    @property
    def owners(self) -> NDArray[np.int64]:
        """The row of each of these entries."""
        return np.repeat(np.arange(len(self)), np.diff(self.begins))

    def as_type(self, dtype: DTypeLike) -> Sparse:
        """The same rows in float32 or float64."""
        if self.dtype == dtype:
            return self
        return Sparse(self.values.astype(dtype), self.columns, self.begins, self.shape[1])

    def dense(self) -> Floats:
        """The rows as an array of their own: (n, D)."""
        return self.as_scipy().toarray()

    def as_scipy(self) -> csr_array:
        """The same rows as SciPy has them, without a copy."""
        return csr_array((*self.entries, self.begins - self.begins[0]), shape=self.shape)

    def scaled(self, factors: NDArray) -> Sparse:
        """Every row times its factor (n,), in the same dtype."""
        values, columns = self.entries
        values = (values * np.repeat(factors, np.diff(self.begins))).astype(self.dtype)
        return Sparse(values, columns, self.begins - self.begins[0], self.shape[1])


def _contiguous(array: NDArray, dtype: DTypeLike) -> NDArray:
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def sparse(X: Any) -> Sparse:
    """The rows of SciPy's CSR array or matrix; shares its memory where columns rise and none comes twice."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return Sparse(X.data, X.indices, X.indptr, X.shape[1])


def as_rows(X: Sparse) -> Floats:
    """For annotations: what is written for rows of arrays serves sparse ones."""
    return cast(Floats, X)


def as_given(rows: Floats) -> Any:
    """Rows of either kind as users know them."""
    return rows.as_scipy() if isinstance(rows, Sparse) else rows


def dense(rows: Floats) -> Floats:
    """A few rows of either kind as an array, without gaps: (n, D)."""
    return rows.dense() if isinstance(rows, Sparse) else np.ascontiguousarray(rows)


def unit(rows: Floats, lengths: NDArray[np.float64]) -> Floats:
    """Rows of either kind divided by their lengths, in their dtype."""
    if isinstance(rows, Sparse):
        return as_rows(rows.scaled(1 / lengths))
    return np.divide(rows, lengths[:, np.newaxis], dtype=rows.dtype, casting="same_kind")


def of_rows(dense: Callable[P, R], sparse: Callable[..., R]) -> Callable[P, R]:
    """A kernel for rows of both kinds, its first argument."""

    @wraps(dense)
    def kernel(*args: P.args, **kwargs: P.kwargs) -> R:
        return (sparse if args and isinstance(args[0], Sparse) else dense)(*args, **kwargs)

    return kernel
