"""Files of comma-separated values: read in pieces of whole lines, every column as float64."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cprime.sources.arrow import ArrowSource, reading
from cprime.sources.optional import require
from cprime.sources.stamps import Stamp

PIECE_BYTES = 8 * 2**20
CELL_BYTES = 64

_log = logging.getLogger(__name__)


class CsvSource(ArrowSource):
    """A .csv file, with a header or without, by default as it looks.

    Choosing columns reads the file once: where its lines end, how many rows there are, and that they are numbers.
    Values have no line breaks in them. An empty value, NA and the like are missing.
    """

    _format = ".csv file"

    def __init__(self, path: str | Path, vector: bool = False, header: bool | None = None) -> None:
        csv = require("pyarrow.csv", str(path))
        stamp = Stamp.of(path)
        with reading(str(path), self._format), csv.open_csv(path) as reader:
            names = reader.schema.names
        counted = [str(j) for j in range(len(names))]
        self._has_header = header if header is not None else names == counted or not all(map(_is_number, names))
        if not self._has_header:
            names = counted
            _log.info("%s has no header: its columns are called 0 to %d", path, len(names) - 1)
        super().__init__(str(path), [np.dtype(np.float64)] * len(names), names, (), (stamp,))
        self._bytes: list[tuple[int, int]] = []  # where each piece begins and ends

    def _settle(self) -> None:
        super()._settle()
        if self._bytes:
            return
        self._bytes = []
        counts: list[int] = []
        with reading(self.name, self._format), self._open() as file:
            for a, b in _whole_lines(file):
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
        """The chosen columns of a piece."""
        import pyarrow as pa

        a, b = self._bytes[piece]
        file.seek(a)
        content = file.read(b - a)
        try:
            return self._parse(content, piece, pa.float64())
        except pa.ArrowInvalid as error:
            if "conversion error" not in str(error):
                raise
            self._name_text(self._parse(content, piece, pa.string()), piece)
            raise

    def _parse(self, content: bytes, piece: int, kind: Any) -> Any:
        """The chosen columns of lines, as numbers or as text."""
        import pyarrow as pa
        from pyarrow import csv

        chosen = self.columns
        names = list(self._names or ())
        schema = pa.schema([(name, kind) for name in chosen or ()])
        header = int(self._has_header and piece == 0)
        if not content.strip() or (header and not content.partition(b"\n")[2].strip()):
            return schema.empty_table()
        return csv.read_csv(
            pa.BufferReader(content),
            csv.ReadOptions(column_names=names, skip_rows=header, block_size=max(2**20, CELL_BYTES * (1 + len(names)))),
            convert_options=csv.ConvertOptions(include_columns=chosen, column_types=schema, strings_can_be_null=True),
        )

    def _name_text(self, table: Any, piece: int) -> None:
        """Raise ValueError for the first value that is no number."""
        for name in table.column_names:
            for row, text in enumerate(table[name].to_pylist()):
                if text is not None and not _is_number(text):
                    raise ValueError(
                        f"{self._where(self._begin(piece) + row)}, column {name!r} is not numeric: "
                        f"{text if len(text) <= 40 else text[:39] + '…'!r}; choose the columns that are with columns="
                    )


def _whole_lines(file: Any) -> Iterator[tuple[int, int]]:
    """(begin, end) of pieces of a file that end where a line does."""
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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
