"""Output of results: files of rows, which are written completely or not at all, and JSON on stdout."""

import csv
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cprime._utils.files import NpyWriter, replacing, writable_target
from cprime._utils.messages import require

STDOUT = "-"
ROWS_SUFFIXES = (".npy", ".csv", ".tsv", ".parquet", ".feather")
MODEL_SUFFIXES = (".safetensors",)

# Columns by name: NumPy or Arrow arrays of equal length. A matrix (n, D) is a column of lists, or D columns.
Columns = dict[str, Any]


def check_output(
    path: Path, suffixes: tuple[str, ...], inputs: tuple[Path, ...], checkpoint: Path | None = None
) -> None:
    """Raise ValueError or OSError if the file `path` cannot be written. Commands call this before any computation.

    "-" is standard output, which must not be a terminal for a model.
    suffixes: file suffixes from which the output may choose    inputs: files that the output must not replace
    checkpoint: folder of the fit's checkpoint, in which the output must not be
    """
    if str(path) == STDOUT and suffixes in (ROWS_SUFFIXES, MODEL_SUFFIXES):
        if suffixes == MODEL_SUFFIXES and sys.stdout.isatty():
            raise ValueError("the output - is a terminal, which cannot show a model: expected a file or a pipe")
        return
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"the output {path} must end with {' or '.join(suffixes)}")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(f"the output {path} would replace the input")
    if checkpoint is not None and path.resolve().parent == checkpoint.resolve():
        raise ValueError(f"the output {path} cannot lie in the folder of the checkpoint")
    writable_target(path)
    if path.suffix.lower() in (".parquet", ".feather"):
        require("pyarrow", str(path))


def save_model(estimator: Any, output: Path) -> None:
    """Write a fitted estimator to a model file, or to stdout for "-"."""
    estimator.save(sys.stdout.buffer if str(output) == STDOUT else output)


def is_text(output: str) -> bool:
    """Return whether the rows of an output are written as text."""
    return output == STDOUT or Path(output).suffix.lower() in (".csv", ".tsv")


@contextmanager
def rows_writer(output: str, n_rows: int) -> Iterator[Callable[[Columns], None]]:
    """Yield a function that appends rows to the file `output`, where "-" is stdout.

    The function is called with a dictionary from column names to arrays of equal length, the values of the new rows.
    The file appears under its name once all n_rows rows are written. A .npy file contains an array (n_rows,): of plain
    numbers for one column, or structured for several columns. Files of other formats contain a table.
    """
    if output == STDOUT:
        yield _CsvRows(sys.stdout, ",").write
        return
    suffix = Path(output).suffix.lower()
    with replacing(output) as temporary, ExitStack() as stack:
        if suffix == ".npy":
            writer = NpyWriter(stack.enter_context(temporary.open("wb")), n_rows)
            yield lambda columns: writer.write(_npy_rows(columns))
        elif suffix in (".csv", ".tsv"):
            file = stack.enter_context(temporary.open("w", encoding="utf-8", newline=""))
            yield _CsvRows(file, "\t" if suffix == ".tsv" else ",").write
        else:
            yield _TableRows(temporary, stack).write


class _CsvRows:
    """Writer of lines of separated values, with a header line of column names."""

    def __init__(self, file: Any, separator: str) -> None:
        self._writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        self._begun = False

    def write(self, columns: Columns) -> None:
        found: Columns = {}
        for name, values in columns.items():
            is_matrix = getattr(values, "ndim", 1) == 2
            found |= {str(j): column for j, column in enumerate(values.T)} if is_matrix else {name: values}
        if not self._begun:
            self._writer.writerow(found)
            self._begun = True
        self._writer.writerows(zip(*map(_texts, found.values()), strict=True))


def _npy_rows(columns: Columns) -> np.ndarray:
    """Return n rows for a .npy file as an array (n,): plain for a single column, structured for several columns."""
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    for name, values in arrays.items():
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"a .npy file cannot hold the column {name!r}, which is no numbers: write a .csv or .parquet file"
            )
    if len(arrays) == 1:
        return arrays["label"]
    rows = np.empty(len(arrays["label"]), [(name, array.dtype, array.shape[1:]) for name, array in arrays.items()])
    for name, values in arrays.items():
        rows[name] = values
    return rows


class _TableRows:
    """Writer of an Arrow or Parquet file; the first rows determine the columns and their types."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path, self._stack = path, stack
        self._table: Any = None

    def write(self, columns: Columns) -> None:
        import pyarrow as pa

        table = pa.table({name: as_arrow(values) for name, values in columns.items()})
        if self._table is None:
            self._table = self._stack.enter_context(_arrow_writer(self._path, table.schema))
        self._table.write_table(table)


def _arrow_writer(path: Path, schema: Any) -> Any:
    if path.suffix.lower() == ".parquet":
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(path, schema)
    from pyarrow import ipc

    return ipc.new_file(str(path), schema, options=ipc.IpcWriteOptions(compression="lz4"))


def as_arrow(values: Any) -> Any:
    """Return a column as an Arrow array; the rows of a matrix are lists."""
    import pyarrow as pa

    if not isinstance(values, np.ndarray):
        return values
    return pa.array(values) if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(values.ravel(), values.shape[1])


def _texts(values: Any) -> list[Any]:
    """Return the values of a column as a list for text output, numbers with all significant digits, lists as JSON."""
    if isinstance(values, np.ndarray):
        return [f"{value:.9g}" for value in values.tolist()] if values.dtype == np.float32 else values.tolist()
    from pyarrow import string, types

    if types.is_nested(values.type):
        return [None if value is None else json.dumps(value, default=str) for value in values.to_pylist()]
    return values.cast(string()).to_pylist()


def print_json(result: dict[str, Any]) -> None:
    """Print one JSON object to stdout; NaN and infinities become null."""
    sys.stdout.write(json.dumps(_plain(result), allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
