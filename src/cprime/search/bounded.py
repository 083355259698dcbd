"""Exact search by bounds: Lloyd's algorithm with lower bounds of distances that are stored between iterations.

If centers move, bounds are reduced by upper bounds of the moves. By the triangle inequality, the bounds then show for
most points that no other center has become nearer (Elkan 2003, Hamerly 2010, Drake & Hamerly 2012, Newling & Fleuret
2016). For such a point only the distance to its own center is evaluated. All centers are evaluated only if the bounds
of a point do not suffice. Memory is O(N). Results are bit-identical to those of `Full`.

Bounds are valid only if costs are squared distances, and points do not move in the space of the distances. For other
models, such as Gaussians with their own covariances, all components are evaluated, as in `Full`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key
from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Dense, DistanceBounds, Floats, Moves, Rows
from cprime.neighbors import without_self
from cprime.neighbors.components import Components
from cprime.search.base import BaseSearch, Look, Lookup, Sample, SearchStats
from cprime.search.full import FullLookup

# Number of centers, besides the nearest one, for which each point has a separate lower bound of the distance.
_OTHERS = 3
# Bounds are used as soon as an iteration reassigns at most this share of the points.
_FEW_MOVE = 0.15
# Number of nearest centers of each center whose moves get separate upper bounds, the center itself included. First
# number: for data of few dimensions. Second number: for data of more dimensions.
_FEW, _MANY = 15, 63
# Greatest number of dimensions for which the moves of 15 nearest centers, and not 63, get separate upper bounds.
_LOW = 4
# Upper bounds of moves of centers are multiplied by this number. It exceeds 1 by more than the relative rounding error
# of a sum of squares in float64.
_UP = 1 + 1e-6


@dataclass(frozen=True)
class ComparingLookup:
    """Search of a block of points among all components, which also counts the reassigned points.

    The search `Bounded` uses it in first passes. Once at most 15 % of points are reassigned, it uses bounds instead.
    """

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        found = FullLookup()(block, points, kept, components, n_kept)
        weighted = block.n_weighted
        moved = weighted if kept is None else block.count(found.kept.winners != kept.winners)
        return replace(found, stats=SearchStats(weighted, moved))


@dataclass(frozen=True)
class BoundedLookup:
    """Search of a block of points by bounds of distances. If bounds do not suffice, all centers are evaluated.

    moves: upper bounds of the moves of the centers since the last pass
    others (C, 3): for points that have no bounds yet, ids of the 3 other centers that get separate bounds: row c is for
    points whose nearest center is c. None if all points have bounds
    """

    moves: Moves
    others: NDArray[np.int32] | None

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        assert kept is not None
        if kept.bounds is None:
            assert self.others is not None
            others = self.others[kept.winners]
            nothing = np.zeros(others.shape, dtype=points.dtype), np.zeros(len(points), dtype=points.dtype)
            bounds = DistanceBounds(kept.winners.copy(), others, *nothing)
        else:
            # The kernel updates these bounds in place, so `Bounded.undone` discards all bounds after a rejected pass.
            bounds = kept.bounds
        distances, n_distances = points.nearest_bounded(components.centers, bounds, self.moves)
        after = ActiveSet(bounds.labels[:, np.newaxis].copy(), distances[:, np.newaxis], bounds)
        return Lookup(after, n_distances, SearchStats(block.n_weighted))


@storable("search.BoundedState")
@dataclass(frozen=True)
class BoundedState:
    """State of the search `Bounded`, which skips centers by bounds of distances.

    bounding: whether bounds are in use    n_weighted: number of points of positive weight
    centers (C, D): centers of the last pass    neighbors (C, G): ids of the nearest centers of each center
    moves: upper bounds of the moves of the centers since the last pass; None until bounds are in use
    others (C, 3): ids of the 3 other centers that get separate bounds: row c is for points whose nearest center is c.
    None except before the first pass with bounds
    """

    bounding: bool = False
    n_weighted: int = 0
    centers: Floats | None = None
    neighbors: NDArray[np.int32] | None = None
    moves: Moves | None = None
    others: NDArray[np.int32] | None = None


@storable("search.Bounded")
@dataclass(frozen=True, repr=False)
class Bounded(BaseSearch):
    """Exact search by bounds of distances.

    All C centers are evaluated in the first iterations, because many points are reassigned. In later iterations, bounds
    of distances exclude most centers.

    Parameters
    ----------
    certificate : int, default=1000
        As in `Full`.
    final_assignment : {"auto", "exact", "found"}, default="auto"
        As in `Full`.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.search import Bounded, Full
    >>> X = birch(3, random_state=0).data
    >>> one, other = (KMeans(9, search=search, random_state=0).fit(X) for search in (Bounded(), Full()))
    >>> bool((one.labels_ == other.labels_).all())
    True
    """

    exact: ClassVar[bool] = True
    keeps_winners: ClassVar[bool] = False
    warmup: ClassVar[int] = 0
    stores_bounds: ClassVar[bool] = True

    def begin(self, components: Components, n_kept: int, assigned: bool, key: Key) -> tuple[BoundedState, Look | None]:
        return BoundedState(), None

    def refresh(self, state: BoundedState, components: Components) -> tuple[BoundedState, int]:
        if not state.bounding:
            return state, 0
        assert state.centers is not None
        centers = components.centers
        drift = np.sqrt(np.square(centers.astype(np.float64) - state.centers).sum(axis=1)) * _UP
        # With this factor, upper bounds of the centers' moves remain upper bounds after rounding to the centers' dtype.
        drift *= 1 + np.finfo(centers.dtype).eps
        lists, squared = _neighbors(centers, state.n_weighted, state.neighbors)
        moves = _moves(centers, lists, squared, drift.astype(centers.dtype))
        others = np.ascontiguousarray(without_self(lists)[:, :_OTHERS]) if state.moves is None else None
        return replace(state, neighbors=lists, moves=moves, others=others), math.comb(len(centers), 2)

    def look(self, state: BoundedState, components: Components, key: Key) -> Look:
        if state.moves is None:
            return ComparingLookup() if components.steady else FullLookup()
        return BoundedLookup(state.moves, state.others)

    def learn(
        self, state: BoundedState, look: Look, components: Components, stats: SearchStats, sample: Sample, key: Key
    ) -> tuple[BoundedState, int]:
        bounding = components.steady and len(components.centers) > 1 and stats.n_moved <= _FEW_MOVE * stats.n_weighted
        return replace(state, bounding=bounding, n_weighted=stats.n_weighted, centers=components.centers), 0

    def jumped(self, state: BoundedState, one: NDArray[np.intp], cut: NDArray[np.intp], share: float) -> BoundedState:
        return BoundedState()  # without bounds, because they are invalid after centers have jumped

    def undone(self, state: BoundedState) -> BoundedState:
        return BoundedState()  # without bounds, because they may refer to the centers of the rejected pass


def _neighbors(centers: Floats, n_points: int, before: NDArray[np.int32] | None) -> tuple[NDArray[np.int32], Floats]:
    """Return the indices of the G nearest centers of each center, itself included, and their squared distances.

    The moves of these near centers get separate bounds. Both results are (C, G), sorted by distance. G = C if the
    computation of all C² distances takes little time compared with the E-step of n_points points.
    before (C, G): result for earlier centers, which affects only the time, or None
    """
    C, D = centers.shape
    G = min(_FEW if D <= _LOW else _MANY, C)
    if G == C or (D > _LOW and n_points > C * C):
        squared = Dense(centers).distances(centers)
        order = np.argsort(squared, axis=1)
        return order.astype(np.int32), np.take_along_axis(squared, order, axis=1)
    hint = before if before is not None and before.shape[1] == G else None
    return Dense(centers).nearest(centers, G, hint=hint)


def _moves(centers: Floats, lists: NDArray[np.int32], squared: Floats, drift: Floats) -> Moves:
    """Return upper bounds of the centers' moves (`Moves`), by which lower bounds of distances are updated.

    drift (C,): upper bound of the move of each center
    lists, squared (C, G): indices of the G nearest centers of each center, and squared distances to them
    """
    C, G = lists.shape
    reach, spread = np.empty((2, C, G + 1), dtype=centers.dtype)
    share = 1 - (centers.shape[1] + 12) * np.finfo(centers.dtype).eps
    reach[:, :G] = np.sqrt(squared) * share
    reach[:, G] = np.inf
    moved = np.where(lists == np.arange(C)[:, np.newaxis], -np.inf, drift[lists])
    spread[:, 0], spread[:, 1:] = -np.inf, np.maximum.accumulate(moved, axis=1)
    farthest = drift.argmax()
    spread[:, G] = drift[farthest]
    spread[farthest, G] = np.delete(drift, farthest).max()
    return Moves(drift, reach, spread)
