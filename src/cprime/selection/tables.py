"""Results as tables: text for `repr`, or data frames of pandas or polars."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from cprime.estimators.validation import check_choice

_MOST_ROWS = 20  # largest number of rows that a text table shows


def frame_of(columns: Mapping[str, Any], library: str) -> Any:
    """Return a data frame of the named columns, all of equal length; library: "pandas" or "polars"."""
    check_choice(library, "library", ("pandas", "polars"))
    try:
        module = import_module(library)
    except ImportError as error:
        raise ImportError(f"to_frame needs {library}, which is missing: pip install cprime[tables]") from error
    return module.DataFrame(dict(columns))


def text_of(columns: Mapping[str, Any]) -> list[str]:
    """Return the lines of a text table: column names, then the rows; of more than 20 rows, the first and last ten."""
    n_rows = len(next(iter(columns.values())))
    half = _MOST_ROWS // 2
    rows = range(n_rows) if n_rows <= _MOST_ROWS else [*range(half), None, *range(n_rows - half, n_rows)]
    cells = [[name, *("…" if i is None else _cell(values[i]) for i in rows)] for name, values in columns.items()]
    widths = [max(map(len, column)) for column in cells]
    return ["  ".join(map(str.rjust, line, widths)) for line in zip(*cells, strict=True)]


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:,.6g}"
