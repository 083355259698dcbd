"""Handling of callbacks when estimators are copied or pickled: which are copied, shared or dropped."""

import copy
import logging
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_logger = logging.getLogger("cprime")
_keeps_all: ContextVar[bool] = ContextVar("whether states of estimators have all callbacks", default=False)


@contextmanager
def all_callbacks() -> Iterator[None]:
    """Let `__getstate__` of estimators return all callbacks inside this context, also those that cannot be pickled."""
    token = _keeps_all.set(True)
    try:
        yield
    finally:
        _keeps_all.reset(token)


def picklable(callbacks: Any, owner: str) -> Any:
    """Return the argument `callbacks` without the callbacks that cannot be pickled; the log names those left out.

    Inside `all_callbacks` the argument is returned unchanged. A single callback (not in a sequence) that cannot be
    pickled is replaced by None. owner: class name of the estimator, for the log
    """
    if callbacks is None or _keeps_all.get():
        return callbacks
    if not _are_several(callbacks):
        return callbacks if _can_be_pickled(callbacks, owner) else None
    kept = [callback for callback in callbacks if _can_be_pickled(callback, owner)]
    return callbacks if len(kept) == len(callbacks) else kept


def deep_copied(callbacks: Any, memo: dict[int, Any]) -> Any:
    """Return a deep copy of the argument `callbacks`; callbacks that cannot be copied are shared."""
    attempt = memo.copy()  # A copy, because a failed deepcopy leaves partly copied objects in `memo`.
    try:
        copied = copy.deepcopy(callbacks, attempt)
    except Exception as error:  # methods of the callbacks may raise any error
        if _are_several(callbacks):
            return [deep_copied(callback, memo) for callback in callbacks]
        _logger.info("callback %r cannot be copied (%s): the copy of the estimator has the same one", callbacks, error)
        return callbacks
    memo.update(attempt)
    return copied


def _are_several(callbacks: Any) -> bool:
    """Return whether the argument is a sequence of callbacks, not a single callback (which may be a sequence, too)."""
    return isinstance(callbacks, Sequence) and not callable(callbacks) and not hasattr(callbacks, "on_iteration")


def _can_be_pickled(callback: Any, owner: str) -> bool:
    """Return whether a callback can be pickled, possibly with a reference to its own estimator; log if it cannot."""
    try:
        with all_callbacks():
            pickle.dumps(callback)
    except Exception as error:  # methods of the callback may raise any error
        _logger.warning("callback %r cannot be pickled (%s): the pickled %s does not have it", callback, error, owner)
        return False
    return True
