"""Search for the nearest centers of rows. Centers are grouped in cells, and cells too far from a row are skipped."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats

# Result of a search: ids of centers (n, H) int32 and squared distances (n, H), nearest first, padded with −1 and
# infinity, and the number of evaluated distances.
Found = tuple[NDArray[np.int32], Floats, int]


class CenterCells:
    """Centers sorted by cell (a group of centers near a cell center), packed once for many searches.

    places (g + C, D): centers m_i of the g cells, then the C centers that are searched, cell by cell
    begins (g + 1,) int64, ascending from 0 to C: cell i contains the centers begins_i … begins_{i+1} − 1
    between (g, g) of the centers' dtype [data unit]: if a row in cell i has squared distances a to m_i and b to m_j,
    its distance to centers in cell j is assumed to be at least (b − a) / between_ij. With between_ij = 2 |m_i − m_j|
    this is the distance to the bisecting plane, so it is a true bound if all centers in cell j are nearer to m_j than
    to m_i. With infinity, cell j is never excluded.
    """

    def __init__(
        self,
        places: Floats,
        begins: NDArray[np.int64],
        between: Floats,
        *,
        n_threads: int | None = None,
        kernels: Any = _core,
    ):
        self.parts = check.matrix(places, "places"), begins, between
        self.n_cells = len(begins) - 1
        packed = kernels.CenterCells32 if places.dtype == np.float32 else kernels.CenterCells64
        self._packed = packed(places, begins + self.n_cells, between, resolve_threads(n_threads))

    def __reduce__(self) -> tuple[type, tuple]:
        return CenterCells, self.parts

    def find(self, X: CoreRows, n_kept: int, n_searched: int, *, n_threads: int | None = None) -> Found:
        """Return near centers of every row, squared distances [data unit²], and the number of evaluated distances.

        A cell is a group of centers near a cell center. First the cell whose cell center is nearest to the row is
        searched. The search continues in the `n_searched` nearest cells, but skips cells that cannot contain a center
        nearer than the farthest of the n_kept found in the first cell. Nearest cells are determined up to rounding. The
        first two results are (n, n_kept), nearest first, padded with −1 and infinity.
        """
        check.matrix(self.parts[0], "places", X)
        shape = len(X), check.count(n_kept, "n_kept")
        kept, squares = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=X.dtype)
        n = self._packed.find(X.core, check.count(n_searched, "n_searched"), kept, squares, resolve_threads(n_threads))
        kept -= np.where(kept < 0, np.int32(0), np.int32(self.n_cells))
        return kept, squares, n


def search_cells(
    near: tuple[NDArray[np.int32], Floats],
    between: Floats,
    improve: Callable[[NDArray, NDArray, NDArray, Floats], int],
    n_kept: int,
) -> Found:
    """Find near centers of every row by a search of its nearest cells (groups of centers) with a given function.

    near: the nearest cells of every row, and squared distances to the cells' centers, (n, searched cells) each
    between (g, g): a row with squared distances a, b to the centers of cells i, j is assumed to have a distance of at
    least (b − a) / between_ij to all centers in cell j
    improve(rows, cells, kept, squares): function that searches one cell for each of these rows, updates the centers
    found so far (`kept`) and their squared distances in place, and returns the number of evaluated distances
    Returns ids of centers and squared distances, (n, n_kept) each, and the number of evaluated distances.
    """
    cells, to_cells = near
    n, n_cells = cells.shape
    kept = np.full((n, n_kept), -1, dtype=np.int32)
    squares = np.full((n, n_kept), np.inf, dtype=to_cells.dtype)
    # A bound that overflows or is NaN excludes no cell in the comparison below, so NumPy need not warn of it.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        least = (to_cells - to_cells[:, :1]) / between[cells[:, :1], cells]
    n_distances = n * len(between) + improve(np.arange(n), cells[:, 0], kept, squares)
    looked_at = ~(least > np.sqrt(squares[:, -1:]))
    for rank in range(1, n_cells):
        rows = np.flatnonzero(looked_at[:, rank])
        n_distances += improve(rows, cells[rows, rank], kept, squares)
    return kept, squares, n_distances
