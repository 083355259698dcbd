"""Calls of callbacks (of this library and of scikit-learn) during a fit, and decorators of the methods that fit."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from cprime.callbacks import ProgressBar, resolve
from cprime.estimators.solutions import without_solution
from cprime.kernels import computing

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # The installed scikit-learn is older than version 1.9.

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty replacement of scikit-learn's mixin, because scikit-learn before 1.9 has no callbacks."""

    def _with_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `fit` without a change of what it does: replacement of scikit-learn's decorator of this name.

        It returns a function that calls `fit`, not `fit` itself, so that call stacks are as deep as with scikit-learn
        1.9, where the decorator also adds one call.
        """

        @wraps(fit)
        def run(*args: Any, **kwargs: Any) -> Any:
            return fit(*args, **kwargs)

        return run


__all__ = ["CallbackSupportMixin", "Watch", "unfitted_copy", "with_callbacks"]

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


def with_callbacks(fit: F) -> F:
    """Decorate the method `fit` so that scikit-learn's callbacks are called, and keep its type for type checkers."""
    decorated: F = _with_callbacks(fit)
    return decorated


def unfitted_copy(estimator: Any) -> Any:
    """Return a copy of an estimator without the results of its fit, but with the names and number of features."""
    view = copy.copy(estimator)
    view.__dict__ = without_solution(vars(estimator))
    return view


class Watch:
    """Object that a fit calls after each iteration, and that calls all callbacks of the estimator.

    The call returns True if a callback requests the end of the fit.
    given: the arguments X, y and sample_weight of `fit`
    standing: function of the state of a fit that returns the estimator as it would be if the fit ended in this state
    """

    def __init__(self, estimator: Any, given: tuple[Any, Any, Any], standing: Callable[[Any], Any]):
        told = [] if estimator.callbacks is None else resolve(estimator.callbacks)
        if estimator.verbose:
            told += resolve(ProgressBar())
        self._estimator, self._given, self._standing, self._told = estimator, given, standing, told
        self._tasks: _Tasks | None = None
        self.listened = bool(told) or bool(getattr(estimator, "_skl_callbacks", []))  # whether there are any callbacks
        self.asked = False  # Whether a callback has requested the end of the fit.

    def best_of(self, n_starts: int, max_iter: int, run: Callable[[Any], tuple[float, bool, R]]) -> R:
        """Run several starts of a fit, and return the result of the start with the least objective.

        Starts end early if a callback requests the end of the fit.
        run: function that runs one start. Its argument is the function to call after each iteration. It returns the
        objective, whether a callback has requested the end of the fit, and the result of the start.
        """
        best: tuple[float, R] | None = None
        with self.fit(n_starts, max_iter):
            for number in range(1, n_starts + 1):
                with self.start(number) as callback:
                    objective, stopped, found = run(callback)
                if best is None or objective < best[0]:
                    best = objective, found
                if stopped:
                    break
        assert best is not None
        return best[1]

    @contextmanager
    def fit(self, n_starts: int, max_iter: int) -> Iterator[None]:
        """Notify the callbacks when a fit begins and when it ends; the fit is the content of the `with` block.

        n_starts: maximum number of starts    max_iter: maximum number of iterations of each start
        """
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
        """Notify the callbacks when a start of the fit begins and ends; the start is the content of the `with` block.

        number: number of the start, from 1
        Yields a function that reports one iteration, with the arguments of `__call__`. It adds the values `start` (the
        number) and `agreement` (None) to the row, for fits whose rows lack these.
        """
        if self._tasks is not None:
            self._tasks.begin_start()
        yield lambda row, state, over: self({**row, "start": number, "agreement": None}, state, over)
        if self._tasks is not None:
            self._tasks.end_start()

    def __call__(self, row: Mapping[str, Any], state: Any, over: bool) -> bool:
        """Report one iteration to all callbacks, and return whether one of them requests the end of the fit.

        row: values of the iteration, such as F and seconds, by name    state: state of the fit after the iteration
        over: whether this iteration is the last of its start
        """
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
    """Tasks of one fit in the sense of scikit-learn's callbacks.

    Callbacks are notified when a task begins or ends. The task of the fit contains starts; a start contains iterations.
    """

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
        if self._iteration is not None:  # The last iteration of a start is not reported if it was rejected.
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


def restore_on_error(fit: F) -> F:
    """Decorate a method that fits, so that an error or an interruption leaves all attributes as they were before.

    The method runs in the context `computing`, which sets the number of threads.
    """

    @wraps(fit)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            with computing(self.n_threads):
                return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__ = before  # A second interruption cannot mix old and new attributes, because this is one step.
            raise

    return run  # type: ignore[return-value]
