"""Sources of Arrow formats: .parquet, .feather, .arrow, .arrows, .ipc. A pass over all rows decodes each file once.

A file consists of pieces of known length (row groups, record batches); decoding can begin at each piece. A `Cursor` is
a reading position in a file. It contains the decoded rows of a batch that have not been read yet. Index columns written
by pandas are not data. Fields of structures are columns of their own, with names such as "a.b".
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
from cprime.sources.columns import (
    check_names,
    flat,
    is_flat,
    kind_of_type,
    leaf_types,
    matrix_of,
    put,
    width_of,
    write,
)
from cprime.sources.kinds import Kind, index_columns

BATCH_BYTES = 2**20
BUFFER_BYTES = 2**16
COLUMN_BYTES = 2 * 2**20
# The number of rows that are decoded at a time depends on the length of their lists of numbers. This length is assumed
# until the first list is read.
_GUESSED_WIDTH = 2**10
_FILE_MAGIC = b"ARROW1"  # first bytes of an Arrow file; those of a stream differ


class ArrowSource(Source):
    """Base of sources of Arrow files. A file consists of pieces (row groups), each decoded batch by batch.

    _ends (number of pieces,): cumulative number of rows at the end of each piece
    """

    _keeps_narrow = True
    _reads_text = True
    _format = "table"
    _types: Any = None  # types by column in which `read_stored` reads; None if the source reads numbers
    _is_flat = True  # whether no column is a structure or a tensor

    def __init__(
        self, name: str, names: Sequence[str], kinds: Sequence[Kind], counts: Sequence[int], files: Sequence[Stamp]
    ) -> None:
        check_names(name, names)
        super().__init__(name, int(sum(counts)), kinds, names, files)
        self._ends = np.cumsum(counts, dtype=np.int64)

    def _learn_schema(self, schema: Any) -> None:
        """Set what an Arrow schema says about the columns: the index, structures, and where each column is stored.

        Raises ValueError if the metadata of pandas in the schema cannot be read.
        """
        self._index, self._is_flat = index_columns(schema, self.name), is_flat(schema)
        self._leaves = leaf_types(schema)

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

    def as_stored(self, columns: Sequence[str] | None = None, as_text: bool = False) -> Self:
        new = self._copy()
        new._chosen, new._list = self._numbers(self._names or () if columns is None else columns), None
        new._count()
        new._types = new._stored_types(as_text)
        return new

    def _stored_types(self, as_text: bool) -> dict[str, Any]:
        """Return the Arrow types of the chosen columns by name; the type of categories is that of their values."""
        from pyarrow import types

        found = [self._leaves[j] for j in self._positions]
        return {name: kind.value_type if types.is_dictionary(kind) else kind for name, kind, _ in found}

    def read_stored(self, begin: int, end: int) -> dict[str, Any]:
        import pyarrow as pa

        batches = list(self._forward(begin, end))
        return {
            name: pa.chunked_array([batch.column(name).cast(kind) for batch in batches], kind).combine_chunks()
            for name, kind in self._types.items()
        }

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
        batches = chain.from_iterable(source._batches(file, p) for p in pieces)
        self._batches = batches if source._is_flat else map(flat, batches)
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
            columns = stored_columns(schema, [file.metadata])
        super().__init__(str(path), *columns, counts, (stamp,))
        self._learn_schema(schema)

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
    """Source of an Arrow IPC file or stream (.arrow, .arrows, .ipc, .feather); its pieces are the record batches."""

    _format = "file of Arrow's format"

    def __init__(self, path: str | Path, vector: bool = False) -> None:
        pa, ipc = require("pyarrow", str(path)), require("pyarrow.ipc", str(path))
        stamp = Stamp.from_path(path)
        self._places: list[int] | None = None
        with reading(str(path), self._format), pa.OSFile(str(path)) as opened:
            self._is_stream = opened.read(len(_FILE_MAGIC)) != _FILE_MAGIC
            open_file = ipc.open_stream if self._is_stream else ipc.open_file
            opened.seek(0)
            schema = open_file(opened).schema
            opened.seek(0)
            file = open_file(opened, options=_fields([0] if len(schema) else []))
            if self._is_stream:
                places, counts = _places_and_counts(opened, file)
                has_categories = any(pa.types.is_dictionary(kind) for kind in schema.types)
                self._places = None if has_categories else places
            else:
                counts = [file.get_batch(b).num_rows for b in range(file.num_record_batches)]
        super().__init__(str(path), *stored_columns(schema), counts, (stamp,))
        self._learn_schema(schema)

    def _open(self) -> Any:
        pa = require("pyarrow", self.name)
        largest = int(np.diff(self._ends, prepend=0).max()) * self.n_features * 8
        file = (pa.OSFile if largest <= CHUNK_BYTES else pa.memory_map)(self._files[0].path)
        options = _fields(sorted({self._leaves[j][2] for j in self._positions}))
        if self._is_stream:
            return Stream(file, options, self._places)
        return require("pyarrow.ipc", self.name).open_file(file, options=options)

    def _batches(self, file: Any, piece: int) -> Iterator[Any]:
        batch, step = file.get_batch(piece), self._batch_rows()
        return (batch.slice(a, step) for a in range(0, batch.num_rows, step))


class Stream:
    """Reader of the record batches of an Arrow stream by their number, like pyarrow's reader of files.

    file: the open file    options: options of the reader, such as the columns that are read
    places: position in the file of each batch [bytes], or None if batches must be read in order, because the stream has
    dictionaries of categories, which precede the batches that use them
    """

    def __init__(self, file: Any, options: Any, places: list[int] | None) -> None:
        self._file = file
        self._options = options
        self._places = places
        self._begin()

    def _begin(self) -> None:
        from pyarrow import ipc

        self._file.seek(0)
        self._reader = ipc.open_stream(self._file, options=self._options)
        self._next = 0

    def get_batch(self, number: int) -> Any:
        """Return a batch by its number."""
        if self._places is not None:
            self._file.seek(self._places[number])
            return self._reader.read_next_batch()
        if number < self._next:
            self._begin()
        while self._next <= number:
            batch = self._reader.read_next_batch()
            self._next += 1
        return batch


def _places_and_counts(file: Any, stream: Any) -> tuple[list[int], list[int]]:
    """Return the position in the file of each batch of a stream [bytes], and its number of rows."""
    places, counts = [file.tell()], []
    for batch in stream:
        counts.append(batch.num_rows)
        places.append(file.tell())
    return places, counts


def _fields(positions: list[int]) -> Any:
    """Return options of Arrow's readers by which only the columns at these positions are read."""
    return require("pyarrow.ipc", "Arrow's format").IpcReadOptions(included_fields=positions)


def stored_columns(schema: Any, files: Iterable[Any] = ()) -> tuple[list[str], list[Kind]]:
    """Return the names and types of the columns of a file in an Arrow format, with the fields of structures apart.

    Arrow reads categories of numbers in Parquet files as plain numbers; only the metadata `files` shows what they are.
    """
    pa = require("pyarrow", "a file of Arrow's format")
    categories: dict[str, str] = {}
    for file in files:
        encoded = (file.metadata or {}).get(b"ARROW:schema")
        written = [] if encoded is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded)))
        categories |= {field.name: str(field.type) for field in written if pa.types.is_dictionary(field.type)}
    found = leaf_types(schema)
    return [name for name, _, _ in found], [categories.get(name) or kind_of_type(kind) for name, kind, _ in found]


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
