"""Signals whose handlers raise, for tests of what they interrupt."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    pass


@contextmanager
def interrupting(signum: signal.Signals, timer: int) -> Iterator[Callable[[float], object]]:
    """Gives what sets the timer [s], whose signal raises in the main thread; ends with both as they were."""

    def interrupt(signum, frame):
        raise Interrupted

    before = signal.signal(signum, interrupt)
    try:
        yield lambda seconds: signal.setitimer(timer, seconds)
    finally:
        signal.setitimer(timer, 0)
        signal.signal(signum, before)
