"""`cprime predict`: write the component of each row of data by a stored model, chunk by chunk."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime import load
from cprime._utils.files import vacant_folder
from cprime._utils.messages import require
from cprime.callbacks import RowsProgress
from cprime.cli.files import InputData, Request, chunk_figures, hinted, opened, say_chunks
from cprime.cli.outputs import ROWS_SUFFIXES, STDOUT, Columns, check_output, rows_writer
from cprime.cli.partition import partition, row_columns
from cprime.cli.summary import centers, print_summary, sizes
from cprime.estimators.opening import preparation_of
from cprime.execution.results import cuts
from cprime.sources import Source, ahead
from cprime.sources.kinds import listed

_NAMES = {"proba": "predict_proba", "score": "score_samples"}


@dataclass(frozen=True)
class PredictOptions:
    """Options of `cprime predict`, which select the columns to write beside the label of each row.

    folder: folder for one Parquet file per cluster, or None if no such files are written
    """

    proba: bool = False
    distance: bool = False
    score: bool = False
    folder: Path | None = None
    with_data: bool = False

    @classmethod
    def from_options(cls, given: Mapping[str, Any], folder: Path | None) -> Self:
        distance = given["distance"] or folder is not None
        return cls(given["proba"], distance, given["score"], folder, given["with_data"])

    def check(self, estimator: Any) -> None:
        """Raise ValueError if the model cannot compute the requested columns."""
        kind = type(estimator).__name__
        for option, method in _NAMES.items():
            if getattr(self, option) and not hasattr(estimator, method):
                raise ValueError(f"--{option} needs a mixture, the model is a {kind}")
        if self.distance and not hasattr(estimator, "nearest"):
            option = "distance" if self.folder is None else "partition-by-cluster"
            raise ValueError(f"--{option} needs a k-means or a mixture, the model is a {kind}")

    def columns(self, estimator: Any, X: NDArray) -> Columns:
        """Return the columns of the output for rows X (n, D), by name: the label and the requested results."""
        found: Columns = {}
        if self.distance:
            found["label"], found["distance"] = estimator.nearest(X)
        else:
            found["label"] = estimator.predict(X).astype(np.int32, copy=False)
        if self.score:
            found["score"] = estimator.score_samples(X)
        if self.proba:
            found |= _probabilities(estimator, X)
        return found


def _probabilities(estimator: Any, X: NDArray) -> Columns:
    """Return the columns of the output with the responsibilities of each row of X, by name.

    There is one column for each component. If the model has active sets of C′ < C components, there are C′ columns of
    component indices and C′ columns of responsibilities, in decreasing order of the responsibility.
    """
    C, H = len(centers(estimator)), getattr(estimator, "n_active_", None)
    if H in (None, C):
        return {f"proba_{c}": column for c, column in enumerate(np.asarray(estimator.predict_proba(X)).T)}
    kept = estimator.predict_proba(X, sparse=True)
    ids, values = kept.indices.reshape(-1, H), kept.data.reshape(-1, H)
    order = np.argsort(-values, axis=1, kind="stable")
    ids, values = np.take_along_axis(ids, order, axis=1), np.take_along_axis(values, order, axis=1)
    found: Columns = {}
    for h in range(H):
        found[f"component_{h + 1}"], found[f"proba_{h + 1}"] = ids[:, h].astype(np.int32), values[:, h]
    return found


def predict(
    model: Path,
    path: str,
    request: Request,
    wanted: PredictOptions,
    output: str | None,
    threads: int | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run `cprime predict`. The columns to which the model was fitted are read in the precision of the model."""
    if output is not None and output != STDOUT:
        check_output(Path(output), ROWS_SUFFIXES, (model, Path(path)))
    if wanted.folder is not None:
        require("pyarrow", "--partition-by-cluster")
        vacant_folder(wanted.folder)
    estimator = load(model)
    wanted.check(estimator)
    # The columns are selected by this command. The estimator gets plain arrays, so it must not check column names.
    columns = estimator.__dict__.pop("feature_names_in_", None)
    if threads is not None:
        estimator.set_params(n_threads=threads)

    found = opened(path, request, columns)
    if found.source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"{found.stored.name} has {found.source.n_features} columns of data, but the model {model} expects "
            f"{estimator.n_features_in_}"
        )
    preparation = preparation_of(estimator)
    # Rows that the estimator scales are read in their own precision, because scaling amplifies errors of rounding.
    source = found.source if preparation.scale is not None else found.source.as_type(centers(estimator).dtype)
    if not quiet:
        say_chunks(source)
    start = perf_counter()
    counts = np.zeros(len(centers(estimator)), dtype=np.int64)
    with hinted(fills=False), RowsProgress(source.n_rows, quiet=quiet) as progress, ExitStack() as stack:
        write = None if output is None else stack.enter_context(rows_writer(output, source.n_rows))
        by_cluster = None if wanted.folder is None else stack.enter_context(partition(wanted.folder))
        named = identifiers(found, request)
        for begin, X in _pieces(source.watched(progress.rows), estimator, wanted):
            rows = wanted.columns(estimator, X)
            counts += np.bincount(rows["label"], minlength=len(counts))
            end = begin + len(X)
            called = named(begin, end)
            if write is not None:
                write(joined(called, rows))
            if by_cluster is not None:
                numbers = {"row": np.arange(begin, end) if found.rows is None else found.rows[begin:end]}
                values = row_columns(found.source, X) if wanted.with_data else {}
                kept = joined({"cluster": rows.pop("label")}, called or numbers, rows, values)
                by_cluster.write(kept.pop("cluster"), kept)
        source.verify()
    figures = {
        "n_samples": source.n_rows,
        **chunk_figures(source),
        "n_components": len(counts),
        "n_components_used": int(np.count_nonzero(counts)),
        "sizes": sizes(counts),
        "seconds": {"predict": perf_counter() - start},
        "output": output,
        "partitions": wanted.folder,
    }
    print_summary(figures, as_json=as_json, quiet=quiet)


