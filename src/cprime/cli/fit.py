"""`cprime fit`, `cprime plan` and `cprime resume`: fit a model with a progress bar, write it, print a summary."""

import shlex
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import click
import numpy as np
from rich.console import Console

from cprime import (
    Exposed,
    Factors,
    Memory,
    load,
)
from cprime.callbacks import ProgressBar
from cprime.cli.errors import Terminated, exit_code, say
from cprime.cli.files import (
    Request,
    centers_in,
    check_width,
    chunk_figures,
    for_fit,
    goes_on,
    hinted,
    load_model,
    opened,
    say_chunks,
)
from cprime.cli.options import WITH_TEXT
from cprime.cli.outputs import MODEL_SUFFIXES, STDOUT, check_output, print_json, save_model
from cprime.cli.summary import ESTIMATORS, centers, print_summary, summary
from cprime.estimators.covariances import as_covariances
from cprime.estimators.opening import preparation_of
from cprime.estimators.planning import plan as planned
from cprime.estimators.updating import continue_from
from cprime.estimators.validation import as_search, check_common, check_mixture, resolve_n_active, resolve_search
from cprime.loading import data_of, unfitted
from cprime.persistence import checkpoints
from cprime.sources import is_source_like

# Begin of the error of an estimator that cannot continue the fit of another one, because their arguments differ.
_GOES_ON = "warm_start goes on from a fit"


@dataclass(frozen=True)
class FitOptions:
    """Command line options that choose a model and its arguments; None is the estimator's default."""

    k: int
    model: str = "kmeans"
    metric: str | None = None
    size_max: float | str | None = None
    size_min: float | str | None = None
    n_active: int | str | None = None
    covariance_type: str | None = None
    n_factors: int | str | None = None
    dof: float | str | None = None
    weights: str | None = None
    assignment: str | None = None
    search: str | None = None
    n_neighbors: int | str | None = None
    final_assignment: str | None = None
    init: str | None = None
    max_iter: int | None = None
    tol: float | None = None
    n_init: int | None = None
    penalty: float | None = None
    missing: str = "error"
    seed: int = 0
    threads: int | None = None
    checkpoint: Path | None = None
    spill: Path | None = None
    max_memory: str | None = None

    @classmethod
    def from_options(cls, given: Mapping[str, Any], **others: Any) -> Self:
        """Return the options of a command as `FitOptions`."""
        return cls(**{field.name: given[field.name] for field in fields(cls) if field.name in given}, **others)


