"""The library's own search: cluster-major, on lists of neighbours, renewed only where points move.

Every point compares the component it is in with that one's neighbours; the points of a component share their
candidates, which makes the E-step a few dense tiles (`kernels.reassign`, `keep_nearest`, `keep_best`). A point that
keeps several components looks at the neighbours of the best, and every other time at those of another; after a few
passes most only measure again what it keeps, and every third looks around. Lists come from
all C² pairs while these are few beside N, from neighbours of neighbours beyond. Audits search a sample of points
exactly, and double the lists where these find too few of the best components.
"""

import logging
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime._random import Key, Purpose
from cprime.block import Block, Kept
from cprime.kernels.native import Floats
from cprime.neighbors import Cells, refined_lists, with_self, without_self
from cprime.search.base import Components, Factors, Found, Look, Sample, Seen, Value, checked_count
from cprime.search.full import LookAtAll

logger = logging.getLogger("cprime")

_EXACT_LISTS = 32768  # most components whose lists come from all C² distances
_STALE = 0.3  # share of points that may move before lists are renewed
_AUDITS = (4, 5, 6, 10, 15)  # iterations after which a sample is searched exactly
_AUDIT_POINTS = 1024
_FOUND = 0.94  # share of the points whose best component the first lists must find
_FOUND_BY_LONGER = 0.96  # and longer ones, where those do not: such data have no clusters, and what is missed misleads
_MISSED, _LATE = 0.007, 6  # share of J that the first lists may miss, from this iteration on
_FIRST_NEIGHBORS, _FIRST_OF_MIXTURES = 33, 65  # the component itself, and one or two tiles
_NEAR = 8  # nearest neighbors that hear at once of a component that has jumped
_MOST_OF_MANY = 65  # neighbors where lists come from lists
_MOST_SHARE, _MOST_OF_FEW = 4, 129  # lists grow no longer than one in so many of the components, or this
_RESTLESS, _PERIOD = 6, 3  # of points that keep several: passes that all look around, and which of those that follow do
_FEW = 2048  # components that are all looked at where a mixture begins


@dataclass(frozen=True)
class LookInCells:
    """First kept sets: of a point without any the component that its cells offer, and what is near that."""

    cells: Cells | None
    lists: NDArray[np.int32]

    def __call__(self, block: Block, points: Floats, kept: Kept | None, components: Components, n_kept: int) -> Found:
        if kept is None:
            assert self.cells is not None
            kept = Kept(self.cells.find(points)[0][:, np.newaxis])
        if n_kept > 1:
            kept = Kept(components.keep(points, self.lists, kept.ids, n_kept)[0])
        return Found(kept, 0, Seen(len(points), block.count()))


