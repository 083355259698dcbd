"""The nearest center of every row by bounds that outlive an iteration (Hamerly 2010, Drake & Hamerly 2012).

After the moves of centers, with u the distance to the center of before, c:
    lows_b − drift_b bounds the distance to other b,
    max_r min(rest − spread_cr, reach_cr − u) that to all of the rest,
for what is nearer to c than reach has moved by spread at most, and what is not is reach − u away by the triangle
inequality. Others whose bound is not above the least distance so far are measured; where the bound of the rest is not
above it in the end, all centers are, and the bounds begin anew.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._storable import storable
from cprime._threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats, costs_of

if TYPE_CHECKING:
    from cprime.kernels.rows import Rows

_WIDTH = 16  # a multiple of the numbers in a vector
_VALUES = 2**22  # numbers of a table at a time
_MARGIN = 4  # roundings of the data's precision by which bounds give way


@storable("kernels.Bounds")
class Bounds(NamedTuple):
    """What is known of every row's distances to C centers; bounds are of the dtype of X, in data units.

    Bounds of 0 or less say nothing: with labels and others at will, that is how to begin.

    labels (n,) int32: the nearest one
    others (n, B) int32: further ones, distinct    lows (n, B): at least so far from the row
    rest (n,): at least so far are all that are neither
    """

    labels: NDArray[np.int32]
    others: NDArray[np.int32]
    lows: Floats
    rest: Floats


@storable("kernels.Moves")
class Moves(NamedTuple):
    """How far centers have moved at most since `Bounds` were made; all of the dtype of X, in data units.

    drift (C,): each of them
    reach, spread (C, R): of the centers other than c that are nearer to c than reach_cr none has moved farther than
    spread_cr, −∞ where there are none; both rise, and the last reach is ∞
    """

    drift: Floats
    reach: Floats
    spread: Floats


def nearest_bounded(
    X: CoreRows, centers: Floats, bounds: Bounds, moves: Moves, *, n_threads: int | None = None
) -> tuple[Floats, int]:
    """The nearest center of every row, by (distance, id), from what is known of it, `bounds`, which are renewed.

    centers (C, D)  ->  squared distances (n,) to bounds.labels, both those of `nearest`, and the number of evaluations:
    the distance to the center of before, those to others where bounds do not exclude them, and all C where the bound of
    the rest does not.
    """
    centers = check.centers(centers, X)
    n, C = len(X), len(centers)
    check_state(bounds, n, C, X.dtype)
    drift = check_moves(moves, C, X.dtype)
    reach, spread = (_widened(array, X.dtype) for array in moves[1:])
    distances = np.empty(n, dtype=X.dtype)
    threads = resolve_threads(n_threads)
    with check.naming(C, **{"bounds.labels": (bounds.labels, 0), "bounds.others": (bounds.others, 0)}):
        n_evaluations = X.kernels.nearest_bounded(X.core, centers, drift, reach, spread, distances, *bounds, threads)
    return distances, n_evaluations


def nearest_bounded_twin(
    X: Floats,
    centers: Floats,
    drift: Floats,
    reach: Floats,
    spread: Floats,
    distances: Floats,
    labels: NDArray,
    others: NDArray,
    lows: Floats,
    rest: Floats,
    n_threads: int,
) -> int:
    """Row by row."""
    C, n_others = len(centers), others.shape[1]
    for ids in (labels, others):
        check.inside(ids, 0, C)
    up, down = 1 + _MARGIN * np.finfo(X.dtype).eps, 1 - _MARGIN * np.finfo(X.dtype).eps
    n_evaluations = 0
    for n, squared in enumerate(costs_of(X, centers).astype(X.dtype)):
        own = int(labels[n])
        u = np.sqrt(squared[own]) * up
        n_evaluations += 1
        new_rest = np.minimum(rest[n] - spread[own], reach[own] - u).max()
        new_lows, new_others = lows[n] - drift[others[n]], others[n].copy()
        for b in range(n_others):
            if new_lows[b] > np.sqrt(squared[own]) * up:
                continue
            n_evaluations += 1
            if (squared[new_others[b]], new_others[b]) < (squared[own], own):
                own, new_others[b] = int(new_others[b]), own
            new_lows[b] = np.sqrt(squared[new_others[b]]) * down
        if not new_rest > np.sqrt(squared[own]) * up:
            n_evaluations += C
            own, *new_others = np.argsort(squared, kind="stable")[: n_others + 1]
            new_lows = np.sqrt(squared[new_others]) * down
            new_rest = new_lows.max(initial=0.0) if n_others + 1 < C else np.inf
        labels[n], others[n], lows[n], rest[n], distances[n] = own, new_others, new_lows, new_rest, squared[own]
    return n_evaluations


def nearest_bounded_by_tables(
    X: "Rows", centers: Floats, bounds: Bounds, moves: Moves, *, n_threads: int | None = None
) -> tuple[Floats, int]:
    """The same rules for many rows at a time, of rows of which the core has no kernel of them."""
    centers = check.centers(centers, X)
    check_state(bounds, len(X), len(centers), X.dtype)
    check_moves(moves, len(centers), X.dtype)
    with check.naming(len(centers), **{"bounds.labels": (bounds.labels, 0), "bounds.others": (bounds.others, 0)}):
        for ids in (bounds.labels, bounds.others):
            check.inside(ids, 0, len(centers))
    distances, n_evaluations = np.empty(len(X), dtype=X.dtype), 0
    step = max(1, _VALUES // max(1, moves.reach.shape[1]))
    for begin in range(0, len(X), step):
        part = slice(begin, begin + step)
        mine = Bounds._make(array[part] for array in bounds)
        distances[part], n = _settled(X[part], centers, mine, moves, n_threads)
        n_evaluations += n
    return distances, n_evaluations


def _settled(X: "Rows", centers: Floats, bounds: Bounds, moves: Moves, n_threads: int | None) -> tuple[Floats, int]:
    n, C, n_others = len(X), len(centers), bounds.others.shape[1]
    eps = float(np.finfo(X.dtype).eps)
    up, down = 1 + _MARGIN * eps, 1 - _MARGIN * eps
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
        found = few.among(centers, no_lists, ids, 1 + n_others, n_threads=n_threads)
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


def _widened(array: Floats, dtype: np.dtype) -> Floats:
    """The array with −∞ behind it, up to whole vectors."""
    C, R = array.shape
    wide = np.full((C, -(-R // _WIDTH) * _WIDTH), -np.inf, dtype=dtype)
    wide[:, :R] = array
    return wide


def check_moves(moves: Moves, n_components: int, dtype: np.dtype) -> Floats:
    """The drift as the core reads it."""
    drift = check.contiguous(moves.drift, dtype)
    if drift.shape != (n_components,):
        raise ValueError(f"moves.drift must have shape ({n_components},), got {drift.shape}")
    if moves.reach.shape != moves.spread.shape or moves.reach.ndim != 2 or len(moves.reach) != n_components:
        raise ValueError(
            f"moves.reach and moves.spread must have shape ({n_components}, any), got {moves.reach.shape} and "
            f"{moves.spread.shape}"
        )
    return drift


def check_state(bounds: Bounds, n: int, n_components: int, dtype: np.dtype) -> None:
    """Bounds are written to: they are taken as they are, or not at all."""
    width = check.width(bounds.others, "bounds.others")
    if not width < n_components:
        raise ValueError(f"bounds.others must have fewer columns than there are centers, {n_components}, got {width}")
    shapes = Bounds((n,), (n, width), (n, width), (n,))  # type: ignore[arg-type]
    dtypes = Bounds(np.int32, np.int32, dtype, dtype)  # type: ignore[arg-type]
    for name in Bounds._fields:
        array, shape, wanted = getattr(bounds, name), getattr(shapes, name), np.dtype(getattr(dtypes, name))
        if array.shape != shape or array.dtype != wanted or not array.flags.carray:
            raise ValueError(
                f"bounds.{name} must be contiguous, writeable {wanted} of shape {shape}, "
                f"got {array.dtype} of {array.shape}"
            )
