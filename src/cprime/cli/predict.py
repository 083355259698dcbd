"""`cprime predict`: write the component of each row of data by a stored model, chunk by chunk."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from itertools import accumulate, chain, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime import Exposed, KMeans, PoissonMixture, assign
from cprime._utils.files import vacant_folder
from cprime._utils.messages import require
from cprime.callbacks import RowsProgress
from cprime.cli.files import InputData, Request, check_width, chunk_figures, hinted, load_model, opened, say_chunks
from cprime.cli.outputs import ROWS_SUFFIXES, Columns, check_output, is_text, rows_writer
from cprime.cli.partition import partition
from cprime.cli.summary import centers, print_summary, sizes
from cprime.estimators.opening import as_prepared, preparation_of
from cprime.execution.results import cuts
from cprime.sources import Source, ahead
from cprime.sources.kinds import listed

_NAMES = {"proba": "predict_proba", "score": "score_samples"}
_TEXT_BYTES = 1024  # assumed size of a stored value that is no number


@dataclass(frozen=True)
class PredictOptions:
    """Options of `cprime predict`, which select the columns to write beside the label of each row.

    folder: folder for one Parquet file per cluster, or None if no such files are written
    nearest: number of nearest clusters to write, or None
    size_max, size_min: bounds of the sizes of clusters, within which the rows are assigned, or None
    """

    proba: bool = False
    distance: bool = False
    score: bool = False
    folder: Path | None = None
    nearest: int | None = None
    size_max: float | str | None = None
    size_min: float | str | None = None

    @classmethod
    def from_options(cls, given: Mapping[str, Any], folder: Path | None) -> Self:
        known = {field.name: given[field.name] for field in fields(cls) if field.name in given}
        return cls(**known | {"distance": given["distance"] or folder is not None, "folder": folder})

    def text_forms(self, output: str | None) -> set[bool]:
        """Return which forms of stored columns the outputs need: the text in the file (True), or typed values."""
        return ({is_text(output)} if output is not None else set()) | (set() if self.folder is None else {False})

    def check(self, estimator: Any) -> None:
        """Raise ValueError if the model cannot compute the requested columns."""
        kind = type(estimator).__name__
        for option, method in _NAMES.items():
            if getattr(self, option) and not hasattr(estimator, method):
                raise ValueError(f"--{option} needs a mixture, the model is a {kind}")
        for option in ("nearest", "size_max", "size_min"):
            if getattr(self, option) is not None and not isinstance(estimator, KMeans):
                raise ValueError(f"--{option.replace('_', '-')} needs a k-means, the model is a {kind}")
        if self.nearest is not None and self.nearest > (C := len(centers(estimator))):
            raise ValueError(f"--nearest {self.nearest} is more than the {C} clusters of the model")
        if self.distance and not hasattr(estimator, "nearest"):
            option = "distance" if self.folder is None else "partition-by-cluster"
            raise ValueError(f"--{option} needs a k-means or a mixture, the model is a {kind}")

    def assign_within_sizes(self, estimator: Any, source: Source) -> Columns | None:
        """Return labels and distances of all rows (N,), assigned within the bounds of sizes; None without bounds."""
        if self.size_max is None and self.size_min is None:
            return None
        options = {"metric": estimator.metric, "n_threads": estimator.n_threads}
        options |= {"size_max": self.size_max, "size_min": self.size_min}
        try:
            found = assign(as_prepared(estimator, source), estimator.cluster_centers_, **options)
        except ValueError as error:
            raise ValueError(re.sub(r"size_(max|min)=?", r"--size-\1 ", str(error))) from error
        return dict(zip(("label", "distance"), found, strict=True))

    def columns(self, estimator: Any, X: Any, assigned: Columns | None) -> Columns:
        """Return the columns of the output for rows X (n, D) or `Exposed` rows, by name: labels and requested results.

        assigned: labels and distances of these rows if they are known, or None
        """
        found: Columns = {}
        if assigned is not None:
            found = assigned if self.distance else {"label": assigned["label"]}
        elif self.distance:
            found["label"], found["distance"] = estimator.nearest(X)
        else:
            found["label"] = estimator.predict(X).astype(np.int32, copy=False)
        if self.nearest is not None:
            rows, kind = preparation_of(estimator).applied(X), estimator.metric
            near = assign(rows, estimator.cluster_centers_, self.nearest, kind, n_threads=estimator.n_threads)
            for n, (ids, distances) in enumerate(zip(*(part.reshape(len(X), -1).T for part in near), strict=True), 1):
                found |= {f"nearest_{n}": ids, f"distance_{n}": distances}
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
    data: Sequence[str],
    request: Request,
    wanted: PredictOptions,
    output: str | None,
    threads: int | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run `cprime predict`. The columns to which the model was fitted are read in the precision of the model."""
    if output is not None:
        check_output(Path(output), ROWS_SUFFIXES, (model, *map(Path, data)))
    if wanted.folder is not None:
        require("pyarrow", "--partition-by-cluster")
        vacant_folder(wanted.folder)
    estimator = load_model(model)
    wanted.check(estimator)
    if threads is not None:
        estimator.set_params(n_threads=threads)

    found = opened(data, request, estimator)
    # The columns are selected by this command. The estimator gets plain arrays, so it must not check column names.
    vars(estimator).pop("feature_names_in_", None)
    check_width(found, estimator, model)
    if request.exposure is not None and not isinstance(estimator, PoissonMixture):
        raise ValueError(f"--exposure needs a Poisson mixture, the model is a {type(estimator).__name__}")
    exposure = None if request.exposure is None else found.exposure(request.exposure)
    source, preparation = found.source, preparation_of(estimator)
    # Rows that the estimator scales are read in their own precision, because scaling amplifies errors of rounding.
    if preparation.scale is None and not found.has_text:
        source = source.as_type(centers(estimator).dtype)
    if not quiet:
        say_chunks(source)
    start = perf_counter()
    counts = np.zeros(len(centers(estimator)), dtype=np.int64)
    with hinted(fills=False), RowsProgress(source.n_rows, quiet=quiet) as progress, ExitStack() as stack:
        write = None if output is None else stack.enter_context(rows_writer(output, source.n_rows))
        by_cluster = None if wanted.folder is None else stack.enter_context(partition(wanted.folder))
        readers = {as_text: found.reader(request, as_text=as_text) for as_text in wanted.text_forms(output)}
        whole = wanted.assign_within_sizes(estimator, source)
        for begin, X in _pieces(found, source.watched(progress.rows), estimator, request, wanted):
            end = begin + len(X)
            assigned = None if whole is None else {name: values[begin:end] for name, values in whole.items()}
            points = X if exposure is None else Exposed(X, exposure[begin:end])
            rows = wanted.columns(estimator, points, assigned)
            counts += np.bincount(rows["label"], minlength=len(counts))
            given = {as_text: read(begin, end) for as_text, read in readers.items()}
            if write is not None and output is not None:
                write(joined(given[is_text(output)], rows))
            if by_cluster is not None:
                numbers = {"row": np.arange(begin, end) if found.rows is None else found.rows[begin:end]}
                numbers = numbers if request.identifier is None else {}
                kept = joined({"cluster": rows.pop("label")}, numbers, given[False], rows)
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


