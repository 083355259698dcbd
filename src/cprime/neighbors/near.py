"""A near center for points that no fit has seen: through the cells to one, then along the lists."""

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.neighbors.cells import Cells
from cprime.neighbors.lists import without_self

_NEIGHBORS = 33
_MOST_STEPS = 10


class Near:
    """The structure, made once for given centers (C, D).

    lists (C, G): neighbours with the component itself first, −1 behind the last; None makes lists of one tile
    """

    def __init__(self, centers: Floats, lists: NDArray[np.int32] | None = None):
        self.cells = Cells(centers)
        self.lists = without_self(self.cells.lists(min(_NEIGHBORS, len(centers))) if lists is None else lists)

    def labels(self, X: Floats) -> NDArray[np.int32]:
        """A near component of every row: (n,)."""
        return self.find(X)[0]

    def find(self, X: Floats) -> tuple[NDArray[np.int32], Floats]:
        """A near component of every row and its squared distance: O(N (√C + G) D)."""
        labels, distances = self.cells.find(X)
        for _ in range(_MOST_STEPS):
            previous = labels
            labels, distances = kernels.reassign(X, self.cells.centers, self.lists, previous)
            if np.array_equal(labels, previous):
                break
        return labels, distances
