"""Progress bars for terminals and notebooks, and log lines on standard error elsewhere."""

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from time import perf_counter
from types import TracebackType
from typing import Any, Self, TypeVar

from cprime._utils.arguments import check_flag, check_integer
from cprime._utils.messages import iteration_level
from cprime.callbacks.pace import Pace

T = TypeVar("T")

_logger = logging.getLogger("cprime")
_counts = logging.getLogger(__name__)


@contextmanager
def shown(verbose: int = 1, log: logging.Logger = _logger) -> Iterator[None]:
    """Write log lines to standard error inside this context, unless `verbose` is 0 or level INFO is enabled already.

    log: the logger whose lines are written
    """
    if not verbose or _logger.isEnabledFor(logging.INFO):
        yield
        return
    with _handled_by(logging.StreamHandler(sys.stderr), log):
        yield


@contextmanager
def _handled_by(handler: logging.Handler, log: logging.Logger, lowest: int = logging.DEBUG) -> Iterator[None]:
    handler.setFormatter(logging.Formatter("[cprime] %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(lowest)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class _LogAboveBar(logging.Handler):
    """Log handler that prints lines above a progress bar, except those of iterations, which the bar itself shows."""

    def __init__(self, console: Any):
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        if not hasattr(record, "iteration"):
            self._console.print(self.format(record), highlight=False, markup=False)


def _console() -> Any:
    """Return a rich console on standard error; rich itself detects notebooks."""
    from rich.console import Console

    return Console(stderr=True)


def _draws(console: Any) -> bool:
    """Return whether the console can overwrite lines: a terminal, or a notebook with ipywidgets."""
    return (console.is_jupyter and find_spec("ipywidgets") is not None) or console.is_terminal


class RowsProgress:
    """Progress bar of one pass over data in several chunks; nothing is shown if lines cannot be overwritten.

    Parameters
    ----------
    n_rows : int, default=0
        Number of rows of the data. The bar moves if its method `rows` is passed to the method `watched` of the data
        source that is read.
    quiet : bool, default=False
        Whether to show nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import KMeans, open_data
    >>> from cprime.callbacks import RowsProgress
    >>> parts = open_data(np.arange(10.0).reshape(-1, 1), chunk_rows=4)
    >>> km = KMeans(2, random_state=0).fit(parts)
    >>> with RowsProgress(parts.n_rows, quiet=True) as bar:
    ...     labels = km.predict(parts.watched(bar.rows))
    """

    _transient = True

    def __init__(self, n_rows: int = 0, *, quiet: bool = False) -> None:
        self._n_rows = check_integer(n_rows, "n_rows", 0)
        self._quiet = check_flag(quiet, "quiet")
        self._progress: Any = None
        self._rows: Any = None
        self._pass = perf_counter()
        self._rate = ""

    def __enter__(self) -> Self:
        console = None if self._quiet else _console()
        if console is not None and _draws(console):
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[figures]}"),
                TimeElapsedColumn(),
                console=console,
                transient=self._transient,
            )
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = self._rows = None

    def rows(self, begin: int, end: int) -> None:
        """Show that rows `begin` to `end` are processed now and earlier ones are done; begin=0 starts a new pass."""
        now = perf_counter()
        if begin == 0:
            self._pass = now
        elif now > self._pass:
            self._rate = f", {begin / (now - self._pass):,.0f} rows/s"
        if self._progress is None:
            return
        if self._rows is None and end < self._n_rows:
            self._rows = self._progress.add_task("", total=self._n_rows, figures="")
        if self._rows is not None:
            figures = f"{end:,} of {self._n_rows:,} rows{self._rate}"
            self._progress.update(self._rows, completed=end, description="  pass", figures=figures)


def counted(values: Sequence[T], title: str, verbose: int = 0) -> Iterator[T]:
    """Yield values one after the other; if `verbose`, show how many of them the caller has processed.

    A bar is drawn where lines can be overwritten. Elsewhere, a line a minute is written to standard error.
    title: text before the numbers
    """
    n, began = len(values), perf_counter()
    with RowsProgress(quiet=not verbose) as bar, shown(verbose, _counts):
        task = None if bar._progress is None else bar._progress.add_task(title, total=n, figures="")
        before = 0.0
        for i, value in enumerate(values, 1):
            yield value
            text, after = f"{i:,} of {n:,}", perf_counter() - began
            if task is not None:
                bar._progress.update(task, completed=i, figures=text)
            elif i == n or iteration_level(before, after - before) == logging.INFO:
                _counts.info("%s: %s", title, text)
            before = after


