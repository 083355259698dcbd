"""Columns of sources: stored types, the choice of the columns that are read, and those that hold a table's index."""

import logging
import os
import tokenize
import zlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from struct import error as StructError
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from cprime._utils.number_types import MOST_COLUMNS, is_bfloat16

_log = logging.getLogger(__name__)

# Errors of NumPy for a file without an array; it parses headers as Python code, and archives by the module zipfile.
NO_ARRAY = (
    *(ArithmeticError, AssertionError, EOFError, LookupError, MemoryError, RuntimeError, SyntaxError, TypeError),
    *(ValueError, BadZipFile, StructError, tokenize.TokenError, zlib.error),
)


@dataclass(frozen=True)
class Lists:
    """Type of a column whose values are lists of numbers of one type. Each list is a row of a matrix.

    width: number of values of each list; None if the column's type does not define it
    """

    dtype: np.dtype
    width: int | None = None

    def __str__(self) -> str:
        return f"lists of {self.dtype}" if self.width is None else f"lists of {self.width} {self.dtype}"


# Type of a column; a str names a type that is not numeric.
Kind = np.dtype | Lists | str
# Advice in error messages about columns that are not numeric.
NUMERIC_COLUMNS = "choose numeric columns with open_data(..., columns=[...])"
# Advice in error messages about missing values.
FILL_MISSING = 'fill missing values, drop such rows, or fit with missing="marginal"'
_NO_NUMBERS = (str, bytes, np.character, np.datetime64, np.timedelta64, np.complexfloating, np.ndarray)


def precision(kinds: Sequence[Kind]) -> np.dtype:
    """Return float32 if it can represent all values of the given types, else float64 (which rounds 64-bit integers)."""
    numeric = {kind.dtype if isinstance(kind, Lists) else kind for kind in set(kinds) if not isinstance(kind, str)}
    single = np.result_type(np.float32, *numeric) == np.float32
    return np.dtype(np.float32 if single else np.float64)


def kind_of(dtype: np.dtype) -> Kind:
    """Return a NumPy type itself if it is a type of real numbers, otherwise its name (`Kind`)."""
    return dtype if dtype.kind in "biuf" or is_bfloat16(dtype) else str(dtype)


def columns_of(
    name: str, shape: tuple[int, ...], dtype: np.dtype, vector: bool = False
) -> tuple[int, tuple[Kind, ...]]:
    """Return the number of rows of a stored array, and the type of each of its columns.

    Raises ValueError unless it has two axes, or one axis and `vector` is True, or if it has too many columns.
    """
    if len(shape) != 2 and not (vector and len(shape) == 1):
        raise ValueError(f"{name} must hold a matrix (rows, columns), got an array of shape {shape}")
    n_rows, n_columns = (*shape, 1)[:2]
    if n_columns > MOST_COLUMNS:
        raise ValueError(f"{name} must have at most {MOST_COLUMNS} columns, got {n_columns}")
    return n_rows, (kind_of(dtype),) * n_columns


def choose_array(name: str, shapes: dict[str, tuple[int, ...]], key: str | None, vector: bool) -> str:
    """Return the name of the array in a file that contains the rows: `key`, the only matrix, or the one named "X".

    Raises ValueError if none is suitable.
    """
    if key is not None:
        if key not in shapes:
            raise ValueError(f"{name} has no array {key!r}; it has {listed(list(shapes))}")
        return key
    fitting = [key for key, shape in shapes.items() if len(shape) == 2 or (vector and len(shape) == 1)]
    if len(fitting) == 1:
        return fitting[0]
    if "X" in fitting:
        return "X"
    if not fitting:
        raise ValueError(f"{name} must hold a matrix (rows, columns), it has {listed(list(shapes))}")
    raise ValueError(f"{name} has {len(fitting)} matrices: choose with key= from {listed(fitting)}")


def listed(names: Sequence[str]) -> str:
    """Return at most twelve names, with quotes, as text for a message."""
    return described([repr(name) for name in names])


def described(items: Sequence[str]) -> str:
    """Return at most the first twelve items as text for a message."""
    shown = ", ".join(items[:12])
    return f"{shown} and {len(items) - 12} more" if len(items) > 12 else shown or "none"


def is_path(data: Any) -> bool:
    """Return whether data are a path, or a list or tuple of paths that is not empty."""
    paths = data if isinstance(data, list | tuple) else (data,)
    return bool(paths) and all(isinstance(path, str | os.PathLike) for path in paths)


def library_of(data: Any) -> str:
    """Return the name of the package whose class an object has, such as "pandas" or "dask"; nothing is imported."""
    return type(data).__module__.partition(".")[0]


def first_non_number(values: NDArray[np.object_]) -> int | None:
    """Return the position of the first object that is neither a real number nor None; None if there is none."""
    wrong = {kind for kind in set(map(type, values)) if not _is_number(kind)}
    return next(n for n, value in enumerate(values) if type(value) in wrong) if wrong else None


