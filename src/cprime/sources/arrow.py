"""Sources of Arrow formats: .parquet, .feather, .arrow, .ipc. A pass over all rows decodes each file once.

A file consists of pieces of known length (row groups, record batches); decoding can begin at each piece. A `Cursor` is
a reading position in a file. It contains the decoded rows of a batch that have not been read yet. Index columns written
by pandas are not data.
"""

import base64
import binascii
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.files import Stamp
from cprime._utils.messages import require
from cprime.sources.base import CHUNK_BYTES, Source
from cprime.sources.columns import check_names, kind_of_type, matrix_of, put, width_of, write
from cprime.sources.kinds import Kind, index_columns

BATCH_BYTES = 2**20
BUFFER_BYTES = 2**16
COLUMN_BYTES = 2 * 2**20
# The number of rows that are decoded at a time depends on the length of their lists of numbers. This length is assumed
# until the first list is read.
_GUESSED_WIDTH = 2**10


class ArrowSource(Source):
    """Base of sources of Arrow files. A file consists of pieces (row groups), each decoded batch by batch.

    _ends (number of pieces,): cumulative number of rows at the end of each piece
    """

    _keeps_narrow = True
    _reads_text = True
    _format = "table"
    _as_text = False  # whether the source reads one column of row names, of any type, instead of numbers

    def __init__(
        self, name: str, kinds: Sequence[Kind], names: Sequence[str], counts: Sequence[int], files: Sequence[Stamp]
    ) -> None:
        check_names(name, names)
        super().__init__(name, int(sum(counts)), kinds, names, files)
        self._ends = np.cumsum(counts, dtype=np.int64)

    @abstractmethod
    def _open(self) -> Any:
        """Open and return the file or object from which `_batches` reads."""

    @abstractmethod
    def _batches(self, file: Any, piece: int) -> Iterator[Any]:
        """Yield the chosen columns of one piece of the file (row group or record batch) as Arrow batches."""

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        self._write(self._forward(begin, end), range(begin, end), out)
        require("pyarrow", self.name).default_memory_pool().release_unused()

    def _write(self, batches: Iterable[Any], rows: Sequence[int] | NDArray[np.int64], out: NDArray) -> None:
        """Write the chosen columns of batches into `out`. rows: indices in the whole data of the rows of all batches"""
        names = self._stored_columns or []
        done = 0
        for batch in batches:
            some = out[done : done + batch.num_rows]
            where = partial(self._where_among, rows[done : done + batch.num_rows])
            if self._list is None:
                write(batch, names, some, where, self._column_of)
            else:
                put(some, matrix_of(batch.column(names[0]), self.n_features, where), where, self._column_of)
            done += batch.num_rows
            del batch  # frees the memory of its row group before the next batch is decoded

    def _named(self, column: str) -> Self:
        new = self._copy()
        new._chosen, new._list, new._as_text = self._numbers([column]), None, True
        new._count()
        return new

    def _read_names(self, begin: int, end: int) -> Any:
        import pyarrow as pa

        name = self._stored_columns[0]  # type: ignore[index]
        found = [batch.column(name) for batch in self._forward(begin, end)]
        return pa.chunked_array(found).combine_chunks() if found else pa.array([])

    def _forward(self, begin: int, end: int) -> Iterator[Any]:
        """Yield the rows begin to end as Arrow batches; raise ValueError if the file ends too soon."""
        done = 0
        with reading(self.name, self._format):
            for batch in self._cursor(begin).forward(begin, end):
                done += batch.num_rows
                yield batch
                del batch
        if done < end - begin:
            raise ValueError(f"{self.name} has changed since it was opened: it ends too soon")
        if end == self.n_rows:
            self.close()

    def _settle(self) -> None:
        super()._settle()
        self._count()
        if self._list is not None and self._list.width is None and self.n_rows:
            self._know_width(_GUESSED_WIDTH)
            found = (width_of(batch.column(0)) for batch in self._forward(0, self.n_rows))
            self._know_width(next((width for width in found if width is not None), None))
            self.close()

    def _where_among(self, rows: Sequence[int] | NDArray[np.int64], row: int) -> str:
        return self._where(int(rows[row]))

    def _count(self) -> None:
        """Count the rows by reading the file. Formats that store the number of rows leave this method empty."""

    def _cursor(self, row: int) -> "Cursor":
        """Return a reading position (cursor) at or before `row`, in the row group or batch with this row.

        The open cursor is returned if it is such a position.
        """
        piece = self._piece(row)
        cursor = self._open_files
        if cursor is None or cursor.row > row or cursor.row < self._begin(piece):
            file = self._open() if cursor is None else cursor.file
            self._open_files = cursor = Cursor(self, file, piece)
        return cursor

    def _piece(self, row: int) -> int:
        return int(np.searchsorted(self._ends, row, side="right"))

    def _begin(self, piece: int) -> int:
        return int(self._ends[piece - 1]) if piece else 0

    def _batch_rows(self) -> int:
        """Return the number of rows per batch, so small that a batch fits in the processor's cache."""
        return min(2**16, max(2**10, BATCH_BYTES // (8 * self.n_features)))


class Cursor:
    """Reading position in a file whose batches of rows are decoded in sequence. row: index of the next row"""

    def __init__(self, source: ArrowSource, file: Any, piece: int) -> None:
        self.file = file
        self.row = source._begin(piece)
        pieces = range(piece, len(source._ends))
        self._batches = chain.from_iterable(source._batches(file, p) for p in pieces)
        self._rest: Any = None

    def forward(self, begin: int, end: int) -> Iterator[Any]:
        """Yield the rows begin to end as batches. Rows between the cursor and `begin` are skipped."""
        while self.row < end:
            batch = next(self._batches, None) if self._rest is None else self._rest
            if batch is None:
                return
            skip = min(max(begin - self.row, 0), batch.num_rows)
            stop = min(end - self.row, batch.num_rows)
            self._rest = batch.slice(stop) if stop < batch.num_rows else None
            self.row += stop
            if skip < stop:
                yield batch.slice(skip, stop - skip)
            del batch


class ParquetSource(ArrowSource):
    """Source of a .parquet file; its pieces are the row groups.

    Reading a row group page by page needs memory for two pages of every column, about 2 MiB. So a row group of at most
    this size is read as a whole instead.
    """

    _format = "parquet file"

    def __init__(self, path: str | Path, vector: bool = False) -> None:
        parquet = require("pyarrow.parquet", str(path))
        stamp = Stamp.from_path(path)
        with reading(str(path), self._format), parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            counts = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
            kinds = stored_kinds(schema, [file.metadata])
        super().__init__(str(path), kinds, schema.names, counts, (stamp,))
        self._index = index_columns(schema, self.name)

    def _open(self) -> Any:
        parquet = require("pyarrow.parquet", self.name)
        return parquet.ParquetFile(self._files[0].path, pre_buffer=False, buffer_size=BUFFER_BYTES)

    def _batches(self, file: Any, piece: int) -> Iterator[Any]:
        rows, step = int(self._ends[piece]) - self._begin(piece), self._batch_rows()
        names = self._stored_columns
        values = rows if self._list is None else rows * self.n_features
        if values * self.dtype.itemsize > COLUMN_BYTES:
            return file.iter_batches(step, row_groups=[piece], columns=names)
        return iter(file.read_row_group(piece, columns=names).to_batches(max_chunksize=step))


class IpcSource(ArrowSource):
    """Source of an Arrow IPC file (.arrow, .ipc, and .feather of version 2); its pieces are the record batches."""

    _format = "file of Arrow's format"

    def __init__(self, path: str | Path, vector: bool = False) -> None:
        pa = require("pyarrow", str(path))
        ipc = require("pyarrow.ipc", str(path))
        stamp = Stamp.from_path(path)
        with reading(str(path), self._format), pa.OSFile(str(path)) as opened:
            file = ipc.open_file(opened)
            schema = file.schema
            lengths = ipc.open_file(opened, options=ipc.IpcReadOptions(included_fields=[0])) if len(schema) else file
            counts = [lengths.get_batch(b).num_rows for b in range(file.num_record_batches)]
        super().__init__(str(path), [kind_of_type(field.type) for field in schema], schema.names, counts, (stamp,))
        self._index = index_columns(schema, self.name)

    def _open(self) -> Any:
        pa = require("pyarrow", self.name)
        ipc = require("pyarrow.ipc", self.name)
        largest = int(np.diff(self._ends, prepend=0).max()) * self.n_features * 8
        opened = pa.OSFile if largest <= CHUNK_BYTES else pa.memory_map
        options = ipc.IpcReadOptions(included_fields=sorted(self._positions))
        return ipc.open_file(opened(self._files[0].path), options=options)

    def _batches(self, file: Any, piece: int) -> Iterator[Any]:
        batch, step = file.get_batch(piece), self._batch_rows()
        return (batch.slice(a, step) for a in range(0, batch.num_rows, step))


def stored_kinds(schema: Any, files: Iterable[Any]) -> list[Kind]:
    """Return the types of the columns of Parquet files, from their schema and the metadata in `files`.

    Arrow reads categories of numbers as plain numbers; only the files' metadata shows that they are categories.
    """
    pa = require("pyarrow", "a Parquet file")
    categories: dict[str, str] = {}
    for file in files:
        encoded = (file.metadata or {}).get(b"ARROW:schema")
        written = [] if encoded is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded)))
        categories |= {field.name: str(field.type) for field in written if pa.types.is_dictionary(field.type)}
    return [categories.get(field.name) or kind_of_type(field.type) for field in schema]


def arrow_buffer(content: bytes) -> Any:
    """Copy bytes into a buffer of Arrow's own memory, which its threads can free without the interpreter.

    Arrow's threads may hold what they parse after the parser has returned. If they free memory of Python while the
    interpreter ends, Python ends the thread, and the process aborts.
    """
    buffer = require("pyarrow", "a text file").allocate_buffer(len(content))
    memoryview(buffer).cast("B")[:] = content
    return buffer


@contextmanager
def reading(name: str, kind: str) -> Iterator[None]:
    """Convert errors that Arrow raises inside the `with` block to a ValueError that states the file's name."""
    pa = require("pyarrow", name)
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, binascii.Error) as error:
        raise ValueError(f"{name} cannot be read as a {kind}: {error}") from error