class ProgressBar(RowsProgress):
    """Callback that shows the progress of a fit: iteration, objective J or F, search quality, estimated time left.

    It draws a bar on a terminal and in a notebook (with ipywidgets). Elsewhere, for example if standard error is a
    file, it writes the library's log to standard error, one line per iteration. `verbose=1` adds this callback.

    Parameters
    ----------
    title : str, default=None
        Name of the fit on the bar; None is the class name of the estimator.
    n_rows : int, default=0
        Number of rows of data that are read in chunks. It is needed only if the bar's method `rows` is passed to the
        method `watched` of the source.
    transient : bool, default=False
        Whether to remove the bar at the end. Where no bar can be drawn, one line a minute is written then, no others.
    quiet : bool, default=False
        Whether to show nothing.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.callbacks import ProgressBar
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> KMeans(2, callbacks=ProgressBar("four points", quiet=True), random_state=0).fit(X).inertia_
    1.0
    """

    def __init__(
        self, title: str | None = None, n_rows: int = 0, *, transient: bool = False, quiet: bool = False
    ) -> None:
        super().__init__(n_rows, quiet=quiet)
        self._transient = check_flag(transient, "transient")
        self._title = title
        self._lines = ExitStack()
        self._task: Any = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a new bar with the same arguments, for a clone of the estimator."""
        return type(self)(self._title, self._n_rows, transient=self._transient, quiet=self._quiet)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_progress": None, "_rows": None, "_task": None, "_lines": ExitStack()}

    def on_fit_begin(self, estimator: Any) -> None:
        """Start the display of a fit; it says "seeding" until the first iteration."""
        if not _logger.isEnabledFor(logging.INFO):  # If INFO is enabled, log lines would break the bar.
            self.__enter__()
        self._name = self._title or type(estimator).__name__
        rounds = hasattr(estimator, "max_rounds")  # X-means and G-means have rounds, to which `tol` does not apply.
        limit, tol = (estimator.max_rounds, None) if rounds else (estimator.max_iter, getattr(estimator, "tol", None))
        self._pace = Pace(limit, tol)
        self._n_init = 1 if rounds else getattr(estimator, "n_init", 1)
        self._unit = "round" if rounds else "iteration"
        self._mixture = hasattr(estimator, "n_components")
        if self._progress is not None:
            self._task = self._progress.add_task(f"{self._name} seeding", total=None, figures="")
        above, log = self._progress is not None, logging.getLogger(getattr(estimator, "_log", "cprime"))
        if self._quiet or (self._transient and (above or _logger.isEnabledFor(logging.INFO))):
            return
        if self._transient:
            minutes = logging.StreamHandler(sys.stderr)
            minutes.addFilter(lambda record: hasattr(record, "iteration"))
            self._lines.enter_context(_handled_by(minutes, log, logging.INFO))
        else:
            self._lines.enter_context(
                _handled_by(_LogAboveBar(self._progress.console), log) if above else shown(log=log)
            )

    def on_iteration(self, row: Mapping[str, Any]) -> None:
        """Update the bar after an iteration; row: values of this iteration, as in `history_`."""
        if self._progress is None:
            return
        iteration, pace = row["iteration"], self._pace
        pace.add(iteration, row["change"], row["seconds"])
        left = pace.iterations_left
        start = f" start {row['start']}/{self._n_init}" if self._n_init > 1 else ""
        self._progress.update(
            self._task,
            total=pace.max_iter if left is None else iteration + left,
            completed=iteration,
            description=f"{self._name}{start} {iteration}/{pace.max_iter}",
            figures=self._figures(row),
        )

    def on_fit_end(self, estimator: Any) -> None:
        """Show the last line of the bar, then stop it and restore the logging settings."""
        if self._progress is not None and self._task is not None:
            task = self._progress.tasks[self._task]
            self._progress.update(self._task, total=task.completed or 1, completed=task.completed or 1)
        self._task = None
        self._lines.close()
        self.__exit__(None, None, None)

    def _figures(self, row: Mapping[str, Any]) -> str:
        shown = [self._reached(row), f"{row['seconds']:.3g} s/{self._unit}"]
        if row["agreement"] is not None:
            shown.insert(1, f"agreement {row['agreement']:.3f}")
        seconds = self._pace.seconds_left
        if seconds is not None and seconds >= 0.5:
            shown.append(f"~{_duration(seconds)} left")
        return "  ".join(shown)

    def _reached(self, row: Mapping[str, Any]) -> str:
        """Return the objective of the fit as text: F, J, another objective, or the number of clusters and BIC."""
        if "criterion" in row:
            return f"{row['n_clusters']} clusters  BIC {row['criterion']:.6g}"
        if "objective" in row:
            clusters = f"{row['n_clusters']} clusters  " if "n_clusters" in row else ""
            return f"{clusters}objective {row['objective']:.6g}"
        return f"F {row['lower_bound']:.5f}" if self._mixture else f"J {row['quantization_error']:.6g}"


def _duration(seconds: float) -> str:
    """Return a duration as text, for example "42 s", "3:07 min" or "1:30 h"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, whole = divmod(whole, 60)
    return f"{minutes}:{whole:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
