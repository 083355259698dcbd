"""The progress bar of a fit, fed by the callback of the EM loop: iteration, free energy, J, seconds."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class FitProgress:
    """Shows a fit on a terminal, and nothing where stderr is not one.

    An instance is the callback of a fit: it takes one row of the history after each iteration. Until the
    first comes the fit is seeding.
    """

    def __init__(self, title: str, max_iter: int, n_init: int = 1, *, quiet: bool = False) -> None:
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
        self._title = title
        self._max_iter = max_iter
        self._n_init = n_init
        self._start = 0
        self._iteration = 0
        self._task = self._progress.add_task(f"{title} seeding", total=None, figures="")

    def __enter__(self) -> "FitProgress":
        self._progress.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.__exit__(kind, error, traceback)

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
