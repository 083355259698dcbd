"""A near center for points that come in batches: a walk along lists, from what a few cells have.

Lists serve while centers move a little, so the structure follows them; it says when it should be made anew.
"""

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Floats, Offer, Rows, thin
from cprime.neighbors.cells import Cells
from cprime.neighbors.lists import both_ways, without_self

_CELLS = 3  # nearest to a row, of which it looks at some centers
_EACH = 4  # one in so many centers of a cell is looked at
_SMALL = 16  # centers of a cell that are all looked at
_NEIGHBORS = 32  # nearest neighbors that lists are thinned from
_CELLS_OF_LISTS = 8  # that these are searched in
_SPREAD = 1.2  # of squared distances; see `kernels.thin`
_LENGTH = 32  # of lists, with those that list a center
_WIDTH = 4  # how many of the nearest met are asked for their lists
_ROWS = 2**18  # at a time
_ASTRAY = 0.25  # share of the weight won that centers far from their places may have before all is made anew
_SHARE = 4  # and rows that have to have come, one for so many centers


class Walks:
    """The structure of given centers (C, D): cells, where a row begins, and lists along which it goes on.

    A row looks at some centers of the cells nearest to it, then walks: to the list of the nearest that it has found,
    again and again (Malkov & Yashunin 2020). Lists are of neighbors that lie in different directions, and of those that
    list a center themselves. Centers are held in the order of the cells, so that walks of neighboring rows read the
    same memory. √C evaluations a row to begin with, and some hundreds more, whatever C is.
    """

    def __init__(self, centers: Floats):
        cells, C = Cells(centers, 1), len(centers)
        held = cells.members[cells.members >= 0]
        ids = np.concatenate([held, np.setdiff1d(np.arange(C, dtype=np.int32), held)])
        place = _inverse(ids)
        lists = without_self(cells.lists(min(_NEIGHBORS + 1, C), _CELLS_OF_LISTS))[ids]
        lists = np.where(lists < 0, np.int32(-1), place[lists])
        room = _room(centers[ids], lists)
        ends = np.cumsum((cells.members >= 0).sum(axis=1))
        starts = _starts(np.concatenate([[0], ends]))
        lists = both_ways(thin(centers[ids], lists, _SPREAD), _LENGTH)
        self._set(centers, cells.coarse, ids, starts, lists, room, np.zeros(C), 0.0, 0.0, 0)

    def _set(
        self,
        centers: Floats,
        coarse: Floats,
        ids: NDArray[np.int32],
        starts: NDArray[np.int32],
        lists: NDArray[np.int32],
        room: NDArray[np.float64],
        strayed: NDArray[np.float64],
        won: float,
        won_astray: float,
        n_rows: int,
    ) -> None:
        """coarse (n, D)    ids (C,): the center at each place    starts (n, m), lists (C, G): places

        Of places (C,), room: how far the last neighbor was when this was made, strayed: how long a way the center has
        come since. won: by all centers since, won_astray: by those that had come farther than that; n_rows: since.
        """
        self.centers, self.coarse, self.ids, self.starts, self.lists = centers, coarse, ids, starts, lists
        self.room, self.strayed, self.won, self.won_astray, self.n_rows = room, strayed, won, won_astray, n_rows
        self._offer = Offer(coarse, centers[ids], starts)

    def as_dict(self) -> dict[str, Any]:
        """What tells this structure from others of the same centers."""
        names = ("coarse", "ids", "starts", "lists", "room", "strayed", "won", "won_astray", "n_rows")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def of(cls, given: dict[str, Any], centers: Floats) -> Self:
        """What `as_dict` has given, and the centers of then."""
        walks = cls.__new__(cls)
        walks._set(centers, **given)
        return walks

    @property
    def _places(self) -> Floats:
        """The centers in the order of the cells: (C, D)."""
        return self._offer.places[self._offer.n_groups :]

    def find(self, X: Rows) -> tuple[NDArray[np.int32], Floats, int]:
        """A near component of every row, its squared distance, and how many were looked at in all."""
        labels, squares = np.empty(len(X), dtype=np.int32), np.empty(len(X), dtype=X.dtype)
        n_cells, n = min(_CELLS, len(self.coarse)), 0
        for begin in range(0, len(X), _ROWS):
            some = slice(begin, begin + _ROWS)
            rows = X[some]
            cells = rows.nearest(self.coarse, n_cells)[0]
            starts = [self._offer.choose(rows, np.ascontiguousarray(cells[:, i]))[0] for i in range(n_cells)]
            found = rows.walk(self._places, self.lists, np.column_stack(starts), _WIDTH)
            labels[some], squares[some] = self.ids[found.labels], found.distances
            n += int(found.counts.sum()) + len(rows) * len(self.coarse)
            n += int((self.starts >= 0).sum(axis=1)[cells].sum())
        return labels, squares, n

    def following(self, winners: NDArray[np.int32], counts: NDArray[np.float64], n_rows: int, centers: Floats) -> Self:
        """The same of centers (C, D) of which some (m,) are elsewhere: they have won counts (m,) of so many rows."""
        places, walks = _inverse(self.ids)[winners], copy(self)
        after, strayed = centers[winners], self.strayed.copy()
        strayed[places] += np.sqrt(np.square(after - self._places[places], dtype=np.float64).sum(axis=1))
        astray = strayed[places] > self.room[places]
        walks.centers, walks.strayed, walks.n_rows = centers, strayed, self.n_rows + n_rows
        walks.won, walks.won_astray = self.won + float(counts.sum()), self.won_astray + float(counts[astray].sum())
        walks._offer = self._offer.moved(places, after)
        return walks

    @property
    def stale(self) -> bool:
        """Whether much goes to centers that have come farther than their neighbors were, and new lists pay."""
        return self.n_rows >= len(self.ids) / _SHARE and self.won_astray > _ASTRAY * self.won


def _inverse(ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Where each id stands, in an order of all of them: (C,)."""
    place = np.empty_like(ids)
    place[ids] = np.arange(len(ids), dtype=np.int32)
    return place


def _starts(ends: NDArray[np.intp]) -> NDArray[np.int32]:
    """Some places of each cell, whose places are [ends[i], ends[i + 1]): (n_cells, m), −1 behind the last."""
    steps = np.where(np.diff(ends) > _SMALL, _EACH, 1)
    most = int((-(-np.diff(ends) // steps)).max())
    places = ends[:-1, np.newaxis] + steps[:, np.newaxis] * np.arange(most)
    return np.where(places < ends[1:, np.newaxis], places, -1).astype(np.int32)


def _room(centers: Floats, lists: NDArray[np.int32]) -> NDArray[np.float64]:
    """How far the last neighbor in each list is: (C,), 0 where there is none."""
    last = (lists >= 0).sum(axis=1) - 1
    listed = last >= 0
    other = lists[listed, last[listed]]
    room = np.zeros(len(centers))
    room[listed] = np.sqrt(np.square(centers[listed] - centers[other], dtype=np.float64).sum(axis=1))
    return room
