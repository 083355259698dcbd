"""Results as JSON lines: a run begins with a line for the machine, each line after it is one record of a measure."""

import json
from pathlib import Path
from typing import Any

import numpy as np

Record = dict[str, Any]


def append(path: Path, records: list[Record]) -> None:
    """Add lines to a file, which is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, default=_plain, ensure_ascii=False) + "\n")


def read(path: Path) -> list[Record]:
    """The lines of a file; raises ValueError that names the line which is none of ours."""
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
    """NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written to a results file")
