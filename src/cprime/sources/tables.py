"""Sources of tables in memory: pandas, polars, pyarrow, and others that become tables of pyarrow."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.files import Stamp
from cprime._utils.messages import require
from cprime._utils.number_types import is_bfloat16
from cprime.sources.arrays import ArraySource
from cprime.sources.base import Source
from cprime.sources.columns import check_names, flat, kind_of_type, matrix_of, values_of, width_of
from cprime.sources.kinds import (
    NUMERIC_COLUMNS,
    Kind,
    Lists,
    any_lists,
    index_columns,
    kind_of,
    kind_of_objects,
    library_of,
    listed,
    not_numeric,
    precision,
)

_NESTED = re.compile(r"(lists|arrays) of |(large_|fixed_size_)?list(_view)?<|struct|map<", re.IGNORECASE)


class TableSource(ArraySource):
    """Source of a table's numeric columns, copied to a matrix when they are chosen, or of its column of lists."""

    def __init__(self, table: Any, name: str = "X", files: Sequence[Stamp] = ()) -> None:
        names = _names(table)
        check_names(name, names)
        Source.__init__(self, name, len(table), kinds(table), names, files)
        if library_of(table) == "pyarrow":
            self._index = index_columns(table.schema, "X")
        self._table = table

    def _settle(self) -> None:
        super()._settle()
        if self._list is not None:
            self._array = self._matrix(self._positions[0])
            return
        self._array = np.empty(self.shape, self.dtype)
        for k, j in enumerate(self._positions):
            self._array[:, k] = _values(self._table, j, self._array.dtype)

    def as_stored(self, columns: Sequence[str] | None = None, as_text: bool = False) -> Self:
        if library_of(self._table) != "pyarrow":
            return super().as_stored(columns, as_text)
        new = self._copy()
        new._chosen, new._list = self._numbers(self._names or () if columns is None else columns), None
        new._reads_text = True
        return new

    def read_stored(self, begin: int, end: int) -> dict[str, Any]:
        if not self._reads_text:
            return super().read_stored(begin, end)
        columns = [self._table.column(j).slice(begin, end - begin).combine_chunks() for j in self._positions]
        return dict(zip(self._stored_columns or (), columns, strict=True))

    def _matrix(self, j: int) -> NDArray:
        """Return column j, whose values are lists, as a matrix with one row per list; a view if no copy is needed."""
        if not len(self._table):
            raise ValueError(f"{self.name} must have at least one row, got none")
        pieces = _lists(self._table, j)
        width = next((width for width in map(width_of, pieces) if width is not None), None)
        self._know_width(width)
        assert width is not None
        found, begin = [], 0
        for piece in pieces:
            found.append(matrix_of(piece, width, lambda row, begin=begin: self._where(begin + row)))  # type: ignore[misc]
            begin += len(piece)
        self._list = Lists(np.result_type(*found), width)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _pick(self, block: NDArray) -> NDArray:
        return block


def kinds(table: Any) -> list[Kind]:
    """Return the types of a table's columns. The type of a column of Python objects is determined from its values."""
    known: dict[Any, Kind] = {}
    found = []
    for j, dtype in enumerate(table.schema.types if library_of(table) == "pyarrow" else table.dtypes):
        if dtype not in known or dtype == np.dtype(object):
            known[dtype] = _kind(table, j)
        found.append(known[dtype])
    return found


