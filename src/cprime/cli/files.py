"""DATA as a source, with the columns and weights that the options name: read chunk by chunk, or once if it is one."""

import re
from dataclasses import dataclass
from pathlib import Path

from cprime.cli.errors import say
from cprime.sources import Source, open_data
from cprime.sources.held import HeldSource
from cprime.sources.kinds import listed
from cprime.sources.opening import open_path


@dataclass(frozen=True)
class Request:
    """What to take of DATA: the options of the same names; columns of a table by name, those of an array by number."""

    key: str | None = None
    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    sample_weight: str | None = None
    dtype: str | None = None
    header: bool | None = None
    chunk_rows: int | None = None


def opened(path: Path, request: Request, expected: tuple[str, ...] | None = None) -> Source:
    """DATA as `request` says.

    expected: the columns to take of a table where the request names none

    Raises ValueError or OSError with a message that names the file and what is wrong with it.
    """
    try:
        stored = open_path(path, request.key, header=request.header)
        chosen = _columns(stored, request, expected)
        source = open_data(stored.select(chosen), chunk_rows=request.chunk_rows)
        if request.sample_weight is not None:
            source = _weighted(source, stored, path, request.sample_weight)
    except ValueError as error:
        raise ValueError(re.sub(r"\b(columns|key)=", r"--\1 ", str(error))) from error
    if source.columns and source.columns[0] == "" and request.columns is None:
        say("note", f"the first column of {path} has no name (an index?) and counts as data; --drop '' leaves it out")
    return source if request.dtype is None else source.as_type(request.dtype)


def held(source: Source) -> Source:
    """The same rows in memory if they are one chunk: a file is then read once, and not in every iteration."""
    return HeldSource(source) if len(source.sizes) == 1 else source


def _columns(stored: Source, request: Request, expected: tuple[str, ...] | None) -> list[str] | list[int] | None:
    """The columns that are data, in the order asked for; None for all."""
    names = stored.columns
    columns = request.columns
    if columns is None and names is not None:
        columns = expected
    if columns is None and not request.drop:
        return None
    known = names or [str(j) for j in range(stored.n_features)]
    for name in (*(columns or ()), *request.drop):
        if name not in known:
            raise ValueError(f"{stored.name} has no column {name!r}; it has {listed(known)}")
    left_out = (*request.drop, request.sample_weight)
    kept = [name for name in (known if columns is None else columns) if name not in left_out]
    return kept if names is not None else [int(name) for name in kept]


def _weighted(source: Source, stored: Source, path: Path, name: str) -> Source:
    """The rows with the weights that --sample-weight names: a column, another array of the file, or another file."""
    if name in (stored.columns or ()):
        return source.with_weights(name)
    if Path(name).exists():
        return source.with_weights(Path(name))
    if stored.columns is not None:
        raise ValueError(
            f"{path} has no column {name!r}, and there is no file of that name; it has {listed(stored.columns)}"
        )
    try:
        weights = open_path(path, name, vector=True).select(None)
    except ValueError as error:
        raise ValueError(f"--sample-weight must name an array of {path} or a file, got {name!r}: {error}") from error
    if weights.n_features != 1:
        raise ValueError(
            f"--sample-weight must be one value per row, {name!r} of {path} has {weights.n_features} columns"
        )
    return source.with_weights(weights.as_type("float64").read(0, weights.n_rows)[:, 0])
