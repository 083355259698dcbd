"""Messages for users: memory sizes as text, warnings that point at the user's code, errors about missing libraries."""

import logging
import re
import sys
import warnings
from importlib import import_module
from numbers import Real
from typing import Any

UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    UNITS |= {f"{_letter}B": 1000**_power, f"{_letter}IB": 1024**_power}
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*")
_ACCEPTED = 'a number of bytes, or a text such as "8GB" with one of the units kB, MB, GB, TB, KiB, MiB, GiB, TiB'


def bytes_of(value: Any, name: str) -> int:
    """Return the number of bytes, at least 1, that an argument specifies as a number or a text such as "8GB".

    Raises
    ------
    ValueError, TypeError
        If the value is invalid; the message has the argument's name.
    """
    if isinstance(value, bool) or not isinstance(value, str | Real):
        raise TypeError(f"{name} must be {_ACCEPTED}, not {type(value).__name__}.")
    found: float = 0.0
    if isinstance(value, str):
        match = _AMOUNT.fullmatch(value)
        unit = None if match is None else UNITS.get(match[2].upper())
        if match is None or unit is None:
            raise ValueError(f"{name} must be {_ACCEPTED}, got {value!r}.")
        found = float(match[1]) * unit
    else:
        found = float(value)
    if not 1 <= found < 2**63:
        raise ValueError(f"{name} must be at least 1 byte and below 2⁶³, got {value!r}.")
    return int(found)


def shown_bytes(n: int) -> str:
    """Return a number of bytes as text, in the largest unit up to GiB in which the number is at least 1."""
    if n < 1024:
        return f"{n} bytes"
    size = float(n)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024 or unit == "GiB":
            break
    return f"{size:,.1f} {unit}"


def iteration_level(before: float, seconds: float) -> int:
    """Return the level of the log line of an iteration: INFO for the first one of a minute, DEBUG for all others.

    before: seconds of the run before the iteration    seconds: those of the iteration
    """
    return logging.INFO if (before + seconds) // 60 > before // 60 else logging.DEBUG


_INSIDE = ("cprime", "sklearn")  # packages whose code is not the user's


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that names a line of the user's code.

    This is the innermost line of the call stack that is not code of cprime or scikit-learn.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_if_few(n_found: int, n_clusters: int, cause: str = "duplicate points in X") -> None:
    """Warn if fewer clusters were found than requested, probably because of `cause`."""
    if n_found < n_clusters:
        # Imported here and not above, because the command line's help needs this module, but not scikit-learn.
        from sklearn.exceptions import ConvergenceWarning

        warn(
            f"Number of distinct clusters ({n_found}) found smaller than n_clusters ({n_clusters}). "
            f"Possibly due to {cause}.",
            ConvergenceWarning,
        )


# Names of packages on PyPI that differ from those of their modules.
_DISTRIBUTIONS = {"lance": "pylance", "faiss": "faiss-cpu"}


def require(module: str, name: str) -> Any:
    """Import and return a module. If it is missing, raise ImportError that says how to install it.

    name: feature that needs the module, for the message
    """
    library = module.split(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        distribution = _DISTRIBUTIONS.get(library, library)
        raise ImportError(f"{name} needs {library}, which is missing: pip install {distribution}") from error
