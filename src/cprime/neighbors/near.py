"""Search for centers near a point in coarse cells: groups of centers. No previous assignment of the point is needed."""

import math
from copy import copy
from typing import Annotated, Any, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from cprime._utils.declared import Array, Count, NonNegative, Rising
from cprime.kernels import CenterCells, Dense, Floats, Rows
from cprime.kernels.cells import Found, search_cells
from cprime.neighbors.cells import Cells, GroupedCenters

# Maximum number of cells (groups of centers) that are searched for a row.
_MOST_CELLS = 16
# Maximum number of cells (groups of centers) that are searched for a row of a mini-batch, which needs less accuracy.
_OF_BATCHES = 8
# The projection of a random unit vector in D dimensions on a given direction has the standard deviation 1/√D.
# Projections are assumed to be at most this number of standard deviations.
_SPREAD = 4
# Cells are rebuilt if more than this share of the weight of assigned rows belongs to centers that left their cells.
_ASTRAY = 0.25
# Cells of C centers are rebuilt only after at least C / (this number) rows have been assigned since they were built.
# This limits the share of the time that rebuilding takes.
_SHARE = 4


class GroupedCells:
    """Search structure for centers in cells (groups), for classes of rows without a compiled search (sparse rows)."""

    def __init__(self, places: Floats, begins: NDArray[np.int64], between: Floats):
        g = len(begins) - 1
        self.cells, centers, self.sizes, self.between = places[:g], places[g:], np.diff(begins), between
        inside = begins[:-1, np.newaxis] + np.arange(self.sizes.max(initial=1))
        offered = np.where(inside < begins[1:, np.newaxis], inside, -1).astype(np.int32)
        self._offer = GroupedCenters(centers[begins[:-1]], centers, offered)

    def find(self, X: Rows, n_kept: int, n_searched: int) -> Found:
        """Find the nearest center of each row in the `n_searched` cells (groups of centers) near it.

        Returns ids and squared distances, (n, n_kept) each, and the number of evaluated distances. Only the first
        column has results; in the other n_kept − 1 columns ids are −1 and distances infinite.
        """

        def improve(rows: NDArray, cells: NDArray, kept: NDArray, squares: Floats) -> int:
            if len(rows):
                there, squared = self._offer.choose(X[rows], np.ascontiguousarray(cells))
                nearer = squared < squares[rows, 0]
                kept[rows[nearer], 0], squares[rows[nearer], 0] = there[nearer], squared[nearer]
            return int(self.sizes[cells].sum())

        return search_cells(X.nearest(self.cells, n_searched), self.between, improve, n_kept)


class CenterIndex:
    """Search structure for given centers (C, D): coarse cells of centers, and the distances between cells.

    A cell is a group of centers near a cell center. For each row, the cell with the nearest cell center is searched
    first. The centers of another cell are beyond the plane that bisects the line between the two cell centers. So the
    other cell can be skipped if this plane is farther from the row than the nearest center found so far. In many
    dimensions the projection of a random vector on a given direction is only about 1 / √D of its length. So if D > 16,
    a cell is skipped already if the distance to the plane exceeds 4 / √D times the distance to the nearest center. If a
    very large cell was cut into several, these planes do not bound the cells, so no cell is skipped.
    """

    def __init__(self, centers: Floats, n_searched: int = _MOST_CELLS):
        cells = Cells(centers, 1)
        held = cells.members >= 0
        begins = np.append(0, np.cumsum(held.sum(axis=1)))
        self._set(centers, cells.coarse, cells.members[held], begins, cells.clumped, n_searched)

    def _set(
        self,
        centers: Floats,
        coarse: Floats,
        order: NDArray[np.int32],
        begins: NDArray[np.int64],
        clumped: bool,
        n_searched: int,
    ) -> None:
        """Set all attributes of this search structure for centers (C, D).

        coarse (g, D): centers of the g cells (groups of components)
        order (m,): ids of the m distinct components, cell by cell
        begins (g + 1,): position of each cell's first component in `order`
        clumped: whether a very large cell was cut    n_searched: number of cells that are searched for a row
        """
        self.coarse, self.order, self.begins, self.clumped = coarse, order, begins, clumped
        self.n_cells = min(n_searched, len(coarse))
        reach = min(1.0, _SPREAD / math.sqrt(coarse.shape[1]))
        self.between = 2 * reach * np.sqrt(Dense(coarse).distances(coarse))
        if clumped:
            self.between[:] = np.inf
        self.places = np.concatenate([coarse, centers[order]])
        self._packed: dict[type, Any] = {}

    def _cells_for(self, X: Rows) -> Any:
        """Return the centers, sorted by cell (group of centers), as a search structure that reads rows of X's class."""
        kind = type(X)
        if kind not in self._packed:
            parts = self.places, self.begins, self.between
            self._packed[kind] = CenterCells(*parts, kernels=kind.kernels) if X.searches_cells else GroupedCells(*parts)
        return self._packed[kind]

    def find(self, X: Rows, n_kept: int = 1) -> tuple[NDArray[np.int32], Floats, int]:
        """Return near components of every row, nearest first, squared distances, and the number of distances evaluated.

        The first two results have shape (n, n_kept) and are padded with −1 and infinity. The time is O(n √C D) times
        the number of cells (groups of centers) that are searched for a row.
        """
        kept, squares, n_distances = self._cells_for(X).find(X, n_kept, self.n_cells)
        return np.where(kept < 0, np.int32(-1), self.order[kept]), squares, n_distances

    def moved(self, places: NDArray[np.int32], centers: Floats) -> Self:
        """Return a copy with the same cells (groups of centers), in which m centers are replaced by `centers` (m, D).

        places (m,): positions of the replaced centers in the list of all centers, sorted by cell
        """
        near = copy(self)
        near.places, near._packed = self.places.copy(), {}
        near.places[len(self.coarse) + places] = centers
        return near


