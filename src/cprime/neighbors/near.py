"""A near center for points that no fit has seen: the best one of the cells that may hold a nearer one."""

import math

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.neighbors.cells import Cells

_MOST_CELLS = 16  # that a row is searched in
_SPREAD = 4  # standard deviations of a random direction's share in a given one
_ROWS = 2**18  # at a time


class Near:
    """The structure, made once for given centers (C, D): cells, and how far apart they lie.

    A center of another cell lies beyond the plane in the middle between that cell and the row's own: the cell is left
    out where the plane is farther than the nearest center so far. In many dimensions hardly any direction leads there,
    a random one by 1 / √D of its length: a cell is left out where the plane is farther than a few times that. Where a
    clump has been cut into cells, no plane says what is in them, and none is left out.
    """

    def __init__(self, centers: Floats):
        self.cells = Cells(centers, 1)
        coarse = self.cells.coarse
        self.n_cells = min(_MOST_CELLS, len(coarse))
        self.reach = min(1.0, _SPREAD / math.sqrt(centers.shape[1]))
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
                reached = farther <= 2 * self.reach * self.apart[own, cell] * np.sqrt(squares)
            rows = np.flatnonzero(reached | self.cells.clumped)
            if not len(rows):
                continue
            there, squared = self.cells.offer.choose(X[rows], np.ascontiguousarray(cell[rows]))
            nearer = squared < squares[rows]
            labels[rows[nearer]], squares[rows[nearer]] = there[nearer], squared[nearer]
        return labels, squares