def kind_of_objects(values: NDArray[np.object_]) -> Kind:
    """Return the type of a column of Python objects without missing values: bool, float64, or a str.

    A str is the name of a type that is not numeric.
    """
    n = first_non_number(values)
    if n is not None:
        return f"object ({type(values[n]).__name__})"
    if not len(values):
        return "object, all values are missing"
    booleans = all(issubclass(kind, bool | np.bool_) for kind in set(map(type, values)))
    return np.dtype(bool if booleans else np.float64)


def _is_number(kind: type) -> bool:
    """Return whether a Python class is a type of real numbers, or the class of None."""
    return kind is type(None) or (hasattr(kind, "__float__") and not issubclass(kind, _NO_NUMBERS))


def not_numeric(columns: Sequence[tuple[str, str]]) -> str:
    """Return text for a message about columns that are not numeric. columns: (name, type) of each such column"""
    name, kind = columns[0]
    if len(columns) == 1:
        return f"column {name!r} is not numeric, it has the type {kind}"
    return f"columns {described([f'{name!r} ({kind})' for name, kind in columns])} are not numeric"


def any_lists(kinds: Sequence[Kind]) -> bool:
    """Return whether any column holds lists of numbers, given all column types; fast if many are equal."""
    return any(isinstance(kind, Lists) for kind in set(kinds))


def index_columns(schema: Any, name: str) -> frozenset[str]:
    """Return the names of the columns that the pandas metadata of an Arrow schema mark as the index, if there are any.

    A RangeIndex is not included, because it is not a column. name: name of the table in messages

    Raises ValueError if the metadata cannot be read.
    """
    try:
        found = (schema.pandas_metadata or {}).get("index_columns", [])
        return frozenset(column for column in found if isinstance(column, str)) & frozenset(schema.names)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{name}: the metadata of pandas in its schema cannot be read: {error}") from error


def without_index(data: Any, name: str = "X") -> Any:
    """Return a pyarrow table or batch without the columns of a pandas index, and anything else unchanged."""
    if library_of(data) != "pyarrow" or not hasattr(data, "schema"):
        return data
    index = index_columns(data.schema, name)
    if not index:
        return data
    log_left_out(name, sorted(index))
    return data.select([column for column in data.schema.names if column not in index])


def log_left_out(name: str, columns: Sequence[str], what: str = "the index") -> None:
    """Log that columns are not read as data unless they are chosen by name.

    name: name of the data    what: what the columns are, for the message, such as "the index" or "a partition"
    """
    said = f"column %s is {what} and is" if len(columns) == 1 else f"columns %s are {what} and are"
    _log.info(f"%s: {said} left out of the data, unless chosen by name", name, listed(columns))


