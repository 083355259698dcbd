"""The NumPy twin of the search by bounds; see `reference.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import arguments as check
from cprime.kernels.native_bounds import Bounds, Moves
from cprime.kernels.reference_local import check_ids, squared_distances

__all__ = ["nearest_bounded"]

_MARGIN = 4  # roundings of the data's precision by which bounds give way


def nearest_bounded(
    X: NDArray, centers: NDArray, bounds: Bounds, moves: Moves, *, n_threads: int | None = None
) -> tuple[NDArray, int]:
    """Find the nearest center of each row by bounds that outlive an iteration (Hamerly 2010, Drake & Hamerly 2012).

    After the moves, with u the distance to the center of before, c:
        lows_b − drift_b bounds the distance to other b,
        max_r min(rest − spread_cr, reach_cr − u) that to all of the rest,
    for what is nearer to c than reach has moved by spread at most, and what is not is reach − u away by the triangle
    inequality. Others whose bound is not above the least distance so far are measured; where the bound of the rest is
    not above it in the end, all centers are, and the bounds begin anew.

    X (n, D), centers (C, D) of one dtype T; bounds: changed in place; moves: see `Moves`
    returns squared distances (n,) T to bounds.labels, the nearest by (distance, id), and the number of evaluations
    """
    check.matrix(X, "X")
    check.centers(centers, X)
    C, n_others = len(centers), bounds.others.shape[1]
    check_ids("bounds.labels", bounds.labels[:, None], len(X), 0, C)
    check_ids("bounds.others", bounds.others, len(X), 0, C)
    up, down = 1 + _MARGIN * np.finfo(X.dtype).eps, 1 - _MARGIN * np.finfo(X.dtype).eps
    distances, n_evaluations = np.empty(len(X), dtype=X.dtype), 0
    for n, squared in enumerate(squared_distances(X, centers).astype(X.dtype)):
        own = int(bounds.labels[n])
        u = np.sqrt(squared[own]) * up
        n_evaluations += 1
        rest = np.minimum(bounds.rest[n] - moves.spread[own], moves.reach[own] - u).max()
        lows = bounds.lows[n] - moves.drift[bounds.others[n]]
        others = bounds.others[n].copy()
        for b in range(n_others):
            if lows[b] > np.sqrt(squared[own]) * up:
                continue
            n_evaluations += 1
            if (squared[others[b]], others[b]) < (squared[own], own):
                own, others[b] = int(others[b]), own
            lows[b] = np.sqrt(squared[others[b]]) * down
        if not rest > np.sqrt(squared[own]) * up:
            n_evaluations += C
            own, *others = np.argsort(squared, kind="stable")[: n_others + 1]
            lows = np.sqrt(squared[others]) * down
            rest = lows.max(initial=0.0) if n_others + 1 < C else np.inf
        bounds.labels[n], bounds.others[n], bounds.lows[n], bounds.rest[n] = own, others, lows, rest
        distances[n] = squared[own]
    return distances, n_evaluations
