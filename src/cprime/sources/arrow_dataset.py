"""Sources of pyarrow data sets on any file system, and of Hive-partitioned folders (`cluster=3/part.parquet`).

The values of a partition column are in the names of folders. Such a column is read only if it is chosen by name.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cprime._utils.files import Stamp
from cprime._utils.messages import require
from cprime.sources.arrow import ArrowSource, reading, stored_columns
from cprime.sources.base import Source
from cprime.sources.tables import TableSource


class DatasetSource(ArrowSource):
    """Source of a `pyarrow.dataset.Dataset`, decoded in pieces: row groups of Parquet files, or whole files."""

    _format = "data set"

    def __init__(self, dataset: Any, name: str = "the data set") -> None:
        from pyarrow.fs import LocalFileSystem

        with reading(name, self._format):
            fragments = list(dataset.get_fragments())
            self._pieces = [
                piece
                for fragment in fragments
                for piece in (fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment])
            ]
            counts = [_count(piece) for piece in self._pieces]
            # Only fragments that are Parquet files have row groups, and types of columns in their metadata.
            files = [fragment.metadata for fragment in fragments if hasattr(fragment, "row_groups")]
            columns = stored_columns(dataset.schema, files)
        self._schema = dataset.schema
        paths = [fragment.path for fragment in fragments if isinstance(fragment.filesystem, LocalFileSystem)]
        super().__init__(name, *columns, counts, [Stamp.from_path(path) for path in paths])
        self._learn_schema(self._schema)
        partitioning = getattr(dataset, "partitioning", None)
        self._partitions = frozenset(() if partitioning is None else partitioning.schema.names)

    def _open(self) -> Any:
        return self._pieces

    def _batches(self, file: Any, piece: int) -> Iterator[Any]:
        scanner = file[piece].scanner(
            schema=self._schema,
            columns=[self._schema.names[j] for j in sorted({self._leaves[j][2] for j in self._positions})],
            batch_size=self._batch_rows(),
            batch_readahead=1,
            fragment_readahead=1,
        )
        return scanner.to_batches()

    def _where(self, row: int) -> str:
        piece = self._piece(row)
        path = self._pieces[piece].path
        first = piece
        while first and self._pieces[first - 1].path == path:
            first -= 1
        return f"{path}: row {row - self._begin(first)} (row {row} of all)"


def open_dataset(dataset: Any) -> Source:
    """Return the source of a pyarrow data set; a data set in memory is read as a table."""
    if all(hasattr(fragment, "path") for fragment in dataset.get_fragments()):
        return DatasetSource(dataset)
    return TableSource(dataset.to_table())


_FORMATS = {".parquet": "parquet", ".feather": "feather", ".arrow": "ipc", ".ipc": "ipc"}


def open_partitions(folder: Path) -> Source:
    """Return the source of a Hive-partitioned folder, whose files must have one Arrow format."""
    arrow = require("pyarrow.dataset", str(folder))
    hidden = (".", "_")
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    found = sorted({path.suffix.lower() for path in files if not any(part.startswith(hidden) for part in path.parts)})
    if len(found) != 1 or found[0] not in _FORMATS:
        raise ValueError(
            f"{folder} holds folders of partitions, expected files in them that end in one of {', '.join(_FORMATS)}, "
            f"got {', '.join(map(repr, found)) or 'none'}"
        )
    with reading(str(folder), "folder of partitions"):
        dataset = arrow.dataset(str(folder), format=_FORMATS[found[0]], partitioning="hive")
    return DatasetSource(dataset, str(folder))


def _count(piece: Any) -> int:
    """Return the number of rows of a row group or file.

    For a row group it is read from the metadata, because `count_rows` would count the rows of the whole file.
    """
    groups = getattr(piece, "row_groups", None)
    return piece.count_rows() if groups is None else sum(group.num_rows for group in groups)
