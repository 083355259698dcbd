"""Checks of arguments, worded as scikit-learn words them; strings become objects here and nowhere below."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, check_scalar

from cprime._threads import resolve_threads
from cprime.search import FullSearch, Search

COVARIANCE_TYPES = ("tied_spherical", "spherical", "diag", "tied", "full")
SEARCHES = ("auto", "full", "exact", "estimated", "graph")


def check_integer(value: Any, name: str, least: int) -> int:
    """`value` as an int, or an error that says what came."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an instance of int, not bool.")
    return int(check_scalar(value, name, Integral, min_val=least))


def check_real(value: Any, name: str, least: float) -> float:
    """`value` as a finite float, or an error that says what came."""
    value = float(check_scalar(value, name, Real, min_val=least))
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}.")
    return value


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """`value` if it is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}.")
    return value


def check_common(estimator: Any) -> None:
    """The arguments that every estimator here has."""
    check_integer(estimator.n_init, "n_init", 1)
    check_integer(estimator.max_iter, "max_iter", 1)
    check_real(estimator.tol, "tol", 0.0)
    check_integer(estimator.n_neighbors, "n_neighbors", 1)
    check_integer(estimator.n_explore, "n_explore", 0)
    if estimator.n_warmup != "auto":
        check_integer(estimator.n_warmup, "n_warmup", 0)
    resolve_threads(estimator.n_threads)


def check_weights(sample_weight: Any, X: NDArray) -> NDArray[np.float64] | None:
    """Weights as float64, or None; not negative and not all zero."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must have at least one positive entry, got zeros only.")
    return weights


def resolve_search(name: str) -> Search:
    """The search object of a name."""
    check_choice(name, "search", SEARCHES)
    if name not in ("auto", "full"):
        raise ValueError(f"search={name!r} is not supported yet; use 'full' or 'auto'.")
    return FullSearch()


@contextmanager
def shown(verbose: int) -> Iterator[None]:
    """While it lasts, the library's log goes to standard error if `verbose` asks for it and nobody listens already."""
    logger = logging.getLogger("cprime")
    if not verbose or logger.isEnabledFor(logging.INFO):
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("[cprime] %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
