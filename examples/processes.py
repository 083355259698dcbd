"""What examples with processes of their own share: hearing the iterations of a fit, and a process that tells of itself.

Knows no particular example.
"""

import logging
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

_CONTEXT = multiprocessing.get_context("spawn")


class Iteration(NamedTuple):
    """What the log of the library says of an iteration: its number, F, J, points that moved, seconds."""

    number: int
    F: float
    J: float
    n_moved: int
    seconds: float


class _Ear(logging.Handler):
    def __init__(self, hear: Callable[[Iteration], None]):
        super().__init__()
        self.hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("iteration") and isinstance(record.args, tuple):
            self.hear(Iteration(*record.args))


@contextmanager
def heard(hear: Callable[[Iteration], None]) -> Iterator[None]:
    """While it lasts, `hear` is called after every iteration of a fit in this process."""
    logger, ear = logging.getLogger("cprime"), _Ear(hear)
    level = logger.level
    logger.addHandler(ear)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(ear)


def begun(function: Callable[..., None], *args: Any) -> tuple[BaseProcess, Connection]:
    """A new process that calls `function(connection, *args)`, and the other end of the connection."""
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=function, args=(theirs, *args))
    process.start()
    theirs.close()
    return process, ours


def told(process: BaseProcess, connection: Connection) -> list[Any]:
    """All that a process sends until it ends, however that is."""
    found = []
    try:
        while True:
            found.append(connection.recv())
    except EOFError:
        process.join()
        connection.close()
    return found
