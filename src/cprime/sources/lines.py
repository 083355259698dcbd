"""Base of sources of text files with one row per line, read in pieces of whole lines. No value has a line break."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cprime._utils.files import Stamp
from cprime._utils.messages import require
from cprime.sources.arrow import ArrowSource, reading
from cprime.sources.kinds import NUMERIC_COLUMNS, Kind, described

PIECE_BYTES = 8 * 2**20
SAMPLE_BYTES = 2**20
IS_BLANK = re.compile(rb"\s*\Z")
TEXT = "text"  # stored type (`Kind`) of a column that is not numeric


class LinesSource(ArrowSource):
    """Source of a text file whose columns are all read as float64; true and false become 1 and 0.

    When columns are chosen, the file is read once to count its rows and to check that values are numbers.
    examples: for each column with text in the first lines, the index of a row with text and this text
    """

    _decimal = "."  # Decimal mark, a point or a comma.

    def __init__(
        self, path: str | Path, kinds: Sequence[Kind], names: Sequence[str], examples: dict[str, tuple[int, str]]
    ) -> None:
        super().__init__(str(path), kinds, names, (), (Stamp.from_path(path),))
        self._examples = examples
        self._bytes: list[tuple[int, int]] = []  # begin and end [bytes] of each piece of the file

    @abstractmethod
    def _parse(self, content: Any, piece: int, names: Sequence[str], text: bool) -> Any:
        """Return an Arrow table of the columns `names`, parsed from lines of a piece of the file.

        content: Arrow buffer of the lines    piece: its number    text: whether columns are text, not numbers
        """

    def _count(self) -> None:
        if self._bytes:
            return
        self._bytes = []
        counts: list[int] = []
        with reading(self.name, self._format), self._open() as file:
            for a, b in whole_lines(file):
                self._bytes.append((a, b))
                self._ends = np.cumsum([*counts, 0])
                counts.append(self._table(file, len(counts)).num_rows)
        self._ends = np.cumsum(counts, dtype=np.int64)
        self.n_rows = sum(counts)

    def _open(self) -> Any:
        return require("pyarrow", self.name).OSFile(self._files[0].path)

    def _batches(self, file: Any, piece: int) -> Iterator[Any]:
        return iter(self._table(file, piece).to_batches(max_chunksize=self._batch_rows()))

    def _table(self, file: Any, piece: int) -> Any:
        """Read a piece of the file and return its chosen columns as an Arrow table.

        Raises ValueError for values that are not numbers, unless the columns are read as text.    piece: its number
        """
        import pyarrow as pa

        names = self._stored_columns or ()
        text = self._as_text
        begin, end = self._bytes[piece]
        file.seek(begin)
        content = file.read_buffer(end - begin)
        try:
            return self._parse(content, piece, names, text)
        except pa.ArrowInvalid:
            found = [] if text else self._text_of(content, piece, names)
            if not found:
                raise
            raise ValueError(self._no_number(found)) from None

    def _text_of(self, content: Any, piece: int, names: Sequence[str]) -> list[tuple[str, int, str]]:
        """Return (column, row, value) of the first value that is not a number, for each column with such a value."""
        table = self._parse(content, piece, names, True)
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


def whole_lines(file: Any) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) [bytes] of the pieces into which a file is cut at ends of lines."""
    begin, size = 0, file.size()
    while begin < size:
        end = min(begin + PIECE_BYTES, size)
        while end < size:
            file.seek(end)
            found = file.read(PIECE_BYTES)
            end += found.find(b"\n") + 1 or len(found)
            if b"\n" in found:
                break
        yield begin, end
        begin = end


def first_lines(path: str | Path) -> bytes:
    """Return the first lines of a file: whole lines, about a megabyte, at least one."""
    with open(path, "rb") as file:
        content = file.read(SAMPLE_BYTES)
        if b"\n" not in content or len(content) < SAMPLE_BYTES:
            return content if len(content) < SAMPLE_BYTES else content + file.readline()
        return content[: content.rfind(b"\n") + 1]


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def short(value: str) -> str:
    return repr(value if len(value) <= 40 else value[:39] + "…")
