"""Sources of files with one JSON object in each line: .jsonl and .ndjson."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cprime._utils.messages import require
from cprime.sources.arrow import arrow_buffer, reading
from cprime.sources.columns import has_numbers
from cprime.sources.kinds import Kind, Lists
from cprime.sources.lines import IS_BLANK, TEXT, LinesSource, first_lines, typed


class JsonSource(LinesSource):
    """Source of JSON objects; columns are the keys found in the first lines, and absent or null values are missing."""

    _format = ".jsonl file"

    def __init__(self, path: str | Path, vector: bool = False) -> None:
        require("pyarrow.json", str(path))
        content = arrow_buffer(first_lines(path))
        with reading(str(path), self._format):
            table = _read(content, None)
        kinds = [_kind(column.type) for column in table.schema]
        examples = {}
        for column in table.schema:
            values = table[column.name].to_pylist()
            row = next((row for row, value in enumerate(values) if value is not None), 0)
            examples[column.name] = (row, str(values[row]))
        super().__init__(path, kinds, table.column_names, examples)

    def _parse(self, content: Any, piece: int, names: Sequence[str], kind: Any) -> Any:
        table = _read(content, list(names))
        return table if kind is None else typed(table, names, kind)


def _read(content: Any, names: list[str] | None) -> Any:
    """Parse lines of JSON to an Arrow table with detected types.

    content: Arrow buffer of the lines    names: keys to read, or None for all
    """
    import pyarrow as pa
    from pyarrow import json

    if IS_BLANK.match(content):
        return pa.table({name: pa.array([], pa.float64()) for name in names or ()})
    table = json.read_json(pa.BufferReader(content), json.ReadOptions(block_size=max(2**20, content.size)))
    return table if names is None else table.select([name for name in names if name in table.column_names])


def _kind(kind: Any) -> Kind:
    """Return the type in which a column of an Arrow type is read: float64, lists of float64, or TEXT."""
    number = np.dtype(np.float64)
    if has_numbers(kind):
        return number
    return Lists(number) if hasattr(kind, "value_type") and has_numbers(kind.value_type) else TEXT
