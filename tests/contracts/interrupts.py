"""Timers whose signals raise an exception, for tests that interrupt kernels."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    pass


@contextmanager
def interrupting(signum: signal.Signals, timer: int) -> Iterator[Callable[[float], object]]:
    """Yield a function that sets a timer [s] whose signal raises in the main thread; restore both afterwards."""

    def interrupt(signum, frame):
        raise Interrupted

    before = signal.signal(signum, interrupt)
    try:
        yield lambda seconds: signal.setitimer(timer, seconds)
    finally:
        signal.setitimer(timer, 0)
        signal.signal(signum, before)
