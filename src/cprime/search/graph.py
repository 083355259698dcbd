"""Graph search, the library's own method: candidates of a point are the neighbors of its best component.

All points with the same best component have the same candidates. So the E-step computes their distances by matrix
products (`Rows.reassign`, `Rows.top_k`). It skips components for which nothing changed since the last pass.

If active sets K(n) have C′ > 1 components, the candidates are K(n), and the neighbors of one component of K(n): of the
best one in even passes, of another one in odd passes. After the first passes only every third pass evaluates
neighbors. The others evaluate K(n) alone. Of lists longer than 32, the second half is replaced by random components,
because the best component may be in no list. If lists hardly predict it (`scattered`), all but 8 entries are replaced.

Neighbor lists are computed from all C² pairs of components if these are few, and otherwise from neighbors of
neighbors. After some iterations, an audit searches a sample of points exactly. If the graph search finds too few of
the best components, the length of the lists is doubled.
"""

import logging
import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.arguments import check_integer
from cprime._utils.random import Key, Purpose
from cprime._utils.storable import storable
from cprime._utils.threads import union_of_ids
from cprime._utils.values import replace
from cprime.execution.base import Data
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Rows, changed
from cprime.neighbors import EXACT_LISTS, Cells, put_first, refined_lists, without_self
from cprime.neighbors.components import Components
from cprime.search.base import BaseSearch, Look, Lookup, Sample, SearchStats
from cprime.search.full import FullLookup

logger = logging.getLogger("cprime")

# Neighbor lists are recomputed once this share of the points has been reassigned.
_STALE = 0.3
# Iterations after which an audit is made, and number of sampled points that an audit searches exactly.
_AUDITS = (4, 5, 6, 10, 15)
_AUDIT_POINTS = 1024
# Least share of points whose best component must be found in an audit, for lists of the initial length.
_FOUND = 0.94
# Least share of points whose best component must be found in an audit, for lists longer than the initial ones.
# It is greater than for initial lists, because missed components are more harmful to fits with longer lists.
_FOUND_BY_LONGER = 0.96
# Greatest relative excess of the error J that incomplete lists may cause, and first iteration in which it is checked.
_MISSED, _LATE = 0.007, 6
# Initial length of neighbor lists, the component itself included, for k-means and for mixtures.
_FIRST_NEIGHBORS, _FIRST_OF_MIXTURES = 33, 65
# First number: a center moved by a jump is added to the lists of this number of its new neighbors. If active sets have
# several components, a part of each list is replaced by random components. Second number: at least this number of a
# list's nearest components remains; if lists hardly predict the best component, only the first number of them remains.
_NEAR, _NEAREST = 8, 32
# Maximum length of lists that are computed from neighbors of neighbors.
_MOST_OF_MANY = 65
# Maximum length of lists computed from all pairs of C components: C / first number, but at least min(C, second number).
_MOST_SHARE, _MOST_OF_FEW = 4, 129
# If active sets have several components, neighbors are evaluated in the first 6 passes, then in every third pass.
_EXPLORING, _PERIOD = 6, 3
# Maximum size in bytes of data whose rows are copied in the order of their components by default.
LARGEST_COPY = 4 * 2**30
# The initial active sets of a mixture of at most this number of components are found by an exact search.
FEW = 2048


@dataclass(frozen=True)
class GraphCellLookup:
    """Search for the initial active sets of a block of points: a first component for each point, and its neighbors.

    The first component is the best one in coarse cells (groups of components) near the point. If points already have
    components, it is the point's own component instead. Neighbors are searched only if active sets are larger than 1.
    cells: the cells, needed only if points have no components yet    lists (C, G − 1): neighbors of each component
    """

    cells: Cells | None
    lists: NDArray[np.int32]

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        if kept is None:
            assert self.cells is not None
            kept = ActiveSet(self.cells.find(points)[0][:, np.newaxis])
        if n_kept > 1:
            kept = ActiveSet(components.top_k(points, self.lists, kept.ids, n_kept)[0])
        return Lookup(kept, 0, SearchStats(block.n_weighted))


