"""Writing results: labels to files, whole or not at all, and one JSON object for machines."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cprime._files import replacing, writable_target
from cprime.sources.optional import require

LABEL_SUFFIXES = (".npy", ".csv", ".parquet", ".feather")
MODEL_SUFFIXES = (".safetensors",)


def check_output(
    path: Path, suffixes: tuple[str, ...], inputs: tuple[Path, ...], checkpoint: Path | None = None
) -> None:
    """Raise ValueError or OSError if `path` cannot take a result: to be asked before the work begins.

    checkpoint: a folder that takes nothing else
    """
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


@contextmanager
def label_writer(path: Path, n_rows: int) -> Iterator[Callable[[np.ndarray], None]]:
    """What appends labels, int32, to a file that comes to be once all n_rows are written.

    A .npy file has the array (n_rows,), a table the one column ``label``.
    """
    with replacing(path) as temporary:
        writer = {".npy": _npy_writer, ".csv": _csv_writer}.get(path.suffix.lower(), _table_writer)
        with writer(temporary, n_rows) as write:
            yield write


@contextmanager
def _npy_writer(path: Path, n_rows: int) -> Iterator[Callable[[np.ndarray], None]]:
    kind = np.dtype(np.int32)
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (n_rows,)}
        np.lib.format.write_array_header_1_0(file, header)
        yield lambda labels: _append(file, labels.astype(kind, copy=False))


@contextmanager
def _csv_writer(path: Path, n_rows: int) -> Iterator[Callable[[np.ndarray], None]]:
    with path.open("w", encoding="ascii", newline="") as file:
        file.write("label\n")
        yield lambda labels: np.savetxt(file, labels, fmt="%d")


@contextmanager
def _table_writer(path: Path, n_rows: int) -> Iterator[Callable[[np.ndarray], None]]:
    import pyarrow as pa

    schema = pa.schema([("label", pa.int32())])
    if path.suffix.lower() == ".parquet":
        from pyarrow.parquet import ParquetWriter

        opened = ParquetWriter(path, schema)
    else:
        opened = pa.ipc.new_file(str(path), schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))
    with opened as table:
        yield lambda labels: table.write_table(pa.table({"label": labels}, schema=schema))


def _append(file: Any, labels: np.ndarray) -> None:
    file.write(labels.tobytes())


def print_json(result: dict[str, Any]) -> None:
    """One JSON object on stdout; numbers that JSON does not have become null."""
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
