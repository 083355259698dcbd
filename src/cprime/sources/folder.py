"""Sources of several files, whose rows follow one another; those of a folder in the order of their names."""

import json
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime.sources.base import Source
from cprime.sources.columns import common_types
from cprime.sources.kinds import Kind, Lists, listed, log_left_out


class FolderSource(Source):
    """Source of the rows of several files of one format, in sequence; only one file is open at a time."""

    def __init__(self, name: str, parts: list[Source]) -> None:
        first = parts[0]
        for part in parts[1:]:
            _check_alike(first, part)
        index = frozenset[str]().union(*[part._index for part in parts])
        names = first._names
        some_have = [name for name in sorted(index) if not all(name in (part._names or ()) for part in parts)]
        if names is not None and some_have:
            log_left_out(name, some_have)
            names = tuple(name for name in names if name not in some_have)
        orders = [_order(names, part) for part in parts]
        kinds = [
            _common([part._kinds[j] for part, j in zip(parts, stored, strict=True)])
            for stored in zip(*orders, strict=True)
        ]
        files = [stamp for part in parts for stamp in part._files]
        super().__init__(name, 0, kinds, names, files)
        self._index = index
        self._parts = parts
        self._keeps_narrow = all(part._keeps_narrow for part in parts)
        self._reads_text = all(part._reads_text for part in parts)

    def close(self) -> None:
        for part in self._parts:
            part.close()

    def _copy(self) -> Self:
        new = super()._copy()
        new._parts = [part._copy() for part in self._parts]
        return new

    def _settle(self) -> None:
        super()._settle()
        self._parts = [part.select(self._stored_columns or self._chosen) for part in self._parts]
        if self._list is not None:
            self._know_width(_width(self._parts))
        self._ends = np.cumsum([part.n_rows for part in self._parts]).tolist()
        self.n_rows = self._ends[-1]

    def as_stored(self, columns: Sequence[str] | None = None, as_text: bool = False) -> Self:
        if not self._reads_text:
            return super().as_stored(columns, as_text)
        new: Any = self._copy()
        columns = self._names or () if columns is None else columns
        new._chosen, new._list = self._numbers(columns), None
        new._parts = [part.as_stored(columns, as_text) for part in self._parts]
        types = common_types([part._types for part in new._parts])
        for part in new._parts:
            part._types = types
        new._ends = np.cumsum([part.n_rows for part in new._parts]).tolist()
        return new

    def read_stored(self, begin: int, end: int) -> dict[str, Any]:
        if not self._reads_text:
            return super().read_stored(begin, end)
        import pyarrow as pa

        found = []
        for p, part in enumerate(self._parts):
            a, b = max(begin, self._begin(p)), min(end, self._ends[p])
            if a < b:
                found.append(part.read_stored(a - self._begin(p), b - self._begin(p)))
        return {name: pa.concat_arrays([each[name] for each in found]) for name in found[0]}

    def _not_numeric(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return an error message about columns that are not numeric.

        If these columns contain text in only some of the files, the message names the first such file.
        """
        for name, _ in columns:
            kinds = [part._kinds[part._names.index(name)] for part in self._parts if part._names is not None]
            text = [isinstance(kind, str) for kind in kinds]
            if any(text) and not all(text):
                p = text.index(True)
                return self._parts[p]._not_numeric([(name, str(kinds[p]))])
        return super()._not_numeric(columns)

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        done = 0
        while begin + done < end:
            p = bisect_right(self._ends, begin + done)
            first = self._begin(p)
            stop = min(end, self._ends[p])
            self._part(p)._fill(begin + done - first, stop - first, out[done : stop - begin])
            done = stop - begin

    def _gather(self, rows: NDArray[np.int64], out: NDArray) -> None:
        edges = np.searchsorted(rows, [0, *self._ends])
        for p in np.flatnonzero(np.diff(edges)).tolist():
            a, b = edges[p], edges[p + 1]
            self._part(p)._gather(rows[a:b] - self._begin(p), out[a:b])

    def _part(self, p: int) -> Source:
        """Return the source of file number p for reading, and close the file that was open."""
        if self._open_files not in (None, p):
            self._parts[self._open_files].close()
        self._open_files = p
        return self._parts[p]

    def _begin(self, p: int) -> int:
        return self._ends[p - 1] if p else 0

    def _where(self, row: int) -> str:
        p = bisect_right(self._ends, row)
        return f"{self._parts[p]._where(row - self._begin(p))} (row {row} of all)"

    def _identity(self) -> bytes:
        return b"".join(part._identity() for part in self._parts)


def files_of(folder: Path) -> list[Path]:
    """Return the sorted files of a folder, except hidden files and files whose names begin with an underscore."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))


def parts_of_data_set(folder: Path) -> list[Path]:
    """Return the files of a data set that the library `datasets` has saved in a folder; empty for other folders.

    Raises ValueError if the folder holds several data sets (splits), of which one must be chosen.
    """
    if (folder / "dataset_dict.json").exists():
        splits = json.loads((folder / "dataset_dict.json").read_text())["splits"]
        raise ValueError(f"{folder} holds the data sets {listed(splits)}: choose one, such as {folder / splits[0]}")
    if not (folder / "state.json").exists():
        return []
    return [folder / part["filename"] for part in json.loads((folder / "state.json").read_text())["_data_files"]]


def has_partitions(folder: Path) -> bool:
    """Return whether a folder is Hive-partitioned: it contains only folders `name=value`, apart from hidden files."""
    inside = files_of(folder)
    return bool(inside) and all(path.is_dir() and "=" in path.name for path in inside)


def check_format(folder: Path, files: list[Path], suffixes: tuple[str, ...]) -> None:
    """Raise ValueError unless there are files, all with the same known suffix."""
    found = sorted({path.suffix.lower() for path in files})
    expected = f"expected files that end in one of {', '.join(suffixes)}"
    if not files:
        raise ValueError(f"{folder} has no files: {expected}")
    if len(found) > 1:
        raise ValueError(f"{folder} must hold files of one format, got {', '.join(map(repr, found))}: {expected}")
    if found[0] not in suffixes:
        raise ValueError(f"{folder} holds files of an unknown ending {found[0]!r}: {expected}")


def _check_alike(first: Source, part: Source) -> None:
    """Raise ValueError if the columns of two files differ, apart from an index that only one of them has."""
    if first._names is None and len(first._kinds) != len(part._kinds):
        raise ValueError(
            f"{part.name} must have as many columns as {first.name}, {len(first._kinds)}, got {len(part._kinds)}"
        )
    for name in sorted((set(first._names or ()) ^ set(part._names or ())) - first._index - part._index):
        has, misses = (first, part) if name in (first._names or ()) else (part, first)
        raise ValueError(f"{misses.name} has no column {name!r}, which {has.name} has")


def _width(parts: list[Source]) -> int:
    """Return the common length of the lists of all files with rows; raise ValueError if lengths differ."""
    known = [(part.name, part.n_features) for part in parts if part.n_rows]
    for name, width in known[1:]:
        if width != known[0][1]:
            raise ValueError(f"{name} has lists of {width} numbers, {known[0][0]} of {known[0][1]}")
    return known[0][1] if known else 1


def _order(names: Sequence[str] | None, part: Source) -> Sequence[int]:
    """Return the positions of the columns `names` in the source of one file; all positions if columns have no names."""
    if names is None or part._names is None:
        return range(len(part._kinds))
    places = {name: j for j, name in enumerate(part._names)}
    return [places[name] for name in names]


def _common(kinds: list[Kind]) -> Kind:
    """Return a type that can represent a column's values in all files, given its type in each file."""
    text = [kind for kind in kinds if isinstance(kind, str)]
    lists = [kind for kind in kinds if isinstance(kind, Lists)]
    if text or (lists and len(lists) < len(kinds)):
        return (text or [str(kind) for kind in lists])[0]
    if lists:
        widths = {kind.width for kind in lists}
        return Lists(np.result_type(*[kind.dtype for kind in lists]), widths.pop() if len(widths) == 1 else None)
    return np.result_type(*[kind for kind in kinds if isinstance(kind, np.dtype)])