def table_of(data: Any) -> Any:
    """Return a table, series or batch of pandas, polars or pyarrow, or another table, as a table; None for other data.

    Other tables are structured arrays of NumPy, tables of astropy, data sets of Hugging Face, and objects that export
    Arrow streams, such as results of DuckDB. They become tables of pyarrow. A stream can be read only once. Fields of
    structures are columns of their own. Arrays that export streams, such as those of xarray, are no tables.
    """
    kind, library = type(data).__name__, library_of(data)
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return table_of_columns({name: data[name] for name in data.dtype.names})
    if library == "astropy" and hasattr(data, "colnames"):
        return table_of_columns({name: data[name] for name in data.colnames})
    if library == "datasets" and hasattr(data, "with_format"):
        return table_of(data.with_format("arrow")[:])
    if library not in ("pandas", "polars", "pyarrow"):
        exports = library not in ("dask", "xarray") and hasattr(data, "__arrow_c_stream__")  # xarray's are long tables
        return flat(require("pyarrow", "an Arrow stream").table(data)) if exports else None
    if kind == "LazyFrame":
        return table_of(data.collect())
    if kind == "Series":
        return data.to_frame("values")
    if library == "pyarrow" and (kind in ("RecordBatch", "RecordBatchReader") or hasattr(data, "type")):
        import pyarrow as pa

        if kind == "RecordBatchReader":
            return flat(data.read_all())
        return flat(pa.Table.from_batches([data]) if kind == "RecordBatch" else pa.table({"values": data}))
    if len(getattr(data, "shape", ())) != 2:
        return None
    if library == "polars" and any(dtype.base_type().__name__ == "Struct" for dtype in data.dtypes):
        data = data.to_arrow()
    return flat(data) if library_of(data) == "pyarrow" else data


def table_of_columns(columns: Mapping[str, Any]) -> Any:
    """Return columns as a table of pyarrow: masked values are missing, and several values in each row are lists.

    columns: arrays (n,) or (n, …) by name, which may be masked or have units; values that are not numbers become text
    """
    pa = require("pyarrow", "a table of arrays")
    found = {}
    for name, column in columns.items():
        values, mask = np.asarray(column), np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else None
        if values.dtype.kind not in "biuf":
            found[name] = pa.array([str(value) for value in values])
            continue
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        flattened = pa.array(values.ravel(), mask=None if mask is None else mask.ravel())
        width = math.prod(values.shape[1:])
        found[name] = flattened if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flattened, width)
    return pa.table(found)


def open_fits(path: str | Path, key: str | None = None, vector: bool = False) -> TableSource:
    """Return the source of a table in a FITS file, which is read into memory; key: its name or number in the file."""
    fits = require("astropy.io.fits", str(path))
    table, stamp = require("astropy.table", str(path)), Stamp.from_path(path)
    try:
        with fits.open(path) as units:
            tables = {
                str(unit.name or n): n for n, unit in enumerate(units) if getattr(unit, "columns", None) is not None
            }
            numbers = {str(n): n for n in tables.values()}
            if key is not None and key not in tables | numbers:
                raise ValueError(f"it has no table {key!r}; it has {listed(list(tables))}")
            if key is None and len(tables) != 1:
                raise ValueError(f"it has {len(tables)} tables: choose with key= from {listed(list(tables))}")
            number = next(iter(tables.values())) if key is None else (numbers | tables)[key]
            columns = table.Table.read(units, hdu=number)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as a FITS table: {error}") from error
    return TableSource(table_of(columns), str(path), (stamp,))


def has_lists(table: Any) -> bool:
    """Return whether a column of a table holds lists of numbers."""
    return not _is_plain(table) and any_lists(kinds(table))


def numbers_of(table: Any, name: str = "X") -> Any:
    """Return the table with columns of Python objects converted to numbers.

    Raises ValueError, naming the columns and their types, if columns are not numeric.
    """
    if _is_plain(table) or not len(table):
        return table
    found = numeric_kinds(table, name)
    if library_of(table) != "pandas" or not any(dtype == np.dtype(object) for dtype in table.dtypes):
        return table
    table = table.copy(deep=False)
    for j, kind in enumerate(found):
        column = table.iloc[:, j]
        if column.dtype == np.dtype(object):
            dtype = kind if isinstance(kind, np.dtype) and column.notna().all() else precision([kind])
            table.isetitem(j, _values(table, j, dtype))
    return table


def numeric_kinds(table: Any, name: str = "X", remedy: str = NUMERIC_COLUMNS) -> list[Kind]:
    """Return the types of the columns of a table; raise ValueError, with names and types, if some are not numeric."""
    found = kinds(table)
    _refuse(table, found, [j for j, kind in enumerate(found) if isinstance(kind, str)], name, remedy)
    return found


def refuse_nested(table: Any, name: str = "X") -> None:
    """Raise ValueError, with names and types of the columns, if there are lists or structures that hold no numbers."""
    if not _is_plain(table):
        found = kinds(table)
        _refuse(table, found, [j for j, kind in enumerate(found) if _NESTED.match(str(kind))], name)


