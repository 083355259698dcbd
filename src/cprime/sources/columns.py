"""Conversion of Arrow columns to NumPy: column types, and Arrow batches to the rows of a matrix."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.sources.kinds import FILL_MISSING, Kind, Lists

_LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")


def has_numbers(kind: Any) -> bool:
    """Return whether values of an Arrow type are numbers or booleans, or all missing."""
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind)


def kind_of_type(kind: Any) -> Kind:
    """Return the NumPy type for an Arrow type, `Lists` for lists of numbers, or the name of any other type."""
    from pyarrow import types

    if types.is_decimal(kind):
        return np.dtype(np.float64)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    tests = [getattr(types, f"is_{name}", None) for name in _LISTS]  # None if the installed Arrow lacks a type
    if any(test is not None and test(kind) for test in tests):
        inner = kind_of_type(kind.value_type)
        width = kind.list_size if types.is_fixed_size_list(kind) else None
        return Lists(inner, width) if isinstance(inner, np.dtype) else str(kind)
    return str(kind)


def leaf_types(schema: Any) -> list[tuple[str, Any, int]]:
    """Return the columns of an Arrow schema with the fields of structures as columns of their own.

    Each is a triple: name ("a.b" for the field b of a structure a), type (lists, for tensors of fixed shape), and
    position in the schema of the column that contains it.
    """
    return [leaf for j, field in enumerate(schema) for leaf in _leaf_types(field.name, field.type, j)]


def _leaf_types(name: str, kind: Any, j: int) -> Iterator[tuple[str, Any, int]]:
    from pyarrow import types

    if types.is_struct(kind):
        for field in kind:
            yield from _leaf_types(f"{name}.{field.name}", field.type, j)
    else:
        yield name, kind.storage_type if _is_tensor(kind) else kind, j


def _is_tensor(kind: Any) -> bool:
    return getattr(kind, "extension_name", None) == "arrow.fixed_shape_tensor"


def common_types(types: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return an Arrow type for each column that can represent its values of all given types; text if no other can.

    types: Arrow types by the names of columns, the same names in each dictionary
    """
    import pyarrow as pa

    found = {}
    for name in types[0]:
        kinds = [pa.schema({name: kind}) for kind in {each[name] for each in types}]
        try:
            found[name] = pa.unify_schemas(kinds, promote_options="permissive").field(0).type
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            found[name] = pa.string()
    return found


def is_flat(schema: Any) -> bool:
    """Return whether no column of an Arrow schema is a structure or a tensor, so that `flat` changes nothing."""
    from pyarrow import types

    return not any(types.is_struct(kind) or _is_tensor(kind) for kind in set(schema.types))


def flat(table: Any) -> Any:
    """Return an Arrow table or batch with the columns that `leaf_types` describes."""
    if is_flat(table.schema):
        return table
    columns = [column for j in range(table.num_columns) for column in _leaves(table.column(j))]
    return type(table).from_arrays(columns, names=[name for name, _, _ in leaf_types(table.schema)])


def _leaves(column: Any) -> Iterator[Any]:
    from pyarrow import types

    if types.is_struct(column.type):
        for values in column.flatten():
            yield from _leaves(values)
    else:
        yield column.cast(column.type.storage_type) if _is_tensor(column.type) else column


def values_of(column: Any) -> NDArray:
    """Return the values (n,) of a column of numbers, in its numeric type or float64; missing ones are NaN."""
    import pyarrow as pa

    if pa.types.is_decimal(column.type):  # Converted by text, because Arrow's own conversion is not exact.
        column = column.cast(pa.string()).cast(pa.float64())
    plain = pa.types.is_floating(column.type) or (pa.types.is_integer(column.type) and column.null_count == 0)
    return (column if plain else column.cast(pa.float64(), safe=False)).to_numpy(zero_copy_only=False)


def width_of(column: Any) -> int | None:
    """Return the length of the first list in a column of lists; None if all lists are missing."""
    found = column.drop_null()
    return len(found[0]) if len(found) else None


def matrix_of(column: Any, width: int, where: Callable[[int], str]) -> NDArray:
    """Return the lists of an Arrow array as a matrix (n, width); a missing list is a row of NaN.

    The matrix is a view of the array if no list is missing.

    where: function that describes a row for the error message if a list has another length
    """
    import pyarrow.compute as pc

    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), width))
    other = np.flatnonzero(lengths != width)
    if len(other):
        row = int(other[0])
        raise ValueError(f"{where(row)} has a list of {lengths[row]} numbers, expected {width} as in those before it")
    rows = values_of(column.flatten()).reshape(-1, width)
    if not column.null_count:
        return rows
    out = np.full((len(column), width), np.nan, np.result_type(rows.dtype, np.float16))
    out[np.asarray(column.is_valid())] = rows
    return out


def write(
    batch: Any, names: Sequence[str], out: NDArray, where: Callable[[int], str], column_of: Callable[[int], str]
) -> None:
    """Write the named columns of an Arrow batch into the columns of out, (number of rows, number of names)."""
    for j, name in enumerate(names):
        put(out[:, j : j + 1], values_of(batch.column(name))[:, np.newaxis], where, column_of, j)


def put(
    out: NDArray, values: NDArray, where: Callable[[int], str], column_of: Callable[[int], str], first: int = 0
) -> None:
    """Write values into `out`; raise ValueError if one is missing and `out` has an integer type.

    where, column_of: functions that describe a row and a column for messages    first: number of out's first column
    """
    if out.dtype.kind in "biu" and values.dtype.kind == "f":
        row, column = np.unravel_index(np.isnan(values).argmax(), values.shape)
        if np.isnan(values[row, column]):
            found = f"{where(int(row))}, column {column_of(first + int(column))}"
            raise ValueError(f"{found}: a value is missing; {FILL_MISSING}")
    out[...] = values


def check_names(source: str, names: Sequence[str]) -> None:
    """Raise ValueError if two columns have the same name. source: name of the data, for the message"""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{source} has more than one column {name!r}")
        seen.add(name)
