"""Opening of a command's input data as a `Source`, with the requested columns, weights, filling and scaling."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier, is_regressor

from cprime import Exposed, load
from cprime._utils.messages import bytes_of, require, shown_bytes
from cprime.cli.errors import say
from cprime.cli.options import WITH_TEXT
from cprime.cli.summary import MODEL_NAMES
from cprime.estimators.budget import LEAST_CHUNK
from cprime.estimators.opening import preparation_of, stored_columns_of
from cprime.sources import Source, open_data
from cprime.sources.derived import MaterializedSource
from cprime.sources.kinds import FILL_MISSING, NUMERIC_COLUMNS, listed
from cprime.sources.opening import open_path, spooled
from cprime.sources.prepared import Preparation, PreparedSource, complete, complete_rows, learned
from cprime.sources.spool import received

STDIN = "-"
_BUFFERS = 4  # Number of chunks that are in memory at the same time while data are read.
_LOOKED_AT = 1000  # Number of first rows that are read to detect an index column or a constant column.
_ROWS_OF_INDEX = 3


@dataclass(frozen=True)
class Request:
    """Command line options that select and prepare the input data, one field per option.

    Columns of a table are selected by name, those of an array by number.
    """

    key: str | None = None
    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    numeric: bool = False
    identifier: str | None = None
    sample_weight: str | None = None
    exposure: str | None = None
    missing: str = "error"
    scale: bool = False
    dtype: str | None = None
    header: bool | None = None
    separator: str | None = None
    chunk_rows: int | None = None
    with_data: bool = False

    @classmethod
    def from_options(cls, given: Mapping[str, Any]) -> Self:
        """Return the `Request` for the options `given` of a command.

        The columns of --column, of --columns and of repeated options are combined.
        """
        known = {field.name: given[field.name] for field in fields(cls) if field.name in given}
        columns = (*chain(*given["columns"]), *given["column"])
        separator = {"\\t": "\t", "tab": "\t"}.get(given["separator"], given["separator"])
        return cls(
            **{**known, "columns": columns or None, "drop": tuple(chain(*given["drop"])), "separator": separator}
        )


@dataclass(frozen=True)
class InputData:
    """Input data of a command after opening.

    stored: all columns and rows of the file    source: the columns and rows of `stored` that were selected
    rows: indices of these rows in `stored`; None if all are selected
    has_text: whether some selected columns are text, so that `source` only reads values as stored
    """

    source: Source
    stored: Source
    rows: np.ndarray | None = None
    has_text: bool = False

    def training_data(self) -> tuple[Any, np.ndarray | None]:
        """Return the arguments X and sample_weight of estimators: the source, which has its weights, and None.

        Columns of text are a table in memory, with the weights apart.
        """
        if not self.has_text:
            return self.source, None
        return self.table(0, self.source.n_rows), self.source.weights(0, self.source.n_rows)

    def exposure(self, name: str) -> np.ndarray:
        """Return the exposures (N,) of the selected rows, the stored column of this name."""
        column = open_data(self.stored.select([name] if self.stored.columns is not None else [int(name)]))
        values: np.ndarray = column.as_type("float64").read(0, column.n_rows)[:, 0]
        return values if self.rows is None else values[self.rows]

    def table(self, begin: int, end: int) -> Any:
        """Return rows `begin` to `end` of the selected columns, as they are stored, as an Arrow table."""
        import pyarrow as pa

        return pa.table(self.source.read_stored(begin, end))

    def reader(self, request: Request, *, as_text: bool) -> Callable[[int, int], dict[str, Any]]:
        """Return a function of begin and end that reads stored columns of these rows for the output, by name.

        The columns are those of --with-data, or that of --id, or none. begin, end: numbers of selected rows
        as_text: whether columns of .csv and .tsv files are read as the text in the file
        """
        if request.with_data:
            names = self.stored.columns or [str(j) for j in range(self.stored.n_features)]
            columns = [name for name in names if name not in request.drop] if request.drop else None
        elif request.identifier is not None:
            columns = [request.identifier]
        else:
            return lambda begin, end: {}
        stored, rows = self.stored.as_stored(columns, as_text), self.rows
        if rows is None:
            return stored.read_stored

        def read(begin: int, end: int) -> dict[str, Any]:
            first, last = int(rows[begin]), int(rows[end - 1])
            wanted, found = rows[begin:end] - first, stored.read_stored(first, last + 1)
            return {
                name: values[wanted] if isinstance(values, np.ndarray) else values.take(wanted)
                for name, values in found.items()
            }

        return read


def load_model(path: Path) -> Any:
    """Read a model file; "-" is standard input."""
    if str(path) == STDIN and sys.stdin.isatty():
        raise ValueError("MODEL is - (standard input), which is a terminal: expected a model from a pipe or a file")
    model = load(sys.stdin.buffer if str(path) == STDIN else path)
    if is_classifier(model) or is_regressor(model):
        raise ValueError(f"{path} has a {type(model).__name__}, which no command takes: use it in Python")
    return model


def opened(data: Sequence[str], request: Request, model: Any = None, categories: bool = False) -> InputData:
    """Open the argument DATA, select rows and columns, and return these as `InputData`, neither filled nor scaled.

    data: one path or several, whose rows follow one another
    model: fitted estimator; its columns are taken from a table if the request names no columns, or None
    categories: whether columns may be text, also those of a model of categories

    Raise ValueError or OSError, with a message that names the file and the problem, if the data cannot be used.
    """
    expected, list_column = None if model is None else stored_columns_of(model), getattr(model, "list_column_", None)
    try:
        stored = _stored(data, request)
        if list_column not in (stored.columns or ()) and list_column is not None:
            expected = None  # The numbers of its lists may be columns of this table.
        columns = _columns(stored, request, expected)
        text: list[str] = []
        if stored.columns is not None and (categories or hasattr(model, "categories_")):
            names = stored.default_columns(stored.columns) if columns is None else columns
            columns = [str(name) for name in names if name != request.sample_weight]
            text = columns if set(columns) - set(stored.numeric_columns or ()) else []
        if text and request.missing == "drop":
            raise ValueError(
                f"--missing drop needs columns of numbers, {stored.name} has text: give --missing marginal"
            )
        source = stored.as_stored(text) if text else stored.select(columns)
        if request.chunk_rows is not None:
            source = source.with_chunk_rows(request.chunk_rows)
        source = open_data(source)
        if request.columns is None and list_column and source.list_column not in (None, list_column):
            raise ValueError(f"{stored.name} has no column {list_column!r}: choose another one with --column")
        if request.sample_weight is not None:
            source = _weighted(source, stored, data, request.sample_weight, has_text=bool(text))
    except ValueError as error:
        raise ValueError(_as_options(str(error))) from error
    if text:
        return InputData(source, stored, has_text=True)
    if expected is None and request.columns is None:
        _notice_index(source)
    if request.dtype is not None:
        source = source.as_type(request.dtype)
    if request.missing != "drop":
        return InputData(source, stored)
    rows = complete_rows(source)
    if len(rows) == source.n_rows:
        return InputData(source, stored)
    n_left_out = source.n_rows - len(rows)
    say("note", f"{n_left_out:,} of the {source.n_rows:,} rows of {stored.name} have missing values and are left out")
    if not len(rows):
        raise ValueError(f"{stored.name} has no row without a missing value")
    return InputData(complete(source), stored, rows)


@contextmanager
def hinted(*, fills: bool = True) -> Iterator[None]:
    """Return a context manager that adds a hint to ValueErrors about missing values: the options that avoid the error.

    fills: whether the command has the option to fill missing values with column means
    """
    try:
        yield
    except ValueError as error:
        if FILL_MISSING not in str(error):
            raise
        more = ", --missing mean puts the column's mean, --missing marginal fits what is there"
        hint = "--missing drop leaves such rows out" + (more if fills else "")
        raise ValueError(str(error).replace(FILL_MISSING, hint)) from error


def for_fit(data: Sequence[str], request: Request, options: Any, model: Any = None) -> tuple[Any, np.ndarray | None]:
    """Open the argument DATA for a fit; return X, a source that is filled and scaled if requested, and sample_weight.

    Data of a single chunk are stored in memory, unless the memory is limited, so that their file is read only once.
    Columns of text are a table in memory, with the weights apart.

    options: `FitOptions`; a limit of memory makes chunks so small that already the first pass respects it
    model: estimator of --init, whose columns are read, or None. If all its parameters are those of the start, rows are
    prepared as it does.
    """
    found = opened(data, request, model, categories=options.model in WITH_TEXT)
    if options.k > found.source.n_rows:
        raise ValueError(f"-k {options.k} is more than the {found.source.n_rows} rows of {found.source.name}")
    if found.has_text:
        return found.training_data()
    source, max_memory = found.source, options.max_memory
    if max_memory is not None and request.chunk_rows is None:
        row = _BUFFERS * source.n_features * source.dtype.itemsize
        rows = max(LEAST_CHUNK, bytes_of(max_memory, "max_memory") // row)
        source = source if rows >= source.chunk_rows else source.with_chunk_rows(rows)
    fill = request.missing == "mean"
    if goes_on(model, options):
        check_width(found, model, options.init)
        preparation = preparation_of(model)
        if not preparation.is_identity:
            source = PreparedSource(source, preparation)
        elif fill or request.scale:
            option = "--scale" if request.scale else "--missing mean"
            raise ValueError(f"{option} needs another --init: {options.init} was fitted to rows as they are")
    elif fill or request.scale:
        preparation = learned(source, fill=fill, scale=request.scale)
        if preparation.scale is not None and source.columns is not None:
            _note_constant(source, preparation, np.flatnonzero(preparation.scale == 1.0))
        source = PreparedSource(source, preparation)
    if request.exposure is not None:
        return Exposed(source_table(source), found.exposure(request.exposure)), source.weights(0, source.n_rows)
    if max_memory is None and len(source.sizes) == 1:
        return MaterializedSource(source), None
    return source, None


def source_table(source: Source) -> Any:
    """Return all rows of a source in memory: an array (N, D), or an Arrow table if the columns have names."""
    X = source.read(0, source.n_rows)
    if source.columns is None:
        return X
    return require("pyarrow", "--exposure").table(dict(zip(source.columns, X.T, strict=True)))


def goes_on(model: Any, options: Any) -> bool:
    """Return whether a fit starts from all parameters of the model of --init, not from its centers alone."""
    return options.model not in ("kmeans", "dp-means") and options.model == MODEL_NAMES.get(type(model).__name__)


def check_width(found: InputData, model: Any, path: Any) -> None:
    """Raise ValueError unless the data have as many columns as the model in the file `path` expects."""
    if found.source.n_features != model.n_features_in_:
        raise ValueError(
            f"{found.stored.name} has {found.source.n_features} columns of data, but the model {path} expects "
            f"{model.n_features_in_}"
        )


def _stored(data: Sequence[str], request: Request) -> Source:
    """Open the argument DATA with all rows and columns, and return their source."""
    options: dict[str, Any] = {"header": request.header, "separator": request.separator}
    if STDIN not in data:
        return open_path(data[0] if len(data) == 1 else data, request.key, **options)
    if len(data) > 1:
        raise ValueError(f"- (standard input) must be the only DATA, got {' '.join(data)}")
    file, spool = received(sys.stdin.buffer, "stdin", "standard input")
    source = spooled(file, spool, "standard input", lambda file: open_path(file, request.key, **options))
    source._opened_with = None  # Standard input cannot be opened again.
    return source


def _as_options(message: str) -> str:
    """Return an error message of the library with its argument names replaced by command line options."""
    message = message.replace(NUMERIC_COLUMNS, "--numeric takes the columns that are, --drop leaves some out")
    message = re.sub(r"\b(header|separator|key) (is for|names)", r"--\1 \2", message)
    message = message.replace("header=True", "--header").replace("header=False", "--no-header")
    return re.sub(r"\b(columns|key)=", r"--\1 ", message)


def _columns(stored: Source, request: Request, expected: Sequence[str] | None) -> list[str] | list[int] | None:
    """Return the names or numbers of the columns to cluster, in the requested order; None for all.

    expected: columns that are taken from a table if the request names none, or None
    """
    names = stored.columns
    columns: Sequence[str] | None = request.columns
    if columns is None and names is not None:
        columns = expected
    named = [name for name in (request.identifier, request.exposure) if name is not None]
    if columns is None and not request.drop and not request.numeric and not named:
        return None
    known = names or [str(j) for j in range(stored.n_features)]
    for name in (*(columns or ()), *request.drop, *named):
        if name not in known:
            raise ValueError(f"{stored.name} has no column {name!r}; it has {listed(known)}")
    left_out = {*request.drop, request.sample_weight, *named}
    kept = [name for name in (known if columns is None else columns) if name not in left_out]
    if columns is None and names is not None:
        kept = stored.default_columns(kept)
    if request.numeric and names is not None:
        numbers = set(stored.numeric_columns or ())
        others = [name for name in kept if name not in numbers]
        if others:
            say("note", f"left out, as they are not numeric: {listed(others)}")
        kept = [name for name in kept if name in numbers]
    return kept if names is not None else [int(name) for name in kept]


def _notice_index(source: Source) -> None:
    """Print a note to stderr if the first column seems to contain row numbers."""
    if source.columns is None or source.n_features < 2:
        return
    name = source.columns[0]
    first = source.select([name]).read(0, min(_LOOKED_AT, source.n_rows))[:, 0]
    counts = (
        len(first) >= _ROWS_OF_INDEX and first[0] in (0, 1) and np.array_equal(first, first[0] + np.arange(len(first)))
    )
    if counts:
        what = f"{name!r} counts the rows (an index?) and is taken as data"
        say("note", f"the first column of {source.name} {what}; --drop {name} leaves it out")


def _note_constant(source: Source, preparation: Preparation, columns: Any) -> None:
    names = source.columns or []
    assert preparation.shift is not None
    head = source.read(0, min(_LOOKED_AT, source.n_rows))
    flat = [names[j] for j in columns if (head[:, j] == preparation.shift[j]).all()]
    if flat:
        say("note", f"{listed(flat)} are constant, and are 0 after --scale")


def _weighted(source: Source, stored: Source, data: Sequence[str], name: str, *, has_text: bool) -> Source:
    """Return the source with the weights named by --sample-weight: a column, another array of the file, or a file."""
    if name in (stored.columns or ()):
        if has_text:
            return source.with_weights(stored.select([name]).as_type("float64").read(0, source.n_rows)[:, 0])
        return source.with_weights(name)
    if Path(name).exists():
        return source.with_weights(Path(name))
    if stored.columns is not None:
        raise ValueError(
            f"{stored.name} has no column {name!r}, and there is no file of that name; it has {listed(stored.columns)}"
        )
    try:
        weights = open_path(data[0] if len(data) == 1 else data, name, vector=True).select(None)
    except ValueError as error:
        raise ValueError(
            f"--sample-weight must name an array of {stored.name} or a file, got {name!r}: {error}"
        ) from error
    if weights.n_features != 1:
        raise ValueError(
            f"--sample-weight must be one value per row, {name!r} of {stored.name} has {weights.n_features} columns"
        )
    return source.with_weights(weights.as_type("float64").read(0, weights.n_rows)[:, 0])


def centers_in(path: str) -> np.ndarray:
    """Return the matrix in a file as initial centers (C, D)."""
    source = opened([path], Request()).source
    X = source.read(0, source.n_rows)
    source.check_finite(X, 0)
    return X


def chunk_figures(source: Source) -> dict[str, int]:
    """Return the number of chunks of a source, and the size of the largest chunk in bytes.

    The size is that of the selected columns in the precision of the file.
    """
    rows = max(source.sizes, default=0)
    return {"n_chunks": len(source.sizes), "chunk_bytes": rows * source.n_features * source.stored.itemsize}


def say_chunks(source: Source) -> None:
    """Print one line with the number and size of the chunks to stderr."""
    figures = chunk_figures(source)
    n, size = figures["n_chunks"], shown_bytes(figures["chunk_bytes"])
    chunks = f"one chunk of {size}" if n == 1 else f"{n:,} chunks of at most {size}"
    say("note", f"{source.name}: {source.n_rows:,} rows of {source.n_features:,} columns, read in {chunks}")
