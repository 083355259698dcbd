"""The exact search that remembers: Lloyd's algorithm by bounds on distances, kept from iteration to iteration.

Most points are nearer to their center than any other center can have come, which the triangle inequality tells from how
far centers have moved (Elkan 2003, Hamerly 2010, Drake & Hamerly 2012, Newling & Fleuret 2016). A point costs one
distance then, and a look at all centers only where its bounds have worn out. Memory is of the order N. What is found is
what `Full` finds, bit for bit. Of Gaussians whose costs are no distances between points that stay where they are,
nothing can be remembered: it then looks at all, as `Full` does.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key
from cprime._storable import storable
from cprime._values import replace
from cprime.block import Block, Kept
from cprime.components import Components
from cprime.kernels import Bounds, Dense, Floats, Moves, Rows
from cprime.neighbors import without_self
from cprime.search.base import Look, Lookup, Sample, SearchStats, Value
from cprime.search.full import LookAtAll

_OTHERS = 3  # centers of a point that have a bound of their own
_FEW_MOVE = 0.15  # share of points that may move in an iteration for bounds to be worth beginning
_FEW, _MANY = 15, 63  # nearest centers that are looked up for each, in low dimension and in others
_LOW = 4  # dimensions in which few centers are near one
_UP = 1 + 1e-6  # more than the rounding of a sum of squares in double


@dataclass(frozen=True)
class LookAndCompare:
    """A look at all that says how many points have moved, by which bounds begin."""

    def __call__(self, block: Block, points: Rows, kept: Kept | None, components: Components, n_kept: int) -> Lookup:
        found = LookAtAll()(block, points, kept, components, n_kept)
        weighted = block.n_weighted
        moved = weighted if kept is None else block.count(found.kept.winners != kept.winners)
        return found._replace(stats=SearchStats(weighted, moved))


@dataclass(frozen=True)
class LookWithinBounds:
    """Bounds as far as they reach; others (C, 3): the centers that a point without bounds begins with, by its own."""

    moves: Moves
    others: NDArray[np.int32] | None

    def __call__(self, block: Block, points: Rows, kept: Kept | None, components: Components, n_kept: int) -> Lookup:
        assert kept is not None
        if kept.bounds is None:
            assert self.others is not None
            others = self.others[kept.winners]
            nothing = np.zeros(others.shape, dtype=points.dtype), np.zeros(len(points), dtype=points.dtype)
            bounds = Bounds(kept.winners.copy(), others, *nothing)
        else:
            bounds = kept.bounds  # renewed in place, so that after a pass that does not count there are none
        distances, n_distances = points.nearest_bounded(components.centers, bounds, self.moves)
        after = Kept(bounds.labels[:, np.newaxis].copy(), distances[:, np.newaxis], bounds)
        return Lookup(after, n_distances, SearchStats(block.n_weighted))


@storable("search.BoundedState")
@dataclass(frozen=True)
class BoundedState:
    """bounding: whether bounds have begun    centers (C, D), neighbors (C, G): of the last pass, the nearest of each

    others (C, 3): what points without bounds begin with, in the first pass by bounds
    """

    bounding: bool = False
    n_weighted: int = 0
    centers: Floats | None = None
    neighbors: NDArray[np.int32] | None = None
    moves: Moves | None = None
    others: NDArray[np.int32] | None = None


@storable("search.Bounded")
@dataclass(frozen=True)
class Bounded(Value):
    """The exact search by bounds. The first iterations, in which many points move, look at all C.

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

    def begin(self, components: Components, n_kept: int, placed: bool, key: Key) -> tuple[BoundedState, Look | None]:
        return BoundedState(), None

    def refresh(self, state: BoundedState, components: Components) -> BoundedState:
        if not state.bounding:
            return state
        assert state.centers is not None
        centers = components.centers
        drift = np.sqrt(np.square(centers.astype(np.float64) - state.centers).sum(axis=1)) * _UP
        lists, squared = _neighbors(centers, state.n_weighted, state.neighbors)
        moves = _moves(centers, lists, squared, _rounded_up(drift, centers.dtype))
        others = np.ascontiguousarray(without_self(lists)[:, :_OTHERS]) if state.moves is None else None
        return replace(state, neighbors=lists, moves=moves, others=others)

    def look(self, state: BoundedState, components: Components, key: Key) -> Look:
        if state.moves is None:
            return LookAndCompare() if components.steady else LookAtAll()
        return LookWithinBounds(state.moves, state.others)

    def learn(
        self, state: BoundedState, look: Look, components: Components, stats: SearchStats, sample: Sample, key: Key
    ) -> tuple[BoundedState, int]:
        bounding = components.steady and len(components.centers) > 1 and stats.n_moved <= _FEW_MOVE * stats.n_weighted
        return replace(state, bounding=bounding, n_weighted=stats.n_weighted, centers=components.centers), 0

    def jumped(self, state: BoundedState, one: NDArray[np.intp], cut: NDArray[np.intp], share: float) -> BoundedState:
        return BoundedState()  # bounds of centers that have gone elsewhere say nothing

    def undone(self, state: BoundedState) -> BoundedState:
        return BoundedState()  # bounds may be of the centers of that pass, which no longer say how far it is to others

    def neighbors(self, state: BoundedState) -> None:
        return None


def _neighbors(centers: Floats, n_points: int, before: NDArray[np.int32] | None) -> tuple[NDArray[np.int32], Floats]:
    """The nearest centers of each, itself among them, and their squared distances, in rising order: (C, G).

    All C of them where C² is small beside what is done for the points.
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
    """What moves of `drift` (C,) do to bounds; see `kernels.Moves`."""
    C, G = lists.shape
    reach, spread = np.empty((2, C, G + 1), dtype=centers.dtype)
    share = 1 - (centers.shape[1] + 12) * np.finfo(centers.dtype).eps
    reach[:, :G] = np.sqrt(squared) * share
    reach[:, G] = np.inf
    moved = np.where(lists == np.arange(C)[:, np.newaxis], -np.inf, drift[lists])
    spread[:, 0], spread[:, 1:] = -np.inf, np.maximum.accumulate(moved, axis=1)
    most = drift.argmax()
    spread[:, G] = drift[most]
    spread[most, G] = np.delete(drift, most).max()
    return Moves(drift, reach, spread)


def _rounded_up(values: NDArray[np.float64], dtype: np.dtype) -> Floats:
    """The values in a shorter format, none of them less."""
    return (values * (1 + np.finfo(dtype).eps)).astype(dtype)
