"""Checks of single arguments. Errors name the argument, its value, and what is expected."""

import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_scalar

_LARGEST = 2**63 - 1  # largest integer of the compiled code


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the argument's name in front of the message of a TypeError or ValueError that lacks it.

    Libraries that convert or check a value raise errors that do not say which argument had this value.
    """
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(error)):
            raise
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{name}: {error}") from error


def check_integer(value: Any, name: str, least: int, most: int = _LARGEST) -> int:
    """Return `value` as an int; raise TypeError if it is not an integer, ValueError unless `least` ≤ value ≤ `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an instance of int, not {type(value).__name__}.")
    value = int(value)
    if value < least:
        raise ValueError(f"{name} == {value}, must be >= {least}.")
    if value > most:
        raise ValueError(f"{name} == {value}, must be <= {most}.")
    return value


def check_integers(values: Any, name: str, least: int) -> list[int]:
    """Return the different integers of an iterable in ascending order; raise TypeError or ValueError otherwise."""
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} must be an iterable of integers, got {values!r}.")
    found = sorted({check_integer(value, name, least) for value in values})
    if not found:
        raise ValueError(f"{name} must have at least one entry, got none.")
    return found


def check_real(value: Any, name: str, least: float) -> float:
    """Return `value` as a finite float; raise TypeError if it is no number, ValueError if infinite or below `least`."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value}.")
    try:
        value = float(check_scalar(value, name, Real, min_val=least))
    except OverflowError:  # The conversion of a very large integer to float raises this.
        raise ValueError(f"{name} must be at most {np.finfo(np.float64).max:.4g}, got a larger integer.") from None
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}.")
    return value


def check_positive(value: Any, name: str) -> float:
    """Return `value` as a finite float; raise TypeError if it is no number, ValueError unless it is > 0."""
    value = check_real(value, name, -np.inf)
    if not value > 0:
        raise ValueError(f"{name} must be a positive number, got {value}.")
    return value


def check_flag(value: Any, name: str) -> bool:
    """Return `value` as a bool; raise TypeError if it is not a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a bool, got {value!r}.")
    return bool(value)


def check_path(value: Any, name: str) -> str | os.PathLike:
    """Return `value` if it is a path; raise TypeError if it is none, ValueError if it is empty text."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a path, got {value!r}.")
    if not os.fspath(value):
        raise ValueError(f"{name} must be a path, got empty text.")
    return value


def check_file(value: Any, name: str, method: str) -> Any:
    """Return `value` if it is a path, or an object with the method "read" or "write" of an open binary file."""
    if hasattr(value, method) and not isinstance(value, io.TextIOBase):
        return value
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a path or an open binary file, got {value!r}.")
    return check_path(value, name)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of the choices; raise ValueError otherwise."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}.")
    return value
