"""Wrappers of methods that fit: callbacks of this library and of scikit-learn, and attributes that change together."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from cprime.callbacks import ProgressBar, resolve
from cprime.estimators.solutions import without_solution
from cprime.kernels import computing

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty replacement of scikit-learn's mixin, because scikit-learn before 1.9 has no callbacks."""

    def with_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
        """Return `fit` in a wrapper without effect, so that the call stack is as deep as with scikit-learn 1.9."""

        @wraps(fit)
        def run(*args: Any, **kwargs: Any) -> Any:
            return fit(*args, **kwargs)

        return run


__all__ = ["CallbackSupportMixin", "Watch", "unfitted_copy", "with_callbacks"]

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


def unfitted_copy(estimator: Any) -> Any:
    """Return a copy of an estimator without the results of its fit; the description of the columns stays."""
    view = copy.copy(estimator)
    view.__dict__ = without_solution(vars(estimator))
    return view


class Watch:
    """Callable that a fit calls after each iteration, and that calls all callbacks of the estimator.

    The call returns True if a callback requests the end of the fit.
    given: the arguments X, y and sample_weight of `fit`
    standing: function of a run's state that returns the estimator as it would be if the run ended in this state
    """

    def __init__(self, estimator: Any, given: tuple[Any, Any, Any], standing: Callable[[Any], Any]):
        told = resolve(estimator.callbacks)
        if estimator.verbose:
            told += resolve(ProgressBar())
        self._estimator, self._given, self._standing, self._told = estimator, given, standing, told
        self._tasks: _Tasks | None = None
        self.asked = False  # whether a callback has requested the end of the fit

    def best_of(self, n_starts: int, max_iter: int, run: Callable[[Any], tuple[float, bool, R]]) -> R:
        """Make several starts of a fit, and return the result of the one with the least objective.

        run: function of a callback that makes one start. It returns the objective, whether a callback has requested the
        end of the fit, and the result of the start.
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

    @property
    def listened(self) -> bool:
        """Return whether there is any callback to call."""
        return bool(self._told) or bool(getattr(self._estimator, "_skl_callbacks", []))

    @contextmanager
    def fit(self, n_starts: int, max_iter: int) -> Iterator[None]:
        """Call the callbacks before and after a fit inside this context.

        n_starts: number of starts at most    max_iter: number of iterations of each start at most
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
        """Report to the callbacks that a start of the fit, numbered from 1, begins and ends with this context.

        Yields a function that reports one iteration. It adds `start` (the number) and `agreement` (None) to the row of
        the history, for fits that have no search and do not count starts.
        """
        if self._tasks is not None:
            self._tasks.begin_start()
        yield lambda row, state, over: self({**row, "start": number, "agreement": None}, state, over)
        if self._tasks is not None:
            self._tasks.end_start()

    def __call__(self, row: Mapping[str, Any], state: Any, over: bool) -> bool:
        """Report one iteration to all callbacks, and return whether one of them requests the end of the fit.

        row: values of the iteration    state: state of the run after it    over: whether this iteration is the last
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
    """Tasks of one fit, as scikit-learn's callbacks need them: the fit contains starts, a start contains iterations."""

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
        if self._iteration is not None:  # an iteration is not ended yet if its pass was rejected
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
    """Return the method `fit` in a wrapper that restores all attributes if the method raises or is interrupted.

    The method runs in the context `computing`, which sets the number of threads.
    """

    @wraps(fit)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            with computing(self.n_threads):
                return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__ = before  # one assignment, so that a second interruption cannot mix old and new attributes
            raise

    return run  # type: ignore[return-value]
