"""Conversion of Dask series and dataframes with lists of numbers to Dask arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.number_types import is_narrow
from cprime.sources.kinds import precision
from cprime.sources.tables import TableSource, has_lists, matrix_of_lists, table_of


def rows_of_lists(X: Any) -> Any:
    """Return a Dask dataframe's or series' column of lists as a Dask array; without lists, return X unchanged.

    Raises ValueError if there are other numeric columns beside the lists, or if Dask has converted lists to text.
    """
    if not hasattr(X, "to_delayed") or not hasattr(X, "dtypes"):
        return X
    frame = X.to_frame(X.name or "values") if X.ndim == 1 else X
    if all(getattr(dtype, "kind", "O") in "biuf" for dtype in frame.dtypes):
        return X
    first = frame.head(1, npartitions=-1)
    if not has_lists(first):
        _check_text(first)
        return X
    rows = TableSource(first).select(None)
    column = [name for name in frame.columns if [str(name)] == rows._stored_columns]
    return _array(frame[column], rows.n_features, rows.stored)


def _array(frame: Any, width: int, dtype: np.dtype) -> Any:
    import dask.array as da
    from dask import delayed

    lengths = frame.map_partitions(len).compute()
    parts = [
        da.from_delayed(delayed(_matrix)(part, width, dtype), (int(n), width), dtype)
        for part, n in zip(frame.to_delayed(), lengths, strict=True)
    ]
    return da.concatenate(parts)


def _matrix(table: Any, width: int, dtype: np.dtype) -> NDArray:
    """Return a partition's lists of numbers as a matrix (n, width); raise ValueError if a length or type differs."""
    if not len(table):
        return np.empty((0, width), dtype)
    found = matrix_of_lists(table_of(table))
    holds = found.dtype == dtype if is_narrow(dtype) else np.result_type(precision([found.dtype]), dtype) == dtype
    if found.shape[1] != width or not holds:
        raise ValueError(
            f"X must have lists of {width} numbers of {dtype}, as in its first row, got a partition of lists of "
            f"{found.shape[1]} of {found.dtype}."
        )
    return found.astype(dtype, copy=False)


def _check_text(first: Any) -> None:
    for name in first.columns:
        values = [value for value in first[name] if isinstance(value, str)]
        if any(value.startswith("[") for value in values):
            raise ValueError(
                f"X must hold numbers or lists of them, and column {name!r} is text such as {values[0][:20]!r}: if "
                "Dask has converted lists to text, create the collection under "
                "dask.config.set({'dataframe.convert-string': False})."
            )
