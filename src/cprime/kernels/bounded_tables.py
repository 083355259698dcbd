"""Nearest-center search by distance bounds, many rows at a time, for rows without a compiled kernel (sparse rows)."""

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import arguments as check
from cprime.kernels.bounds import MARGIN, DistanceBounds, Moves, check_moves, check_state
from cprime.kernels.measures import Floats
from cprime.kernels.rows import Rows

_VALUES = 2**22  # maximum number of distances that are computed at a time, to limit memory


def nearest_bounded_by_tables(
    X: Rows, centers: Floats, bounds: DistanceBounds, moves: Moves, *, n_threads: int | None = None
) -> tuple[Floats, int]:
    """Find the nearest center of every row by distance bounds, for rows without a compiled kernel (sparse rows).

    centers (C, D)    bounds: lower bounds of distances and nearest centers, updated in place
    moves: upper bounds of the moves of centers since the bounds were computed
    Returns squared distances (n,) to the nearest centers, and the number of evaluated distances.
    """
    centers = check.matrix(centers, "centers", X, 1)
    check_state(bounds, len(X), len(centers), X.dtype)
    check_moves(moves, len(centers), X.dtype)
    check.ids(len(centers), **{"bounds.labels": (bounds.labels, 0), "bounds.others": (bounds.others, 0)})
    distances, n_evaluations = np.empty(len(X), dtype=X.dtype), 0
    step = max(1, _VALUES // max(1, moves.reach.shape[1]))
    for begin in range(0, len(X), step):
        part = slice(begin, begin + step)
        mine = DistanceBounds._make(array[part] for array in bounds)
        distances[part], n = _settled(X[part], centers, mine, moves, n_threads)
        n_evaluations += n
    return distances, n_evaluations


def _settled(
    X: Rows, centers: Floats, bounds: DistanceBounds, moves: Moves, n_threads: int | None
) -> tuple[Floats, int]:
    """Find the nearest centers of n rows by distance bounds; update in place the bounds and labels in `bounds`.

    First the distances to the previous nearest centers are evaluated, then those to other centers that have their own
    bound that does not exclude them, and at last all distances of rows for which the bounds do not suffice.
    Returns squared distances (n,), and the number of evaluated distances.
    """
    n, C, n_others = len(X), len(centers), bounds.others.shape[1]
    eps = float(np.finfo(X.dtype).eps)
    up, down = 1 + MARGIN * eps, 1 - MARGIN * eps
    no_lists = np.empty((C, 0), dtype=np.int32)
    own = bounds.labels
    squared = X.own_distances(centers, own.copy(), n_threads=n_threads)
    limit = np.sqrt(squared) * up
    rest = np.minimum(bounds.rest[:, np.newaxis] - moves.spread[own], moves.reach[own] - limit[:, np.newaxis]).max(
        axis=1
    )
    rest = np.where(rest > 0, rest * down, rest)
    lows = bounds.lows - moves.drift[bounds.others]
    lows = np.where(lows > 0, lows * down, lows)
    asked = np.flatnonzero((lows <= limit[:, np.newaxis]).any(axis=1))
    n_evaluations = n
    if len(asked):
        few = X[asked]
        offered = np.where(lows[asked] <= limit[asked, np.newaxis], bounds.others[asked], -1)
        ids = np.column_stack([own[asked], offered])
        found = few.search_lists(centers, no_lists, ids, 1 + n_others, n_threads=n_threads)
        n_evaluations += int((offered >= 0).sum())
        _exchange(bounds, lows, squared, asked, found.kept, found.costs, down)
        limit = np.sqrt(squared) * up
    bounds.lows[...], bounds.rest[...] = lows, rest
    open_rows = np.flatnonzero(~(rest > limit))
    if len(open_rows):
        H = min(n_others + 2, C)
        kept, there = X[open_rows].nearest(centers, H, n_threads=n_threads)
        n_evaluations += len(open_rows) * C
        bounds.labels[open_rows], squared[open_rows] = kept[:, 0], there[:, 0]
        bounds.others[open_rows] = kept[:, 1 : n_others + 1]
        bounds.lows[open_rows] = np.sqrt(there[:, 1 : n_others + 1]) * down
        bounds.rest[open_rows] = np.sqrt(there[:, -1]) * down if n_others + 2 == H else np.inf
    return squared, n_evaluations


def _exchange(
    bounds: DistanceBounds,
    lows: Floats,
    squared: Floats,
    rows: NDArray[np.intp],
    ids: NDArray[np.int32],
    distances: Floats,
    down: float,
) -> None:
    """Update the nearest centers and the lower bounds of m rows, after distances to some centers were evaluated.

    bounds: two of its arrays are updated in place: `labels`, the nearest center of each row, and `others`, the B other
    centers of each row that have their own lower bound. If one of these becomes the nearest center of a row, the
    previous nearest center replaces it in `others`.
    lows (n, B): lower bounds of the distances to `others`, updated in place
    squared (n,): squared distances of all rows to their nearest centers, updated in place
    rows (m,): indices of the m rows
    ids, distances (m, 1 + B): evaluated centers of each row, padded with −1, and squared distances, nearest first
    down: factor below 1 that allows for rounding errors in the lower bounds
    """
    before, winner = bounds.labels[rows], ids[:, 0]
    bounds.labels[rows], squared[rows] = winner, distances[:, 0]
    others = bounds.others[rows]
    others = np.where(others == winner[:, np.newaxis], before[:, np.newaxis], others)
    bounds.others[rows] = others
    low = np.sqrt(distances) * down
    for column in range(1, ids.shape[1]):
        there = (others == ids[:, column, np.newaxis]) & (ids[:, column, np.newaxis] >= 0)
        row, place = np.nonzero(there)
        lows[rows[row], place] = low[row, column]
