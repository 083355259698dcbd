"""Near components of rows that no fit has seen: those of the cells near a row, and from there along lists."""

import numpy as np
from numpy.typing import NDArray

from cprime.kernels.native import Floats
from cprime.neighbors import Near
from cprime.search.base import Components

_FEW = 8192  # components that are all looked at: as fast as cells
_NEIGHBORS = 65  # of lists, the component itself among them
_ROUNDS = 8  # lists that a row asks for at most, beyond those of what it keeps
_ROWS = 2**16  # at a time


class Nearby:
    """The structure, made once for given components.

    Where costs are squared distances, a row finds the nearest of the centers in the cells near it. Of other costs cells
    say nothing: there a row begins with the center that they offer, and then walks: to the list of the best component
    that it keeps and has not asked yet, until it has asked all that it keeps. Few components are all looked at.
    """

    def __init__(self, components: Components):
        self.components = components
        self.few = len(components.centers) <= _FEW
        if not self.few:
            self.near = Near(components.centers)
            self.lists = None if components.squared_distances else components.lists(_NEIGHBORS)

    def find(self, points: Floats, n_kept: int) -> tuple[NDArray[np.int32], Floats]:
        """Good components of every row, best first, and their costs: (n, n_kept) each."""
        if self.few:
            return self.components.best(points, n_kept)
        if self.lists is None:
            kept, costs = self.near.find(points, n_kept)
        else:
            kept = np.empty((len(points), n_kept), dtype=np.int32)
            costs = np.empty(kept.shape, dtype=points.dtype)
            for begin in range(0, len(points), _ROWS):
                some = slice(begin, begin + _ROWS)
                kept[some], costs[some] = self._walked(points[some], self.lists, n_kept)
        short = np.flatnonzero(kept[:, -1] < 0)  # of cells with fewer, or of numbers that no cell can tell apart
        if len(short):
            kept[short], costs[short] = self.components.best(points[short], n_kept)
        return kept, costs

    def _walked(self, points: Floats, lists: NDArray[np.int32], n_kept: int) -> tuple[NDArray[np.int32], Floats]:
        first = self.near.find(points)[0]
        first[first < 0] = 0
        kept, costs = self.components.keep(points, lists, first, n_kept)
        asked = kept == first
        for _ in range(n_kept - 1 + _ROUNDS):
            rows = np.flatnonzero(~(asked | (kept < 0)).all(axis=1))
            if not len(rows):
                break
            before, known, every = kept[rows], asked[rows], np.arange(len(rows))
            place = (~(known | (before < 0))).argmax(axis=1)
            known[every, place] = True
            done = np.where(known, before, np.int32(-2))
            before[every, place] = before[:, 0]
            before[:, 0] = kept[rows, place]
            kept[rows], costs[rows] = self.components.keep(points[rows], lists, before, n_kept)
            asked[rows] = (kept[rows][:, :, np.newaxis] == done[:, np.newaxis]).any(axis=2)
        return kept, costs
