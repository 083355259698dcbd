"""A near center for points that no fit has seen: the best one of the cells that may hold a nearer one."""

import math
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Dense, Floats, Rows
from cprime.neighbors.cells import Cells

_MOST_CELLS = 16  # that a row is searched in
_OF_BATCHES = 8  # of a batch, which moves a center by little and comes once
_SPREAD = 4  # standard deviations of a random direction's share in a given one
_ASTRAY = 0.25  # share of the weight won that centers outside of their cells may have before all is made anew
_SHARE = 4  # and rows that have to have come, one for so many centers


class Near:
    """The structure, made once for given centers (C, D): cells, and how far apart they lie.

    A center of another cell lies beyond the plane in the middle between that cell and the row's own: the cell is left
    out where the plane is farther than the nearest center so far. In many dimensions hardly any direction leads there,
    a random one by 1 / √D of its length: a cell is left out where the plane is farther than a few times that. Where a
    clump has been cut into cells, no plane says what is in them, and none is left out.
    """

    def __init__(self, centers: Floats, most: int = _MOST_CELLS):
        cells = Cells(centers, 1)
        held = cells.members >= 0
        begins = np.append(0, np.cumsum(held.sum(axis=1)))
        self._set(centers, cells.coarse, cells.members[held], begins, cells.clumped, most)

    def _set(
        self,
        centers: Floats,
        coarse: Floats,
        order: NDArray[np.int32],
        begins: NDArray[np.int64],
        clumped: bool,
        most: int,
    ) -> None:
        """coarse (g, D): centers of cells    order (m,): the centers in them, cell by cell    begins (g + 1,): of each

        clumped: whether a clump has been cut into cells    most: cells that a row is searched in
        """
        self.coarse, self.order, self.begins, self.clumped = coarse, order, begins, clumped
        self.n_cells = min(most, len(coarse))
        reach = min(1.0, _SPREAD / math.sqrt(coarse.shape[1]))
        self.between = 2 * reach * np.sqrt(Dense(coarse).distances(coarse))
        if clumped:
            self.between[:] = np.inf
        self.places = np.concatenate([coarse, centers[order]])
        self._packed: dict[type, Any] = {}

    def _cells_for(self, X: Rows) -> Any:
        """The centers cell by cell, packed for rows of this kind."""
        kind = type(X)
        if kind not in self._packed:
            self._packed[kind] = kind.Cells(self.places, self.begins, self.between)
        return self._packed[kind]

    def find(self, X: Rows, n_kept: int = 1) -> tuple[NDArray[np.int32], Floats, int]:
        """Near components of every row, nearest first, their squared distances, (n, n_kept) each, and how many it took.

        O(N √C D) for each of the cells looked at; −1 at an infinite distance where they have fewer.
        """
        kept, squares, n_distances = self._cells_for(X).find(X, n_kept, self.n_cells)
        return np.where(kept < 0, np.int32(-1), self.order[kept]), squares, n_distances

    def moved(self, places: NDArray[np.int32], centers: Floats) -> Self:
        """The same cells where the centers at some places (n,) of their order are elsewhere: (n, D)."""
        near = copy(self)
        near.places, near._packed = self.places.copy(), {}
        near.places[len(self.coarse) + places] = centers
        return near


class Followed:
    """The same of centers (C, D) that move from batch to batch, and in the end out of their cells.

    Cells serve while that happens to few: a row looks into several. It says when they should be made anew.
    """

    def __init__(self, centers: Floats):
        near = Near(centers, _OF_BATCHES)
        home = Dense(near.places[len(near.coarse) :]).nearest(near.coarse)[0][:, 0]
        self._set(centers, near, home, 0.0, 0.0, 0)

    def _set(
        self, centers: Floats, near: Near, home: NDArray[np.int32], won: float, won_astray: float, n_rows: int
    ) -> None:
        """home (m,): the cell that each of the centers in cells was nearest to when these were made

        won: by all centers since, won_astray: by those that were nearer to another cell by then; n_rows: since
        """
        self.centers, self.near, self.home = centers, near, home
        self.won, self.won_astray, self.n_rows = won, won_astray, n_rows

    def as_dict(self) -> dict[str, Any]:
        """What tells this structure from others of the same centers."""
        near = self.near
        cells = {"coarse": near.coarse, "order": near.order, "begins": near.begins, "clumped": near.clumped}
        return cells | {name: getattr(self, name) for name in ("home", "won", "won_astray", "n_rows")}

    @classmethod
    def of(cls, given: dict[str, Any], centers: Floats) -> Self:
        """What `as_dict` has given, and the centers of then."""
        near, followed = Near.__new__(Near), cls.__new__(cls)
        near._set(centers, given["coarse"], given["order"], given["begins"], given["clumped"], _OF_BATCHES)
        followed._set(centers, near, *(given[name] for name in ("home", "won", "won_astray", "n_rows")))
        return followed

    def following(self, winners: NDArray[np.int32], counts: NDArray[np.float64], n_rows: int, centers: Floats) -> Self:
        """The same of centers (C, D) of which some (n,) are elsewhere: they have won counts (n,) of so many rows."""
        place = np.full(len(centers), -1, dtype=np.int32)  # of centers that coincided with another one, none
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
        """Whether much goes to centers that are no longer in the cell that they were in, and new cells pay."""
        return self.n_rows >= len(self.centers) / _SHARE and self.won_astray > _ASTRAY * self.won
