"""`cprime predict`: the component of each row of DATA by a stored model, chunk by chunk."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime import load
from cprime.callbacks import RowsProgress
from cprime.cli.chunks import chunk_figures, say_chunks
from cprime.cli.files import Opened, Request, as_of, hinted, opened
from cprime.cli.outputs import ROWS_SUFFIXES, STDOUT, Columns, check_output, print_json, rows_writer
from cprime.cli.summary import centers, print_summary, sizes
from cprime.sources import ahead
from cprime.sources.naming import Naming, naming

_NAMES = {"proba": "predict_proba", "score": "score_samples"}


@dataclass(frozen=True)
class Wanted:
    """What is written beside the label: the options of the same names."""

    proba: bool = False
    distance: bool = False
    score: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        return cls(given["proba"], given["distance"], given["score"])

    def check(self, estimator: Any) -> None:
        """Raise ValueError if a model does not have it."""
        kind = type(estimator).__name__
        for option, method in _NAMES.items():
            if getattr(self, option) and not hasattr(estimator, method):
                raise ValueError(f"--{option} needs a mixture, the model is a {kind}")
        if self.distance and not hasattr(estimator, "nearest"):
            raise ValueError(f"--distance needs a k-means or a mixture, the model is a {kind}")

    def columns(self, estimator: Any, X: NDArray) -> Columns:
        """Of some rows, by name."""
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
    """Of all components, or of those that a row keeps, the greatest first."""
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
    wanted: Wanted,
    output: str,
    threads: int | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run the command. A table is read in the columns of the model, and all data in its precision."""
    if output != STDOUT:
        check_output(Path(output), ROWS_SUFFIXES, (model, Path(path)))
    estimator = load(model)
    wanted.check(estimator)
    # The columns are matched here; the estimator is then given plain arrays, as it would be of a .npy file.
    columns = estimator.__dict__.pop("feature_names_in_", None)
    if threads is not None:
        estimator.set_params(n_threads=threads)

    found = opened(path, request, None if columns is None else tuple(columns))
    if found.source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"{found.stored.name} has {found.source.n_features} columns of data, but the model {model} expects "
            f"{estimator.n_features_in_}"
        )
    source = as_of(estimator, found.source).as_type(centers(estimator).dtype)
    names = None if request.identifier is None else naming(found.stored, request.identifier)
    if not quiet:
        say_chunks(source)
    start = perf_counter()
    counts = np.zeros(len(centers(estimator)), dtype=np.int64)
    ranges = list(pairwise(accumulate(source.sizes, initial=0)))
    with (
        hinted(fills=False),
        RowsProgress(source.n_rows, quiet=quiet) as progress,
        rows_writer(output, source.n_rows) as write,
    ):
        for (begin, end), X in zip(ranges, ahead(source.watched(progress.rows), ranges), strict=True):
            source.check_finite(X, begin, gaps=getattr(estimator, "missing", "error") == "marginal")
            rows = wanted.columns(estimator, X)
            counts += np.bincount(rows["label"], minlength=len(counts))
            if names is not None:
                rows = {str(request.identifier): named(names, found, begin, end), **rows}
            write(rows)
        source.verify()
    figures = {
        "n_samples": source.n_rows,
        **chunk_figures(source),
        "n_components": len(counts),
        "n_components_used": int(np.count_nonzero(counts)),
        "sizes": sizes(counts),
        "seconds": {"predict": perf_counter() - start},
        "output": output,
    }
    if as_json:
        print_json(figures)
    elif not quiet:
        print_summary(figures, stderr=output == STDOUT)


def named(names: Naming, found: Opened, begin: int, end: int) -> Any:
    """What names the rows begin to end of those that are left."""
    if found.rows is None:
        return names(begin, end)
    rows = found.rows[begin:end]
    first = int(rows[0])
    values = names(first, int(rows[-1]) + 1)
    return values[rows - first] if isinstance(values, np.ndarray) else values.take(rows - first)
