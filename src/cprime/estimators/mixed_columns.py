"""Columns of several kinds: the family of each column, and the conversion of rows to the numbers that models read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.values import cached
from cprime.estimators.categories import (
    IS_CATEGORY,
    OneHot,
    columns_of,
    encoded_column,
    is_missing,
    missing_value,
)
from cprime.estimators.discrete import check_counts
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import ReadMissing, Rows, as_rows, with_nan
from cprime.model.product import block_families, places_of
from cprime.sources import Source
from cprime.sources.arrays import ArraySource
from cprime.sources.tables import kinds, table_of

GAUSSIAN, BERNOULLI, CATEGORICAL, POISSON = "gaussian", "bernoulli", "categorical", "poisson"
# Columns of at most this number of distinct integers are categories if they are not negative.
MOST_CATEGORIES = 10
# Integers from 0 on are counts if their variance is at most this number of times their mean.
MOST_DISPERSED = 10.0


@dataclass(frozen=True, eq=False)
class ColumnFigures:
    """Figures of each column of some rows, by which its family is chosen.

    sums (3, D): number, sum and sum of squares of the observed values    least (D,): least value, ∞ without values
    whole (D,): whether all observed values are integers
    values: up to 11 of the distinct values of each column, sorted
    """

    sums: NDArray[np.float64]
    least: NDArray[np.float64]
    whole: NDArray[np.bool_]
    values: list[NDArray[np.float64]]

    def __add__(self, other: "ColumnFigures") -> "ColumnFigures":
        values = [np.union1d(a, b)[: MOST_CATEGORIES + 1] for a, b in zip(self.values, other.values, strict=True)]
        least = np.minimum(self.least, other.least)
        return ColumnFigures(self.sums + other.sums, least, self.whole & other.whole, values)

    def family(self, j: int) -> str:
        """Return the family of column j by the rule in the docstring of `MixedMixture`."""
        n, total, squares = self.sums[:, j]
        if not self.whole[j] or self.least[j] < 0:
            return "diag"
        if len(self.values[j]) <= MOST_CATEGORIES:
            return CATEGORICAL
        mean = total / n
        return POISSON if self.least[j] == 0 and squares / n - mean**2 <= MOST_DISPERSED * mean else "diag"


@dataclass(frozen=True)
class MeasureColumns:
    """Job that computes the `ColumnFigures` of the data."""

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, ColumnFigures]:
        X = with_nan(block.X).astype(np.float64, copy=False)
        found = []
        for column in X.T:
            x = column[~np.isnan(column)]
            is_whole = bool((x == np.floor(x)).all())
            values = np.unique(x)[: MOST_CATEGORIES + 1] if is_whole else x[:0]
            found.append((len(x), x.sum(), np.square(x).sum(), x.min(initial=np.inf), is_whole, values))
        n, total, squares, least, whole, values = zip(*found, strict=True)
        return None, ColumnFigures(np.array([n, total, squares]), np.array(least), np.array(whole), list(values))


class ColumnFamilies(NamedTuple):
    """Families that the user gives: the family of each column, None to choose it; and whether there are two values."""

    families: list[str | None]
    binary: list[bool]


def given_families(columns: Any, names: Any, n_columns: int) -> ColumnFamilies:
    """Return the families that the argument `columns` gives to columns.

    names: names of the columns, or None    Raises ValueError if the argument is invalid.
    """
    families: list[str | None] = [None] * n_columns
    binary = [False] * n_columns
    if isinstance(columns, str) and columns == "auto":
        return ColumnFamilies(families, binary)
    known = [*block_families(), GAUSSIAN, BERNOULLI]
    if isinstance(columns, list | tuple | np.ndarray):
        if len(columns) != n_columns:
            raise ValueError(
                f"columns must have a family for each of the {n_columns} columns of X, got {len(columns)}."
            )
        lists: dict[Any, list[int]] = {}
        for j, family in enumerate(columns):
            lists.setdefault(family, []).append(j)
        columns = lists
    if not isinstance(columns, Mapping):
        raise ValueError(f'columns must be "auto", a dict of columns by family or a list of families, got {columns!r}.')
    index = {} if names is None else {str(name): j for j, name in enumerate(names)}
    for family, chosen in columns.items():
        if family not in known:
            raise ValueError(f"columns must have keys of {', '.join(sorted(known))}, got {family!r}.")
        for name in [chosen] if isinstance(chosen, str | int | np.integer) else chosen:
            place: Any = index.get(name, name) if isinstance(name, str) else name
            if isinstance(place, str) or not 0 <= place < n_columns:
                raise ValueError(f"columns[{family!r}] must have columns of X, got {name!r}.")
            if families[place] is not None:
                raise ValueError(f"columns must name each column once, got {name!r} twice.")
            families[place] = {GAUSSIAN: "diag", BERNOULLI: CATEGORICAL}.get(family, family)
            binary[place] = family == BERNOULLI
    return ColumnFamilies(families, binary)


@dataclass(frozen=True, eq=False)
class ReadMixed:
    """Picklable function that converts rows (n, K) to the numbers (n, W) that a `Product` reads, block by block.

    A column of categories becomes zeros and a one, other columns stay as they are. A missing value is missing in all
    numbers of its column.

    families: family of each column    tables: integers that the categories of a column are in the rows; else empty
    missing: whether NaN is a missing value; if not, it is an error    handle_unknown: see `OneHot`
    names: names of the columns for error messages, or None
    fill (W,): placeholders for missing numbers; None uses the first observed number of the same column
    """

    families: tuple[str, ...]
    tables: tuple[NDArray[np.int64], ...]
    handle_unknown: str
    missing: bool
    names: Any
    fill: NDArray[np.float64] | None = None

    @cached
    def sizes(self) -> NDArray[np.int64]:
        """Number of categories of each column, 0 if it has none: (K,)."""
        is_categorical = [family == CATEGORICAL for family in self.families]
        return np.where(is_categorical, self._one_hot.sizes, 0)

    @property
    def _one_hot(self) -> OneHot:
        return OneHot(self.tables, self.handle_unknown, self.missing, self.names)

    @property
    def owners(self) -> list[int]:
        """Return the index of the column to which each of the W numbers belongs."""
        places = places_of(self.families, self.sizes.tolist())
        return [j for place in places for j in place.columns for _ in range(int(self.sizes[j]) or 1)]

    def __call__(self, array: Any) -> Rows:
        X = array if isinstance(array, np.ndarray) else with_nan(as_rows(array))
        owners = self.owners
        if X.shape[1] == 0 or not owners:
            return as_rows(np.empty((len(X), 0)))
        out, begin, every = np.zeros((len(X), len(owners))), 0, np.arange(len(X))
        for place in places_of(self.families, self.sizes.tolist()):
            for j in place.columns:
                values, size = X[:, j], int(self.sizes[j])
                if size:
                    found = self._one_hot.positions(values, self.tables[j], j)
                    out[every, begin + np.maximum(found, 0)] = 1.0
                    out[found < 0, begin : begin + size] = np.nan
                else:
                    out[:, begin] = self._checked(values, j)
                begin += size or 1
        return ReadMissing(self.fill)(out)

    def _checked(self, values: NDArray, j: int) -> NDArray[np.float64]:
        """Return the numbers (n,) of column j; raise ValueError if they are missing, or no counts as needed."""
        x, name = values.astype(np.float64), j if self.names is None else repr(self.names[j])
        absent = np.isnan(x)
        if absent.any() and not self.missing:
            raise ValueError(missing_value(name))
        if self.families[j] == POISSON:
            check_counts(x[~absent, np.newaxis], [j if self.names is None else self.names[j]])
        return x


def with_positions(
    X: Any, tables: list[NDArray] | None, handle_unknown: str, known: Any
) -> tuple[Source, list[NDArray | None]]:
    """Convert a table with columns of text to a source of numbers: text becomes its position in a table.

    Returns this source (missing values are NaN), and the tables of text, None for columns of numbers.
    tables: those of the fit, arrays of objects for columns of text; None to make them of the values in X
    known: names of the columns to read, or None
    """
    table, names = table_of(X), None
    if table is None:
        array = np.asarray(X, dtype=object)
        columns = [array[:, j] for j in range(array.shape[1])]
        is_text = [any(isinstance(value, str) for value in column) for column in columns]
    else:
        columns, found = columns_of(table), kinds(table)
        names = [str(name) for name in (table.column_names if hasattr(table, "column_names") else table.columns)]
        is_text = [isinstance(kind, str) and IS_CATEGORY.match(kind) is not None for kind in found]
        if known is not None and set(known) <= set(names):
            order = [names.index(name) for name in known]
            columns, is_text, found = (
                [columns[j] for j in order],
                [is_text[j] for j in order],
                [found[j] for j in order],
            )
            names = list(known)
        for name, kind, one in zip(names, found, is_text, strict=True):
            if isinstance(kind, str) and not one:
                raise ValueError(f"X must have numbers, text or categories in column {name!r}, got {kind}.")
    if tables is not None:
        if len(tables) != len(columns):
            raise ValueError(f"X has {len(columns)} columns, but there are categories for {len(tables)}.")
        is_text = [values.dtype == object for values in tables]
    numbers, made = np.empty((len(columns[0]) if columns else 0, len(columns))), list[NDArray | None]()
    for j, column in enumerate(columns):
        if not is_text[j]:
            numbers[:, j] = _numbers(column, j if names is None else names[j])
            made.append(None)
            continue
        mine = None if tables is None else tables[j]
        places, values = encoded_column(column, mine, handle_unknown, j if names is None else repr(names[j]))
        if values.dtype == object:
            numbers[:, j] = places
            made.append(values)
        else:  # categories of integers are read as numbers
            numbers[:, j] = np.append(values, np.nan)[np.where(np.isnan(places), len(values), places).astype(np.intp)]
            made.append(None)
    return ArraySource(numbers, names=names), made


def _numbers(column: Any, name: Any) -> NDArray[np.float64]:
    """Return the numbers of a column of Python objects (n,), NaN for missing ones."""
    values = np.asarray(column, dtype=object)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        missing = np.array([is_missing(value) for value in values], dtype=bool)
    try:
        return np.where(missing, np.nan, np.where(missing, 0, values)).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must have numbers in column {name!r}, as in the fit: {error}.") from error


def shown_columns(names: Any, families: Any, sizes: Any) -> str:
    """Return the columns of each family as text, such as "diag: age, income; categorical: city (12)"."""
    names = range(len(families)) if names is None else names
    parts: dict[str, list[str]] = {}
    for name, family, size in zip(names, families, sizes, strict=True):
        parts.setdefault(str(family), []).append(f"{name} ({size})" if size else str(name))
    return "; ".join(f"{family}: {', '.join(each)}" for family, each in parts.items())


def integers_of(table: NDArray) -> NDArray[np.int64]:
    """Return what the categories of a table are in the rows: integers themselves, or the positions of text."""
    return np.arange(len(table)) if table.dtype == object else table.astype(np.int64)
