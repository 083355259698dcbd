"""Choice of the columns of a source that are read: columns of numbers, or one column of lists of numbers."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.number_types import MOST_COLUMNS
from cprime.sources.index import log_left_out
from cprime.sources.kinds import NUMERIC_COLUMNS, Kind, Lists, any_lists, listed, not_numeric


class Columns:
    """Base class of `Source` that manages the stored columns, and the choice of columns to read."""

    _index: frozenset[str] = frozenset()  # names of the columns of a table's index, which are not data by default
    _partitions: frozenset[str] = frozenset()  # names of columns stored in names of folders, not data by default

    def __init__(self, name: str, kinds: Sequence[Kind], names: Sequence[str] | None) -> None:
        self.name = name
        self._kinds = tuple(kinds)
        self._names = None if names is None else tuple(names)
        self._chosen: tuple[int, ...] | None = None
        self._list: Lists | None = None  # type of the chosen column, if its values are lists

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

        Index and partition columns are excluded, and the log names them. If no other column is numeric, the column of
        lists alone is returned.
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
        """Check a new choice of columns, and set `_list` if the chosen column has lists of numbers.

        Raises ValueError unless all chosen columns are numeric, or the only one has lists of numbers.
        """
        self._list = None
        kinds = self._chosen_kinds
        any_other = any(isinstance(kind, str) for kind in set(kinds))  # fast if many types are equal
        wrong = [j for j, kind in enumerate(kinds) if isinstance(kind, str)] if any_other else []
        if wrong and self._names is None:
            raise ValueError(f"{self.name} must hold numbers, got values of type {kinds[wrong[0]]}")
        if wrong and self._names is not None:
            raise ValueError(self._not_numeric([(self._names[self._positions[j]], str(kinds[j])) for j in wrong]))
        if any_lists(kinds):
            self._take_list()
        if self.n_features == 0:
            raise ValueError(f"{self.name} must have at least one column of data, got none")

    def _take_list(self) -> None:
        """Set the chosen column of lists of numbers; raise ValueError if other columns are chosen, too."""
        names = self._stored_columns or []
        found = [(name, kind) for name, kind in zip(names, self._chosen_kinds, strict=True) if isinstance(kind, Lists)]
        name, kind = found[0]
        if len(names) > 1:
            raise ValueError(
                f"{self.name}: column {name!r} has {kind}, each of which is a whole row: choose it alone, or only "
                "other columns, with columns="
            )
        self._list = kind
        if kind.width is not None:
            self._know_width(kind.width)

    def _know_width(self, width: int | None) -> None:
        """Check and set the number of values per list of the chosen column; width: None if all lists are missing."""
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
