"""Output of rows to a folder with one Parquet file for each nonempty cluster: cluster=17/part-0.parquet.

The rows of a cluster may be anywhere in the data. Therefore the rows that are read at a time are sorted by cluster and
appended to one temporary Arrow file. This file is then memory-mapped, and the rows of one cluster after the other are
gathered from it. Only one file is open for writing at any time. Memory use is that of the rows that are read at a time,
for any number of rows and clusters.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.files import filling
from cprime.cli.outputs import Columns, as_arrow

_GROUP_BYTES = 2**26  # number of bytes of rows that are written together


class Partition:
    """Temporary file of rows with their clusters, from which one file per cluster is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None
        # For each Arrow batch, an array of rows (cluster, index of the batch, cluster's first row in it, last row + 1).
        self._parts: list[NDArray[np.int64]] = []

    def write(self, labels: NDArray[np.int32], columns: Columns) -> None:
        """Append n rows: `labels` (n,) are their clusters, `columns` the columns to write, by name, n values each."""
        import pyarrow as pa

        order = np.argsort(labels, kind="stable")
        batch = pa.RecordBatch.from_pydict({name: as_arrow(values).take(order) for name, values in columns.items()})
        if self._writer is None:
            self._writer = pa.ipc.new_file(str(self._path), batch.schema)
        clusters, first = np.unique(labels[order], return_index=True)
        number = np.full(len(clusters), len(self._parts))
        self._parts.append(np.column_stack([clusters, number, first, np.append(first[1:], len(labels))]))
        self._writer.write_batch(batch)

    def gather(self, folder: Path) -> None:
        """Write one Parquet file in `folder` for each cluster, with the cluster's rows in their original order."""
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        self._writer.close()
        parts = np.concatenate(self._parts)
        parts = parts[np.argsort(parts[:, 0], kind="stable")]
        with pa.memory_map(str(self._path)) as mapped:
            reader = pa.ipc.open_file(mapped)
            batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
            ends = [*(np.flatnonzero(np.diff(parts[:, 0])) + 1).tolist(), len(parts)]
            for first, end in zip([0, *ends[:-1]], ends, strict=True):
                path = folder / f"cluster={parts[first, 0]}" / "part-0.parquet"
                path.parent.mkdir()
                pieces = (batches[i][a:b] for _, i, a, b in parts[first:end].tolist())
                with ParquetWriter(path, reader.schema, use_dictionary=False) as file:  # Values seldom repeat.
                    for group in _groups(pieces):
                        file.write_table(pa.Table.from_batches(group))
            del batches, pieces, group

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


@contextmanager
def partition(folder: Path) -> Iterator[Partition]:
    """Yield a `Partition` to which rows are written; at the end, write one file for each cluster to the folder.

    The folder must not exist or must be empty. After an error, nothing is written to it.
    """
    with filling(folder) as temporary:
        path = temporary / ".rows.arrow"
        rows = Partition(path)
        try:
            yield rows
            rows.gather(temporary)
        finally:
            rows.close()
        # The temporary file of all rows is deleted here, because the end of `filling` would flush it to the disk.
        path.unlink()


def _groups(pieces: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield the Arrow batches `pieces` in lists of consecutive batches; a list ends once it has 2²⁶ bytes or more."""
    group: list[Any] = []
    n_bytes = 0
    for piece in pieces:
        group.append(piece)
        n_bytes += piece.nbytes
        if n_bytes >= _GROUP_BYTES:
            yield group
            group, n_bytes = [], 0
    if group:
        yield group