@dataclass(frozen=True)
class LookAround:
    """The neighbours of one kept component, and all that is kept.

    lists (C, G − 1): neighbours    active (C,): components whose points have anything new to look at, None for all
    turn: which of several kept components leads    cells: what points are searched in besides, None for nothing
    """

    lists: NDArray[np.int32]
    factors: Factors | None
    active: NDArray[np.bool_] | None
    turn: int
    cells: Cells | None = None

    def __call__(self, block: Block, points: Floats, kept: Kept | None, components: Components, n_kept: int) -> Found:
        assert kept is not None
        before, C = kept.winners, len(components.centers)
        looked_at, calm = 1 + (self.lists >= 0).sum(axis=1), not self.lists.shape[1]
        if n_kept > 1 and calm:
            found = components.among(points, self.lists, kept.ids, n_kept)
            after = Kept(found.kept, found.distances, squares=found.squares)
            evaluations = len(before) * (n_kept - 1)
        elif n_kept > 1:
            after = Kept(*components.keep(points, self.lists, self._led(kept.ids), n_kept))
            evaluations = len(before) * (n_kept - 1)
        else:
            active = self.active if kept.costs is not None else None
            known = None if active is None or kept.costs is None else kept.costs[:, 0]
            begin = before if self.cells is None else _nearer(components, points, before, self.cells)
            labels, costs = self._reassigned(block, points, begin, components, active, known)
            after, evaluations = Kept(labels[:, np.newaxis], costs[:, np.newaxis]), 0
            if active is not None:
                looked_at *= active
        gone = kernels.changed(after.ids, kept.ids, 1)
        touched = np.zeros(C, dtype=bool)
        touched[before[gone]] = touched[after.winners[gone]] = True
        evaluations += int(np.bincount(before, minlength=C) @ looked_at)
        seen = Seen(
            len(before),
            block.count(),
            block.count(gone),
            np.flatnonzero(touched).astype(np.int32),
            around=not calm,
        )
        return Found(after, evaluations, seen)

    def _reassigned(
        self,
        block: Block,
        points: Floats,
        before: NDArray[np.int32],
        components: Components,
        active: NDArray[np.bool_] | None,
        known: Floats | None,
    ) -> tuple[NDArray[np.int32], Floats]:
        """The winners; rows of weight 0 count for nothing in the share of points that an exchange may take away."""
        weight = block.sample_weight
        if self.factors is None or weight is None or block.count() == len(block):
            return components.reassign(points, self.lists, before, self.factors, active, known)
        heavy = weight > 0
        labels, costs = components.reassign(points, self.lists, before)
        labels[heavy], costs[heavy] = components.reassign(
            points[heavy], self.lists, before[heavy], self.factors, active, None if known is None else known[heavy]
        )
        return labels, costs

    def _led(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """K(n) with the component first whose neighbours are looked at: the best one, and every other time another."""
        turn, other = divmod(self.turn, 2)
        place = 1 + turn % max(ids.shape[1] - 1, 1)
        if not other or place >= ids.shape[1]:
            return ids
        led = ids.copy()
        led[:, [0, place]] = led[:, [place, 0]]
        missing = led[:, 0] < 0
        led[missing] = ids[missing]
        return led


@dataclass(frozen=True)
class Last:
    """What a pass saw, centers (C, D) and factors, and the components that have won or lost by it, (m,)."""

    centers: Floats
    factors: Factors | None
    touched: NDArray[np.int32]


@dataclass(frozen=True)
class GraphState:
    """What the search knows.

    n_neighbors, first: G, and what it was at first    lists (C, G − 1)
    lost: whether points are far from where their lists reach    several: whether points keep more than one component
    found: the share of points that the last audit found right
    moved: share of the points that have changed their winner since the lists were made
    iteration: passes so far    last: what the last pass with these lists saw and did
    """

    n_neighbors: int
    first: int
    lists: NDArray[np.int32]
    moved: float = 0.0
    iteration: int = 0
    last: Last | None = None
    lost: bool = False
    found: float | None = None
    several: bool = False


@dataclass(frozen=True)
class Graph(Value):
    """Neighbours of the winner, and what is kept already: O(N G D) an iteration.

    Parameters
    ----------
    n_neighbors : int or None, default=None
        G, the length of a component's neighbor list, itself among them. None begins with 33 for k-means, with 65 where
        points keep several, and doubles them, to at most C / 4 or 129, while an exact search of some points shows that
        they are too short: see `docs/searches.md`.
    exchange : bool or None, default=None
        Whether k-means begins with exchange steps (Hartigan), which count on both centers following a point, and with
        jumps of clusters, where two can be one and another should be two: they end in better optima, and plain steps
        follow until convergence. None is True where that is possible: Euclidean
        k-means with epsilon=0.
    regroup : bool or None, default=None
        Whether the fit works on a copy of each chunk in which the points of a component lie together: faster, for twice
        the memory. None is True for data of one chunk of at most 4 GiB. The data are never changed.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.search import Graph
    >>> km = KMeans(100, search=Graph(n_neighbors=17), random_state=0).fit(birch(10, random_state=0).data)
    >>> km.neighbors_.shape
    (100, 17)
    """

    n_neighbors: int | None = None
    _: KW_ONLY
    exchange: bool | None = None
    regroup: bool | None = None

    exact: ClassVar[bool] = False
    keeps_winners: ClassVar[bool] = True
    warmup: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.n_neighbors is not None:
            checked_count(self.n_neighbors, "n_neighbors", 2)
        for name in ("exchange", "regroup"):
            if not isinstance(getattr(self, name), bool | np.bool_ | None):
                raise TypeError(f"{name} must be a bool or None, got {getattr(self, name)!r}.")

    def begin(self, components: Components, n_kept: int, placed: bool, key: Key) -> tuple[GraphState, Look | None]:
        C = len(components.centers)
        few = n_kept > 1 and C <= _FEW
        cells = Cells(components.centers) if C > _EXACT_LISTS or not (placed or few) else None
        first = _FIRST_NEIGHBORS if n_kept == 1 else _FIRST_OF_MIXTURES
        n_neighbors = max(min(self.n_neighbors or first, C), n_kept)
        if cells is not None and C > _EXACT_LISTS:
            lists = refined_lists(components.centers, without_self(cells.lists(n_neighbors)), n_neighbors)
        else:
            lists = components.lists(n_neighbors)
        look: Look | None = None
        if few:
            look = LookAtAll()
        elif n_kept > 1 or not placed:
            look = LookInCells(cells, lists)
        return GraphState(n_neighbors, n_neighbors, lists, several=n_kept > 1), look

    def refresh(self, state: GraphState, components: Components) -> GraphState:
        if state.moved < _STALE:
            return state
        if len(components.centers) <= _EXACT_LISTS:
            lists = components.lists(state.n_neighbors, state.lists)
        else:
            lists = refined_lists(components.centers, state.lists, state.n_neighbors)
        return replace(state, lists=lists, moved=0.0, last=None)

    def look(self, state: GraphState, components: Components, factors: Factors | None, key: Key) -> LookAround:
        if state.lost:
            return LookAround(state.lists, factors, None, state.iteration, Cells(components.centers))
        turn = state.iteration
        if state.several and turn >= _RESTLESS and state.n_neighbors < len(components.centers):
            turn, calm = divmod(turn - _RESTLESS, _PERIOD)
            if calm:
                return LookAround(state.lists[:, :0], factors, None, 0)
        return LookAround(state.lists, factors, _stirred(state, components, factors), turn)

    def learn(
        self, state: GraphState, look: LookAround, components: Components, seen: Seen, sample: Sample, key: Key
    ) -> tuple[GraphState, int]:
        assert seen.touched is not None
        state = replace(
            state,
            moved=state.moved + seen.n_gone / seen.n_heavy,
            iteration=state.iteration + 1,
            last=Last(components.centers, look.factors, seen.touched),
            lost=False,
        )
        C, longer = len(components.centers), state.n_neighbors > state.first
        most = max(state.first, _MOST_OF_MANY if C > _EXACT_LISTS else max(min(C, _MOST_OF_FEW), C // _MOST_SHARE))
        if state.iteration not in _AUDITS or self.n_neighbors is not None or state.n_neighbors >= C:
            return state, 0
        m = min(_AUDIT_POINTS, seen.n_points)
        rows = np.sort(key.generator(Purpose.AUDIT).choice(seen.n_points, m, replace=False))
        found, missed = _audited(components, state.lists, *sample(rows))
        state = replace(state, found=found)
        short = found < (_FOUND_BY_LONGER if longer else _FOUND)
        much = missed > _MISSED and state.iteration >= _LATE
        if longer and components.steady and (much or (short and state.n_neighbors >= most)):
            state = replace(state, lost=True)
        if (short or (much and not longer)) and state.n_neighbors < most:
            state = replace(state, n_neighbors=min(2 * state.n_neighbors - 1, most), moved=1.0)
            logger.info(
                "audit: lists find the best of %.3f of the points and miss %.4f of J, now %d neighbours",
                found,
                missed,
                state.n_neighbors,
            )
        return state, m * C

    def jumped(self, state: GraphState, one: NDArray[np.intp], cut: NDArray[np.intp], share: float) -> GraphState:
        """Who comes is first in the lists of those near, and has theirs: all are renewed only where many have moved."""
        assert state.last is not None
        lists, near = state.lists.copy(), state.lists[cut, :_NEAR]
        real = near >= 0
        if lists.shape[1]:
            _put_first(lists, near[real], np.broadcast_to(one[:, np.newaxis], near.shape)[real].astype(np.int32))
            lists[one] = lists[cut]
            _put_first(lists, one, cut.astype(np.int32))
            _put_first(lists, cut, one.astype(np.int32))
        touched = np.unique(np.concatenate([state.last.touched, one, cut, near[real]])).astype(np.int32)
        last = replace(state.last, touched=touched)
        return replace(state, lists=lists, moved=state.moved + share, last=last)

    def agreement(self, state: GraphState) -> float | None:
        return state.found

    def neighbors(self, state: GraphState) -> NDArray[np.int32]:
        return with_self(state.lists)


def _stirred(state: GraphState, components: Components, factors: Factors | None) -> NDArray[np.bool_] | None:
    """Components whose points have anything new to look at, None for all.

    A point stays where it is as long as its component, that one's neighbours, their factors and the list are those
    of the last pass, and the component has won and lost nothing since.
    """
    last = state.last
    if last is None or (last.factors is None) != (factors is None):
        return None
    changed = components.changed(last.centers)
    changed[last.touched] = True
    if factors is not None and last.factors is not None:
        changed |= (factors.inside != last.factors.inside) | (factors.outside != last.factors.outside)
    if changed.all():
        return None
    return changed | np.append(changed, False)[state.lists].any(axis=1)  # −1 is the one appended


def _nearer(components: Components, points: Floats, before: NDArray[np.int32], cells: Cells) -> NDArray[np.int32]:
    """Of what each point keeps and what cells offer the nearer: (n,)."""
    both = np.column_stack([before, cells.find(points)[0]])
    no_lists = np.empty((len(components.centers), 0), dtype=np.int32)
    return np.ascontiguousarray(components.among(points, no_lists, both, 1).kept[:, 0])


def _put_first(lists: NDArray[np.int32], rows: NDArray, ids: NDArray[np.int32]) -> None:
    """A component becomes the first of a list, and the last one goes, unless it is there or the list is its own."""
    new = (lists[rows] != ids[:, np.newaxis]).all(axis=1) & (rows != ids)
    rows, first = np.unique(rows[new], return_index=True)
    lists[rows] = np.column_stack([ids[new][first], lists[rows, :-1]])


def _audited(components: Components, lists: NDArray[np.int32], points: Floats, kept: Kept) -> tuple[float, float]:
    """The share of the points whose best component is among the neighbours of what they keep; of J, what is missed."""
    found = components.among(points, lists, np.ascontiguousarray(kept.ids[:, :1]), 1)
    best, costs = components.best(points, 1, hint=found.kept)
    excess = float((found.distances.astype(np.float64) - costs).sum())
    right = (found.kept == best) | (found.distances <= costs)
    scale = components.scale_of(costs)
    return float(right.mean()), excess / scale if scale > 0 else 0.0
