"""Tables with named columns, read by pyarrow: .csv, .parquet and .feather."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cprime.cli.errors import say
from cprime.cli.files import Data, Request, common_dtype, select

_ROWS = 1 << 16


def require_pyarrow() -> ModuleType:
    """The package that reads and writes tables, or an ImportError that says how to get it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError('tables need pyarrow, which is missing: pip install "cprime[tables]"') from error
    return pyarrow


def read_table(path: Path, request: Request) -> Data:
    """The numeric columns of a table that `request` asks for, as a matrix in memory."""
    pa = require_pyarrow()
    try:
        if path.suffix.lower() == ".csv":
            table, names = _read_csv(path, request)
        else:
            table, names = _read_binary(path, request)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as a {path.suffix} file: {error}") from error
    _check_numeric(path, table)
    weights = None
    if request.sample_weight is not None:
        weights = _matrix(table.select([request.sample_weight]), np.dtype(np.float64))[:, 0]
    table = table.select(names)
    dtypes = [dtype for field in table.schema if (dtype := _numpy_dtype(field.type)) is not None]
    dtype = np.dtype(request.dtype) if request.dtype else common_dtype(dtypes)
    return Data(_matrix(table, dtype), names, weights)


def _read_csv(path: Path, request: Request) -> tuple[Any, list[str]]:
    """A table with float64 columns, and the names of those that are data.

    The types are given, not guessed from the first block of the file. Where a value does not convert, the
    columns come back as text for `_check_numeric` to find it.
    """
    import pyarrow as pa
    from pyarrow import csv

    with csv.open_csv(path) as reader:
        names = reader.schema.names
    has_header = _is_header(names) if request.header is None else request.header
    options = {}
    if not has_header:
        names = [str(j) for j in range(len(names))]
        options = {"column_names": names}
        say("note", f"{path} is read without a header: its columns are called 0 to {len(names) - 1}")
    elif names[0] == "" and "" not in request.drop and request.columns is None:
        say(
            "note",
            f"the first column of {path} has no name (an index?) and counts as data; --drop '' leaves it out",
        )
    wanted, needed = _columns(path, names, request)

    def read(column_type: Any) -> Any:
        convert = csv.ConvertOptions(
            include_columns=needed,
            column_types=dict.fromkeys(needed, column_type),
            strings_can_be_null=True,
        )
        return csv.read_csv(path, read_options=csv.ReadOptions(**options), convert_options=convert)

    try:
        return read(pa.float64()), wanted
    except pa.ArrowInvalid as error:
        if "conversion error" not in str(error):
            raise
        return read(pa.string()), wanted


def _is_header(names: list[str]) -> bool:
    """Whether the first line of a .csv file names columns: not all are numbers, or they count 0, 1, 2 …"""
    return names == [str(j) for j in range(len(names))] or not all(map(_is_number, names))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_binary(path: Path, request: Request) -> tuple[Any, list[str]]:
    """A table of the columns asked for as they were stored, and the names of those that are data."""
    if path.suffix.lower() == ".parquet":
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path, memory_map=True) as file:
            wanted, needed = _columns(path, file.schema_arrow.names, request)
            return file.read(columns=needed), wanted
    from pyarrow import feather

    table = feather.read_table(path, memory_map=True)
    wanted, needed = _columns(path, table.column_names, request)
    return table.select(needed), wanted


def _columns(path: Path, names: list[str], request: Request) -> tuple[list[str], list[str]]:
    """The names of the columns that are data, and of those to read: with the one that holds the weights."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path} has more than one column {name!r}")
    wanted = select(path, names, request)
    if request.sample_weight is None:
        return wanted, wanted
    select(path, names, replace(request, columns=(request.sample_weight,)))
    return wanted, [*wanted, request.sample_weight]


def _check_numeric(path: Path, table: Any) -> None:
    """Raise for the first column that is not numeric, with its first such value and the row of it."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if _numpy_dtype(column.type) is not None:
            continue
        if path.suffix.lower() == ".csv":
            kind, found = "", _first_text(column)
        else:
            kind = f" (it has the type {column.type})"
            found = next(((row, value.as_py()) for row, value in enumerate(column) if value.is_valid), None)
        if found is not None:
            raise ValueError(
                f"{path}: column {name!r} is not numeric{kind}: row {found[0]} has {_short(found[1])} "
                "(the first is row 0)"
            )
        if kind:
            raise ValueError(f"{path}: column {name!r} is not numeric{kind}")


def _first_text(column: Any) -> tuple[int, str] | None:
    """The row and the value of the first entry of a text column that is not a number."""
    import pyarrow as pa
    from pyarrow import compute

    start = 0
    for chunk in column.chunks:
        trimmed = compute.utf8_trim_whitespace(chunk)
        try:
            trimmed.cast(pa.float64())
        except pa.ArrowInvalid:
            for row, value in enumerate(trimmed):
                try:
                    value.cast(pa.float64())
                except pa.ArrowInvalid:
                    return start + row, chunk[row].as_py()
        start += len(chunk)
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _numpy_dtype(kind: Any) -> np.dtype | None:
    """The dtype that holds an Arrow type, None for one that is not numeric."""
    from pyarrow import types

    if types.is_decimal(kind):
        return np.dtype(np.float64)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    return None


def _matrix(table: Any, dtype: np.dtype) -> np.ndarray:
    """The columns of a table side by side, (rows, columns) in C order; null becomes NaN."""
    import pyarrow as pa

    X = np.empty((table.num_rows, table.num_columns), dtype=dtype)
    start = 0
    for batch in table.to_batches(max_chunksize=_ROWS):
        for j, column in enumerate(batch.columns):
            values = column if pa.types.is_floating(column.type) else column.cast(pa.float64(), safe=False)
            X[start : start + batch.num_rows, j] = values.to_numpy(zero_copy_only=False)
        start += batch.num_rows
    return X
