"""Sources of Lance data sets: versioned tables in folders or object stores, with random access to rows."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.files import Stamp
from cprime._utils.messages import require
from cprime.sources.arrow import ArrowSource, reading, stored_columns
from cprime.sources.columns import flat

_PIECE_ROWS = 2**14


class LanceSource(ArrowSource):
    """Source of the rows of one version of a Lance data set, without deleted rows, in the order of its fragments.

    The data set is read in pieces, which are ranges of equally many rows.
    dataset: an open lance.LanceDataset, of which the open version is read
    name: name of the source in messages; None means the address of the data set
    """

    _format = "Lance data set"

    def __init__(self, dataset: Any, name: str | None = None) -> None:
        name = name or str(dataset.uri)
        with reading(name, self._format):
            n_rows = dataset.count_rows()
        counts = np.diff([*range(0, n_rows, _PIECE_ROWS), n_rows]).tolist()
        files = (Stamp.from_path(dataset.uri),) if os.path.isdir(dataset.uri) else ()
        super().__init__(name, *stored_columns(dataset.schema), counts, files)
        self._learn_schema(dataset.schema)
        self._dataset = dataset
        self._place = str(dataset.version)

    def _open(self) -> Any:
        return self._dataset

    def _batches(self, file: Any, piece: int) -> Iterator[Any]:
        begin = self._begin(piece)
        return file.to_batches(
            columns=self._stored_columns,
            offset=begin,
            limit=int(self._ends[piece]) - begin,
            batch_size=self._batch_rows(),
            batch_readahead=1,
            fragment_readahead=1,
            scan_in_order=True,
        )

    def _gather(self, rows: NDArray[np.int64], out: NDArray) -> None:
        for begin in range(0, len(rows), _PIECE_ROWS):
            wanted = rows[begin : begin + _PIECE_ROWS]
            with reading(self.name, self._format):
                table = self._dataset.take(wanted.tolist(), columns=self._stored_columns)
            self._write(map(flat, table.to_batches()), wanted, out[begin : begin + len(wanted)])


def open_lance(path: str | Path, vector: bool = False) -> LanceSource:
    """Return the source of the newest version of a Lance data set in a folder."""
    lance = require("lance", str(path))
    try:
        dataset = lance.dataset(os.path.abspath(path))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as a Lance data set: {error}") from error
    return LanceSource(dataset, str(path))
