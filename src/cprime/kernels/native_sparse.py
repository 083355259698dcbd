"""Kernels that do otherwise for sparse rows than for rows of arrays; the same functions by name and meaning.

The others serve both, as the core does. What they mean is what the twins in `reference*.py` make of `X.dense()`.
"""

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import arguments as check
from cprime.kernels.arguments import Floats
from cprime.kernels.native import min_distances, nearest, posterior
from cprime.kernels.native_bounds import Bounds, Moves, check_moves, check_state
from cprime.kernels.native_local import nearest_among, reassign
from cprime.kernels.sparse import Sparse, as_rows

_VALUES = 2**22  # numbers of a table at a time
_MARGIN = 4  # roundings by which bounds give way


def extent(X: Sparse, origin: Floats | None = None, *, n_threads: int | None = None) -> tuple[float, float]:
    """See `native.extent`."""
    if not len(X) or not X.shape[1]:
        return 0.0, 0.0
    origin = X[:1].dense()[0] if origin is None else origin
    values, columns = X.entries
    with np.errstate(invalid="ignore", over="ignore"):
        largest = float(np.abs(values).max(initial=0))
        spread = float(np.abs(values - origin[columns]).max(initial=0))
    zeros = np.bincount(columns, minlength=X.shape[1]) < len(X)  # columns in which a row has none
    return largest, max(spread, float(np.abs(origin[zeros]).max(initial=0)))


def projected(X: Sparse, direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """See `native.projected`."""
    values, columns = X.entries
    return np.bincount(X.owners, values * direction[columns], len(X)).astype(np.float64, copy=False)


def squares(X: Sparse) -> NDArray[np.float64]:
    """See `native.squares`."""
    squared = np.square(X.entries[0], dtype=np.float64)
    return np.bincount(X.owners, squared, len(X)).astype(np.float64, copy=False)


def gather(X: Sparse, order: NDArray[np.int64], *, n_threads: int | None = None) -> Floats:
    """X[order] for rows."""
    return as_rows(X[check.positions(order, "order")])


def log_sum_exp(X: Sparse, centers: Floats, variance: float, *, n_threads: int | None = None) -> NDArray[np.float64]:
    """See `native.log_sum_exp`."""
    centers = check.centers(centers, as_rows(X))
    scale = -0.5 / check.variance(variance)
    out, step = np.empty(len(X)), max(1, _VALUES // len(centers))
    for begin in range(0, len(X), step):
        rows = slice(begin, begin + step)
        squared = min_distances(as_rows(X[rows]), centers, n_threads=n_threads)
        out[rows] = posterior(np.ascontiguousarray(squared.T), scale, n_threads=n_threads).log_sum
    return out


def nearest_bounded(
    X: Sparse, centers: Floats, bounds: Bounds, moves: Moves, *, n_threads: int | None = None
) -> tuple[Floats, int]:
    """See `native_bounds.nearest_bounded`: the same rules, for many rows at a time."""
    centers = check.centers(centers, as_rows(X))
    check_state(bounds, len(X), len(centers), X.dtype)
    check_moves(moves, len(centers), X.dtype)
    for name in ("labels", "others"):
        check.refuse_components(len(centers), 0, **{f"bounds.{name}": getattr(bounds, name)})
    distances, n_evaluations = np.empty(len(X), dtype=X.dtype), 0
    step = max(1, _VALUES // max(1, moves.reach.shape[1]))
    for begin in range(0, len(X), step):
        part = slice(begin, begin + step)
        distances[part], n = _settled(
            as_rows(X[part]), centers, Bounds._make(array[part] for array in bounds), moves, n_threads
        )
        n_evaluations += n
    return distances, n_evaluations


def _settled(X: Floats, centers: Floats, bounds: Bounds, moves: Moves, n_threads: int | None) -> tuple[Floats, int]:
    n, C, n_others = len(X), len(centers), bounds.others.shape[1]
    eps = float(np.finfo(X.dtype).eps)
    up, down = 1 + _MARGIN * eps, 1 - _MARGIN * eps
    no_lists = np.empty((C, 0), dtype=np.int32)
    own = bounds.labels
    squared = reassign(X, centers, no_lists, own.copy(), n_threads=n_threads)[1]
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
        found = nearest_among(few, centers, no_lists, ids, 1 + n_others, n_threads=n_threads)
        n_evaluations += int((offered >= 0).sum())
        _exchange(bounds, lows, squared, asked, found.kept, found.distances, down)
        limit = np.sqrt(squared) * up
    bounds.lows[...], bounds.rest[...] = lows, rest
    open_rows = np.flatnonzero(~(rest > limit))
    if len(open_rows):
        H = min(n_others + 2, C)
        kept, there = nearest(X[open_rows], centers, H, n_threads=n_threads)
        n_evaluations += len(open_rows) * C
        bounds.labels[open_rows], squared[open_rows] = kept[:, 0], there[:, 0]
        bounds.others[open_rows] = kept[:, 1 : n_others + 1]
        bounds.lows[open_rows] = np.sqrt(there[:, 1 : n_others + 1]) * down
        bounds.rest[open_rows] = np.sqrt(there[:, -1]) * down if n_others + 2 == H else np.inf
    return squared, n_evaluations


def _exchange(
    bounds: Bounds,
    lows: Floats,
    squared: Floats,
    rows: NDArray[np.intp],
    ids: NDArray[np.int32],
    distances: Floats,
    down: float,
) -> None:
    """The nearest of what was measured becomes the label, and each of the others has its bound.

    ids, distances (m, 1 + B): what was measured for these rows, the nearest first, −1 behind the last
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
