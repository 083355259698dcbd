"""Progress bars on a terminal or in a notebook, and the log's lines where there is neither."""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from cprime.callbacks.pace import Pace

_logger = logging.getLogger("cprime")


@contextmanager
def shown(verbose: int = 1, log: logging.Logger = _logger) -> Iterator[None]:
    """While it lasts, the library's log goes to standard error if `verbose` asks for it and nobody listens already.

    log: the part of it that does
    """
    if not verbose or _logger.isEnabledFor(logging.INFO):
        yield
        return
    with _handled_by(logging.StreamHandler(sys.stderr), log):
        yield


@contextmanager
def _handled_by(handler: logging.Handler, log: logging.Logger) -> Iterator[None]:
    handler.setFormatter(logging.Formatter("[cprime] %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class _Above(logging.Handler):
    """Writes the log above a bar, but for the lines of iterations, which the bar shows."""

    def __init__(self, console: Any):
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        if not hasattr(record, "iteration"):
            self._console.print(self.format(record), highlight=False, markup=False)


def _console() -> Any:
    """Of standard error; a notebook's output is known by rich."""
    from rich.console import Console

    return Console(stderr=True)


def _draws(console: Any) -> bool:
    """Whether lines can be drawn anew there."""
    return (console.is_jupyter and find_spec("ipywidgets") is not None) or console.is_terminal


class RowsProgress:
    """Shows how far a pass over the data is, if these are several chunks; nothing where nothing can be drawn.

    Parameters
    ----------
    n_rows : int, default=0
        Rows of the data; `rows` is what a source is `watched` by.
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
        self._n_rows = n_rows
        self._quiet = quiet
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
        """Rows `begin` to `end` are there, and those before are done with; a pass begins with row 0."""
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


class ProgressBar(RowsProgress):
    """A callback that shows how a fit goes: iterations, J or F, agreement, and about how long it will take still.

    On a terminal and in a notebook (with ipywidgets) it is a bar. Elsewhere, in a file say, the library's log is
    written to standard error, a line an iteration. `verbose=1` is this callback.

    Parameters
    ----------
    title : str, default=None
        What is fitted; None is the name of the estimator.
    n_rows : int, default=0
        Rows of data that are read in chunks, if a source is `watched` by `rows`.
    transient : bool, default=False
        Whether nothing is left in the end, and nothing written where there is no bar.
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
        self._transient = transient
        self._title = title
        self._lines = ExitStack()
        self._task: Any = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A bar of its own, for a clone of the estimator."""
        return type(self)(self._title, self._n_rows, transient=self._transient, quiet=self._quiet)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_progress": None, "_rows": None, "_task": None, "_lines": ExitStack()}

    def on_fit_begin(self, estimator: Any) -> None:
        """Show that there is a fit; until the first iteration it is seeding."""
        if not _logger.isEnabledFor(logging.INFO):  # else somebody is told already, and lines would break the bar
            self.__enter__()
        self._name = self._title or type(estimator).__name__
        rounds = hasattr(estimator, "max_rounds")  # of several fits each, where tol is theirs
        most, tol = (estimator.max_rounds, None) if rounds else (estimator.max_iter, getattr(estimator, "tol", None))
        self._pace = Pace(most, tol)
        self._n_init = 1 if rounds else estimator.n_init
        self._unit = "round" if rounds else "iteration"
        self._mixture = hasattr(estimator, "n_components")
        if self._progress is not None:
            self._task = self._progress.add_task(f"{self._name} seeding", total=None, figures="")
        if self._quiet or self._transient:
            return
        above, log = self._progress is not None, logging.getLogger(getattr(estimator, "_log", "cprime"))
        self._lines.enter_context(_handled_by(_Above(self._progress.console), log) if above else shown(log=log))

    def on_iteration(self, row: Mapping[str, Any]) -> None:
        """Show one iteration."""
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
        """Leave the last line, and what has been there before as it was."""
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
        """What the fit has come to."""
        if "criterion" in row:
            return f"{row['n_clusters']} clusters  BIC {row['criterion']:.6g}"
        if "objective" in row:
            return f"objective {row['objective']:.6g}"
        return f"F {row['lower_bound']:.5f}" if self._mixture else f"J {row['quantization_error']:.6g}"


def _duration(seconds: float) -> str:
    """Seconds as people say them."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, whole = divmod(whole, 60)
    return f"{minutes}:{whole:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