@dataclass(frozen=True)
class ListLookup:
    """Search of a block of points. Candidates are the active set K(n) and the neighbors of one component in K(n).

    lists (C, G − 1): ids of the neighbors of each component
    active (C,): mask of the components whose points are searched, None for all
    turn: number of the pass, which determines the component of K(n) whose neighbors are candidates
    cells: coarse cells (groups of components), which add one candidate for each point, or None
    """

    lists: NDArray[np.int32]
    active: NDArray[np.bool_] | None
    turn: int
    cells: Cells | None = None

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        assert kept is not None
        before, C = kept.winners, len(components.centers)
        looked_at, explores = 1 + (self.lists >= 0).sum(axis=1), self.lists.shape[1] > 0
        if n_kept > 1 and not explores:
            found = components.search_lists(points, self.lists, kept.ids, n_kept)
            after = ActiveSet(found.kept, found.costs)
            evaluations = len(before) * (n_kept - 1)
        elif n_kept > 1:
            after = ActiveSet(*components.top_k(points, self.lists, self._led(kept.ids), n_kept))
            evaluations = len(before) * (n_kept - 1)
        else:
            active = self.active if kept.costs is not None else None
            known = None if active is None or kept.costs is None else kept.costs[:, 0]
            begin = before if self.cells is None else _nearer(components, points, before, self.cells)
            labels, costs = components.reassign(points, self.lists, begin, block.sample_weight, active, known)
            after, evaluations = ActiveSet(labels[:, np.newaxis], costs[:, np.newaxis]), 0
            if active is not None:
                looked_at *= active
        moved = changed(after.ids, kept.ids, 1)
        touched = np.zeros(C, dtype=bool)
        touched[before[moved]] = touched[after.winners[moved]] = True
        evaluations += int(np.bincount(before, minlength=C) @ looked_at)
        ids = np.flatnonzero(touched).astype(np.int32)
        stats = SearchStats(block.n_weighted, block.count(moved), ids, explored=explores)
        return Lookup(after, evaluations, stats)

    def _led(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the active sets (n, C′) in another order: first the component whose neighbors are candidates.

        This component is the best one in passes of even number, and another one of the active set in passes of odd
        number.    ids (n, C′): active sets, best component first
        """
        turn, other = divmod(self.turn, 2)
        place = 1 + turn % max(ids.shape[1] - 1, 1)
        if not other or place >= ids.shape[1]:
            return ids
        led = ids.copy()
        led[:, [0, place]] = led[:, [place, 0]]
        missing = led[:, 0] < 0
        led[missing] = ids[missing]
        return led


@storable("search.LastPass")
@dataclass(frozen=True)
class LastPass:
    """Values of the last pass, by which the next pass recognizes components for which nothing changed.

    snapshot: parameters of the components    touched (m,): ids of the components that gained or lost points
    """

    snapshot: tuple[NDArray, ...]
    touched: NDArray[np.int32]


@storable("search.GraphState")
@dataclass(frozen=True)
class GraphState:
    """State of the search `Graph` in a fit.

    n_neighbors, first_n_neighbors: G, the length of lists with the component itself, and its initial value
    lists (C, G − 1): ids of the neighbors of each component, without the component itself
    moved: share of points reassigned since the lists were computed, summed over iterations
    iteration: number of passes so far
    last: parameters and changed components of the last pass; None if that pass used other neighbor lists
    in_cells: whether the next pass also searches cells (groups of components), because lists miss many best components
    agreement: share of sampled points whose best component was found in the last audit; None before the first audit
    several: whether active sets have several components (C′ > 1)
    """

    n_neighbors: int
    first_n_neighbors: int
    lists: NDArray[np.int32]
    moved: float = 0.0
    iteration: int = 0
    last: LastPass | None = None
    in_cells: bool = False
    agreement: float | None = None
    several: bool = False


@storable("search.Graph")
@dataclass(frozen=True, repr=False)
class Graph(BaseSearch):
    """Search among the neighbors of each point's best component and its active set: O(N G D) per iteration.

    Parameters
    ----------
    n_neighbors : int or None, default=None
        G, the length of a component's neighbor list, itself included. None begins with 33 for k-means and 65 for
        mixtures, and doubles the length, to at most C / 4 or 129, as long as an exact search of sampled points shows
        that the lists are too short: see `docs/searches.md`. For sparse data with up to 4096 components, lists are then
        complete.
    regroup : bool or None, default=None
        Whether the fit uses a copy of each chunk in which points are sorted by component. The sorted copy makes passes
        faster and takes twice the memory. None means True for data of one chunk of at most 4 GiB. The caller's data are
        never changed.
    certificate : int, default=1000
        Number of random points that are searched exactly after the fit, for `certificate_`; 0 omits it.
    final_assignment : {"auto", "exact", "found"}, default="auto"
        How `labels_` and the objective are computed: "exact" searches all components once more for every point, as
        `predict` does; "found" uses what the search has found. "auto" is "exact" if that takes no longer than the fit
        itself: if N·C is at most four times the evaluations of the fit. See also `epsilon` of `KMeans`.

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
    regroup: bool | None = None

    exact: ClassVar[bool] = False
    keeps_winners: ClassVar[bool] = True
    warmup: ClassVar[int] = 0
    exchanges: ClassVar[bool] = True
    has_lists: ClassVar[bool] = True

    def regroups(self, data: Data) -> bool:
        if self.regroup is not None or not data.copies:
            return bool(self.regroup) and data.copies
        return len(data.sizes) == 1 and data.n_bytes <= LARGEST_COPY  # sorted copies of several chunks are not stored

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_neighbors is not None:
            check_integer(self.n_neighbors, "n_neighbors", 2)
        if not isinstance(self.regroup, bool | np.bool_ | None):
            raise TypeError(f"regroup must be a bool or None, got {self.regroup!r}.")

    def begin(self, components: Components, n_kept: int, assigned: bool, key: Key) -> tuple[GraphState, Look | None]:
        C = len(components.centers)
        few = n_kept > 1 and C <= FEW
        cells = Cells(components.centers) if C > EXACT_LISTS or not (assigned or few) else None
        first = _FIRST_NEIGHBORS if n_kept == 1 else _FIRST_OF_MIXTURES
        n_neighbors = max(min(self.n_neighbors or first, C), n_kept)
        if cells is not None and C > EXACT_LISTS:
            lists, _ = refined_lists(components.centers, without_self(cells.lists(n_neighbors)), n_neighbors)
        else:
            lists = components.lists(n_neighbors)
        look: Look | None = None
        if few:
            look = FullLookup()
        elif n_kept > 1 or not assigned:
            look = GraphCellLookup(cells, lists)
        return GraphState(n_neighbors, n_neighbors, lists, several=n_kept > 1), look

    def refresh(self, state: GraphState, components: Components) -> tuple[GraphState, int]:
        if state.moved < _STALE:
            return state, 0
        if (C := len(components.centers)) <= EXACT_LISTS:
            lists, n_pairs = components.lists(state.n_neighbors, state.lists), math.comb(C, 2)
        else:
            lists, n_pairs = refined_lists(components.centers, state.lists, state.n_neighbors)
        return replace(state, lists=lists, moved=0.0, last=None), n_pairs

    def look(self, state: GraphState, components: Components, key: Key) -> ListLookup:
        if state.in_cells:
            return ListLookup(state.lists, None, state.iteration, Cells(components.centers))
        turn, C = state.iteration, len(components.centers)
        if not state.several or state.n_neighbors >= C:
            return ListLookup(state.lists, None if state.several else _active(state, components), turn)
        if turn >= _EXPLORING:
            turn, rest = divmod(turn - _EXPLORING, _PERIOD)
            if rest:
                return ListLookup(state.lists[:, :0], None, 0)
        half = (state.lists.shape[1] + 1) // 2
        n_near = min(_NEAR, half) if components.scattered else max(_NEAREST, half)
        return ListLookup(_partly_random(state.lists, n_near, key.generator(Purpose.EXPLORE)), None, turn)

    def learn(
        self, state: GraphState, look: ListLookup, components: Components, stats: SearchStats, sample: Sample, key: Key
    ) -> tuple[GraphState, int]:
        assert stats.touched is not None
        state = replace(
            state,
            moved=state.moved + stats.n_moved / stats.n_weighted,
            iteration=state.iteration + 1,
            last=LastPass(components.snapshot, stats.touched),
            in_cells=False,
        )
        C, longer = len(components.centers), state.n_neighbors > state.first_n_neighbors
        limit = max(
            state.first_n_neighbors, _MOST_OF_MANY if C > EXACT_LISTS else max(min(C, _MOST_OF_FEW), C // _MOST_SHARE)
        )
        if state.iteration not in _AUDITS or self.n_neighbors is not None or state.n_neighbors >= C:
            return state, 0
        m = min(_AUDIT_POINTS, stats.n_weighted)
        numbers = np.sort(key.generator(Purpose.AUDIT).choice(stats.n_weighted, m, replace=False))
        agreement, missed = _list_quality(components, state.lists, *sample(numbers))
        state = replace(state, agreement=agreement)
        short = agreement < (_FOUND_BY_LONGER if longer else _FOUND)
        much = missed > _MISSED and state.iteration >= _LATE
        if longer and components.steady and (much or (short and state.n_neighbors >= limit)):
            state = replace(state, in_cells=True)
        if (short or (much and not longer)) and state.n_neighbors < limit:
            state = replace(state, n_neighbors=min(2 * state.n_neighbors - 1, limit), moved=1.0)
            logger.info(
                "neighbor lists have the best component of %.1f %% of the sampled points, and J is %.2f %% too high: "
                "each list grows to %d components",
                100 * agreement,
                100 * missed,
                state.n_neighbors,
            )
        return state, m * C

    def jumped(self, state: GraphState, one: NDArray[np.intp], cut: NDArray[np.intp], share: float) -> GraphState:
        """Return the state with neighbor lists updated after jumps: component one[i] was moved into the cluster cut[i].

        Component one[i] gets the list of cut[i], and is put first in the lists of the nearest neighbors of cut[i]. All
        lists are recomputed only after 30 % of points were reassigned.    share: fraction of points reassigned by jumps
        """
        assert state.last is not None
        lists, near = state.lists.copy(), state.lists[cut, :_NEAR]
        real = near >= 0
        if lists.shape[1]:
            put_first(lists, near[real], np.broadcast_to(one[:, np.newaxis], near.shape)[real].astype(np.int32))
            lists[one] = lists[cut]
            put_first(lists, one, cut.astype(np.int32))
            put_first(lists, cut, one.astype(np.int32))
        last = replace(state.last, touched=union_of_ids(state.last.touched, one, cut, near[real]))
        return replace(state, lists=lists, moved=state.moved + share, last=last)

    def agreement(self, state: GraphState) -> float | None:
        return state.agreement


def _active(state: GraphState, components: Components) -> NDArray[np.bool_] | None:
    """Return the mask (C,) of components whose points must be searched again, or None for all components.

    The result of a point is the same as in the last pass if its component and all neighbors of this component have
    unchanged parameters, and gained or lost no points in the last pass.
    """
    if state.last is None:
        return None
    active = components.changed(state.last.snapshot)
    active[state.last.touched] = True
    if active.all():
        return None
    # An id of −1 (no neighbor) selects the appended last entry, False, so it does not make a component active.
    return active | np.append(active, False)[state.lists].any(axis=1)


def _partly_random(lists: NDArray[np.int32], n_near: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return lists (C, L), as long as the given ones, of the `n_near` first ids of each list and of random components.

    The components of a list are distinct; fewer than L are padded with −1.
    """
    C, L = lists.shape
    if n_near >= L:
        return lists
    order, shifts = rng.permutation(C).astype(np.int32), 1 + rng.choice(C - 1, L - n_near, replace=False)
    others = order[(np.argsort(order)[:, np.newaxis] + shifts) % C]
    both = np.sort(np.column_stack([lists[:, :n_near], others]), axis=1)
    twice = both[:, 1:] == both[:, :-1]
    both[:, 1:][twice] = -1
    return np.ascontiguousarray(np.sort(both, axis=1)[:, ::-1])


def _nearer(components: Components, points: Rows, before: NDArray[np.int32], cells: Cells) -> NDArray[np.int32]:
    """Return ids (n,): for each point the better of its present component and the best one in cells near it.

    before (n,): present components    cells: coarse cells (groups of components)
    """
    both = np.column_stack([before, cells.find(points)[0]])
    no_lists = np.empty((len(components.centers), 0), dtype=np.int32)
    return np.ascontiguousarray(components.search_lists(points, no_lists, both, 1).kept[:, 0])


def _list_quality(
    components: Components, lists: NDArray[np.int32], points: Rows, kept: ActiveSet
) -> tuple[float, float]:
    """Compare the graph search with an exact search for sampled points.

    The graph search finds the best component among a point's present component and the neighbors of that component.
    Returns the share of points for which the found component is the best of all, and the relative excess: the sum of
    costs minus the sum of the least costs, divided by the sum of the least costs if these are squared distances, and
    otherwise by the number of entries n·D of the points.
    lists (C, G − 1): the other components near each    kept: active sets; their first entry is the present component
    """
    found = components.search_lists(points, lists, np.ascontiguousarray(kept.ids[:, :1]), 1)
    best, costs = components.best(points, 1, hint=found.kept)
    excess = float((found.costs.astype(np.float64) - costs).sum())
    right = (found.kept == best) | (found.costs <= costs)
    total, D = float(costs.sum(dtype=np.float64)), components.centers.shape[1]
    scale = total if components.squared_distances else float(len(points) * D)
    return float(right.mean()), excess / scale if scale > 0 else 0.0
