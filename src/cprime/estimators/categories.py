"""Columns of categories: their tables of values, and the conversion of rows to sparse rows with a 1 per category."""

import re
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Rows, SparseRows, as_rows, with_nan
from cprime.sources import Source
from cprime.sources.arrays import ArraySource
from cprime.sources.tables import kinds, table_of

OWN = "own_category"  # the value of `handle_unknown` with which values that are in no table are a category
UNKNOWN = ("error", "ignore", OWN)
# Names of the types of columns that hold text, categories or Python objects.
IS_CATEGORY = re.compile(r"category|dictionary|Categorical|Enum|(large_)?str|String|Utf8|object \(str")
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
    columns: indices of the columns whose values are found; None is all. Others have no values in the result.
    """

    names: Any
    columns: tuple[int, ...] | None = None

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, ColumnValues]:
        found: ColumnValues | None = None
        for _, X in _dense_pieces(block.X):
            piece = ColumnValues(
                [
                    self._values(column if self.columns is None or j in self.columns else column[:0], j)
                    for j, column in enumerate(X.T)
                ]
            )
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
                out[:, j] = self.positions(piece[:, j], values, j)
                out[:, j] += np.where(out[:, j] >= 0, np.int32(first), np.int32(0))
                first += int(sizes[j])
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float32)
        known = found >= 0
        begins, columns = np.concatenate([[0], np.cumsum(known.sum(axis=1))]), found[known]
        return SparseRows(np.ones(len(columns), dtype=dtype), columns, begins, int(sizes.sum()))

    def positions(self, values: NDArray, categories: NDArray[np.int64], j: int) -> NDArray[np.int64]:
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
            raise ValueError(missing_value(name))
        if unknown.any() and self.handle_unknown == "error":
            value = values[unknown.argmax()]
            raise ValueError(unknown_category(value, len(categories), name))
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


def check_categories(given: Any, *, may_be_empty: bool = False) -> list[NDArray]:
    """Return the argument `categories`, a list of the categories of each column, as arrays of integers or of text.

    Integers are sorted; text keeps its order. may_be_empty: whether columns may have no categories
    """
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise ValueError(f'categories must be "auto" or a list with a list for each column, got {given!r}.')
    tables = [np.asarray(values) for values in given]
    for j, values in enumerate(tables):
        some = values.tolist() if values.ndim == 1 else []
        is_valid = all(isinstance(value, str) for value in some) or (values.dtype.kind in "biu" and min(some) >= 0)
        if may_be_empty and not values.size:
            tables[j] = np.empty(0, dtype=np.int64)
            continue
        if not some or not is_valid or len(set(some)) < len(some):
            raise ValueError(
                f"categories[{j}] must have distinct integers 0, 1, 2, … or text, got {values.tolist()!r}."
            )
    return [
        np.sort(values).astype(np.int64) if values.dtype.kind in "biu" else values.astype(object) for values in tables
    ]


def has_categories(X: Any) -> bool:
    """Return whether X is an array or a list with text or objects, or a table with a column of text or categories."""
    if isinstance(X, list):
        return any(isinstance(value, str) for row in X if isinstance(row, list | tuple) for value in row)
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.dtype.kind in "USO"
    table = table_of(X)
    return table is not None and any(isinstance(kind, str) and IS_CATEGORY.match(kind) for kind in kinds(table))


def encoded(X: Any, tables: list[NDArray] | None, handle_unknown: str, known: Any) -> tuple[Source, list[NDArray]]:
    """Convert an array or a table of text, categories and integers to a source of positions in tables of categories.

    Returns this source (missing values are NaN, values that are in no table have the position after the last one), and
    the tables: one array of integers or text for each column.
    tables: the tables to use, or None to make them of the values in X    known: names of the columns to read, or None
    """
    table = table_of(X)
    if table is None:
        array = np.asarray(X, dtype=object)
        names, columns = None, [array[:, j] for j in range(array.shape[1])]
    else:
        columns = columns_of(table)
        names = [str(name) for name in (table.column_names if hasattr(table, "column_names") else table.columns)]
        if known is not None and set(known) <= set(names):
            columns, names = [columns[names.index(name)] for name in known], list(known)
    if tables is not None and len(tables) != len(columns):
        raise ValueError(f"X has {len(columns)} columns, but there are tables of categories for {len(tables)}.")
    codes, found = np.empty((len(columns[0]) if columns else 0, len(columns))), []
    for j, column in enumerate(columns):
        name = j if names is None else repr(names[j])
        codes[:, j], values = encoded_column(column, None if tables is None else tables[j], handle_unknown, name)
        found.append(values)
    return ArraySource(codes, names=names), found


def columns_of(table: Any) -> list[Any]:
    """Return the columns of a table as arrays of Python objects; a categorical column of pandas is returned itself."""
    if hasattr(table, "column_names"):  # pyarrow
        return [objects_of(column.to_pylist()) for column in table.columns]
    if not hasattr(table, "iloc"):  # polars
        return [objects_of(column.to_list()) for column in table.get_columns()]
    columns = [table.iloc[:, j] for j in range(table.shape[1])]
    return [column if hasattr(column, "cat") else column.astype(object).to_numpy() for column in columns]


def objects_of(values: list[Any]) -> NDArray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def encoded_column(
    column: Any, table: NDArray | None, handle_unknown: str, name: Any
) -> tuple[NDArray[np.float64], NDArray]:
    """Return the positions of a column's values (n,) in its table of categories, and the table.

    column: array of objects, or a categorical column of pandas, whose order of categories its table keeps
    """
    if hasattr(column, "cat"):
        values, codes = list(column.cat.categories), column.cat.codes.to_numpy().astype(np.int64)
    else:
        index: dict[Any, int] = {}
        codes = np.array([-1 if is_missing(value) else index.setdefault(value, len(index)) for value in column])
        values = list(index)
    is_number = [isinstance(value, Real | np.bool_) for value in values]
    if all(is_number):
        numbers = np.array([float(value) for value in values])
        named = FindValues(None)._values(numbers, name) if table is None else None
        keys: list[Any] = [int(value) if value == np.floor(value) else value for value in numbers]
    else:
        keys = [str(value) for value in values]
        in_order = keys if hasattr(column, "cat") else sorted(set(keys))
        named = None if table is not None else objects_of(in_order)
    table = named if table is None else table
    assert table is not None
    position = {value: place for place, value in enumerate(table.tolist())}
    places = np.array([position.get(key, len(table)) for key in keys] + [np.nan])
    unknown = [value for value, place in zip(values, places, strict=False) if place == len(table)]
    if unknown and handle_unknown == "error":
        raise ValueError(unknown_category(unknown[0], len(table), name))
    return places[codes], table


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or the missing value of pandas, none of which equals itself."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def missing_value(name: Any) -> str:
    """Return the error message for a missing value in the column with this name."""
    return (
        f'X has a missing value (NaN) in column {name}. Use missing="marginal", with which it leaves the sum over '
        "columns, or fill it, or drop such rows."
    )


def unknown_category(value: Any, n: int, name: Any) -> str:
    """Return the error message for a value that is none of the n categories of the column with this name."""
    return (
        f"X must have one of the {n} categories of the fit in column {name}, got {value!r}. Give all categories as "
        'categories=, or use handle_unknown="ignore" or "own_category".'
    )