class CellArrays(TypedDict):
    """Type of `OnlineCenterIndex.as_dict`, of g cells (groups of centers) with m centers. See there."""

    coarse: Annotated[NDArray, Array("g D", "float32 float64")]
    order: Annotated[
        NDArray[np.int32],
        Array("m", "int32", least=0, below="C"),
        lambda value, sizes: len(value) >= 1 and (np.bincount(value) <= 1).all(),
    ]
    begins: Annotated[NDArray[np.int64], Array("g+1", "int64"), Rising("m", 1)]
    clumped: bool
    home: Annotated[NDArray[np.int32], Array("m", "int32", least=0, below="g")]
    won: NonNegative
    won_astray: NonNegative
    n_rows: Count


class OnlineCenterIndex:
    """`CenterIndex` for centers (C, D) that move from batch to batch, and gradually out of their cells.

    A cell is a group of centers. Several cells are searched for each row, so cells remain useful while few centers
    have left them. The property `stale` is true once the cells should be rebuilt.
    """

    def __init__(self, centers: Floats):
        near = CenterIndex(centers, _OF_BATCHES)
        home = Dense(near.places[len(near.coarse) :]).nearest(near.coarse)[0][:, 0]
        self._set(centers, near, home, 0.0, 0.0, 0)

    def _set(
        self, centers: Floats, near: CenterIndex, home: NDArray[np.int32], won: float, won_astray: float, n_rows: int
    ) -> None:
        """Set all attributes of this search structure.

        near: the cells (groups of centers), with the present centers
        home (m,): cell of each center when the cells were built
        won: weight of all rows assigned since the cells were built
        won_astray: weight of the rows assigned since then to centers that had left their cells
        n_rows: number of all rows assigned since then
        """
        self.centers, self.near, self.home = centers, near, home
        self.won, self.won_astray, self.n_rows = won, won_astray, n_rows

    def as_dict(self) -> dict[str, Any]:
        """Return a dict of the arrays and numbers from which `from_dict` rebuilds this object, except the centers."""
        near = self.near
        cells = {"coarse": near.coarse, "order": near.order, "begins": near.begins, "clumped": near.clumped}
        return cells | {name: getattr(self, name) for name in ("home", "won", "won_astray", "n_rows")}

    @classmethod
    def from_dict(cls, given: dict[str, Any], centers: Floats) -> Self:
        """Return the object from which `as_dict` made `given`; centers (C, D) must be those of that object."""
        near, followed = CenterIndex.__new__(CenterIndex), cls.__new__(cls)
        near._set(centers, given["coarse"], given["order"], given["begins"], given["clumped"], _OF_BATCHES)
        followed._set(centers, near, *(given[name] for name in ("home", "won", "won_astray", "n_rows")))
        return followed

    def following(self, winners: NDArray[np.int32], counts: NDArray[np.float64], n_rows: int, centers: Floats) -> Self:
        """Return a copy of this structure for new centers (C, D), after a batch of `n_rows` rows moved some of them.

        winners (m,): indices of the centers that moved    counts (m,): weight of the batch's rows assigned to each
        """
        # Position of each center in the cells. It is −1 for a center that equals an earlier one, which represents both.
        place = np.full(len(centers), -1, dtype=np.int32)
        place[self.near.order] = np.arange(len(self.near.order), dtype=np.int32)
        places = place[winners]
        held = places >= 0
        places, counts, after = places[held], counts[held], centers[winners[held]]
        astray = Dense(after).nearest(self.near.coarse)[0][:, 0] != self.home[places]
        won, won_astray = self.won + float(counts.sum()), self.won_astray + float(counts[astray].sum())
        followed = copy(self)
        followed._set(centers, self.near.moved(places, after), self.home, won, won_astray, self.n_rows + n_rows)
        return followed

    @property
    def stale(self) -> bool:
        """Return whether the cells (groups of centers) must be rebuilt.

        They must if at least C/4 rows were assigned since the cells were built, and if centers that have moved out of
        their cells got more than a quarter of the weight of these rows.
        """
        return self.n_rows >= len(self.centers) / _SHARE and self.won_astray > _ASTRAY * self.won
