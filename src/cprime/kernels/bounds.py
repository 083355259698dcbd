"""Nearest center of every row, by distance bounds stored between iterations (Hamerly 2010, Drake & Hamerly 2012).

A few other centers b of each row have their own lower bound lows_b of the distance. All remaining centers have one
common lower bound `rest`. Let the centers move, and let u be the distance of a row to its previous nearest center c
after the move. Then its distance is at least
    lows_b − drift_b to a center b that has moved by drift_b, and
    max_r min(rest − spread_cr, reach_cr − u) to each of the remaining centers.
The second bound uses several radii reach_cr around c, with index r: centers within the radius have moved by at most
spread_cr, and all others are at least reach_cr − u away from the row by the triangle inequality. The distance to b is
evaluated only if its bound does not exceed the least distance so far. If in the end the common bound does not exceed
the least distance, the distances to all centers are evaluated, and all bounds of the row are recomputed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats

# Tables of bounds are padded to a multiple of this number of columns, so that their rows consist of full SIMD vectors.
_WIDTH = 16
# Distance bounds are widened by this multiple of the machine epsilon of their dtype, to allow for rounding errors.
MARGIN = 4


@storable("kernels.Bounds")
class DistanceBounds(NamedTuple):
    """Lower bounds of the distances between n rows X and C centers, in the dtype of X [data unit].

    A bound of 0 or less excludes no center. So bounds can start as 0, and `labels` and `others` as any ids.

    labels (n,) int32: nearest center of each row
    others (n, B) int32: B distinct other centers of each row that have a bound of their own
    lows (n, B): lower bounds of the distances to `others`
    rest (n,): lower bound of the distance to every remaining center
    """

    labels: NDArray[np.int32]
    others: NDArray[np.int32]
    lows: Floats
    rest: Floats


@storable("kernels.Moves")
class Moves(NamedTuple):
    """Upper bounds of the moves of C centers since lower bounds of distances were computed, in X's dtype [data unit].

    drift (C,): bound of the move of each center
    reach, spread (C, R): R radii around each center, and bounds of the moves within them. All centers b ≠ c whose
    distance to center c is less than reach_cr moved by at most spread_cr, which is −∞ if there are none. Both ascend
    with r, and the last reach is ∞.
    """

    drift: Floats
    reach: Floats
    spread: Floats


def nearest_bounded(
    X: CoreRows, centers: Floats, bounds: DistanceBounds, moves: Moves, *, n_threads: int | None = None
) -> tuple[Floats, int]:
    """Find the nearest center of every row with the help of lower bounds of distances, which are updated in place.

    centers (C, D)    bounds: lower bounds, and the nearest center bounds.labels[n] of each row, before and after
    moves: upper bounds of the distances by which centers moved since `bounds` were computed
    Returns squared distances (n,) to the nearest centers, and the number of evaluated distances. Labels and distances
    are the same as those of the exact search `nearest`; ties are resolved by id. For each row, the distance to its
    previous center is evaluated, and the distances to those of its centers bounds.others that their own bounds do not
    exclude. If the common bound does not exclude the remaining centers, all C are evaluated.
    """
    centers = check.matrix(centers, "centers", X, 1)
    n, C = len(X), len(centers)
    check_state(bounds, n, C, X.dtype)
    drift = check_moves(moves, C, X.dtype)
    reach, spread = (_widened(array, X.dtype) for array in moves[1:])
    distances = np.empty(n, dtype=X.dtype)
    threads = resolve_threads(n_threads)
    try:
        n_evaluations = X.kernels.nearest_bounded(X.core, centers, drift, reach, spread, distances, *bounds, threads)
    except ValueError:
        check.ids(C, **{"bounds.labels": (bounds.labels, 0), "bounds.others": (bounds.others, 0)})
        raise
    return distances, n_evaluations


def _widened(array: Floats, dtype: np.dtype) -> Floats:
    """Return a table of bounds in a dtype, with columns of −∞ appended up to a multiple of 16 columns.

    Then its rows consist of full SIMD vectors.
    """
    C, R = array.shape
    wide = np.full((C, -(-R // _WIDTH) * _WIDTH), -np.inf, dtype=dtype)
    wide[:, :R] = array
    return wide


def check_moves(moves: Moves, n_components: int, dtype: np.dtype) -> Floats:
    """Check upper bounds of the moves of C centers; return the bound `moves.drift` (C,) in the given dtype."""
    drift: Floats = check.array(moves.drift, "moves.drift", dtype, n_components)
    if moves.reach.shape != moves.spread.shape or moves.reach.ndim != 2 or len(moves.reach) != n_components:
        raise ValueError(
            f"moves.reach and moves.spread must have shape ({n_components}, any), got {moves.reach.shape} and "
            f"{moves.spread.shape}"
        )
    return drift


def check_state(bounds: DistanceBounds, n: int, n_components: int, dtype: np.dtype) -> None:
    """Raise ValueError if arrays in `bounds` have wrong shapes or types.

    The arrays are not converted, because kernels update them in place.
    n, n_components, dtype: number of rows, number of centers, and type of numbers, for which `bounds` must be made
    """
    if bounds.others.ndim != 2:
        raise ValueError(f"bounds.others must be two-dimensional, got {bounds.others.ndim} dimension(s)")
    width = bounds.others.shape[1]
    if not width < n_components:
        raise ValueError(f"bounds.others must have fewer columns than there are centers, {n_components}, got {width}")
    shapes = DistanceBounds((n,), (n, width), (n, width), (n,))  # type: ignore[arg-type]
    dtypes = DistanceBounds(np.int32, np.int32, dtype, dtype)  # type: ignore[arg-type]
    for name in DistanceBounds._fields:
        array, shape, wanted = getattr(bounds, name), getattr(shapes, name), np.dtype(getattr(dtypes, name))
        if array.shape != shape or array.dtype != wanted or not array.flags.carray:
            raise ValueError(
                f"bounds.{name} must be contiguous, writeable {wanted} of shape {shape}, "
                f"got {array.dtype} of {array.shape}"
            )
