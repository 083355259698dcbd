"""Protocol of searches: the methods that the EM loop calls, and the values that searches return.

A search finds the active sets of points. An object of class `Search` is a frozen value that has only the options of the
search. The state of a search in a fit, mainly neighbor lists, is a second value, which the loop passes from iteration
to iteration. `begin` creates the state. In each iteration `refresh` updates it before the pass over the data, `look`
returns the callable that searches each block of points, and `learn` updates the state after the pass.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cprime._utils.arguments import check_choice, check_integer
from cprime._utils.random import Key
from cprime._utils.threads import union_of_ids
from cprime._utils.values import Options
from cprime.execution.base import Data
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Rows
from cprime.neighbors import with_self
from cprime.neighbors.components import Components


@dataclass(frozen=True)
class SearchStats:
    """Statistics of a pass over the data, from which a search updates its state.

    n_weighted: number of points of positive weight    n_moved: number of such points whose best component changed
    touched (m,): ids of the components that gained or lost points, in ascending order
    evidence (C, C): sums for the mean distances in eq. (8) of Forster & Lücke 2018, or None. Entry (c, c̃) is a complex
    sum over the points of weight w_n that have the best component c, and c̃ among their candidates. Its real part is
    Σ w_n times the distance to c̃, its imaginary part is Σ w_n.
    explored: whether components outside the active sets were evaluated
    """

    n_weighted: int
    n_moved: int = 0
    touched: NDArray[np.int32] | None = None
    evidence: csr_array | None = None
    explored: bool = True

    def __add__(self, other: "SearchStats") -> "SearchStats":
        touched, evidence = self.touched, self.evidence
        if touched is not None and other.touched is not None:
            touched = union_of_ids(touched, other.touched)
        if evidence is not None and other.evidence is not None:
            evidence = evidence + other.evidence
        n_weighted = self.n_weighted + other.n_weighted
        explored = self.explored and other.explored
        return SearchStats(n_weighted, self.n_moved + other.n_moved, touched, evidence, explored)


class Lookup(NamedTuple):
    """Result of a search for a block of n points.

    kept: active sets (n, C′), the ids of each point's best components, with their costs
    n_distances: number of evaluated distances
    stats: statistics from which the search updates its state
    """

    kept: ActiveSet
    n_distances: int
    stats: SearchStats


class Look(Protocol):
    """Callable that finds the active set K(n) of each point n of a block of rows.

    It is picklable, so worker processes can run it.
    """

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup: ...


# Type of a function that returns sampled points, transformed for comparison with components, and their active sets.
# Its argument has the ranks (m,) of the points to sample among all points of positive weight.
Sample = Callable[[NDArray[np.int64]], tuple[Rows, ActiveSet]]

State = Any  # state of a search in a fit: a frozen value of arrays and numbers whose type depends on the search


class Search(Protocol):
    """Strategy that chooses the candidate components of each point, among which its C′ best are found."""

    @property
    def exact(self) -> bool:
        """Return whether the search always finds the best of all C components."""
        ...

    @property
    def keeps_winners(self) -> bool:
        """Return whether the search starts from the best component of each point, if the initialization found it."""
        ...

    @property
    def warmup(self) -> int:
        """Return the number of E-steps before the first M-step; if `warmup_settles` is true, it is an upper limit."""
        ...

    @property
    def warmup_settles(self) -> bool:
        """Return whether E-steps before the first M-step end early, once one lowers the error by less than 1 %."""
        ...

    @property
    def final_assignment(self) -> str:
        """Return how a fit with a partial search, or lazy-k-means, gets its labels.

        "exact": by a last pass over all components; "found": from the search; "auto": "exact" if that is cheap
        """
        ...

    @property
    def certificate(self) -> int:
        """Return the number of points for which a partial search is compared with an exact one after the fit."""
        ...

    published: ClassVar[bool]
    exchanges: ClassVar[bool]
    has_lists: ClassVar[bool]
    stores_bounds: ClassVar[bool]
    incremental: ClassVar[bool]

    def regroups(self, data: Data) -> bool:
        """Return whether the fit uses a copy of each chunk with its rows sorted by component."""
        ...

    def with_params(self, **params: Any) -> Self:
        """Return a copy of the search in which the options given by name are changed."""
        ...

    def begin(self, components: Components, n_kept: int, assigned: bool, key: Key) -> tuple[State, Look | None]:
        """Return the search's state before the first iteration, and a callable that finds initial active sets.

        The callable is None if no initial sets are needed.

        components: centers or Gaussians    n_kept: C′, the size of active sets
        assigned: whether the best component of each point is already known
        key: counter-based random key, from which the search computes its random numbers
        """
        ...

    def refresh(self, state: State, components: Components) -> tuple[State, int]:
        """Return the search's state for a pass with these components, and the number of compared pairs of components.

        The search compares components with each other to update its neighbor lists. The number is −1 if not counted.
        """
        ...

    def look(self, state: State, components: Components, key: Key) -> Look:
        """Return the callable that finds the active sets of the points of each block, in one pass over the data.

        state: state of the search    key: counter-based random key, from which random candidates are computed
        """
        ...

    def learn(
        self, state: State, look: Any, components: Components, stats: SearchStats, sample: Sample, key: Key
    ) -> tuple[State, int]:
        """Return the search's state after an accepted pass, and the number of distances evaluated for an audit.

        An audit compares the search with an exact one for sampled points.
        look: callable that searched the blocks of points in the pass    stats: statistics of the pass
        components: those of the pass    sample: function that returns points for an audit    key: random key
        """
        ...

    def jumped(self, state: State, one: NDArray[np.intp], cut: NDArray[np.intp], share: float) -> State:
        """Return the search's state after jumps: center one[i] was moved into cluster cut[i], and divides it in two.

        one, cut (m,): ids of components    share: fraction of the points that the jumps reassigned
        """
        ...

    def undone(self, state: State) -> State:
        """Return the search's state for the next pass, after the last pass was rejected.

        The active sets from before the rejected pass have been restored, but arrays that the pass changed in place,
        such as distance bounds, have not. So the returned state must not use such arrays.
        state: the state for the rejected pass, as `refresh` returned it
        """
        ...

    def agreement(self, state: State) -> float | None:
        """Return the share of sampled points whose best component the search found in the last audit.

        An audit compares the search with an exact one. None means that there was no audit.
        """
        ...

    def neighbors(self, state: State) -> NDArray[np.int32] | None:
        """Return the neighbor list of each component c: ids (C, G) int32, c itself first, padded with −1.

        Returns None if all components are searched.
        """
        ...


@dataclass(frozen=True, repr=False)
class BaseSearch(Options):
    """Base class of searches: options that scikit-learn can read, and defaults for members that few searches need.

    certificate: number of random points that are searched exactly after a fit with a partial search; 0 omits this
    final_assignment: "found" if labels are those of the search, also the lazy ones of an exact search in lazy-k-means;
    "exact" if they are the best components; "auto" if the fit decides by the time that this takes
    published: whether the search is that of a published algorithm, so that arguments "auto" of a fit must not alter it
    exchanges: whether a k-means fit with this search makes jumps of centers and exchange steps between iterations
    has_lists: whether the search uses neighbor lists, and the user may choose their length
    stores_bounds: whether the search stores distance bounds for each point, which needs active sets of one component
    incremental: whether sums of clusters may be updated for the reassigned points only
    """

    published: ClassVar[bool] = False
    exchanges: ClassVar[bool] = False
    has_lists: ClassVar[bool] = False
    stores_bounds: ClassVar[bool] = False
    incremental: ClassVar[bool] = True

    _: KW_ONLY
    certificate: int = 1000
    final_assignment: str = "auto"

    def __post_init__(self) -> None:
        check_integer(self.certificate, "certificate", 0)
        check_choice(self.final_assignment, "final_assignment", ("auto", "exact", "found"))

    def regroups(self, data: Data) -> bool:
        """Return False: the default, for searches that do not profit from rows that are sorted by component."""
        return False

    @property
    def warmup_settles(self) -> bool:
        """Return False: the default, for searches with a fixed number of E-steps before the first M-step."""
        return False

    def jumped(self, state: State, one: NDArray[np.intp], cut: NDArray[np.intp], share: float) -> State:
        """Return the state unchanged: the default for searches without lists, or with new lists before each pass."""
        return state

    def undone(self, state: State) -> State:
        """Return the state unchanged: the default for searches whose passes change no array in place."""
        return state

    def agreement(self, state: State) -> float | None:
        """Return None: the default for searches without audits (comparisons with an exact search)."""
        return None

    def neighbors(self, state: State) -> NDArray[np.int32] | None:
        """Return the neighbor lists (C, G) in the search's state, each component first; None if it has no lists."""
        return with_self(state.lists) if self.has_lists else None
