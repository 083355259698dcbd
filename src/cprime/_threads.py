"""How many threads a call may use."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from threading import Thread
from typing import Any

# What `n_threads=None` means to the calls of this context: a fit sets it once for all that it does.
_limit: ContextVar[int | None] = ContextVar("n_threads", default=None)


def resolve_threads(n_threads: int | None) -> int:
    """The number of threads meant by `n_threads`: None is the limit that is set, else every processor allowed."""
    if n_threads is None:
        n_threads = _limit.get()
    if n_threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
        raise ValueError(f"n_threads must be None or an integer >= 1, got {n_threads!r}")
    return int(n_threads)


@contextmanager
def limited(n_threads: int | None) -> Iterator[None]:
    """While it lasts, calls of this context without a number of their own use so many threads; None changes nothing."""
    if n_threads is None:
        yield
        return
    token = _limit.set(resolve_threads(n_threads))
    try:
        yield
    finally:
        _limit.reset(token)


def in_background(function: Callable[..., object], *arguments: Any, daemon: bool = False) -> Thread | None:
    """Begins a thread that makes this call; where the system gives no more threads, the caller makes it at once."""
    thread = Thread(target=function, args=arguments, daemon=daemon)
    try:
        thread.start()
    except RuntimeError:
        function(*arguments)
        return None
    return thread
