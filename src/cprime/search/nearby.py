"""Approximate search for points that have no component yet, by coarse cells (groups of centers) and neighbor lists."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Floats, Rows
from cprime.neighbors import CenterIndex
from cprime.neighbors.components import Components
from cprime.search.base import Lookup, SearchStats

# Up to this number of components all are evaluated, because a search would take as long. First number: if costs are
# squared distances, which are searched by cells. Second number: for other costs, searched along neighbor lists.
_FEW, _FEW_OF_WALKS = 4096, 8192
# Length of the neighbor lists along which walks search, the component itself included.
_NEIGHBORS = 65
# Number of best components that a walk along neighbor lists stores for a row, divided by the number of components to
# be found, and least number that it stores.
_WIDTH, _LEAST_WIDTH = 2, 4
# Maximum number of neighbor lists that are searched for a row in a walk.
_ROUNDS = 4
# Number of rows that are searched at a time, to limit memory.
_ROWS = 2**16


class Nearby:
    """Search structure for approximately best components of arbitrary rows; built once for given components.

    If costs are squared distances, the result is the nearest centers in the coarse cells (groups of centers) near a
    row. For other costs, a few centers from these cells are the first candidates of a walk on the graph of neighbor
    lists. Each step of the walk selects the best candidate whose neighbors have not been evaluated, and evaluates these
    neighbors. All components are evaluated if there are at most 4096, or 8192 for other costs than squared distances.
    """

    def __init__(self, components: Components):
        self.components = components
        self.few = len(components.centers) <= (_FEW if components.squared_distances else _FEW_OF_WALKS)
        if not self.few:
            self.near = CenterIndex(components.centers)
            self.lists = None if components.squared_distances else components.lists(_NEIGHBORS)

    def find(self, points: Rows, n_kept: int) -> tuple[NDArray[np.int32], Floats]:
        """Return approximately best components of every row, best first, and their costs: (n, n_kept) each."""
        if self.few:
            return self.components.best(points, n_kept)
        if self.lists is None:
            kept, costs, _ = self.near.find(points, n_kept)
        else:
            kept, costs = np.empty((len(points), n_kept), dtype=np.int32), np.empty((len(points), n_kept), points.dtype)
            for begin in range(0, len(points), _ROWS):
                piece = slice(begin, begin + _ROWS)
                met, theirs = self._walked(points[piece], self.lists, max(_WIDTH * n_kept, _LEAST_WIDTH))
                kept[piece], costs[piece] = met[:, :n_kept], theirs[:, :n_kept]
        _complete(kept, costs, points, self.components)
        return kept, costs

    def _walked(self, points: Rows, lists: NDArray[np.int32], width: int) -> tuple[NDArray[np.int32], Floats]:
        """Return the `width` best components of each point, found by walks on the graph of neighbor lists.

        A step of a walk evaluates the neighbors of the best component found so far whose neighbors have not been
        evaluated.    lists (C, G − 1): neighbors of each component    Returns ids and costs, (n, width) each.
        """
        met = self.near.find(points, width)[0]
        met[met[:, 0] < 0, 0] = 0
        asked = np.zeros(met.shape, dtype=bool)
        costs = np.full(met.shape, np.inf, dtype=points.dtype)
        for _ in range(_ROUNDS):
            rows = np.flatnonzero(~(asked | (met < 0)).all(axis=1))
            if not len(rows):
                break
            before, done, every = met[rows], asked[rows], np.arange(len(rows))
            place = (done | (before < 0)).argmin(axis=1)
            done[every, place] = True
            known = np.where(done, before, np.int32(-2))
            before[every, place], before[:, 0] = before[:, 0], before[every, place]
            after, costs[rows] = self.components.top_k(points[rows], lists, before, width)
            met[rows], asked[rows] = after, (after[:, :, np.newaxis] == known[:, np.newaxis]).any(axis=2)
        return met, costs


@dataclass(frozen=True)
class CellIndexLookup:
    """Search of a batch of points for their nearest centers, in coarse cells (groups of centers) near each point."""

    near: CenterIndex

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        ids, costs, n_distances = self.near.find(points, n_kept)
        _complete(ids, costs, points, components)
        return Lookup(ActiveSet(ids, costs), n_distances, SearchStats(block.n_weighted))


def _complete(kept: NDArray[np.int32], costs: Floats, points: Rows, components: Components) -> None:
    """Search all components for rows with too few results, and write their results in place.

    kept, costs (n, n_kept): ids of components, −1 in the last column if a row has too few results, and costs
    A row has too few results if the coarse cells (groups of centers) near it have too few components, or if rounding
    makes all cells equally near.
    """
    short = np.flatnonzero(kept[:, -1] < 0)
    if len(short):
        kept[short], costs[short] = components.best(points[short], kept.shape[1])