def _pieces(
    found: InputData, source: Source, estimator: Any, request: Request, wanted: PredictOptions
) -> Iterator[tuple[int, NDArray | Any]]:
    """Yield the rows of the source in pieces, each as (index of its first row, rows (n, D), or a table if it has text).

    A piece is a chunk, or a part of a chunk that is so small that the output for its rows fits into memory.
    """
    ranges = list(pairwise(accumulate(source.sizes, initial=0)))
    has_missing = getattr(estimator, "missing", "error") == "marginal" or preparation_of(estimator).fill is not None
    # approximate size of the output for a row
    n_bytes = 8 * (3 + wanted.proba * len(centers(estimator)) + 2 * (wanted.nearest or 0))
    if request.with_data:
        names, numbers = found.stored.columns or (), found.stored.numeric_columns or ()
        n_bytes += 8 * found.stored.n_features + _TEXT_BYTES * (len(names) - len(numbers))
    if found.has_text:
        for begin, end in (cut for span in ranges for cut in cuts(*span, n_bytes)):
            yield begin, found.table(begin, end)
        return
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
            f"a column of the data and one of the results are both called {listed(twice)}: rename that of the data, or "
            "leave it out of --with-data by --drop"
        )
    return dict(chain.from_iterable(part.items() for part in parts))
