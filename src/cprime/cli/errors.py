"""Error handling of commands: one line on stderr for an error or a warning, exit codes, and Ctrl-C."""

import functools
import logging
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., None])


def one_line_errors(command: F) -> F:
    """Decorate a command: errors that the user can correct end it with ``error: …`` on stderr and exit code 1.

    These errors are a missing or unreadable file, wrong data, a missing optional package, too little memory, or a full
    disk. No traceback is printed for them. Ctrl-C also ends the command with one line, ``interrupted`` and the message
    of the KeyboardInterrupt, and exit code 130. If the pipe that reads the output is closed, the command ends silently
    with exit code 1.

    Any other exception is a defect of the program and keeps its traceback.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: say("warning", str(message))
            handler = _Lines(level=logging.WARNING)
            logger = logging.getLogger("cprime")
            logger.addHandler(handler)
            notes, sources = _Lines(level=logging.INFO), logging.getLogger("cprime.sources")
            notes.addFilter(lambda record: record.levelno < logging.WARNING)
            before = sources.level
            sources.addHandler(notes)
            sources.setLevel(logging.INFO)
            try:
                command(*args, **kwargs)
                sys.stdout.flush()
            except BrokenPipeError as error:
                _forget_output()
                raise click.exceptions.Exit(1) from error
            except KeyboardInterrupt as stop:
                sys.stderr.write(f"interrupted{f': {stop}' if str(stop) else ''}\n")
                sys.stderr.flush()
                raise click.exceptions.Exit(130) from stop
            except (ValueError, OSError, ImportError, MemoryError) as error:
                _forget_output()
                say("error", describe(error))
                raise click.exceptions.Exit(1) from error
            finally:
                sources.setLevel(before)
                sources.removeHandler(notes)
                logger.removeHandler(handler)

    return run  # type: ignore[return-value]


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