def _refuse(table: Any, found: list[Kind], columns: list[int], name: str, remedy: str = NUMERIC_COLUMNS) -> None:
    """Raise ValueError, with names and types, if there are any unsuitable columns.

    found: types of all columns    columns: positions of the unsuitable ones    remedy: end of the message
    """
    if columns:
        names = _names(table)
        raise ValueError(f"{name}: {not_numeric([(names[j], str(found[j])) for j in columns])}; {remedy}")


def _is_plain(table: Any) -> bool:
    """Return whether a table is a pandas table in which all columns have a numeric type."""
    return library_of(table) == "pandas" and all(getattr(dtype, "kind", "O") in "biuf" for dtype in set(table.dtypes))


def matrix_of_lists(table: Any) -> NDArray:
    """Return a table's only column of lists as a matrix, if the table has no numeric column."""
    return TableSource(table).select(None)._array


def _names(table: Any) -> list[str]:
    return [str(name) for name in (table.column_names if library_of(table) == "pyarrow" else table.columns)]


def _kind(table: Any, j: int) -> Kind:
    """Return the type of column j, or the type's name if it is not numeric."""
    if library_of(table) == "pyarrow":
        return kind_of_type(table.column(j).type)
    if library_of(table) == "pandas":
        dtype = table.dtypes.iloc[j]
        if hasattr(dtype, "pyarrow_dtype") and dtype.kind == "O":
            return kind_of_type(dtype.pyarrow_dtype)
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            return _kind_of_objects(table.iloc[:, j])
        if getattr(dtype, "kind", "O") not in "biuf":
            return str(dtype)
        return kind_of(np.dtype(getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))))
    dtype = table.dtypes[j]
    if dtype.base_type().__name__ in ("List", "Array"):
        return kind_of_type(table.to_series(j).head(0).to_arrow().type)
    if not (dtype.is_numeric() or str(dtype) == "Boolean"):
        return str(dtype)
    return kind_of(table.to_series(j).head(0).to_numpy().dtype) if not dtype.is_decimal() else np.dtype(np.float64)


def _values(table: Any, j: int, dtype: np.dtype) -> NDArray:
    """Return the values of column j; missing ones are NaN."""
    if library_of(table) == "pyarrow":
        return values_of(table.column(j))
    if library_of(table) == "pandas":
        return table.iloc[:, j].to_numpy(dtype=dtype, na_value=np.nan)
    from polars import Float32, Float64

    return table.to_series(j).cast(Float32 if dtype == np.float32 else Float64).to_numpy()


def _kind_of_objects(column: Any) -> Kind:
    """Return the type of a pandas column of Python objects: a numeric type, `Lists`, or a str for anything else."""
    values = column[column.notna().to_numpy()].to_numpy()
    value = values[0] if len(values) else None
    if not isinstance(value, np.ndarray | list | tuple):
        return kind_of_objects(values)
    found = np.asarray(value)
    if found.ndim != 1:
        return f"arrays of shape {found.shape}"
    if is_bfloat16(found.dtype):
        return Lists(np.dtype(np.float32))
    return Lists(found.dtype) if found.dtype.kind in "biuf" else f"lists of {found.dtype.name}"


def _of_pandas(column: Any, pa: Any) -> Any:
    """Return a pandas column as an Arrow array; bfloat16, which Arrow does not have, becomes float32."""
    if any(isinstance(value, np.ndarray) and is_bfloat16(value.dtype) for value in column):
        return pa.array([value.astype(np.float32) if isinstance(value, np.ndarray) else value for value in column])
    return pa.array(column)


def _lists(table: Any, j: int) -> list[Any]:
    """Return column j, whose values are lists, as a list of Arrow arrays, which follow one another."""
    pa = require("pyarrow", "a column of lists")
    if library_of(table) == "pyarrow":
        return table.column(j).chunks
    try:
        column = _of_pandas(table.iloc[:, j], pa) if library_of(table) == "pandas" else table.to_series(j).to_arrow()
    except pa.ArrowException as error:
        raise ValueError(f"X: lists of column {_names(table)[j]!r} must be numbers of one type: {error}") from error
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]
