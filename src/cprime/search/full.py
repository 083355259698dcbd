"""Exact search.

All C components are candidates of each point, so the active set K(n) holds the C′ best. This is Corollary 1 of Lücke &
Forster, *k-means as a variational EM approximation of Gaussian mixture models*.
"""

from dataclasses import dataclass
from typing import ClassVar

from cprime._utils.random import Key
from cprime._utils.storable import storable
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Rows
from cprime.neighbors.components import Components
from cprime.search.base import BaseSearch, Look, Lookup, Sample, SearchStats


@dataclass(frozen=True)
class FullLookup:
    """Exact search of a block of n points among all C components. It evaluates n·C distances.

    Previous active sets affect only the time.
    """

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        hint = None if kept is None or kept.ids.shape[1] != n_kept else kept.ids
        found = components.best(points, n_kept, hint=hint)
        return Lookup(ActiveSet(*found), len(points) * len(components.centers), SearchStats(block.n_weighted))


@storable("search.Full")
@dataclass(frozen=True, repr=False)
class Full(BaseSearch):
    """Exact search over all components. With one component per point (C′ = 1), k-means is Lloyd's algorithm.

    Parameters
    ----------
    certificate : int, default=1000
        No effect, because only partial searches are compared with an exact one.
    final_assignment : {"auto", "exact", "found"}, default="auto"
        "found" leaves the points of a lazy-k-means (`epsilon` of `KMeans`) in the lazy assignment; otherwise labels are
        the nearest centers.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.search import Full
    >>> KMeans(2, search=Full(), random_state=0).fit([[0.0], [1.0], [9.0], [10.0]]).certificate_ is None
    True
    """

    exact: ClassVar[bool] = True
    keeps_winners: ClassVar[bool] = False
    warmup: ClassVar[int] = 0
    incremental: ClassVar[bool] = False

    def begin(self, components: Components, n_kept: int, assigned: bool, key: Key) -> tuple[None, Look | None]:
        return None, None

    def refresh(self, state: None, components: Components) -> tuple[None, int]:
        return None, 0

    def look(self, state: None, components: Components, key: Key) -> Look:
        return FullLookup()

    def learn(
        self, state: None, look: Look, components: Components, stats: SearchStats, sample: Sample, key: Key
    ) -> tuple[None, int]:
        return None, 0
