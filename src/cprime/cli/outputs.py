"""Writing results: labels to files, whole or not at all, and one JSON object for machines."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cprime.storage import replacing, writable_target

LABEL_SUFFIXES = (".npy", ".csv", ".parquet", ".feather")
MODEL_SUFFIXES = (".safetensors",)


def check_output(path: Path, suffixes: tuple[str, ...], inputs: tuple[Path, ...]) -> None:
    """Raise ValueError or OSError if `path` cannot take a result: to be asked before the work begins."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"the output {path} must end with {' or '.join(suffixes)}")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(f"the output {path} would replace the input")
    writable_target(path)
    if path.suffix.lower() in (".parquet", ".feather"):
        from cprime.cli.tables import require_pyarrow

        require_pyarrow()


def write_labels(path: Path, labels: np.ndarray) -> None:
    """Labels (n,) as .npy, or as a table with the one column ``label``."""
    suffix = path.suffix.lower()
    with replacing(path) as temporary:
        if suffix == ".npy":
            with temporary.open("wb") as file:
                np.save(file, labels, allow_pickle=False)
        elif suffix == ".csv":
            np.savetxt(temporary, labels, fmt="%d", header="label", comments="")
        else:
            import pyarrow as pa

            table = pa.table({"label": labels})
            if suffix == ".parquet":
                from pyarrow import parquet

                parquet.write_table(table, temporary)
            else:
                from pyarrow import feather

                feather.write_feather(table, str(temporary))


def print_json(result: dict[str, Any]) -> None:
    """One JSON object on stdout; numbers that JSON does not have become null."""
    sys.stdout.write(json.dumps(_plain(result), allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
