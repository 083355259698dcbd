"""Base of sources of text files with one row per line, read in pieces of whole lines. No value has a line break."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from os import SEEK_END
from pathlib import Path
from typing import Any

import numpy as np

from cprime._utils.files import Stamp
from cprime._utils.messages import require
from cprime.sources.arrow import ArrowSource, reading
from cprime.sources.columns import common_types, has_numbers
from cprime.sources.kinds import NUMERIC_COLUMNS, Kind, described

PIECE_BYTES = 8 * 2**20
SAMPLE_BYTES = 2**20
IS_BLANK = re.compile(rb"\s*\Z")
TEXT = "text"  # stored type (`Kind`) of a column that is not numeric


class LinesSource(ArrowSource):
    """Source of a text file whose columns are all read as float64; true and false become 1 and 0.

    When columns are chosen, the file is read once to count its rows and to check that all have the same length.
    examples: for each column with text in the first lines, the index of a row with text and this text
    """

    _decimal = "."  # Decimal mark, a point or a comma.

    def __init__(
        self, path: str | Path, kinds: Sequence[Kind], names: Sequence[str], examples: Mapping[str, Sequence[Any]]
    ) -> None:
        super().__init__(str(path), names, kinds, (), (Stamp.from_path(path),))
        self._examples = examples
        self._cuts: list[int] = []  # begin [bytes] of each piece of the file, and the end of the last one

    @abstractmethod
    def _parse(self, content: Any, piece: int, types: dict[str, Any]) -> Any:
        """Return an Arrow table of some columns, parsed from lines of a piece of the file.

        content: Arrow buffer of the lines    piece: its number
        types: Arrow types of the columns by name; None instead of a type detects it, and the column may be left out
        """

    def _stored_types(self, as_text: bool) -> dict[str, Any]:
        """Return the Arrow types of the chosen columns, detected from all their values in a pass over the file."""
        import pyarrow as pa

        names, found = self._stored_columns or (), []
        with reading(self.name, self._format), self._open() as file:
            for piece in range(len(self._cuts) - 1):
                schema = self._parse(self._content(file, piece), piece, dict.fromkeys(names)).schema
                found.append({name: schema.field(name).type if name in schema.names else pa.null() for name in names})
        return common_types(found)

    def _count(self) -> None:
        if len(self._cuts):
            return
        with reading(self.name, self._format), self._open() as file:
            self._cuts = _cut(self._files[0].path)
            first = (self._names or ())[:1]  # Rows are counted without parsing the numbers of the other columns.
            pieces = range(len(self._cuts) - 1)
            counts = [self._parse(self._content(file, piece), piece, dict.fromkeys(first)).num_rows for piece in pieces]
        self._ends = np.cumsum(counts, dtype=np.int64)
        self.n_rows = sum(counts)

    def _open(self) -> Any:
        return require("pyarrow", self.name).OSFile(self._files[0].path)

    def _batches(self, file: Any, piece: int) -> Iterator[Any]:
        return iter(self._table(file, piece).to_batches(max_chunksize=self._batch_rows()))

    def _content(self, file: Any, piece: int) -> Any:
        file.seek(self._cuts[piece])
        return file.read_buffer(self._cuts[piece + 1] - self._cuts[piece])

    def _table(self, file: Any, piece: int) -> Any:
        """Read a piece of the file and return its chosen columns as an Arrow table.

        Raises ValueError for values that are not numbers, unless the columns are read as text.    piece: its number
        """
        import pyarrow as pa

        names = self._stored_columns or ()
        content = self._content(file, piece)
        number = pa.float64() if self._list is None else pa.list_(pa.float64())
        try:
            return self._parse(content, piece, self._types or dict.fromkeys(names, number))
        except pa.ArrowInvalid:
            found = [] if self._types else self._text_of(content, piece, names)
            if not found:
                raise
            raise ValueError(self._no_number(found)) from None

    def _text_of(self, content: Any, piece: int, names: Sequence[str]) -> list[tuple[str, int, str]]:
        """Return (column, row, value) of the first value that is not a number, for each column with such a value."""
        import pyarrow as pa

        table = self._parse(content, piece, dict.fromkeys(names, pa.string()))
        found = []
        for name in table.column_names:
            for row, value in enumerate(table[name].to_pylist()):
                if value is not None and not self._is_number(value):
                    found.append((name, self._begin(piece) + row, value))
                    break
        return found

    def _no_number(self, found: Sequence[tuple[str, int, str]]) -> str:
        name, row, value = found[0]
        what = f"{self._where(row)}, column {name!r} is not numeric: {short(value)}"
        if len(found) > 1:
            each = [f"{name!r} ({short(value)} in row {row})" for name, row, value in found]
            what = f"{self.name}: columns {described(each)} are not numeric"
        return f"{what}; {NUMERIC_COLUMNS}"

    def _not_numeric(self, columns: Sequence[tuple[str, str]]) -> str:
        return self._no_number([(name, *self._examples[name]) for name, _ in columns])

    def _is_number(self, text: str) -> bool:
        return is_number(text.replace(self._decimal, ".")) or text.lower() in ("true", "false")


def typed(table: Any, types: dict[str, Any]) -> Any:
    """Return columns of an Arrow table in the given types; true and false become the numbers 1 and 0.

    Columns that the table lacks are missing values. Raises ArrowInvalid for text that should be numbers.
    """
    import pyarrow as pa

    columns = []
    for name, kind in types.items():
        values = table[name] if name in table.column_names else pa.nulls(len(table), kind)
        if has_numbers(value_type(kind)) and not has_numbers(value_type(values.type)):
            raise pa.ArrowInvalid(f"column {name!r} is not numeric")
        if values.type == pa.bool_() and kind == pa.float64():
            values = values.cast(pa.int8())
        columns.append(values.cast(kind))
    return pa.table(columns, names=list(types))


def value_type(kind: Any) -> Any:
    """Return the Arrow type of the values of lists; another type itself."""
    return getattr(kind, "value_type", kind)


def _cut(path: str) -> list[int]:
    """Return the bytes at which a file is cut into pieces of whole lines, from its begin to its end."""
    found = [0]
    with open(path, "rb") as file:
        size = file.seek(0, SEEK_END)
        while found[-1] < size:
            file.seek(min(found[-1] + PIECE_BYTES, size))
            file.readline()
            found.append(file.tell())
    return found


def first_lines(path: str | Path) -> bytes:
    """Return the first lines of a file: whole lines, about a megabyte, at least one."""
    with open(path, "rb") as file:
        return b"".join(file.readlines(SAMPLE_BYTES))


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def short(value: str) -> str:
    return repr(value if len(value) <= 40 else value[:39] + "…")
