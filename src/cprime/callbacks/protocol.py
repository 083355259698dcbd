"""Interface of callbacks, and the conversion of the argument `callbacks` to a list of functions to call."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol


class Callback(Protocol):
    """Interface of callbacks, which are called during a fit; a plain function is used as `on_iteration`.

    Two more methods are called if they exist: `on_fit_begin(estimator)` before anything is computed, and
    `on_fit_end(estimator)` at the end of a fit, also of one that has failed.

    A pickle of a fitted estimator lacks the callbacks that cannot be pickled, and the log names them. Clones and copies
    share the callbacks that cannot be copied.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> class Few:
    ...     def on_iteration(self, row, estimator):
    ...         return row["iteration"] == 2
    >>> km = KMeans(9, init="random", callbacks=Few(), random_state=0).fit(birch(3, random_state=0).data)
    >>> km.n_iter_
    2
    """

    def on_iteration(self, row: Mapping[str, Any], estimator: Any) -> bool | None:
        """Process the values of one iteration; the fit calls this method after each iteration.

        A method that accepts a single argument is called with the row alone, and no copy of the estimator is made.

        Parameters
        ----------
        row : dict
            The row of `history_`, keyed by column name, and these entries: `iteration` and `start` (both counted from
            1), `seconds`, `change` (the value compared with `tol`; for k-medoids the number of medoids replaced, for
            X-means and G-means the decrease of the criterion), and `agreement` (the share of points for which the last
            audit of the search found the best component, or None).
        estimator : estimator
            A copy with the parameters after this iteration. It can predict, but has no `labels_`.

        Returns
        -------
        stop : bool or None
            True ends the fit, including further starts: the estimator is fitted as if max_iter had been reached.
        """
        ...


class CallbackHooks(NamedTuple):
    """Functions through which a fit calls one callback. A method that the callback lacks becomes a function that does
    nothing.

    on_iteration: called with the values of an iteration and a function that returns the estimator; returns whether to
    end the fit    on_fit_begin, on_fit_end: called with the estimator
    """

    on_iteration: Callable[[Mapping[str, Any], Callable[[], Any]], bool]
    on_fit_begin: Callable[[Any], None]
    on_fit_end: Callable[[Any], None]


def resolve(callbacks: Any) -> list[CallbackHooks]:
    """Return the `CallbackHooks` of each callback in the argument `callbacks`, one callback or several.

    Raises
    ------
    TypeError
        If a callback is neither a function nor has a method `on_iteration`, or accepts neither one nor two arguments.
    """
    if callable(callbacks) or hasattr(callbacks, "on_iteration") or not isinstance(callbacks, Iterable):
        callbacks = [callbacks]
    return [_told(callback) for callback in callbacks]


def _told(callback: Any) -> CallbackHooks:
    hook = callback.on_iteration if hasattr(callback, "on_iteration") else callback
    if isinstance(callback, type) or not callable(hook):
        raise TypeError(
            f"callbacks must be functions of a row of the history, or objects with a method on_iteration, got "
            f"{callback!r}."
        )
    row_only = _takes(hook, 1)
    if not row_only and not _takes(hook, 2):
        raise TypeError(f"callbacks are called with (row, estimator) or (row), which {callback!r} does not take.")

    def on_iteration(row: Mapping[str, Any], estimator: Callable[[], Any]) -> bool:
        return (hook(row) if row_only else hook(row, estimator())) is True

    begin, end = (getattr(callback, name, lambda estimator: None) for name in ("on_fit_begin", "on_fit_end"))
    return CallbackHooks(on_iteration, begin, end)


def _takes(hook: Callable[..., Any], n: int) -> bool:
    """Return whether a function accepts n positional arguments; if its signature is unknown, assume that it takes 2."""
    try:
        inspect.signature(hook).bind(*range(n))
    except TypeError:
        return False
    except ValueError:
        return n == 2
    return True
