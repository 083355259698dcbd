"""What a callback is, and how the argument `callbacks` becomes a list of them."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol


class Callback(Protocol):
    """What is told how a fit goes; a function may stand for it, which then is `on_iteration`.

    Two more methods are called if they are there: `on_fit_begin(estimator)` before anything is computed, and
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
        """Called after every iteration; what can be called with the row alone is, and the estimator is not made then.

        Parameters
        ----------
        row : dict
            The row of `history_` by the names of its columns, and `iteration` and `start` (both from 1), `seconds`,
            `change`: what is compared with `tol` (of k-medoids the medoids replaced, of X-means and G-means by how much
            the criterion has fallen), and `agreement`: the share of points whose best component the search finds, by
            its last audit, or None.
        estimator : estimator
            A copy with the parameters as they are after this iteration: it can predict; `labels_` it does not have.

        Returns
        -------
        stop : bool or None
            True ends the fit, further starts too: the estimator is fitted as if max_iter had been reached.
        """
        ...


class Told(NamedTuple):
    """A callback with the names of its hooks resolved.

    on_iteration: of a row and a function that gives the estimator    on_fit_begin, on_fit_end: of the estimator
    """

    on_iteration: Callable[[Mapping[str, Any], Callable[[], Any]], bool]
    on_fit_begin: Callable[[Any], None]
    on_fit_end: Callable[[Any], None]


def resolve(callbacks: Any) -> list[Told]:
    """The argument `callbacks` as hooks: None, a callback, or several.

    Raises
    ------
    TypeError
        If one is neither a function nor has a method `on_iteration`, or that takes neither one nor two arguments.
    """
    if callbacks is None:
        return []
    if callable(callbacks) or hasattr(callbacks, "on_iteration") or not isinstance(callbacks, Iterable):
        callbacks = [callbacks]
    return [_told(callback) for callback in callbacks]


def _told(callback: Any) -> Told:
    hook = callback.on_iteration if hasattr(callback, "on_iteration") else callback
    if isinstance(callback, type) or not callable(hook):
        raise TypeError(
            f"callbacks must be functions of a row of the history, or objects with a method on_iteration, got "
            f"{callback!r}."
        )
    if _takes(hook, 1):

        def on_iteration(row: Mapping[str, Any], estimator: Callable[[], Any]) -> bool:
            return hook(row) is True
    elif _takes(hook, 2):

        def on_iteration(row: Mapping[str, Any], estimator: Callable[[], Any]) -> bool:
            return hook(row, estimator()) is True
    else:
        raise TypeError(f"callbacks are called with (row, estimator) or (row), which {callback!r} does not take.")
    return Told(on_iteration, getattr(callback, "on_fit_begin", _nothing), getattr(callback, "on_fit_end", _nothing))


def _takes(hook: Callable[..., Any], n: int) -> bool:
    """Whether it can be called with n positional arguments; what has no signature can with all."""
    try:
        inspect.signature(hook).bind(*range(n))
    except TypeError:
        return False
    except ValueError:
        return n == 2
    return True


def _nothing(estimator: Any) -> None:
    pass
