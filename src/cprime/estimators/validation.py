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
# With n_active="auto", mixtures of at most EXACT_AUTO components are fitted by exact EM, larger ones keep KEPT_AUTO.
EXACT_AUTO, KEPT_AUTO = 16, 5
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


def check_mixture(estimator: Any) -> None:
    """The arguments of a mixture."""
    check_common(estimator)
    C = check_integer(estimator.n_components, "n_components", 1)
    check_real(estimator.reg_covar, "reg_covar", 0.0)
    for name, choices, supported in (
        ("covariance_type", COVARIANCE_TYPES, "tied_spherical"),
        ("weights", ("equal", "free"), "equal"),
        ("assignment", ("soft", "hard", "posterior"), "soft"),
    ):
        value = check_choice(getattr(estimator, name), name, choices)
        if value != supported:
            raise ValueError(f"{name}={value!r} is not supported yet; use {name}={supported!r}.")
    if estimator.weights_init is not None:
        weights = np.asarray(estimator.weights_init, dtype=np.float64)
        if weights.shape != (C,) or not np.allclose(weights, 1 / C):
            raise ValueError(
                f"weights_init must be n_components={C} times 1/n_components where weights='equal', "
                f"got {estimator.weights_init!r}."
            )
    if estimator.precisions_init is not None:
        check_real(estimator.precisions_init, "precisions_init", np.nextafter(0, 1))
    resolve_n_active(estimator.n_active, C)


def resolve_n_active(n_active: Any, n_components: int) -> int:
    """C′ from the argument: None is all components, "auto" all of a small mixture and a few of a large one."""
    if n_active is None:
        return n_components
    if isinstance(n_active, str):
        check_choice(n_active, "n_active", ("auto",))
        return n_components if n_components <= EXACT_AUTO else KEPT_AUTO
    n_active = check_integer(n_active, "n_active", 1)
    if n_active > n_components:
        raise ValueError(f"n_active must be at most n_components={n_components}, got {n_active}.")
    return n_active


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
