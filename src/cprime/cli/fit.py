"""`cprime fit`: open DATA, fit a model with a progress bar, write it, and say what came of it."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from cprime import GaussianMixture, KMeans, checkpoints
from cprime.callbacks import ProgressBar
from cprime.cli.files import Request, held, opened
from cprime.cli.outputs import MODEL_SUFFIXES, check_output, print_json
from cprime.cli.summary import print_summary, summary
from cprime.sources import Source, is_source_like


@dataclass(frozen=True)
class FitOptions:
    """What to fit and how; None leaves an argument at the estimator's default."""

    model: str
    n_components: int
    n_active: str | None
    covariance_type: str | None
    weights: str | None
    assignment: str | None
    search: str | None
    init: str | None
    max_iter: int | None
    tol: float | None
    n_init: int | None
    seed: int
    threads: int | None
    checkpoint: Path | None
    bounds: bool


def fit(path: Path, request: Request, options: FitOptions, output: Path, *, as_json: bool, quiet: bool) -> None:
    """Run the command. Whether the output can be written is asked before anything is read."""
    check_output(output, MODEL_SUFFIXES, (path,), options.checkpoint)
    start = perf_counter()
    source = opened(path, request)
    if options.n_components > source.n_rows:
        raise ValueError(f"-k {options.n_components} is more than the {source.n_rows} rows of {path}")
    source = held(source)
    estimator = _estimator(options, source.n_features)
    seconds = {"read": perf_counter() - start}
    figures = fitted(estimator, source, None, options.checkpoint, output, quiet=quiet)
    seconds |= figures["seconds"]
    if options.bounds:
        start = perf_counter()
        figures.update(_bounds(estimator, source))
        seconds["bounds"] = perf_counter() - start
    estimator.save(output)
    report(figures | {"seconds": seconds, "output": output}, as_json=as_json, quiet=quiet)


def fitted(
    estimator: Any, X: Any, sample_weight: Any, checkpoint: Path | None, output: Path, *, quiet: bool
) -> dict[str, Any]:
    """Fits, with a progress bar, and returns the figures; Ctrl-C says how to go on, where there is a checkpoint.

    X: a source or an array in memory
    """
    start = perf_counter()
    bar = ProgressBar("k-means" if isinstance(estimator, KMeans) else "mixture", len(X), transient=True, quiet=quiet)
    try:
        data = X.watched(bar.rows) if is_source_like(X) else X
        estimator.set_params(callbacks=bar).fit(data, sample_weight=sample_weight)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_how_to_go_on(checkpoint, output)) from None
    return {"n_samples": len(X), **summary(estimator), "seconds": {"fit": perf_counter() - start}}


def report(figures: dict[str, Any], *, as_json: bool, quiet: bool) -> None:
    """The figures of a model that is written."""
    if as_json:
        print_json(figures)
    elif not quiet:
        print_summary(figures)


def _how_to_go_on(checkpoint: Path | None, output: Path) -> str:
    """The command that goes on with an interrupted fit; empty if there is nothing to go on from."""
    if checkpoint is None or not (checkpoint / checkpoints.FIT).exists():
        return ""
    return f"{shlex.join(['cprime', 'resume', str(checkpoint), '-o', str(output)])} goes on with it"


def _estimator(options: FitOptions, n_features: int) -> Any:
    """The estimator that the options describe."""
    given = {
        "search": options.search,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "n_init": options.n_init,
        "checkpoint": options.checkpoint,
        "n_threads": options.threads,
        "random_state": options.seed,
        "init" if options.model == "kmeans" else "init_params": _start(options.init, n_features),
    }
    if options.model != "kmeans":
        given |= {
            "covariance_type": options.covariance_type,
            "weights": options.weights,
            "assignment": options.assignment,
        }
    given = {name: value for name, value in given.items() if value is not None}
    if options.model == "kmeans":
        return KMeans(options.n_components, **given)
    n_active = _active(options.n_active or "auto", options.n_components)
    return GaussianMixture(options.n_components, n_active=n_active, **given)


def _active(text: str, n_components: int) -> int | str | None:
    """C′ as the estimator takes it: a count, "auto", or None for all."""
    if text in ("auto", "all"):
        return None if text == "all" else text
    if not text.isdecimal() or not 1 <= int(text) <= n_components:
        raise ValueError(f"--n-active must be a number from 1 to {n_components}, 'all' or 'auto', got {text!r}")
    return int(text)


def _start(init: str | None, n_features: int) -> Any:
    """A start by its name, or the matrix in a file as the starting centers."""
    if init is None or not Path(init).suffix:
        return init
    source = opened(Path(init), Request())
    if source.n_features != n_features:
        raise ValueError(f"the centers in {init} have {source.n_features} columns, the data have {n_features}")
    X = source.read(0, source.n_rows)
    source.check_finite(X, 0)
    return X


def _bounds(estimator: Any, source: Source) -> dict[str, float]:
    return dict(estimator.bounds(source)._asdict())
