"""The compiled search by bounds that outlive an iteration; its twin is in `reference_bounds.py`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import Floats
from cprime.kernels.native import median_origin

_WIDTH = 16  # a multiple of the numbers in a vector


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
    X: Floats, centers: Floats, bounds: Bounds, moves: Moves, *, n_threads: int | None = None
) -> tuple[Floats, int]:
    """The nearest center of every row, by (distance, id), from what is known of it, `bounds`, which are renewed.

    X (n, D), centers (C, D)  ->  squared distances (n,) to bounds.labels, both those of `nearest`, and the number of
    evaluations: the distance to the center of before, those to others where bounds do not exclude them, and all C where
    the bound of the rest does not.
    """
    X = check.matrix(X, "X")
    centers = check.centers(centers, X)
    n, C = len(X), len(centers)
    check_state(bounds, n, C, X.dtype)
    drift = check_moves(moves, C, X.dtype)
    reach, spread = (_widened(array, X.dtype) for array in moves[1:])
    distances = np.empty(n, dtype=X.dtype)
    origin, threads = median_origin(centers), resolve_threads(n_threads)
    try:
        n_evaluations = _core.nearest_bounded(X, centers, origin, drift, reach, spread, distances, *bounds, threads)
    except ValueError:
        check.refuse_components(C, 0, **{"bounds.labels": bounds.labels, "bounds.others": bounds.others})
        raise
    return distances, n_evaluations


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
