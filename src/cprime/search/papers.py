"""Searches of Forster & Lücke, *Can clustering scale sublinearly with its clusters?* (2018), Algorithms 1 and 2.

N is the number of points, D of dimensions, C of components, C′ of components in an active set, and G the length of
neighbor lists. Candidates of point n are the neighbor lists of all components in its active set K(n), and some random
components. An iteration takes O(N C′ G D + C² D) with "exact" lists, which are computed from all C² distances between
centers. It takes O(N C′ G D) with "estimated" lists, from distances that the E-step computes anyway.

Let I_c be the points whose nearest component is c. The distance of c and c̃ is estimated by the weighted mean of
‖x_n − μ_c̃‖ over those points n in I_c that had c̃ as a candidate (eq. 8). The list G_c has the G components of least
estimate, c itself first. For Gaussians with their own covariances, costs −2 log p(c̃, x_n) are averaged instead of
distances.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cprime._utils.arguments import check_choice, check_integer
from cprime._utils.random import Key, Purpose
from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Evidence, Rows
from cprime.neighbors import EXACT_LISTS, Cells, without_self
from cprime.neighbors.components import Components
from cprime.search.base import BaseSearch, Look, Lookup, Sample, SearchStats

# Neighbors are selected from a table of mean distances in blocks of this number of distances, to limit memory.
_VALUES = 2**22
# Default number of E-steps that improve random active sets before the first M-step.
_RANDOM_WARMUP = 25
# Maximum number of E-steps before the first M-step with n_warmup="auto".
_LONGEST_WARMUP = 100


@dataclass(frozen=True)
class RandomSetLookup:
    """Search that draws the initial active sets of a block of points at random, as Forster & Lücke (2018) do.

    key: counter-based random key
    """

    key: Key

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        C = len(components.centers)
        ids = random_sets(len(points), C, n_kept, lambda i: block.uniform(self.key, Purpose.SETS, i))
        return Lookup(ActiveSet(ids), 0, SearchStats(block.n_weighted))


@dataclass(frozen=True)
class PapersCellLookup:
    """Search for the initial active sets of a block of points.

    Candidates are the best component in coarse cells (groups of components) near the point, and the neighbors of this
    component.
    cells: the coarse cells    lists (C, G − 1): ids of the neighbors of each component
    """

    cells: Cells
    lists: NDArray[np.int32]

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        ids = self.cells.find(points)[0][:, np.newaxis] if kept is None else kept.ids[:, :1]
        if n_kept > 1:
            ids = components.search_lists(points, self.lists, ids, n_kept).kept
            short = np.flatnonzero(ids[:, -1] < 0)  # rows that have fewer than n_kept candidates
            if len(short):
                ids[short] = components.best(points[short], n_kept)[0]
        return Lookup(ActiveSet(ids), 0, SearchStats(block.n_weighted))


@dataclass(frozen=True)
class CandidateLookup:
    """Search of a block of points among candidates: neighbors of all components in the active set, and random ones.

    lists (C, G − 1): ids of the G − 1 nearest other components of each component
    n_explore: number of random components for each point    key: counter-based random key
    evidence: whether to return, for pairs of components, the sum of the distances of one's points to the other.
    Neighbor lists are estimated from these sums.
    """

    lists: NDArray[np.int32]
    n_explore: int
    key: Key
    evidence: bool

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        assert kept is not None
        n, C = len(points), len(components.centers)
        extra = np.empty((n, self.n_explore), dtype=np.int32)
        for i in range(self.n_explore):
            extra[:, i] = block.uniform(self.key, Purpose.EXPLORE, i) * C
        found = components.search_lists(points, self.lists, kept.ids, n_kept, extra, self.evidence, block.sample_weight)
        evidence = None if found.evidence is None else _matrix(found.evidence)
        after = ActiveSet(found.kept, found.costs)
        return Lookup(after, int(found.counts.sum(dtype=np.int64)), SearchStats(block.n_weighted, evidence=evidence))


def _matrix(evidence: Evidence) -> csr_array:
    """Return sums of distances for pairs of components as a sparse complex matrix (C, C).

    Entry (c, c̃) is a sum over the points of weight w that have the best component c, and c̃ among their candidates. Its
    real part is Σ w times the distance to c̃, its imaginary part is Σ w.
    """
    both = np.empty(len(evidence.sums), dtype=np.complex128)
    both.real, both.imag = evidence.sums, evidence.weights
    C = len(evidence.indptr) - 1
    return csr_array((both, evidence.indices, evidence.indptr), shape=(C, C))


@storable("search.PapersState")
@dataclass(frozen=True)
class PapersState:
    """State of the search `Papers` in a fit.

    lists (C, G − 1): ids of the neighbors of each component
    evidence (C, C): sums of the distances that the last pass evaluated, or None. Entry (c, c̃) has a sum over the points
    of best component c and candidate c̃ in the real part, and the sum of their weights in the imaginary part.
    """

    lists: NDArray[np.int32]
    evidence: csr_array | None = None


@storable("search.Papers")
@dataclass(frozen=True, repr=False)
class Papers(BaseSearch):
    """Search of the algorithms var-GMM-X and var-GMM-S (for C′ = 1: var-k-means-X and -S) of Forster & Lücke (2018).

    Parameters
    ----------
    lists : {"exact", "estimated"}, default="exact"
        Neighbor lists from all distances between centers (X), or estimated from distances that E-steps compute (S).
    n_neighbors : int, default=16
        G, the length of a component's neighbor list, itself included.
    n_explore : int, default=1
        Number of random components among the candidates of each point, at most C.
    start : {"two-level", "random"}, default="two-level"
        Initial active sets: "two-level" finds a near component of each point by coarse cells and uses its neighbors;
        "random" draws sets and neighbor lists, as in the paper.
    n_warmup : int, "auto" or None, default=None
        Number of E-steps before the first M-step; None is 25 with start="random", else 0. "auto" ends them when one
        lowers the quantization error by less than 1 %, at the latest after 100. The paper takes "a couple of initial
        E-steps (optimized on the training quantization error)".
    certificate : int, default=1000
        As in `Graph`.
    final_assignment : {"auto", "exact", "found"}, default="auto"
        As in `Graph`.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.search import Papers
    >>> search = Papers("estimated", n_neighbors=5, start="random")
    >>> km = KMeans(25, search=search, random_state=0).fit(birch(5, random_state=0).data)
    >>> int((km.history_["phase"] == "warmup").sum())  # E-steps before the first M-step
    25
    """

    lists: str = "exact"
    _: KW_ONLY
    n_neighbors: int = 16
    n_explore: int = 1
    start: str = "two-level"
    n_warmup: int | str | None = None

    exact: ClassVar[bool] = False
    keeps_winners: ClassVar[bool] = True
    published: ClassVar[bool] = True
    has_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, choices in (("lists", ("exact", "estimated")), ("start", ("two-level", "random"))):
            check_choice(getattr(self, name), name, choices)
        check_integer(self.n_neighbors, "n_neighbors", 2)
        check_integer(self.n_explore, "n_explore", 0)
        if isinstance(self.n_warmup, str) and self.n_warmup != "auto":
            raise ValueError(f'n_warmup must be "auto", an integer or None, got {self.n_warmup!r}.')
        if self.n_warmup is not None and not isinstance(self.n_warmup, str):
            check_integer(self.n_warmup, "n_warmup", 0)

    @property
    def warmup(self) -> int:
        if self.n_warmup is None:
            return _RANDOM_WARMUP if self.start == "random" else 0
        return _LONGEST_WARMUP if isinstance(self.n_warmup, str) else self.n_warmup

    @property
    def warmup_settles(self) -> bool:
        return self.n_warmup == "auto"

    def begin(self, components: Components, n_kept: int, assigned: bool, key: Key) -> tuple[PapersState, Look | None]:
        C = len(components.centers)
        if self.start == "random":
            return PapersState(random_lists(C, self.n_neighbors, key)), RandomSetLookup(key)
        cells = Cells(components.centers)
        lists = without_self(cells.lists(min(max(self.n_neighbors, n_kept), C)))
        return PapersState(lists), None if assigned and n_kept == 1 else PapersCellLookup(cells, lists)

    def refresh(self, state: PapersState, components: Components) -> tuple[PapersState, int]:
        if self.lists == "exact":
            lists = components.lists(self.n_neighbors, state.lists)
            is_counted = (C := len(lists)) <= EXACT_LISTS or components.squared_distances
            return replace(state, lists=lists), math.comb(C, 2) if is_counted else -1
        if state.evidence is None:
            return state, 0
        return PapersState(_estimated_lists(state.evidence, self.n_neighbors)), 0

    def look(self, state: PapersState, components: Components, key: Key) -> Look:
        return CandidateLookup(
            state.lists, min(self.n_explore, len(state.lists)), key, evidence=self.lists == "estimated"
        )

    def learn(
        self, state: PapersState, look: Look, components: Components, stats: SearchStats, sample: Sample, key: Key
    ) -> tuple[PapersState, int]:
        return replace(state, evidence=stats.evidence), 0


def _estimated_lists(evidence: csr_array, n_neighbors: int) -> NDArray[np.int32]:
    """Return for each component c the other components c̃ of least mean distance, eq. (8) of Forster & Lücke 2018.

    The result has ids (C, min(n_neighbors, C) − 1), padded with −1.
    evidence: sparse complex matrix (C, C) of sums over the points with best component c and candidate c̃: weighted
    distances to c̃ in the real part, weights in the imaginary part
    """
    C = evidence.shape[0]
    G = min(n_neighbors, C)
    mean = evidence.data.real / evidence.data.imag
    lengths = np.diff(evidence.indptr)
    row = np.repeat(np.arange(C), lengths)
    # The distance of a component to itself is set to −∞, so that the component is the first entry of its list.
    mean[row == evidence.indices] = -np.inf
    bar = np.full(C, np.inf)  # for each component, the mean distance of its farthest neighbor, the G-th
    step = max(1, _VALUES // max(1, lengths.max(initial=0)))
    for begin in range(0, C, step):
        rows = slice(evidence.indptr[begin], evidence.indptr[min(begin + step, C)])
        table = np.full((min(step, C - begin), max(G, lengths[begin : begin + step].max())), np.inf)
        table[row[rows] - begin, np.arange(rows.start, rows.stop) - evidence.indptr[row[rows]]] = mean[rows]
        bar[begin : begin + step] = np.partition(table, G - 1, axis=1)[:, G - 1]
    near = np.flatnonzero(mean <= bar[row])
    near = near[np.lexsort((evidence.indices[near], mean[near], row[near]))]
    rank = np.arange(len(near)) - np.searchsorted(row[near], row[near])
    near, rank = near[rank < G], rank[rank < G]
    lists = np.full((C, G), -1, dtype=np.int32)
    lists[row[near], rank] = evidence.indices[near]
    return without_self(lists)


def random_lists(n_components: int, n_neighbors: int, key: Key) -> NDArray[np.int32]:
    """Draw random neighbor lists, as Forster & Lücke 2018 do before the first pass.

    key: counter-based random key    Returns ids of other components (C, min(n_neighbors, C) − 1).
    """
    n = min(n_neighbors, n_components) - 1
    step = 1 + random_sets(
        n_components, n_components - 1, n, lambda column: key.uniform(Purpose.LISTS, 0, n_components, column)
    )
    own = np.arange(n_components, dtype=np.int32)[:, np.newaxis]
    return ((own + step) % n_components).astype(np.int32)


def random_sets(
    n_rows: int, n_components: int, size: int, uniform: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.int32]:
    """Draw `size` distinct components for every row by Floyd's algorithm: (n_rows, size) int32.

    uniform: function that takes the index of a column of the result, and returns random numbers (n_rows,) in [0, 1)
    """
    out = np.empty((n_rows, size), dtype=np.int32)
    for i, last in enumerate(range(n_components - size, n_components)):
        drawn = (uniform(i) * (last + 1)).astype(np.int32)
        taken = (out[:, :i] == drawn[:, np.newaxis]).any(axis=1)
        out[:, i] = np.where(taken, last, drawn)
    return out
