"""`cprime info`: what is in a model file, or in data."""

from pathlib import Path

from cprime import load
from cprime.cli.files import Request, opened
from cprime.cli.outputs import print_json
from cprime.cli.summary import print_summary, summary
from cprime.sources.opening import SUFFIXES
from cprime.storage import read_header


def info(path: Path, request: Request, *, as_json: bool) -> None:
    """Run the command. A folder, and a file whose ending is one of data, is data; anything else is a model."""
    is_data = path.is_dir() or path.suffix.lower() in SUFFIXES
    figures = _of_data(path, request) if is_data else _of_model(path)
    if as_json:
        print_json(figures)
    else:
        print_summary(figures)


def _of_data(path: Path, request: Request) -> dict[str, object]:
    source = opened(path, request)
    return {
        "n_samples": source.n_rows,
        "n_features": source.n_features,
        "n_chunks": len(source.sizes),
        "chunk_rows": source.chunk_rows,
        "dtype": source.dtype.name,
        "columns": source.columns,
        "bytes": source.n_bytes,
    }


def _of_model(path: Path) -> dict[str, object]:
    estimator = load(path)
    return {
        **summary(estimator),
        "cprime_version": read_header(path)["cprime_version"],
        "params": {
            name: f"array {value.shape}" if hasattr(value, "shape") else _plain(value)
            for name, value in estimator.get_params(deep=False).items()
        },
        "bytes": path.stat().st_size,
    }


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