def fit(
    data: Sequence[str],
    request: Request,
    options: FitOptions,
    output: Path,
    *,
    bounds: bool,
    keep_partial: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run `cprime fit`. The options and the output path are checked before any data are read."""
    check_output(output, MODEL_SUFFIXES, tuple(map(Path, data)), options.checkpoint)
    estimator = estimator_of(options)
    if options.checkpoint is not None and str(output) != STDOUT:
        estimator.set_params(checkpoint=checkpoints.Place(options.checkpoint, output))
    init = Path(options.init or "")
    model = load(init) if init.suffix.lower() in MODEL_SUFFIXES else None
    start = perf_counter()
    with hinted():
        X, weights = for_fit(data, request, options, model)
    if goes_on(model, options):
        continue_from(estimator, model)
    else:
        _set_start(estimator, options, X, model)
    seconds = {"read": perf_counter() - start}
    stop = Stop() if keep_partial else None
    try:
        figures = fitted(estimator, X, weights, options.checkpoint, output, quiet=quiet, stop=stop)
    except ValueError as error:
        if _GOES_ON not in str(error):
            raise
        message = str(error).replace(_GOES_ON, f"--init {options.init} was fitted")
        raise ValueError(_as_options(message)) from error
    figures["interrupted"] = stop is not None and stop.cause is not None
    seconds |= figures["seconds"]
    if goes_on(model, options):
        estimator.set_params(warm_start=False)
    if bounds:
        start = perf_counter()
        figures.update(estimator.bounds(X, weights)._asdict())
        seconds["bounds"] = perf_counter() - start
    save_model(estimator, output)
    print_summary(figures | {"seconds": seconds, "output": output}, as_json=as_json, quiet=quiet)
    if stop is not None and stop.cause is not None:
        raise click.exceptions.Exit(exit_code(stop.cause))


def fitted(
    estimator: Any,
    X: Any,
    sample_weight: Any,
    checkpoint: Path | None,
    output: Path,
    *,
    quiet: bool,
    stop: "Stop | None" = None,
    method: Callable[[Any, Any], Any] | None = None,
) -> dict[str, Any]:
    """Fit the estimator to X with a progress bar, and return the figures of the summary by name.

    For a source, the number and size of its chunks are printed before the fit and included in the figures. If a fit
    with a checkpoint is interrupted by Ctrl-C or SIGTERM, the error message has the command to resume it.

    X: a source, an array or a table in memory    checkpoint: its folder, or None    output: path of the model file
    stop: object that lets Ctrl-C and SIGTERM end the fit normally, with the model of the last complete iteration
    method: function of X and the weights that fits the estimator, or None for its method `fit`
    """
    is_source = is_source_like(X)
    if is_source and not quiet:
        say_chunks(X)
    start = perf_counter()
    title = "mixture" if hasattr(estimator, "n_components") else "k-means"
    bar = ProgressBar(title, len(X), transient=True, quiet=quiet)
    try:
        data = X.watched(bar.rows) if is_source else X
        with stop.listening() if stop else nullcontext(), hinted():
            estimator.set_params(callbacks=[bar, stop] if stop else bar)
            estimator.fit(data, sample_weight=sample_weight) if method is None else method(data, sample_weight)
    except KeyboardInterrupt as interrupt:
        raise type(interrupt)(_how_to_go_on(checkpoint, output)) from None
    estimator.set_params(callbacks=None)
    if stop and stop.cause:
        say("interrupted", f"the model is that of the {estimator.n_iter_} iterations so far; it has not converged")
    figures = {"n_samples": len(X), **summary(estimator), "seconds": {"fit": perf_counter() - start}}
    return figures | chunk_figures(X) if is_source else figures


class Stop:
    """Callback that ends a fit after the current iteration once Ctrl-C or SIGTERM has been received.

    cause: the exception that the signal stands for; None before a signal
    """

    cause: KeyboardInterrupt | None = None

    def __call__(self, row: Mapping[str, Any], estimator: Any) -> bool:
        return self.cause is not None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Context manager in which the first signal sets `cause`, and a second one raises an exception."""

        def receive(number: int, frame: Any) -> None:
            again, self.cause = self.cause, Terminated() if number == signal.SIGTERM else KeyboardInterrupt()
            if again is not None:
                raise self.cause

        before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _how_to_go_on(checkpoint: Path | None, output: Path) -> str:
    """Return a message with the command that resumes an interrupted fit; an empty string if there is no checkpoint."""
    if checkpoint is None or not (checkpoint / checkpoints.FIT).exists():
        return ""
    return f"{shlex.join(['cprime', 'resume', str(checkpoint), '-o', str(output)])} goes on with it"


def estimator_of(options: FitOptions) -> Any:
    """Return an estimator, not yet fitted, with the arguments given by command line options.

    Initial centers in a file are not read yet. Raise click.UsageError if options conflict.
    """
    k_means, finds_k = options.model in ("kmeans", "dp-means"), options.model == "dp-means"
    given: dict[str, Any] = {
        "search": _search(options),
        "max_iter": options.max_iter,
        "tol": options.tol,
        "n_init": options.n_init,
        "checkpoint": options.checkpoint,
        "max_memory": Memory(options.max_memory, options.spill) if options.spill else options.max_memory,
        "n_threads": options.threads,
        "random_state": options.seed,
        "metric": options.metric,
        "size_max": options.size_max,
        "size_min": options.size_min,
        "covariance_type": _covariances(options),
        "dof": options.dof,
        "weights": options.weights,
        "assignment": options.assignment,
        "n_active": options.n_active,
        "missing": options.missing if options.missing == "marginal" else None,
        "init" if k_means else "init_params": None if finds_k or Path(options.init or "").suffix else options.init,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if given.get("n_active") == "all":
        given["n_active"] = None
    estimator = ESTIMATORS[options.model](options.penalty if finds_k else options.k, **given)
    try:
        if finds_k:
            _search(options)
        elif k_means:
            check_common(estimator)
            resolve_search(estimator, options.k, 1, 1)
        else:
            check_mixture(estimator)
            n_active = resolve_n_active(estimator.n_active, options.k, estimator.assignment)
            resolve_search(estimator, options.k, n_active, 1)
    except (ValueError, TypeError) as error:
        raise click.UsageError(_as_options(str(error))) from error
    return estimator


def _search(options: FitOptions) -> Any:
    """Return the argument `search` for the command line options of the search, or None if none of them is given."""
    given = {"n_neighbors": options.n_neighbors, "final_assignment": options.final_assignment}
    given = {name: value for name, value in given.items() if value not in (None, "auto")}
    if not given:
        return options.search
    search = as_search(options.search or "auto")
    if "n_neighbors" in given and "n_neighbors" not in search.get_params():
        raise click.UsageError(
            f"--n-neighbors {options.n_neighbors} has no effect with --search {options.search!r}, which has no lists."
        )
    return search.with_params(**given)


def _covariances(options: FitOptions) -> Any:
    """Return the argument `covariance_type` for the command line options, or None if none of them is given."""
    if options.n_factors is None:
        return options.covariance_type
    covariances = as_covariances(options.covariance_type)
    if not isinstance(covariances, Factors):
        raise click.UsageError(f"--n-factors {options.n_factors} needs --covariance-type factors or ppca.")
    return covariances.with_params(n_factors=options.n_factors)


def _as_options(message: str) -> str:
    """Return an error message of the library with its argument names replaced by command line options."""
    for name in ("n_active", "search", "assignment", "spill", "covariance_type", "n_factors", "dof", "weights"):
        message = message.replace(f"{name}=", f"--{name.replace('_', '-')} ")
    return message.replace("n_components=", "-k ").replace("n_components", "-k")


def _set_start(estimator: Any, options: FitOptions, X: Any, model: Any) -> None:
    """Set the estimator's initial centers to those in the file of --init; do nothing if the option is not a file.

    The centers are in the units of the data; they are filled and scaled as the rows of the source X are.
    model: the model in the file, or None
    """
    init = options.init
    if init is None or not Path(init).suffix:
        return
    if options.model in WITH_TEXT or isinstance(X, Exposed):
        raise ValueError(f"--init {init} must be a model of -m {options.model}")
    found: np.ndarray = centers_in(init) if model is None else preparation_of(model).restored(centers(model))
    if found.shape[1] != X.n_features:
        raise ValueError(f"the centers in {init} have {found.shape[1]} columns, the data have {X.n_features}")
    if len(found) != options.k and options.model != "dp-means":
        raise ValueError(f"there are {len(found)} centers in {init}, -k is {options.k}")
    if X.preparation is not None:
        found = X.preparation.applied(found)
    estimator.set_params(**{"init" if hasattr(estimator, "init") else "init_params": found})


def update(
    path: Path,
    data: Sequence[str],
    request: Request,
    k: int | None,
    output: Path,
    threads: int | None,
    *,
    batch: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run `cprime update`. k: new number of clusters, or None    batch: whether the data are only new rows"""
    check_output(output, MODEL_SUFFIXES, tuple(map(Path, data)))
    estimator = load_model(path)
    if not hasattr(estimator, "update"):
        raise ValueError(f"{path} is a {type(estimator).__name__}, expected a k-means or a mixture")
    if threads is not None:
        estimator.set_params(n_threads=threads)
    start = perf_counter()
    found = opened(data, request, estimator)
    check_width(found, estimator, path)
    X, weights = found.training_data()
    seconds = {"read": perf_counter() - start}

    def method(X: Any, weights: Any) -> None:
        if batch:
            estimator.partial_fit(X, sample_weight=weights)
        else:
            estimator.update(X, k, weights)

    figures = fitted(estimator, X, weights, None, output, quiet=quiet, method=method)
    save_model(estimator, output)
    figures |= {"seconds": seconds | figures["seconds"], "output": output}
    if not batch:
        figures["n_new"] = int(np.count_nonzero(estimator.origin_ < 0))
    print_summary(figures, as_json=as_json, quiet=quiet)


def plan(
    data: Sequence[str], shape: tuple[int, int] | None, request: Request, options: FitOptions, *, as_json: bool
) -> None:
    """Run `cprime plan`: print the estimated memory and time of a fit."""
    if bool(data) == (shape is not None):
        raise click.UsageError("either DATA or --shape is needed, and not both.")
    estimator = estimator_of(options)
    X: Any = opened(data, request, categories=options.model in WITH_TEXT).training_data()[0] if data else shape
    found = planned(estimator, X, dtype=request.dtype or "float32")
    if as_json:
        print_json(found.as_dict())
    else:
        Console().print(repr(found), highlight=False, markup=False, soft_wrap=True)


def resume(
    folder: Path, output: Path | None, threads: int | None, spill: Path | None, *, as_json: bool, quiet: bool
) -> None:
    """Run `cprime resume`; without an output, the model is written to the path stored in the checkpoint.

    If the fit has already ended, its model is read from the checkpoint folder.
    """
    description = checkpoints.read(folder)
    if output is None:
        if description["output"] is None:
            raise ValueError(f"the checkpoint {folder} names no output: say with -o FILE where to write the model")
        output = Path(description["output"])
    check_output(output, MODEL_SUFFIXES, (), folder)
    if (folder / checkpoints.MODEL).exists():
        estimator = load(folder / checkpoints.MODEL)
        figures = {"n_samples": sum(description["chunks"]), **summary(estimator)}
    else:
        start = perf_counter()
        estimator = unfitted(folder, description).set_params(n_threads=threads, max_memory__spill=spill)
        X, weights = data_of(folder, description)
        seconds = {"read": perf_counter() - start}
        figures = fitted(estimator, X, weights, folder, output, quiet=quiet)
        figures["seconds"] = seconds | figures["seconds"]
    save_model(estimator, output)
    print_summary(figures | {"output": output}, as_json=as_json, quiet=quiet)
