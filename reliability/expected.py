"""Errors that a case may raise, and errors that it must raise, according to the documentation of its arguments."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliability.space import MIXTURES, Case


@dataclass(frozen=True)
class Refusal:
    """An error that names an argument; pattern: found in its message. must: whether the case has to raise it."""

    pattern: str
    must: bool


def working_type(X: NDArray, layout: str) -> np.dtype:
    """Return the type of computation: float32 for float32 data and types of at most 16 bits, else float64.

    Numbers in lists are Python's: float64, int64, or bool.
    """
    single = X.dtype.kind == "f" and X.dtype.itemsize == 4
    narrow = X.dtype.kind in "iufb" and X.dtype.itemsize <= 2
    if X.dtype.kind == "b" or (layout != "list" and (single or narrow)):
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def refusals(case: Case, X: NDArray, w: Any, layout: str) -> list[Refusal]:
    """Return the errors that a case may or must raise.

    X: rows as generated, in the case's own type; layout: the form in which they are passed
    """
    found = [*_of_data(case, X, w, layout), *_of_weights(case, len(X), w), *_of_arguments(case, X)]
    if layout in ("source", "path", "chunks", "memmap", "memmap F"):
        found.append(Refusal(r"in memory", False))
    return found


def _of_data(case: Case, X: NDArray, w: Any, layout: str) -> list[Refusal]:
    if X.dtype.kind == "c":
        return [Refusal(r"[Cc]omplex", True)]
    dtype = working_type(X, layout)
    with np.errstate(over="ignore"):
        values = X.astype(dtype).astype(np.float64)
    known = values[~np.isnan(values)] if case.params.get("missing") == "marginal" else values
    if len(known) and not np.isfinite(known).all():
        either = r"whose squared distances float(32|64) does not|no rows of zeros"
        return [Refusal(r"NaN|infinity|finite", True), Refusal(either, False)]
    seen = np.isfinite(values[_of_weight(w, len(values))]).any(axis=0)
    if not seen.all():
        return [Refusal(r"X must have a value in every column", True), Refusal(r"whose square", False)]
    found = _of_range(case, values, dtype)
    if case.params.get("metric") == "cosine":
        zero = not values.any(axis=1).all()
        found.append(Refusal(r"zeros|length", zero))
    if case.estimator == "KMeans1D" and X.shape[1] != 1:
        found.append(Refusal(r"X must have one column", True))
    return found


def _of_range(case: Case, X: NDArray[np.float64], dtype: np.dtype) -> list[Refusal]:
    """Return errors of values whose squared distances overflow or whose differences underflow, surely or possibly."""
    single = dtype == np.float32
    most = 2.0 ** (60 if single else 224) / X.shape[1] ** 0.5
    least = 2.0 ** (-51 if single else -280)
    largest, spread = float(np.nanmax(np.abs(X))), float((np.nanmax(X, axis=0) - np.nanmin(X, axis=0)).max())
    if case.estimator == "lightweight":  # accepts whatever float64 can sum
        return [Refusal(r"finite squared distances", False)]
    found = []
    if largest > most / 2 or "@far" in case.params.values():
        found.append(Refusal(r"whose squared distances float(32|64) does not hold", largest > most * 2))
        found.append(Refusal(r"(init|means_init|init_params) contains infinity", False))
    splits = case.estimator in ("XMeans", "GMeans")  # they split subsets of rows, whose differences may be smaller
    if 0 < spread < least * 4 or splits:
        found.append(Refusal(r"whose squares float(32|64) does not hold", not splits and spread < least / 4))
    return found


def _of_weight(w: Any, n: int) -> Any:
    """Return the rows of positive weight, as a mask or slice; all rows if the weights are missing or invalid."""
    w = None if w is None else np.asarray(w, dtype=np.float64)
    return slice(None) if w is None or w.shape != (n,) or not (w > 0).any() else w > 0


def _of_weights(case: Case, n: int, w: Any) -> list[Refusal]:
    if w is None:
        return []
    w = np.asarray(w, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        return [Refusal(r"sample_weight|[Ww]eights", True)]
    found = []
    if not 2.0**-160 < w.sum() < 2.0**160:
        found.append(Refusal(r"sample_weight.* sums to|finite squared", case.estimator != "lightweight"))
    if case.estimator == "KMeans1D" and w.max() > 2.0**64 * w[w > 0].min():
        found.append(Refusal(r"sample_weight must be at most .* times its least", True))
    if case.estimator == "KMedoids" and np.count_nonzero(w) < case.params["n_clusters"]:
        found.append(Refusal(r"sample_weight must have at least n_clusters", True))
    return found


def _of_arguments(case: Case, X: NDArray) -> list[Refusal]:
    params, n = case.params, len(X)
    C = next((params[name] for name in ("n_clusters", "n_components", "min_clusters") if name in params), 1)
    found = []
    if n < C:
        found.append(Refusal(r"n_samples=\d+ should be >= (n_clusters|n_components|min_clusters)=\d+", True))
    search = params.get("search")
    if params.get("jumps"):
        found.append(Refusal(r"jumps=True", bool(params.get("epsilon"))))
    if search in ("bounded", "full", None) or C == 1:
        return found
    if case.estimator != "KMeans" and _n_active(case, C) == C:
        found.append(Refusal(r"search=.* needs n_active < n_components", True))
    return found


def _n_active(case: Case, C: int) -> int:
    n_active = case.params.get("n_active", "auto" if case.estimator in MIXTURES else None)
    hard = case.params.get("assignment") == "hard"
    if n_active == "auto":
        n_active = C if C <= 16 or hard else 5
    n_active = C if n_active is None else n_active
    return 1 if hard and n_active == C else n_active