def _pieces(source: Source, estimator: Any, wanted: PredictOptions) -> Iterator[tuple[int, NDArray]]:
    """Yield the rows of the source in pieces, each as (index of its first row, rows (n, D)).

    A piece is a chunk, or a part of a chunk that is so small that the results for its rows fit into memory.
    """
    ranges = list(pairwise(accumulate(source.sizes, initial=0)))
    has_missing = getattr(estimator, "missing", "error") == "marginal" or preparation_of(estimator).fill is not None
    n_bytes = 8 * (3 + wanted.proba * len(centers(estimator)))  # approximate size of the results for a row
    for (begin, end), X in zip(ranges, ahead(source, ranges), strict=True):
        source.check_finite(X, begin, has_missing=has_missing)
        for a, b in cuts(0, end - begin, n_bytes):
            yield begin + a, X[a:b]


def joined(*parts: Columns) -> Columns:
    """Return the columns of all dictionaries `parts` as one dictionary; raise ValueError if two have the same name."""
    names = list(chain(*parts))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"a column of the data and one of the results are both called {listed(twice)}: rename that of the data"
        )
    return dict(chain.from_iterable(part.items() for part in parts))


def identifiers(found: InputData, request: Request) -> Callable[[int, int], Columns]:
    """Return a function of begin and end that returns the identifiers of the rows begin ≤ n < end, as columns by name.

    n counts only the selected rows of the data. There are no columns if no identifiers are requested.
    """
    if request.identifier is None:
        return lambda begin, end: {}
    name, names = request.identifier, found.stored.row_names(request.identifier)

    def read(begin: int, end: int) -> Columns:
        if found.rows is None:
            return {name: names(begin, end)}
        rows = found.rows[begin:end]
        first = int(rows[0])
        values = names(first, int(rows[-1]) + 1)
        return {name: values[rows - first] if isinstance(values, np.ndarray) else values.take(rows - first)}

    return read
