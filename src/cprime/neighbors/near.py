"""A near center for points that no fit has seen: through the cells to one, then along the lists."""

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.neighbors.cells import Cells
from cprime.neighbors.lists import without_self

_NEIGHBORS = 33
_NEAR = 4  # cells around its own that a row is searched in; the lists lead on from there
_MOST_STEPS = 10
_SHARED = 4  # rows a center from which on it is worth preparing its neighbors for all of its rows


class Near:
    """The structure, made once for given centers (C, D).

    lists (C, G): neighbours with the component itself first, −1 behind the last; None makes lists of one tile
    """

    def __init__(self, centers: Floats, lists: NDArray[np.int32] | None = None):
        self.cells = Cells(centers, _NEAR)
        self.lists = without_self(self.cells.lists(min(_NEIGHBORS, len(centers))) if lists is None else lists)

    def labels(self, X: Floats) -> NDArray[np.int32]:
        """A near component of every row: (n,)."""
        return self.find(X)[0]

    def find(self, X: Floats) -> tuple[NDArray[np.int32], Floats]:
        """A near component of every row and its squared distance: O(N (√C + G) D)."""
        labels, distances = self.cells.find(X)
        rows = np.arange(len(X))
        for _ in range(_MOST_STEPS):
            before = labels[rows]
            found, squared = self._step(X if len(rows) == len(X) else X[rows], before)
            labels[rows], distances[rows] = found, squared
            rows = rows[found != before]
            if not len(rows):
                break
        return labels, distances

    def _step(self, X: Floats, labels: NDArray[np.int32]) -> tuple[NDArray[np.int32], Floats]:
        """The best of each row's component and its neighbours: for many rows by component, for few row by row."""
        centers = self.cells.centers
        if len(X) >= _SHARED * len(centers):
            return kernels.reassign(X, centers, self.lists, labels)
        no_lists = np.empty((len(centers), 0), dtype=np.int32)
        found = kernels.nearest_among(X, centers, no_lists, labels[:, np.newaxis], 1, self.lists[labels])
        return found.kept[:, 0], found.distances[:, 0]
