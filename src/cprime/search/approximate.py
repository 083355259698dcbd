"""The partial search for points that no fit has seen: through the cells to a component, then along the lists."""

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.search.cells import Cells
from cprime.search.lists import without_self

_NEIGHBORS = 33
_MOST_STEPS = 10


def approximately_nearest(
    X: Floats, centers: Floats, lists: NDArray[np.int32] | None, n_threads: int | None
) -> tuple[NDArray[np.int32], Floats]:
    """A near component of every row and its squared distance: O(N (√C + G) D).

    lists (C, G): neighbours with the component itself first, −1 behind the last; None makes lists of one tile
    """
    cells = Cells(centers, n_threads)
    lists = without_self(cells.lists(min(_NEIGHBORS, len(centers))) if lists is None else lists)
    labels, distances = cells.find(X)
    for _ in range(_MOST_STEPS):
        previous = labels
        labels, distances = kernels.reassign(X, centers, lists, previous, n_threads=n_threads)
        if np.array_equal(labels, previous):
            break
    return labels, distances
