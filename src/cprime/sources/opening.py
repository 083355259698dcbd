"""From what a caller names to a source: by type, or by the ending of a path."""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cprime.sources.arrays import ArraySource
from cprime.sources.base import Source
from cprime.sources.mapped import open_memmap

# Ending: the file of this room that reads it, its opener, whether it takes a key.
_OPENERS = {
    ".npy": ("mapped", "open_npy", False),
    ".npz": ("arrays", "NpzSource", True),
}
SUFFIXES = tuple(_OPENERS)


def open_data(
    data: Any, *, columns: Sequence[str | int] | None = None, key: str | None = None, chunk_rows: int | None = None
) -> Source:
    """Open data for reading row by row.

    Parameters
    ----------
    data : path, array, table or Source
        What holds the rows.
    columns : sequence of str or int, default=None
        Which columns, in which order: names for tables, numbers for arrays. All by default.
    key : str, default=None
        Which array of an .npz, HDF5 or Zarr file; not needed where only one fits.
    chunk_rows : int, default=None
        Rows of a chunk. By default as many as fit in 128 MiB; what is in memory is one chunk.

    Returns
    -------
    Source

    Raises
    ------
    ValueError
        If there is no matrix of real numbers with at least one row and one column.
    FileNotFoundError
        If the path does not exist.
    ImportError
        If the library that reads the format is missing; the message says how to get it.
    """
    if isinstance(data, Source):
        source = data if columns is None else data.select(columns)
        if key is not None:
            raise ValueError(f"key names an array of a file, got an open source, {data.name}.")
        return source if chunk_rows is None else source.with_chunk_rows(chunk_rows)
    if isinstance(data, str | os.PathLike):
        source = open_path(data, key)
    else:
        if key is not None:
            raise ValueError(f"key names an array of a file, got {type(data).__name__}.")
        source = _open_object(data)
    source = source.select(columns)
    if source.n_rows == 0:
        raise ValueError(f"{source.name} must have at least one row, got none")
    return source if chunk_rows is None else source.with_chunk_rows(chunk_rows)


def open_path(path: str | os.PathLike, key: str | None = None, vector: bool = False) -> Source:
    """The source of a file or folder; where a `vector` is looked for, arrays may have one axis."""
    path = Path(path)
    suffix = path.suffix.lower()
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if suffix not in _OPENERS:
        raise ValueError(f"{path} has an unknown ending {suffix!r}: expected one of {', '.join(_OPENERS)}")
    module, opener, has_keys = _OPENERS[suffix]
    if key is not None and not has_keys:
        raise ValueError(f"key names an array of a file that holds several, got {path}")
    options: dict[str, Any] = {"key": key} if has_keys else {}
    open_file: Callable[..., Source] = getattr(import_module(f"cprime.sources.{module}"), opener)
    return open_file(path, vector=vector, **options)


def is_source_like(data: Any) -> bool:
    """Whether `open_data` opens this as something else than an array or a table in memory.

    Parameters
    ----------
    data : object
        What a caller passed as data.

    Returns
    -------
    bool
        True for paths, memory maps, sources, and the arrays and data sets of Zarr, h5py and pyarrow.
    """
    return isinstance(data, str | os.PathLike | np.memmap | Source)


def _open_object(data: Any) -> Source:
    if isinstance(data, np.memmap):
        return open_memmap(data) or ArraySource(data, mapped=getattr(data, "_mmap", None) is not None)
    return ArraySource(np.asarray(data))
