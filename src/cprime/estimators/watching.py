"""Between the loops and who is told how a fit goes: callbacks of this library, and those of scikit-learn."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

from cprime.callbacks import ProgressBar, resolve

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No estimator of this scikit-learn has callbacks of its protocol."""

    def with_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
        """A fit as it is, as deep in the stack as that of later ones."""

        @wraps(fit)
        def run(*args: Any, **kwargs: Any) -> Any:
            return fit(*args, **kwargs)

        return run


__all__ = ["CallbackSupportMixin", "Watch", "unfitted_copy", "with_callbacks"]


def unfitted_copy(estimator: Any) -> Any:
    """A copy without what it has found, but for the features that it has been given and what is done to rows."""
    view = copy.copy(estimator)
    kept = ("n_features_in_", "feature_names_in_", "preparation_")
    view.__dict__ = {name: value for name, value in vars(estimator).items() if name[-1] != "_" or name in kept}
    return view


class Watch:
    """What the loop reports to during a fit; True once a callback has asked for its end.

    given: what `fit` was given, as X, y and sample_weight
    standing: the estimator as it would be if a run ended where it stands, of what the loop says of that
    """

    def __init__(self, estimator: Any, given: tuple[Any, Any, Any], standing: Callable[[Any], Any]):
        told = resolve(estimator.callbacks)
        if estimator.verbose:
            told += resolve(ProgressBar())
        self._estimator, self._given, self._standing, self._told = estimator, given, standing, told
        self._tasks: _Tasks | None = None
        self.asked = False  # whether a callback has asked for the end

    @property
    def listened(self) -> bool:
        """Whether there is anybody to be told."""
        return bool(self._told) or bool(getattr(self._estimator, "_skl_callbacks", []))

    @contextmanager
    def fit(self, n_starts: int, max_iter: int) -> Iterator[None]:
        """A whole fit, of at most so many starts and iterations of each."""
        estimator = self._estimator
        if getattr(estimator, "_skl_callbacks", []):
            self._tasks = _Tasks(estimator, *self._given)
            self._tasks.begin_fit(n_starts, max_iter)
        begun = []
        try:
            for told in self._told:
                begun.append(told)
                told.on_fit_begin(estimator)
            yield
            if self._tasks is not None:
                self._tasks.end_fit()
        finally:
            for told in begun:
                told.on_fit_end(estimator)

    @contextmanager
    def start(self, number: int) -> Iterator[Callable[[Mapping[str, Any], Any, bool], bool]]:
        """One of its starts, from 1; gives what loops tell that look at all components and know of no starts."""
        if self._tasks is not None:
            self._tasks.begin_start()
        yield lambda row, state, over: self({**row, "start": number, "agreement": None}, state, over)
        if self._tasks is not None:
            self._tasks.end_start()

    def __call__(self, row: Mapping[str, Any], state: Any, over: bool) -> bool:
        """An iteration, where the run stands after it, and whether it ends there."""
        made: list[Any] = []

        def estimator() -> Any:
            if not made:
                made.append(self._standing(state))
            return made[0]

        stops = [told.on_iteration(row, estimator) for told in self._told]
        if self._tasks is not None:
            stops.append(self._tasks.end_iteration(estimator))
            if not (any(stops) or over):
                self._tasks.begin_iteration()
        self.asked = any(stops)
        return self.asked


class _Tasks:
    """A fit as scikit-learn's callbacks see it: starts, and in them iterations."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any):
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._estimator, self._data = estimator, {"X": X, "y": y, "metadata": metadata}
        self._fit: Any = None
        self._start: Any = None
        self._iteration: Any = None

    def begin_fit(self, n_starts: int, max_iter: int) -> None:
        self._max_iter = max_iter
        self._fit = self._begun(self._estimator._init_callback_context(max_subtasks=n_starts))

    def begin_start(self) -> None:
        self._start = self._begun(self._fit.subcontext(task_name="start", max_subtasks=self._max_iter))
        self.begin_iteration()

    def begin_iteration(self) -> None:
        self._iteration = self._begun(self._start.subcontext(task_name="iteration"))

    def end_iteration(self, estimator: Callable[[], Any]) -> bool:
        task, self._iteration = self._iteration, None
        return self._ended(task, estimator)

    def end_start(self) -> None:
        if self._iteration is not None:  # the last pass was taken back
            self._ended(self._iteration)
            self._iteration = None
        self._ended(self._start)

    def end_fit(self) -> None:
        self._ended(self._fit)

    def _begun(self, task: Any) -> Any:
        return task.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def _ended(self, task: Any, standing: Callable[[], Any] | None = None) -> bool:
        def attributes() -> dict[str, Any]:
            assert standing is not None
            return {name: value for name, value in vars(standing()).items() if name.endswith("_")}

        given = self._data if standing is None else self._data | {"reconstruction_attributes": attributes}
        return task.call_on_fit_task_end(estimator=self._estimator, **given) is True
