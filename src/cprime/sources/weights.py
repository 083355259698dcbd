"""Weights of rows from a column, a file or an array, which are checked in one pass before use."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from cprime._utils.number_types import check_total_weight
from cprime.sources.arrays import ArraySource
from cprime.sources.base import Source

IN_MEMORY = "sample_weight"  # name used in messages for weights that are not from a file


def weighted(source: Source, spec: Any) -> Source:
    """Return `source` with the weights that `spec` gives: an array, a file's path, a column's name, or None."""
    new = source._copy()
    new._weights = new._weights_spec = None
    if spec is None:
        return new
    if isinstance(spec, str | os.PathLike):
        new._weights_spec = spec if spec in (source._names or ()) else os.path.abspath(spec)
    if isinstance(spec, str) and spec in (source._names or ()):
        kept = [name for name in source._stored_columns or () if name != spec]
        new, column = new.select(kept), new.select([spec])
    elif isinstance(spec, str | os.PathLike):
        column = _read_column(source, spec)
    else:
        column = _from_array(source, spec)
    new._weights = column.as_type(np.float64).with_chunk_rows(None)
    _check(new._weights, source)
    return new


def _read_column(source: Source, path: str | os.PathLike) -> Source:
    from cprime.sources.opening import SUFFIXES, open_path

    if isinstance(path, str) and Path(path).suffix.lower() not in SUFFIXES and not Path(path).exists():
        columns = "" if source.columns is None else f", one of its columns {source.columns!r}"
        raise ValueError(f"sample_weight must be an array, a file{columns} or None, got {path!r}.")
    column = open_path(path, vector=True).select(None)
    if column.n_features != 1:
        raise ValueError(f"sample_weight must be one column, {path} has {column.n_features}")
    return column


def _from_array(source: Source, values: Any) -> Source:
    array = np.asarray(values)
    if array.shape != (source.n_rows,):
        raise ValueError(f"sample_weight must have the shape ({source.n_rows},), got {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"sample_weight must be numeric, got values of type {array.dtype}.")
    return ArraySource(array, IN_MEMORY, vector=True)


def _check(weights: Source, source: Source) -> None:
    """Raise ValueError unless there is one finite weight >= 0 for each row, and at least one weight is positive."""
    if weights.n_rows != source.n_rows:
        raise ValueError(
            f"sample_weight must have one value for each row: {weights.name} has {weights.n_rows} rows, "
            f"{source.name} has {source.n_rows}"
        )
    begin, total = 0, 0.0
    for size in weights.sizes:
        block = weights.read(begin, begin + size)[:, 0]
        wrong = np.flatnonzero(~(np.isfinite(block) & (block >= 0)))
        if len(wrong):
            where = weights._where(begin + int(wrong[0]))
            named = where if weights.name == IN_MEMORY else f"sample_weight of {where}"
            raise ValueError(f"{named} is {block[wrong[0]]}, weights must be finite and not negative")
        with np.errstate(over="ignore"):
            total += float(block.sum())
        begin += size
    if total == 0:
        raise ValueError("sample_weight must have at least one positive entry, got zeros only.")
    check_total_weight(total)
