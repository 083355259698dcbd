"""Results as JSON lines: a run starts with a line for the machine; each further line is one record of a measure."""

import json
from pathlib import Path
from typing import Any

import numpy as np

Record = dict[str, Any]


def append(path: Path, records: list[Record]) -> None:
    """Append records to a file; create it if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, default=_plain, ensure_ascii=False) + "\n")


def read(path: Path) -> list[Record]:
    """Return the records of a file; raise ValueError that names the line which is no record."""
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{number} is not JSON: {error}") from error
        if not isinstance(record, dict) or "measure" not in record:
            raise ValueError(f"{path}:{number} must be an object with the key 'measure', got {line[:60]!r}")
        records.append(record)
    return records


def _plain(value: object) -> object:
    """Convert a NumPy number to a Python number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written to a results file")
