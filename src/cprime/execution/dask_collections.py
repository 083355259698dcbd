"""Data from Dask arrays and dataframes, on the cluster of the current client or computed chunk by chunk locally.

Dask series and dataframes with lists of numbers become Dask arrays.
"""

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.number_types import is_narrow
from cprime.execution.base import Data
from cprime.execution.dask_tasks import hashes
from cprime.execution.local import Local
from cprime.sources import Source
from cprime.sources.kinds import kind_of, library_of, precision
from cprime.sources.tables import TableSource, has_lists, matrix_of_lists, numeric_kinds, table_of

_SAMPLE_ROWS = 1000  # number of rows read to find the types of values in columns of Python objects


def collected(X: Any, sample_weight: Any, dtype: Any, columns: list[str] | None) -> Data:
    """Return a `Data` object for a Dask array or dataframe, on the cluster of the current client if there is one.

    dtype: data type of a fitted estimator, for predictions; None for a fit, which uses float32 if this type can
        represent all numbers of the collection's type, otherwise float64
    """
    rows = _as_array(X, "X")
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"X must have rows and columns, got a Dask collection of shape {rows.shape}.")
    if isinstance(kind_of(rows.dtype), str):
        raise ValueError(f"X must hold numbers, got a Dask collection of {rows.dtype}.")
    if rows.numblocks[1] > 1:
        rows = rows.rechunk({1: -1})
    fitting = dtype is None
    dtype = precision([rows.dtype]) if fitting else dtype
    weights = None if sample_weight is None else _weights(sample_weight, rows)
    rows, weights = _without_empty(rows, weights)
    client = _current_client()
    if client is not None:
        from cprime.execution.distributed import Distributed

        return Distributed(rows, weights, dtype, client, columns)
    return Local(DaskSource(rows, weights, dtype, columns), spread=fitting)


def _as_array(X: Any, name: str) -> Any:
    """Return X as a Dask array with chunks of known sizes."""
    if hasattr(X, "to_dask_array"):
        return _numeric(X, name).to_dask_array(lengths=True)
    if np.isnan(X.shape[0]):
        X = X.copy()
        X.compute_chunk_sizes()
    return X


def _numeric(X: Any, name: str) -> Any:
    """Return a Dask dataframe or series with its columns converted to NumPy's number types.

    Other numeric types, and bool columns beside columns of numbers, become floats.
    Raises ValueError, naming the columns and their types, if columns are not numeric.
    """
    frame = X.to_frame(X.name or "values") if X.ndim == 1 else X
    dtypes = list(frame.dtypes)
    plain = all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes)
    if plain and len({dtype.kind == "b" for dtype in dtypes}) < 2:
        return X
    has_objects = any(isinstance(dtype, np.dtype) and dtype.kind == "O" for dtype in dtypes)
    sample = frame.head(_SAMPLE_ROWS, npartitions=-1) if has_objects else frame._meta
    return X.astype(precision(numeric_kinds(sample, name, f"choose numeric columns with {name}[[...]]")))


def _weights(sample_weight: Any, rows: Any) -> Any:
    """Return the weights as a Dask array with the chunks of the rows."""
    import dask.array as da

    if library_of(sample_weight) == "dask":
        weights = _as_array(sample_weight, "sample_weight")
    else:
        weights = da.from_array(np.asarray(sample_weight, dtype=np.float64), chunks=-1)
    if weights.shape != (rows.shape[0],):
        raise ValueError(f"sample_weight must have the shape ({rows.shape[0]},), got {weights.shape}.")
    if not bool((weights > 0).any()):
        raise ValueError("sample_weight must have at least one positive entry, got none.")
    return weights.rechunk((rows.chunks[0],))


def _without_empty(rows: Any, weights: Any) -> tuple[Any, Any]:
    """Return the Dask arrays of rows (n, D) and of weights (n,) or None, without their empty chunks."""
    import dask.array as da

    full = [i for i, n in enumerate(rows.chunks[0]) if n]
    if len(full) == rows.numblocks[0]:
        return rows, weights
    rows = da.concatenate([rows.blocks[i] for i in full])
    return rows, None if weights is None else da.concatenate([weights.blocks[i] for i in full])


def _current_client() -> Any:
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        client = default_client()
    except ValueError:
        return None
    if client.status in ("closing", "closed"):
        raise RuntimeError(
            f"the current client of Dask is closed: {client!r}. Create another client, or leave the block of this one."
        )
    return client


class DaskSource(Source):
    """Source that reads the chunks of a Dask array; Dask's schedulers compute each one when it is read."""

    sizes: tuple[int, ...] = ()
    _keeps_narrow = True

    def __init__(self, rows: Any, weights: Any, dtype: Any, columns: list[str] | None):
        super().__init__("X", rows.shape[0], (rows.dtype,) * rows.shape[1], columns)
        self._dtype = np.dtype(dtype)
        self._rows, self.sizes = rows, tuple(int(n) for n in rows.chunks[0])
        if weights is not None:
            self._weights = self.with_weights(weights.compute())._weights

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        out[...] = self._rows[begin:end].compute()

    def _gather(self, rows: NDArray[np.int64], out: NDArray) -> None:
        out[...] = self._rows[rows].compute()

    def fingerprint(self) -> bytes:
        """Return a hash of the data, the same as on a cluster, so that a fit can be resumed with or without one."""
        found, begin = blake2b(digest_size=32), 0
        for i, n in enumerate(self.sizes):
            weights = self.weights(begin, begin + n)
            rows = self._rows.blocks[i].compute()
            found.update(b"".join(hashes([rows], None if weights is None else [weights], begin, self.dtype)))
            begin += n
        return found.digest()


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
