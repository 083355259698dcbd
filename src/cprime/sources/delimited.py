"""Sources of delimited text files: .csv and .tsv.

Separator, decimal comma and header are detected from the first lines. Columns before the first column with
a name are the index, as `DataFrame.to_csv` writes it.
"""

import codecs
import logging
import re
from collections.abc import Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from cprime._utils.messages import require
from cprime.sources.arrow import arrow_buffer, reading
from cprime.sources.header import is_header
from cprime.sources.lines import IS_BLANK, TEXT, LinesSource, first_lines, is_number, short, typed

CELL_BYTES = 64
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# Number of first lines from which the separator is detected.
_LINES = 50
# Number of lines that are compared with the first line to decide whether it is a header.
_COMPARED = 1000
_HAS_NO_ROWS = re.compile(rb"[^\n]*+\s*\Z")
_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")

_log = logging.getLogger(__name__)


class CsvSource(LinesSource):
    """Source of a .csv or .tsv file. Empty cells, NA and similar texts are missing values.

    header: whether the first line has column names; None detects it
    separator: character between values; None detects it
    """

    _as_text = False  # whether `read_stored` reads text in which only empty cells are missing values

    def __init__(
        self, path: str | Path, vector: bool = False, header: bool | None = None, separator: str | None = None
    ) -> None:
        csv = require("pyarrow.csv", str(path))
        self._format = f"{Path(path).suffix.lower()} file"
        self._header = False
        lines = first_lines(path)
        if lines.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise ValueError(f"{path} must be text in UTF-8, it is in UTF-16")
        self._separator, self._decimal = _punctuation(lines, separator)
        with reading(str(path), self._format):
            found = csv.open_csv(path, parse_options=self._parsing()).schema.names
        self._header = self._has_header(path, found, lines) if header is None else header
        names = _named(found) if self._header else [str(j) for j in range(len(found))]
        super().__init__(path, [np.dtype(np.float64)] * len(names), names, {})
        if self._header:
            n_index = next((j for j, name in enumerate(found) if name), len(found))
            self._index = frozenset(names[:n_index])
        with reading(str(path), self._format):
            self._examples = {name: at for name, *at in self._text_of(arrow_buffer(lines), 0, names)}
        self._kinds = tuple(
            TEXT if name in self._examples else kind for name, kind in zip(names, self._kinds, strict=True)
        )
        if not self._header:
            _log.info("%s has no header: its columns are called 0 to %d", path, len(names) - 1)
        if separator is None and self._separator != ("\t" if self._format.startswith(".tsv") else ","):
            decimal = " and decimal commas" if self._decimal == "," else ""
            _log.info("%s is read with %s between its values%s", path, _SEPARATORS[self._separator], decimal)

    def _has_header(self, path: str | Path, names: Sequence[str], lines: bytes) -> bool:
        """Return whether the first line has column names; raise ValueError if this is unclear."""
        from pyarrow import csv

        missing = set(csv.ConvertOptions().null_values)
        numbers = [name for name in names if name not in missing]
        if not numbers or not all(is_number(name.replace(self._decimal, ".")) for name in numbers):
            return True
        text = lines.decode("utf-8-sig", "replace").splitlines()
        split = (line.split(self._separator) for line in text if line.strip())
        rows = [
            ["" if cell.strip() in missing else cell.replace(self._decimal, ".") for cell in cells]
            for cells in islice(split, 1 + _COMPARED)
        ]
        found = is_header(rows[0], rows[1:])
        shown = self._separator.join(names)
        if found is None:
            raise ValueError(
                f"{path}: the first line may be names of columns or a row of numbers, got {short(shown)}: "
                "say which with header=True or header=False"
            )
        if found and list(names) != [str(j) for j in range(len(names))]:
            _log.info("%s: the first line has the names of its columns, %s", path, short(shown))
        return found

    def as_stored(self, columns: Sequence[str] | None = None, as_text: bool = False) -> Self:
        new = super().as_stored(columns, as_text)
        new._as_text = as_text
        return new

    def _stored_types(self, as_text: bool) -> dict[str, Any]:
        import pyarrow as pa

        return dict.fromkeys(self._stored_columns or (), pa.string()) if as_text else super()._stored_types(as_text)

    def _parse(self, content: Any, piece: int, types: dict[str, Any]) -> Any:
        import pyarrow as pa

        try:
            return self._read(content, piece, types)
        except pa.ArrowInvalid:
            if pa.float64() not in types.values():
                raise
            return typed(self._read(content, piece, dict.fromkeys(types)), types)

    def _read(self, content: Any, piece: int, types: dict[str, Any]) -> Any:
        """Parse lines as `_parse` does, but refuse true and false among numbers."""
        import pyarrow as pa
        from pyarrow import csv

        all_names, header = self._names or (), self._header and piece == 0
        if IS_BLANK.match(content) or (header and _HAS_NO_ROWS.match(content)):
            return pa.schema({name: kind or pa.float64() for name, kind in types.items()}).empty_table()
        block_size = max(2**20, CELL_BYTES * (1 + len(all_names)))
        return csv.read_csv(
            pa.BufferReader(content),
            csv.ReadOptions(column_names=all_names, skip_rows=int(header), block_size=block_size),
            self._parsing(),
            csv.ConvertOptions(
                null_values=[""] if self._as_text else None,
                strings_can_be_null=True,
                decimal_point=self._decimal,
                include_columns=list(types),
                column_types={name: kind for name, kind in types.items() if kind is not None},
            ),
        )

    def _parsing(self) -> Any:
        from pyarrow import csv

        return csv.ParseOptions(delimiter=self._separator)


def _named(names: Sequence[str]) -> list[str]:
    """Return unique column names, in which an empty name of column j becomes "Unnamed: j", as in pandas."""
    taken = set(names)
    found = []
    for j, name in enumerate(names):
        numbered = chain([f"Unnamed: {j}"], (f"Unnamed: {j}.{k}" for k in count(1)))
        found.append(name or next(new for new in numbered if new not in taken))
    return found


def _punctuation(content: bytes, separator: str | None) -> tuple[str, str]:
    """Return the separator and the decimal mark (point or comma) of text.

    A separator of None is detected: a character that occurs equally often in all lines. The comma is tried last.
    """
    lines = [line for line in content.decode("utf-8", "replace").splitlines()[:_LINES] if line.strip()]
    if separator is None:
        bare = [re.sub(r'"[^"]*"', "", line) for line in lines]
        counts = {mark: {line.count(mark) for line in bare} for mark in _SEPARATORS}
        even = [mark for mark in ("\t", ";", "|", ",") if len(counts[mark]) == 1 and counts[mark] != {0}]
        commonest = max(_SEPARATORS, key=lambda mark: min(counts[mark], default=0))
        separator = even[0] if even else commonest if min(counts[commonest], default=0) else ","
    if separator == ",":
        return separator, "."
    cells = [cell.strip(' "') for line in lines for cell in line.split(separator)]
    commas = any(_COMMA.fullmatch(cell) for cell in cells) and not any(
        re.fullmatch(r"[+-]?\d*\.\d+", cell) for cell in cells
    )
    return separator, "," if commas else "."
