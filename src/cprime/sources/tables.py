"""Tables in memory: pandas, polars and pyarrow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.sources.arrays import ArraySource
from cprime.sources.base import Source
from cprime.sources.columns import check_names, kind_of_type, values_of
from cprime.sources.kinds import Kind, kind_of


class TableSource(ArraySource):
    """The numeric columns of a table, copied side by side once they are chosen."""

    def __init__(self, table: Any) -> None:
        if type(table).__name__ == "RecordBatch":
            import pyarrow as pa

            table = pa.Table.from_batches([table])
        names = [str(name) for name in (table.column_names if _library(table) == "pyarrow" else table.columns)]
        check_names("X", names)
        Source.__init__(self, "X", len(table), kinds(table), names)
        self._table = table
        self._mapped = False

    def _settle(self) -> None:
        super()._settle()
        self._array = np.empty(self.shape, self.dtype)
        for k, j in enumerate(self._positions):
            self._array[:, k] = _values(self._table, j, self._array.dtype)

    def _pick(self, block: NDArray) -> NDArray:
        return block


def kinds(table: Any) -> list[Kind]:
    """How the columns of a table are stored."""
    n = len(table.column_names if _library(table) == "pyarrow" else table.columns)
    return [_kind(table, j) for j in range(n)]


def _library(table: Any) -> str:
    return type(table).__module__.split(".")[0]


def _kind(table: Any, j: int) -> Kind:
    """How column j is stored."""
    if _library(table) == "pyarrow":
        return kind_of_type(table.column(j).type)
    if _library(table) == "pandas":
        dtype = table.dtypes.iloc[j]
        if getattr(dtype, "kind", "O") not in "biuf":
            return str(dtype)
        return kind_of(np.dtype(getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))))
    dtype = table.dtypes[j]
    if not (dtype.is_numeric() or str(dtype) == "Boolean"):
        return str(dtype)
    return kind_of(table.to_series(j).head(0).to_numpy().dtype) if not dtype.is_decimal() else np.dtype(np.float64)


def _values(table: Any, j: int, dtype: np.dtype) -> NDArray:
    """The numbers of column j; a missing one is NaN."""
    if _library(table) == "pyarrow":
        return values_of(table.column(j))
    if _library(table) == "pandas":
        return table.iloc[:, j].to_numpy(dtype=dtype, na_value=np.nan)
    from polars import Float32, Float64

    return table.to_series(j).cast(Float32 if dtype == np.float32 else Float64).to_numpy()
