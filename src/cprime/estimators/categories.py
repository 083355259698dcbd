"""Columns of categories: their tables of values, and the conversion of rows to sparse rows with a 1 per category."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Rows, SparseRows, as_rows, with_nan
from cprime.sources import array_of

OWN = "own_category"  # the value of `handle_unknown` with which values that are in no table are a category
UNKNOWN = ("error", "ignore", OWN)
_LIMIT = 2.0**63  # categories are less than this, so that they are 64-bit integers
_VALUES = 2**22  # maximum number of values of sparse rows that are made dense at a time


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """Sorted distinct integers in each column of some rows, without missing values: a list of D arrays."""

    values: list[NDArray[np.int64]]

    def __add__(self, other: "ColumnValues") -> "ColumnValues":
        return ColumnValues([np.union1d(a, b) for a, b in zip(self.values, other.values, strict=True)])


@dataclass(frozen=True)
class FindValues:
    """Job that finds the distinct values of each column; it raises ValueError unless they are integers from 0 on.

    names: names of the columns for the message, or None
    """

    names: Any

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, ColumnValues]:
        found: ColumnValues | None = None
        for _, X in _dense_pieces(block.X):
            piece = ColumnValues([self._values(column, j) for j, column in enumerate(X.T)])
            found = piece if found is None else found + piece
        return None, found or ColumnValues([np.empty(0, dtype=np.int64)] * block.X.shape[1])

    def _values(self, column: NDArray, j: int) -> NDArray[np.int64]:
        """Return the sorted distinct values of a column (n,) with the index j, without NaN."""
        found = np.unique(column)
        found = found[~np.isnan(found)]
        wrong = ~((found >= 0) & (found < _LIMIT) & (found == np.floor(found)))
        if wrong.any():
            name = j if self.names is None else repr(self.names[j])
            raise ValueError(f"X must have integers 0, 1, 2, … in column {name}, got {found[wrong.argmax()]!r}.")
        return found.astype(np.int64)


@dataclass(frozen=True, eq=False)
class OneHot:
    """Picklable function that converts rows of categories (n, D) to sparse rows (n, Σ K_d) with D ones in each row.

    categories: sorted integers of each column's K_d categories
    handle_unknown: "error"; "ignore", so that an unknown value has no 1; or "own_category", the last category of every
    column, which the tables in `categories` do not have
    missing: whether NaN is a missing value, which has no 1; if not, it is an error
    names: names of the columns for error messages, or None
    """

    categories: tuple[NDArray[np.int64], ...]
    handle_unknown: str = "error"
    missing: bool = False
    names: Any = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of categories K_d of each column: (D,)."""
        own = self.handle_unknown == OWN
        return np.array([len(values) + own for values in self.categories], dtype=np.int64)

    def __call__(self, array: Any) -> Rows:
        X, sizes = as_rows(array) if not isinstance(array, np.ndarray) else array, self.sizes
        found = np.empty(X.shape, dtype=np.int32)
        for begin, piece in _dense_pieces(X):
            out, first = found[begin : begin + len(piece)], 0
            for j, values in enumerate(self.categories):
                out[:, j] = self._positions(piece[:, j], values, j)
                out[:, j] += np.where(out[:, j] >= 0, np.int32(first), np.int32(0))
                first += int(sizes[j])
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float32)
        known = found >= 0
        begins, columns = np.concatenate([[0], np.cumsum(known.sum(axis=1))]), found[known]
        return SparseRows(np.ones(len(columns), dtype=dtype), columns, begins, int(sizes.sum()))

    def _positions(self, values: NDArray, categories: NDArray[np.int64], j: int) -> NDArray[np.int64]:
        """Return the position of each value (n,) of column j among its categories, −1 for a value without a 1."""
        places = np.searchsorted(categories, values)
        known = np.zeros(len(values), dtype=bool)
        if len(categories):
            known = categories[np.minimum(places, len(categories) - 1)] == values
        if known.all():
            return places
        missing = np.isnan(values)
        unknown = ~known & ~missing
        name = j if self.names is None else repr(self.names[j])
        if missing.any() and not self.missing:
            raise ValueError(
                f'X has a missing value (NaN) in column {name}. Use missing="marginal", with which it leaves the sum '
                "over columns, or fill it, or drop such rows."
            )
        if unknown.any() and self.handle_unknown == "error":
            value = values[unknown.argmax()]
            raise ValueError(
                f"X must have one of the {len(categories)} categories of the fit in column {name}, got {value!r}. Give "
                'all categories as categories=, or use handle_unknown="ignore" or "own_category".'
            )
        places[missing | (unknown if self.handle_unknown == "ignore" else False)] = -1
        places[unknown & (self.handle_unknown == OWN)] = len(categories)
        return places


def _dense_pieces(X: Rows | NDArray) -> Any:
    """Yield (index of the first row, rows as an array, NaN if missing) for pieces of X; a dense X is one piece."""
    if isinstance(X, SparseRows):
        step = max(1, _VALUES // X.shape[1])
        for begin in range(0, len(X), step):
            yield begin, X[begin : begin + step].dense()
    elif isinstance(X, Rows):
        yield 0, with_nan(X)
    else:
        yield 0, X if X.dtype.kind in "biuf" else np.asarray(X, dtype=np.float32)


def check_categories(given: Any) -> list[NDArray[np.int64]]:
    """Return the argument `categories`, a list of the categories of each column, as sorted arrays of integers."""
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise ValueError(f'categories must be "auto" or a list with a list for each column, got {given!r}.')
    tables = [array_of(values, f"categories[{j}]") for j, values in enumerate(given)]
    for j, values in enumerate(tables):
        is_valid = values.ndim == 1 and len(values) and values.dtype.kind in "biu" and values.min() >= 0
        if not is_valid or len(np.unique(values)) < len(values):
            raise ValueError(f"categories[{j}] must have distinct integers 0, 1, 2, …, got {given[j]!r}.")
    return [np.sort(values).astype(np.int64) for values in tables]
