"""Sources of files with one JSON object in each line: .jsonl and .ndjson."""

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
            table = _read(content)
        kinds = [_kind(column.type) for column in table.schema]
        examples = {}
        for column in table.schema:
            values = table[column.name].to_pylist()
            row = next((row for row, value in enumerate(values) if value is not None), 0)
            examples[column.name] = (row, str(values[row]))
        super().__init__(path, kinds, table.column_names, examples)

    def _parse(self, content: Any, piece: int, types: dict[str, Any]) -> Any:
        table = _read(content)
        if None in types.values():
            return table.select([name for name in types if name in table.column_names])
        return typed(table, types)


def _read(content: Any) -> Any:
    """Parse lines of JSON, an Arrow buffer, to an Arrow table with detected types."""
    import pyarrow as pa
    from pyarrow import json

    if IS_BLANK.match(content):
        return pa.table({})
    return json.read_json(pa.BufferReader(content), json.ReadOptions(block_size=max(2**20, content.size)))


def _kind(kind: Any) -> Kind:
    """Return the type in which a column of an Arrow type is read: float64, lists of float64, or TEXT."""
    number = np.dtype(np.float64)
    if has_numbers(kind):
        return number
    return Lists(number) if hasattr(kind, "value_type") and has_numbers(kind.value_type) else TEXT
