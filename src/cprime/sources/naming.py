"""Columns of row names, such as ids of any type, which are read besides the data and copied to outputs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cprime.sources.arrow import ArrowSource
from cprime.sources.base import Source
from cprime.sources.folder import FolderSource

Naming = Callable[[int, int], Any]  # function (begin, end) that returns an array with the names of rows begin to end


def naming(source: Source, column: str) -> Naming:
    """Return a function (begin, end) that reads the row names in a column of a source.

    Raises ValueError if there is no such column.
    """
    if isinstance(source, ArrowSource):
        return source.naming(column).values
    if isinstance(source, FolderSource) and all(isinstance(part, ArrowSource) for part in source._parts):
        return _OfFolder(source, column)
    position: Any = column if source._names is not None else int(column) if column.isdecimal() else column
    numbers = source.select([position])
    kind = numbers._chosen_kinds[0]
    whole = isinstance(kind, np.dtype) and kind.kind in "iub"

    def names(begin: int, end: int) -> Any:
        values = numbers.as_type("float64").read(begin, end)[:, 0]
        return values.astype("int64") if whole else values

    return names


class _OfFolder:
    """Function object that reads a column of row names from all files of a folder."""

    def __init__(self, folder: FolderSource, column: str) -> None:
        self._parts: list[Any] = [part.naming(column) for part in folder._parts]  # type: ignore[attr-defined]

    def __call__(self, begin: int, end: int) -> Any:
        import pyarrow as pa

        found, first = [], 0
        for part in self._parts:
            a, b = max(begin - first, 0), min(end - first, part.n_rows)
            if a < b:
                found.append(part.values(a, b))
            first += part.n_rows
        return pa.concat_arrays(found)
