"""A near center for points that no fit has seen: the best one of the cells that may hold a nearer one."""

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.neighbors.cells import Cells

_MOST_CELLS = 16  # that a row is searched in
_REACH = 0.35  # times as far as its nearest so far lies the farthest cell that a row is searched in
_ROWS = 2**18  # at a time


class Near:
    """The structure, made once for given centers (C, D): cells, and how far apart they lie.

    A center of another cell lies beyond the plane in the middle between that cell and the row's own. Of all directions
    few lead straight there: beyond a share of the distance to the nearest center so far, a cell is left out.
    """

    def __init__(self, centers: Floats):
        self.cells = Cells(centers, 1)
        coarse = self.cells.coarse
        self.n_cells = min(_MOST_CELLS, len(coarse))
        self.apart = np.sqrt(kernels.min_distances(coarse, coarse))

    def labels(self, X: Floats) -> NDArray[np.int32]:
        """A near component of every row: (n,)."""
        return self.find(X)[0]

    def find(self, X: Floats) -> tuple[NDArray[np.int32], Floats]:
        """A near component of every row and its squared distance: O(N √C D), for each of the cells looked at."""
        labels, squares = np.empty(len(X), dtype=np.int32), np.empty(len(X), dtype=X.dtype)
        for begin in range(0, len(X), _ROWS):
            some = slice(begin, begin + _ROWS)
            labels[some], squares[some] = self._found(X[some])
        return labels, squares

    def _found(self, X: Floats) -> tuple[NDArray[np.int32], Floats]:
        cells, to_cells = kernels.nearest(X, self.cells.coarse, self.n_cells)
        own = cells[:, 0]
        labels, squares = self.cells.offer.choose(X, np.ascontiguousarray(own))
        for cell, to_cell in zip(cells.T[1:], to_cells.T[1:], strict=True):
            with np.errstate(over="ignore", invalid="ignore"):  # what is no number reaches nothing
                farther = to_cell - to_cells[:, 0]
                rows = np.flatnonzero(farther <= 2 * _REACH * self.apart[own, cell] * np.sqrt(squares))
            if not len(rows):
                continue
            there, squared = self.cells.offer.choose(X[rows], np.ascontiguousarray(cell[rows]))
            nearer = squared < squares[rows]
            labels[rows[nearer]], squares[rows[nearer]] = there[nearer], squared[nearer]
        return labels, squares
