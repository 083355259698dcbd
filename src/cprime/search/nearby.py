"""Near components of rows that come once: those of the cells near a row, and from there along lists."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime.block import Block, Kept
from cprime.components import Components
from cprime.kernels import Floats, Rows
from cprime.neighbors import Near
from cprime.search.base import Lookup, SearchStats

_FEW, _FEW_OF_WALKS = 4096, 8192  # components that are all looked at: as fast, or nearly
_NEIGHBORS = 65  # of lists, the component itself among them
_WIDTH, _LEAST_WIDTH = 2, 4  # a row walks with so many times what it keeps, and begins with as many centers
_ROUNDS = 4  # lists that it asks for at most
_ROWS = 2**16  # at a time


class Nearby:
    """The structure, made once for given components.

    Where costs are squared distances, a row finds the nearest of the centers in the cells near it. Of other costs cells
    say nothing: there a row begins with a few centers that they offer, and then walks: to the list of the best that it
    has met and not asked yet, a few times. Few components are all looked at.
    """

    def __init__(self, components: Components):
        self.components = components
        self.few = len(components.centers) <= (_FEW if components.squared_distances else _FEW_OF_WALKS)
        if not self.few:
            self.near = Near(components.centers)
            self.lists = None if components.squared_distances else components.lists(_NEIGHBORS)

    def find(self, points: Rows, n_kept: int) -> tuple[NDArray[np.int32], Floats]:
        """Good components of every row, best first, and their costs: (n, n_kept) each."""
        if self.few:
            return self.components.best(points, n_kept)
        if self.lists is None:
            kept, costs, _ = self.near.find(points, n_kept)
        else:
            kept, costs = np.empty((len(points), n_kept), dtype=np.int32), np.empty((len(points), n_kept), points.dtype)
            for begin in range(0, len(points), _ROWS):
                some = slice(begin, begin + _ROWS)
                met, theirs = self._walked(points[some], self.lists, max(_WIDTH * n_kept, _LEAST_WIDTH))
                kept[some], costs[some] = met[:, :n_kept], theirs[:, :n_kept]
        _complete(kept, costs, points, self.components)
        return kept, costs

    def _walked(self, points: Rows, lists: NDArray[np.int32], width: int) -> tuple[NDArray[np.int32], Floats]:
        """The best that rows have met on their walks, and their costs: (n, width) each."""
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
            after, costs[rows] = self.components.keep(points[rows], lists, before, width)
            met[rows], asked[rows] = after, (after[:, :, np.newaxis] == known[:, np.newaxis]).any(axis=2)
        return met, costs


@dataclass(frozen=True)
class LookNear:
    """For points of a batch: the nearest in the cells near them, of centers that are where these have them."""

    near: Near

    def __call__(self, block: Block, points: Rows, kept: Kept | None, components: Components, n_kept: int) -> Lookup:
        ids, costs, n_distances = self.near.find(points, n_kept)
        _complete(ids, costs, points, components)
        return Lookup(Kept(ids, costs), n_distances, SearchStats(block.n_weighted))


def _complete(kept: NDArray[np.int32], costs: Floats, points: Rows, components: Components) -> None:
    """The best of all for points whose cells have fewer than are kept, or whose numbers tell no cell from another."""
    short = np.flatnonzero(kept[:, -1] < 0)
    if len(short):
        kept[short], costs[short] = components.best(points[short], kept.shape[1])
