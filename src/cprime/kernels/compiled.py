"""Compiled kernels, wrapped so that one function serves both squared distances and costs of Gaussians."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from cprime import _core as compiled


def nearest(X: Any, measure: Any, hint: Any, kept: Any, costs: Any, n_threads: int) -> None:
    """Find the components of least cost: nearest centers if `measure` is (centers,), and otherwise Gaussians."""
    if len(measure) == 1:
        compiled.nearest(X, measure[0], hint, kept, costs, n_threads)
    else:
        means, factors, offsets, dof = measure
        compiled.best(X, means, factors, offsets, dof, kept, costs, n_threads)


def assign_by_parts(
    kernels: Any,
    X: Any,
    centers: Any,
    before: Any,
    sample_weight: Any,
    kept: Any,
    costs: Any,
    counts: Any,
    sums: Any,
    members: Any,
    n_threads: int,
) -> int:
    """Compute the E-step of k-means by two kernels one after the other: `nearest`, then `accumulate`.

    The results are written to these arrays: kept (n, 1), nearest centers; costs (n, 1), squared distances to them; and
    for each center counts (C,), sum of weights; sums (C, D), sum of weighted rows; members (C,), number of rows of
    positive weight.
    before (n, 1): previous nearest centers, or None    sample_weight (n,): weights, or None
    Returns the number of rows of positive weight whose nearest center changed; None for `before` counts all rows.
    """
    kernels.nearest(X, (centers,), before, kept, costs, n_threads)
    kernels.accumulate(X, kept, None, sample_weight, None, counts, sums, False, n_threads)
    heavy = np.ones(len(kept), dtype=bool) if sample_weight is None else sample_weight > 0
    members[:] = np.bincount(kept[heavy, 0], minlength=len(centers))
    return int(np.count_nonzero(heavy if before is None else heavy & (kept != before)[:, 0]))


def top_k(X: Any, measure: Any, lists: Any, previous: Any, kept: Any, costs: Any, n_threads: int) -> None:
    """Find the best of active sets and neighbor lists: centers if `measure` is (centers,), and otherwise Gaussians."""
    if len(measure) == 1:
        compiled.top_k(X, measure[0], lists, previous, kept, costs, n_threads)
    else:
        means, factors, offsets, dof = measure
        compiled.top_k_gaussians(X, means, factors, offsets, dof, lists, previous, kept, costs, n_threads)


def search_lists(
    X: Any,
    measure: Any,
    lists: Any,
    previous: Any,
    extra: Any,
    kept: Any,
    costs: Any,
    counts: Any,
    evidence: Any,
    sample_weight: Any,
    n_threads: int,
) -> Any:
    """Find the best of each row's own candidates: centers if `measure` is (centers,), and otherwise Gaussians."""
    centers, factors, offsets, dof = measure if len(measure) == 4 else (measure[0], None, None, None)
    return compiled.best_in_lists(
        X,
        centers,
        lists,
        previous,
        extra,
        kept,
        costs,
        counts,
        evidence,
        sample_weight,
        factors,
        offsets,
        dof,
        n_threads,
    )


def stored_rows(array: Any, code: int, dtype: Any, order: Any, lengths: Any) -> Any:
    """Return rows of a narrow type as the object that kernels take if they compute in `dtype`.

    code: integer that identifies the narrow type (uint8, float16 ...) of `array` (m, D)
    order (n,): indices in `array` of the rows, None for all rows
    lengths (m,): numbers by which the rows of `array` are divided when they are read, or None
    """
    kind = compiled.StoredRows32 if dtype == np.float32 else compiled.StoredRows64
    return kind(array, code, order, lengths)


# Names of compiled functions and classes that only the functions of this file use, so `_core` does not have them.
_BEHIND = ("best", "top_k_gaussians", "best_in_lists", "StoredRows32", "StoredRows64")
_core: Any = SimpleNamespace(
    **{name: getattr(compiled, name) for name in dir(compiled) if name[0] != "_" and name not in _BEHIND}
    | {"nearest": nearest, "top_k": top_k, "search_lists": search_lists}
)
