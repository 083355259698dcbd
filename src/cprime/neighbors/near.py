"""A near center for points that no fit has seen: the best one of the cells that may hold a nearer one."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Dense, Floats, Rows
from cprime.neighbors.cells import Cells

_MOST_CELLS = 16  # that a row is searched in
_SPREAD = 4  # standard deviations of a random direction's share in a given one


class Near:
    """The structure, made once for given centers (C, D): cells, and how far apart they lie.

    A center of another cell lies beyond the plane in the middle between that cell and the row's own: the cell is left
    out where the plane is farther than the nearest center so far. In many dimensions hardly any direction leads there,
    a random one by 1 / √D of its length: a cell is left out where the plane is farther than a few times that. Where a
    clump has been cut into cells, no plane says what is in them, and none is left out.
    """

    def __init__(self, centers: Floats):
        self.cells = Cells(centers, 1)
        coarse, members = self.cells.coarse, self.cells.members
        self.n_cells = min(_MOST_CELLS, len(coarse))
        reach = min(1.0, _SPREAD / math.sqrt(centers.shape[1]))
        self.between = 2 * reach * np.sqrt(Dense(coarse).distances(coarse))
        if self.cells.clumped:
            self.between[:] = np.inf
        self.order = members[members >= 0]
        self.begins = np.append(0, np.cumsum((members >= 0).sum(axis=1)))
        self._packed: dict[type, Any] = {}

    def _cells_for(self, X: Rows) -> Any:
        """The centers cell by cell, packed for rows of this kind."""
        kind = type(X)
        if kind not in self._packed:
            centers = self.cells.centers[self.order]
            self._packed[kind] = kind.Cells(self.cells.coarse, centers, self.begins, self.between)
        return self._packed[kind]

    def find(self, X: Rows, n_kept: int = 1) -> tuple[NDArray[np.int32], Floats]:
        """Near components of every row, nearest first, and their squared distances: (n, n_kept) each.

        O(N √C D) for each of the cells looked at; −1 at an infinite distance where they have fewer.
        """
        kept, squares = self._cells_for(X).find(X, n_kept, self.n_cells)
        return np.where(kept < 0, np.int32(-1), self.order[kept]), squares
