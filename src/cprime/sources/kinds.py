"""Stored types and shapes: which columns and arrays are numeric, and whether float32 can represent their numbers."""

import tokenize
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from struct import error as StructError
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from cprime._utils.number_types import MOST_COLUMNS, is_bfloat16

# Errors that NumPy may raise when it reads a file that contains no array. There are many, because NumPy parses the
# headers of files as Python code, and archives by the module zipfile.
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


Kind = np.dtype | Lists | str  # type of a column; a str names a type that is not numeric
NUMERIC_COLUMNS = "choose numeric columns with open_data(..., columns=[...])"  # ends messages about other columns
FILL_MISSING = 'fill missing values, drop such rows, or fit with missing="marginal"'  # ends messages about NaN
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