class Columns:
    """Base class of `Source` that manages the stored columns, and the choice of columns to read."""

    # Names of the columns of a table's index, which are not data by default.
    _index: frozenset[str] = frozenset()
    # Names of columns stored in names of folders, not data by default.
    _partitions: frozenset[str] = frozenset()

    name: str
    _kinds: tuple[Kind, ...]  # stored types of all columns
    _names: tuple[str, ...] | None
    # Positions of the chosen columns; None means all.
    _chosen: tuple[int, ...] | None = None
    # If the only chosen column has lists of numbers: type of the numbers, and length of the lists. Otherwise None.
    _list: Lists | None = None
    # Name of the column of lists whose values the rows of another source are, from which this one is made; or None.
    _list_column: str | None = None
    # `Preparation` (scaling, missing values) that was applied to the rows of all columns, chosen or not; or None.
    _preparation: Any = None

    @abstractmethod
    def _copy(self) -> Self:
        """Return a copy of this source whose choice of columns can be changed."""

    @property
    def n_features(self) -> int:
        if self._list is not None and self._list.width is not None:
            return self._list.width
        return len(self._kinds if self._chosen is None else self._chosen)

    @property
    def columns(self) -> list[str] | None:
        return None if self._names is None or self._list is not None else self._stored_columns

    @property
    def list_column(self) -> str | None:
        """Return the name of the column of lists whose values are the rows; None for other data."""
        if self._names is None or self._list is None:
            return self._list_column if self._chosen is None else None
        return self._names[self._positions[0]]

    @property
    def _stored_columns(self) -> list[str] | None:
        """Return the stored names of the chosen columns; None if columns have no names."""
        return None if self._names is None else [self._names[j] for j in self._positions]

    def select(self, columns: str | Sequence[str | int] | None) -> Self:
        """Return a source of the same rows with some of the stored columns, by name or position, in the given order.

        A column of lists of numbers is a matrix and must be chosen alone; the columns of the matrix have no names. None
        chooses all columns except a table's index and partitions, or the one column of lists if no other is numeric.
        """
        new = self._copy()
        if columns is None and self._names is not None and (self._index or self._partitions or any_lists(self._kinds)):
            columns = self.default_columns(self._names)
        new._chosen = None if columns is None else self._numbers(columns)
        new._settle()
        return new

    @property
    def numeric_columns(self) -> list[str] | None:
        """Return the names of all stored columns of numbers or lists of numbers; None if columns have no names."""
        if self._names is None:
            return None
        return [name for name, kind in zip(self._names, self._kinds, strict=True) if not isinstance(kind, str)]

    def default_columns(self, names: Sequence[str]) -> list[str]:
        """Return the subset of the columns `names` that is read as data by default.

        Index and partition columns are excluded, and the log names them. If no other column is numeric and
        one contains lists, this column alone is returned.
        """
        for columns, what in ((self._index, "the index"), (self._partitions, "a partition")):
            left_out = [name for name in names if name in columns]
            if left_out:
                log_left_out(self.name, left_out, what)
                names = [name for name in names if name not in columns]
        kinds = dict(zip(self._names or (), self._kinds, strict=True))
        numeric = [name for name in names if not isinstance(kinds[name], str)]
        return numeric if len(numeric) == 1 and isinstance(kinds[numeric[0]], Lists) else list(names)

    def _settle(self) -> None:
        """Check a new choice of columns, and set `_list` to the type of the chosen column if it has lists of numbers.

        Raises ValueError unless all chosen columns are numeric, or the only one has lists of numbers.
        """
        self._list = None
        kinds = self._chosen_kinds
        if any_lists(kinds):
            self._take_list()
        any_other = any(isinstance(kind, str) for kind in set(kinds))  # fast if many types are equal
        wrong = [j for j, kind in enumerate(kinds) if isinstance(kind, str)] if any_other else []
        if wrong and self._names is None:
            raise ValueError(f"{self.name} must hold numbers, got values of type {kinds[wrong[0]]}")
        if wrong and self._names is not None:
            raise ValueError(self._not_numeric([(self._names[self._positions[j]], str(kinds[j])) for j in wrong]))
        if self.n_features == 0:
            raise ValueError(f"{self.name} must have at least one column of data, got none")

    def _take_list(self) -> None:
        """Set `_list` to the type of the only chosen column, which has lists; raise ValueError if others are chosen."""
        names = self._stored_columns or []
        found = [(name, kind) for name, kind in zip(names, self._chosen_kinds, strict=True) if isinstance(kind, Lists)]
        name, kind = found[0]
        if len(names) > 1:
            raise ValueError(
                f"{self.name}: column {name!r} has {kind}, each of which is a whole row: choose it alone, with "
                f"columns={name!r}, or only other columns"
            )
        self._list = kind
        if kind.width is not None:
            self._know_width(kind.width)

    def _know_width(self, width: int | None) -> None:
        """Set the number of values in each list of the chosen column, which becomes the number of features.

        width: this number; None if all lists are missing    Raises ValueError if it is None or out of range.
        """
        assert self._list is not None
        name = self._stored_columns[0]  # type: ignore[index]
        if width is None:
            raise ValueError(f"{self.name}: column {name!r} must have lists, all of its values are missing")
        if not 1 <= width <= MOST_COLUMNS:
            expected = f"must have 1 to {MOST_COLUMNS} numbers"
            raise ValueError(f"{self.name}: lists of column {name!r} {expected}, got {width}")
        self._list = replace(self._list, width=width)

    def _not_numeric(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return an error message about columns that are not numeric. columns: (name, type) of each such column"""
        return f"{self.name}: {not_numeric(columns)}; {NUMERIC_COLUMNS}"

    def _column_of(self, j: int) -> str:
        """Return text for messages: the name of the chosen column j, or its position if columns have no names."""
        names = self._stored_columns
        if names is None:
            return str(j)
        return repr(names[j]) if self._list is None else f"{names[0]!r}, number {j} of its list"

    @property
    def preparation(self) -> Any:
        """Return the `Preparation` of the chosen columns, which a fitted model applies to new data, too; or None."""
        return None if self._preparation is None else self._preparation.select(self._positions)

    @property
    def _positions(self) -> Sequence[int]:
        return range(len(self._kinds)) if self._chosen is None else self._chosen

    @property
    def _chosen_kinds(self) -> tuple[Kind, ...]:
        if self._list is not None:
            return (self._list,)
        return self._kinds if self._chosen is None else tuple(self._kinds[j] for j in self._chosen)

    def _pick(self, block: NDArray) -> NDArray:
        """Return the chosen columns of a block (n, number of stored columns) as an array (n, n_features)."""
        return block if self._chosen is None else block[:, np.asarray(self._chosen)]

    def _numbers(self, columns: str | Sequence[str | int]) -> tuple[int, ...]:
        """Return the positions of columns given by name or position; raise ValueError if any is unknown or repeated."""
        found = tuple(self._number(column) for column in ([columns] if isinstance(columns, str) else columns))
        for j in found:
            if found.count(j) > 1:
                raise ValueError(f"columns must be distinct, got {list(columns)!r}.")
        return found

    def _number(self, column: str | int) -> int:
        n_stored = len(self._kinds)
        if isinstance(column, Integral) and not isinstance(column, bool):
            if not 0 <= column < n_stored:
                raise ValueError(f"{self.name} has no column {column}; it has columns 0 to {n_stored - 1}")
            return int(column)
        if self._names is None:
            raise ValueError(f"{self.name} has no column names: columns must be numbers, got {column!r}")
        if column not in self._names:
            raise ValueError(f"{self.name} has no column {column!r}; it has {listed(self._names)}")
        return self._names.index(column)
