"""Active sets of the points of one chunk of the data, and the order of these points, as an immutable value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.execution.block import ActiveSet
from cprime.kernels import grouped_order


@storable("execution.Chunk")
@dataclass(frozen=True)
class Chunk:
    """Active sets of the n points of one chunk of the data, and the order of these points.

    kept: active sets in the present order of the points; None before the first pass
    order (n,) int32 or int64: the original position of each point in the chunk; None for the original order
    """

    kept: ActiveSet | None = None
    order: NDArray[np.int32] | NDArray[np.int64] | None = None

    @property
    def arrays(self) -> dict[str, NDArray]:
        """Return a dictionary of the chunk's arrays by name: the order of its points, and arrays of the active sets."""
        kept = {} if self.kept is None else self.kept.arrays
        return kept if self.order is None else {**kept, "order": self.order}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray]) -> Chunk:
        """Return a chunk from the dictionary of arrays that the property `arrays` returns."""
        return cls(ActiveSet.from_arrays(arrays) if "ids" in arrays else None, arrays.get("order"))

    def begun(self, keep: bool) -> Chunk:
        """Return the chunk in its state before a fit, with points in their original order.

        keep: whether active sets are reduced to the best component of each point; if not, they are removed
        """
        if not keep or self.kept is None:
            return Chunk()
        return Chunk(ActiveSet(self.labels()[:, np.newaxis]))

    def regrouped(self, n_components: int) -> tuple[Chunk, NDArray[np.int64]]:
        """Return the chunk with its points sorted by their best components, and the former position of each (n,)."""
        assert self.kept is not None
        places = grouped_order(np.ascontiguousarray(self.kept.winners), n_components)
        order = places if self.order is None else self.order[places]
        order = order.astype(np.int32) if len(order) < 2**31 else order.astype(np.int64)
        return Chunk(self.kept.at(places), order), places

    def at(self, rows: NDArray[np.int64]) -> ActiveSet:
        """Return the active sets of some rows, given by their original indices `rows` in the chunk."""
        assert self.kept is not None
        return self.kept.at(self._places(rows))

    def edited(self, rows: NDArray[np.int64], components: NDArray[np.int32]) -> Chunk:
        """Return the chunk with some rows (indices in the chunk) assigned to the given components, with cost 0."""
        assert self.kept is not None
        assert self.kept.costs is not None
        ids, costs, places = self.kept.ids.copy(), self.kept.costs.copy(), self._places(rows)
        ids[places, 0], costs[places, 0] = components, 0
        return replace(self, kept=replace(self.kept, ids=ids, costs=costs))

    def labels(self, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return each point's best component, (n,), in the original order of the points; write to `out` if given."""
        assert self.kept is not None
        out = np.empty(len(self.kept.ids), dtype=np.int32) if out is None else out
        out[slice(None) if self.order is None else self.order] = self.kept.winners
        return out

    def _places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the present positions of rows, given their original indices in the chunk."""
        if self.order is None:
            return rows
        places = np.empty(len(self.order), dtype=np.int64)
        places[self.order] = np.arange(len(self.order))
        return places[rows]


def taken(kept: list[tuple[NDArray[np.intp], ActiveSet]], n: int) -> ActiveSet | None:
    """Return the active sets of n rows, put together from several parts; None if there are no parts.

    kept: the parts, pairs (positions of some rows in the result, active sets of these rows)
    """
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
    """Split indices of rows by chunk.

    Returns (chunk index, positions in `rows`, row indices in the chunk) for each chunk that has any of the rows.
    sizes: number of rows of each chunk
    """
    ends = np.cumsum(sizes)
    chunk = np.searchsorted(ends, rows, side="right")
    found = []
    for i in np.unique(chunk):
        mine = np.flatnonzero(chunk == i)
        found.append((int(i), mine, rows[mine] - (ends[i] - sizes[i])))
    return found
