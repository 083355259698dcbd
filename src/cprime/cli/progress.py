"""Progress bars: the iterations of a fit, fed by the callback of the EM loop, and the rows of a pass over chunks."""

from collections.abc import Mapping
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class RowsProgress:
    """Shows on a terminal how far a pass over the data is, if these are several chunks; nothing where stderr is none.

    `rows` is what a source is `watched` by.
    """

    def __init__(self, n_rows: int, *, quiet: bool = False) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._n_rows = n_rows
        self._rows: TaskID | None = None
        self._pass = perf_counter()
        self._rate = ""

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.__exit__(kind, error, traceback)

    def rows(self, begin: int, end: int) -> None:
        """Rows `begin` to `end` are there, and those before are done with; a pass begins with row 0."""
        now = perf_counter()
        if begin == 0:
            self._pass = now
        elif now > self._pass:
            self._rate = f", {begin / (now - self._pass):,.0f} rows/s"
        if self._rows is None and end < self._n_rows:
            self._rows = self._progress.add_task("", total=self._n_rows, figures="")
        if self._rows is not None:
            figures = f"{end:,} of {self._n_rows:,} rows{self._rate}"
            self._progress.update(self._rows, completed=end, description="  pass", figures=figures)


class FitProgress(RowsProgress):
    """Shows a fit too.

    An instance is the callback of a fit: it takes one row of the history after each iteration. Until the
    first comes the fit is seeding.
    """

    def __init__(self, title: str, max_iter: int, n_init: int = 1, n_rows: int = 0, *, quiet: bool = False) -> None:
        super().__init__(n_rows, quiet=quiet)
        self._title = title
        self._max_iter = max_iter
        self._n_init = n_init
        self._start = 0
        self._iteration = 0
        self._task = self._progress.add_task(f"{title} seeding", total=None, figures="")

    def __call__(self, row: Mapping[str, Any], _parameters: object) -> None:
        """Show one iteration."""
        iteration = int(row["iteration"])
        if self._start == 0 or iteration <= self._iteration:
            self._start += 1
        self._iteration = iteration
        start = f" start {self._start}/{self._n_init}" if self._n_init > 1 else ""
        self._progress.update(
            self._task,
            total=self._max_iter,
            completed=iteration,
            description=f"{self._title}{start} {iteration}/{self._max_iter}",
            figures=(
                f"F {row['lower_bound']:.5f}  J {row['quantization_error']:.6g}  {row['seconds']:.3g} s/iteration"
            ),
        )
