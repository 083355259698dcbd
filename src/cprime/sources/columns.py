"""Columns of Arrow as NumPy has them: which are numbers, and rows of a matrix from their batches."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.sources.kinds import Kind


def kind_of_type(kind: Any) -> Kind:
    """The NumPy type that holds an Arrow type, its name if it is no type of numbers."""
    from pyarrow import types

    if types.is_decimal(kind):
        return np.dtype(np.float64)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    return str(kind)


def values_of(column: Any) -> NDArray:
    """The numbers of a column; a missing one is NaN."""
    import pyarrow as pa

    plain = pa.types.is_floating(column.type) or (pa.types.is_integer(column.type) and column.null_count == 0)
    return (column if plain else column.cast(pa.float64(), safe=False)).to_numpy(zero_copy_only=False)


def write(batch: Any, names: Sequence[str], out: NDArray) -> None:
    """The named columns of a batch side by side in out (rows, columns)."""
    for j, name in enumerate(names):
        out[:, j] = values_of(batch.column(name))


def check_names(source: str, names: Sequence[str]) -> None:
    """Raise if two columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{source} has more than one column {name!r}")
        seen.add(name)
