"""Error handling of commands: one line on stderr for an error or a warning, exit codes, Ctrl-C and SIGTERM."""

import functools
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., None])


class Terminated(KeyboardInterrupt):
    """Interruption by SIGTERM, which Kubernetes and Slurm send before they end a process."""


def one_line_errors(command: F) -> F:
    """Decorate a command: errors that the user can correct end it with ``error: …`` on stderr and exit code 1.

    These errors are a missing or unreadable file, wrong data, a missing optional package, too little memory, or a full
    disk. No traceback is printed for them. Ctrl-C also ends the command with one line, ``interrupted`` and the message
    of the KeyboardInterrupt, and exit code 130. SIGTERM does the same with exit code 143. If the pipe that reads the
    output is closed, the command ends silently with exit code 1. The option --verbose writes the library's whole log,
    one line for each record, to stderr, otherwise its warnings and its notes about data.

    Any other exception is a defect of the program and keeps its traceback.
    """

    @functools.wraps(command)
    def run(*args: Any, verbose: bool = False, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: say("warning", str(message))
            handler, shown = _Lines(), logging.getLogger("cprime" if verbose else "cprime.sources")
            handler.addFilter(
                lambda record: verbose or record.levelno >= logging.WARNING or record.name.startswith("cprime.sources")
            )
            logger = logging.getLogger("cprime")
            logger.addHandler(handler)
            before = shown.level
            shown.setLevel(logging.DEBUG if verbose else logging.INFO)
            try:
                with _interrupted_by_sigterm():
                    command(*args, **kwargs)
                sys.stdout.flush()
            except BrokenPipeError as error:
                _forget_output()
                raise click.exceptions.Exit(1) from error
            except KeyboardInterrupt as stop:
                sys.stderr.write(f"interrupted{f': {stop}' if str(stop) else ''}\n")
                sys.stderr.flush()
                raise click.exceptions.Exit(exit_code(stop)) from stop
            except (ValueError, OSError, ImportError, MemoryError) as error:
                _forget_output()
                say("error", describe(error))
                raise click.exceptions.Exit(1) from error
            finally:
                shown.setLevel(before)
                logger.removeHandler(handler)

    return run  # type: ignore[return-value]


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Context manager in which SIGTERM raises `Terminated`; without effect in other threads than the main one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a command that Ctrl-C (130) or SIGTERM (143) has interrupted, as in a shell."""
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def _forget_output() -> None:
    """Discard buffered output that cannot be written, so that it is not written again when the process ends."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def say(kind: str, message: str) -> None:
    """Write one line to stderr: ``kind: message``; control characters are escaped."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(message.split()))
    with suppress(OSError):  # stderr may be closed
        sys.stderr.write(f"{kind}: {shown}\n")
        sys.stderr.flush()


def describe(error: BaseException) -> str:
    """Return the message of an exception; for an OSError, the file name and the reason without the error number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, MemoryError):
        return f"not enough memory{f': {error}' if str(error) else ''}"
    return str(error) or type(error).__name__


class _Lines(logging.Handler):
    """Log handler that writes each record as one line to the current stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        say("note" if record.levelno < logging.WARNING else record.levelname.lower(), record.getMessage())
