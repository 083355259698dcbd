"""Per-point state of one chunk and the order of its points, as an immutable value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime._storable import storable
from cprime._values import replace
from cprime.block import ActiveSet, Block
from cprime.kernels import Rows, grouped_order


@storable("execution.Chunk")
@dataclass(frozen=True)
class Chunk:
    """Per-point state of the n points of one chunk.

    kept: in the order of the block's rows; None without state
    order (n,) int32 or int64: the original row of each position; None for the original order
    """

    kept: ActiveSet | None = None
    order: NDArray[np.int32] | NDArray[np.int64] | None = None

    @property
    def arrays(self) -> dict[str, NDArray]:
        """Return all arrays by name."""
        kept = {} if self.kept is None else self.kept.arrays
        return kept if self.order is None else {**kept, "order": self.order}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray]) -> Chunk:
        """Return a chunk made of its `arrays`."""
        return cls(ActiveSet.from_arrays(arrays) if "ids" in arrays else None, arrays.get("order"))

    def block(
        self,
        X: Rows,
        sample_weight: NDArray[np.float64] | None,
        first: int,
        n_before: int | None = None,
        prepare: Callable[..., Rows] | None = None,
    ) -> Block:
        """Return the block of the chunk's rows, given in their original order, in the order of the chunk.

        first: index of the first row in the data    n_before: points of positive weight before it; None if all have one
        prepare: function of X, the order, `first` and the weights that returns the block's rows; None: only reorder
        """
        order = None if self.order is None else self.order.astype(np.int64)
        if prepare is not None:
            X = prepare(X, order, first, sample_weight)
        elif order is not None and X.shape[1]:
            X = X.ordered(order)
        w = sample_weight if sample_weight is None or order is None else sample_weight[order]
        return Block(X, w, first, order, n_before)

    def begun(self, n: int, keep: bool) -> Chunk:
        """Return a chunk in the original order, without state or, if `keep`, with only each point's best component."""
        if not keep or self.kept is None:
            return Chunk()
        return Chunk(ActiveSet(self.at(np.arange(n)).ids[:, :1].copy()))

    def regrouped(self, n_components: int) -> Chunk:
        """Return the chunk with its points sorted by their best component."""
        return self.reordered(self.grouping(n_components))

    def grouping(self, n_components: int) -> NDArray[np.int64]:
        """Return the positions (n,) of the points, sorted by their best component."""
        assert self.kept is not None
        return grouped_order(np.ascontiguousarray(self.kept.winners), n_components)

    def reordered(self, places: NDArray[np.int64]) -> Chunk:
        """Return the chunk with the point at position places_i moved to position i."""
        assert self.kept is not None
        order = places if self.order is None else self.order[places]
        order = order.astype(np.int32) if len(order) < 2**31 else order.astype(np.int64)
        return Chunk(self.kept.at(places), order)

    def at(self, rows: NDArray[np.int64]) -> ActiveSet:
        """Return the state of some rows, given their indices in the chunk."""
        assert self.kept is not None
        return self.kept.at(self._places(rows))

    def edited(self, rows: NDArray[np.int64], components: NDArray[np.int32]) -> Chunk:
        """Return the chunk with some rows assigned to the given components, at zero cost."""
        assert self.kept is not None
        assert self.kept.costs is not None
        ids, costs, places = self.kept.ids.copy(), self.kept.costs.copy(), self._places(rows)
        ids[places, 0], costs[places, 0] = components, 0
        return replace(self, kept=replace(self.kept, ids=ids, costs=costs))

    def labels(self, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return the best components in the original order of the points, (n,), in `out` if given."""
        assert self.kept is not None
        out = np.empty(len(self.kept.ids), dtype=np.int32) if out is None else out
        out[slice(None) if self.order is None else self.order] = self.kept.winners
        return out

    def _places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of rows, given their indices in the chunk."""
        if self.order is None:
            return rows
        places = np.empty(len(self.order), dtype=np.int64)
        places[self.order] = np.arange(len(self.order))
        return places[rows]


def taken(kept: list[tuple[NDArray[np.intp], ActiveSet]], n: int) -> ActiveSet | None:
    """Return the state of n rows, assembled from (target positions, state) pairs; None if there are none."""
    if not kept:
        return None
    _, one = kept[0]
    costs = None if one.costs is None else np.empty((n, one.ids.shape[1]), one.costs.dtype)
    out = ActiveSet(np.empty((n, one.ids.shape[1]), dtype=np.int32), costs)
    for place, part in kept:
        out.ids[place] = part.ids
        if out.costs is not None:
            out.costs[place] = part.costs
    return out


def by_chunk(sizes: tuple[int, ...], rows: NDArray[np.int64]) -> list[tuple[int, NDArray[np.intp], NDArray[np.int64]]]:
    """Split row indices by chunk: return (chunk, positions in `rows`, row indices in the chunk) for each chunk hit."""
    ends = np.cumsum(sizes)
    chunk = np.searchsorted(ends, rows, side="right")
    found = []
    for i in np.unique(chunk):
        mine = np.flatnonzero(chunk == i)
        found.append((int(i), mine, rows[mine] - (ends[i] - sizes[i])))
    return found
