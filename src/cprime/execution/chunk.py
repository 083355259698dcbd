"""What the points of one chunk keep, and the order that they lie in: a value, the same wherever the chunk is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime._storable import storable
from cprime._values import replace
from cprime.block import Block, Kept
from cprime.kernels import Rows, grouped_order


@storable("execution.Chunk")
@dataclass(frozen=True)
class Chunk:
    """kept: in the order of the block's rows    order (n,) int32, or int64: which row each is, None as they come"""

    kept: Kept | None = None
    order: NDArray[np.int32] | NDArray[np.int64] | None = None

    @property
    def arrays(self) -> dict[str, NDArray]:
        """All of them by name."""
        kept = {} if self.kept is None else self.kept.arrays
        return kept if self.order is None else {**kept, "order": self.order}

    @classmethod
    def of(cls, arrays: dict[str, NDArray]) -> Chunk:
        """Made of its `arrays`."""
        return cls(Kept.of(arrays) if "ids" in arrays else None, arrays.get("order"))

    def block(
        self,
        X: Rows,
        sample_weight: NDArray[np.float64] | None,
        first: int,
        n_before: int | None = None,
        prepare: Callable[..., Rows] | None = None,
    ) -> Block:
        """The rows of the chunk, given as they come, in its order.

        first: the number of the first among all    n_before: points of positive weight before it, None for all
        prepare: makes the rows of the block of X, an order, `first` and the weights; None: the rows in their order
        """
        order = None if self.order is None else self.order.astype(np.int64)
        if prepare is not None:
            X = prepare(X, order, first, sample_weight)
        elif order is not None and X.shape[1]:
            X = X.ordered(order)
        w = sample_weight if sample_weight is None or order is None else sample_weight[order]
        return Block(X, w, first, order, n_before)

    def begun(self, n: int, keep: bool) -> Chunk:
        """As it came, with nothing kept, or with the winners of its n points alone."""
        if not keep or self.kept is None:
            return Chunk()
        return Chunk(Kept(self.at(np.arange(n)).ids[:, :1].copy()))

    def regrouped(self, n_components: int) -> Chunk:
        """In the order of the winners."""
        return self.reordered(self.grouping(n_components))

    def grouping(self, n_components: int) -> NDArray[np.int64]:
        """Where the points lie, in the order of their winners."""
        assert self.kept is not None
        return grouped_order(np.ascontiguousarray(self.kept.winners), n_components)

    def reordered(self, places: NDArray[np.int64]) -> Chunk:
        """With the point at places_i as the i-th."""
        assert self.kept is not None
        order = places if self.order is None else self.order[places]
        order = order.astype(np.int32) if len(order) < 2**31 else order.astype(np.int64)
        return Chunk(self.kept.at(places), order)

    def at(self, rows: NDArray[np.int64]) -> Kept:
        """What rows keep, by their numbers in the chunk."""
        assert self.kept is not None
        return self.kept.at(self._places(rows))

    def edited(self, rows: NDArray[np.int64], components: NDArray[np.int32]) -> Chunk:
        """With some rows put into components, at no cost."""
        assert self.kept is not None
        assert self.kept.costs is not None
        ids, costs, places = self.kept.ids.copy(), self.kept.costs.copy(), self._places(rows)
        ids[places, 0], costs[places, 0] = components, 0
        return replace(self, kept=replace(self.kept, ids=ids, costs=costs))

    def labels(self, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """The winners in the order in which the points came: (n,), in `out` if that is given."""
        assert self.kept is not None
        out = np.empty(len(self.kept.ids), dtype=np.int32) if out is None else out
        out[slice(None) if self.order is None else self.order] = self.kept.winners
        return out

    def _places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows lie."""
        if self.order is None:
            return rows
        places = np.empty(len(self.order), dtype=np.int64)
        places[self.order] = np.arange(len(self.order))
        return places[rows]


def taken(kept: list[tuple[NDArray[np.intp], Kept]], n: int) -> Kept | None:
    """What n rows keep, of parts and where these belong; None where nothing is kept."""
    if not kept:
        return None
    _, one = kept[0]
    costs = None if one.costs is None else np.empty((n, one.ids.shape[1]), one.costs.dtype)
    out = Kept(np.empty((n, one.ids.shape[1]), dtype=np.int32), costs)
    for place, part in kept:
        out.ids[place] = part.ids
        if out.costs is not None:
            out.costs[place] = part.costs
    return out


def by_chunk(sizes: tuple[int, ...], rows: NDArray[np.int64]) -> list[tuple[int, NDArray[np.intp], NDArray[np.int64]]]:
    """For every chunk that has any of the rows: its number, which of them, and their numbers in it."""
    ends = np.cumsum(sizes)
    chunk = np.searchsorted(ends, rows, side="right")
    found = []
    for i in np.unique(chunk):
        mine = np.flatnonzero(chunk == i)
        found.append((int(i), mine, rows[mine] - (ends[i] - sizes[i])))
    return found
