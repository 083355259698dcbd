"""Exact search in which the component of some points is known: the points with a label have this component only."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Rows
from cprime.neighbors.components import Components
from cprime.search.base import Look, Lookup
from cprime.search.full import Full, FullLookup


@dataclass(frozen=True)
class LabelledLookup:
    """Search of a block of points among all components. A point with a label gets the component of its label.

    labels (N,): known component of each point of the data, −1 if it is unknown
    The active set of a point with a label begins with this component. The other components in the set get costs so
    large that their responsibilities are exactly 0.
    """

    labels: NDArray[np.int32]

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        found = FullLookup()(block, points, kept, components, n_kept)
        own = block.select(self.labels)
        rows = np.flatnonzero(own >= 0)
        if not len(rows):
            return found
        ids, costs = found.kept.ids.copy(), found.kept.costs
        assert costs is not None
        costs, labels = costs.copy(), own[rows, np.newaxis]
        no_lists = np.empty((len(components.centers), 0), dtype=np.int32)
        cost = components.search_lists(points[rows], no_lists, labels, 1).costs
        # The component of the label is put first. If it has another place, the former first component takes this place.
        twice = (ids[rows] == labels) & (np.arange(n_kept) > 0)
        ids[rows] = np.where(twice, ids[rows, :1], ids[rows])
        costs[rows] = np.finfo(costs.dtype).max / 16
        ids[rows, 0], costs[rows, 0] = labels[:, 0], cost[:, 0]
        return Lookup(ActiveSet(ids, costs), found.n_distances + len(rows), found.stats)


@dataclass(frozen=True, eq=False, repr=False)
class Labelled(Full):
    """Exact search with known components of some points: labels (N,), −1 if the component is unknown."""

    labels: NDArray[np.int32]

    incremental: ClassVar[bool] = True

    def look(self, state: None, components: Components, key: Key) -> Look:
        return LabelledLookup(self.labels)
