"""Blocks of points, the input of an E-step, and active sets of points, which one iteration passes to the next.

The active set K(n) of point n contains its best components. A chunk has the active sets of the points of one part of
the data, and their order. Blocks, active sets and chunks are immutable, except for distance bounds: a pass over the
data creates new objects, but changes the arrays of distance bounds in place. This module depends on no model or search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.kernels import DistanceBounds, Floats, Rows, grouped_order, weighted_sum

_WITHOUT_WEIGHT = 2**32  # rows of zero weight use random streams numbered from here on, other rows smaller numbers


@storable("block.Kept")
@dataclass(frozen=True)
class ActiveSet:
    """Active sets of n points: each point's H best components and their costs, in the order of their block's rows.

    ids (n, H) int32: components in the active sets, best one first
    costs (n, H): costs of these components (lower is better), such as squared distances, or None
    bounds: bounds of distances by which a search omits evaluations, or None. A pass changes these arrays in place. If
    the pass is rejected, the search uses them no more.
    """

    ids: NDArray[np.int32]
    costs: Floats | None = None
    bounds: DistanceBounds | None = None

    @property
    def winners(self) -> NDArray[np.int32]:
        """Return the index of the best component of each point: (n,)."""
        return self.ids[:, 0]

    def unshared(self) -> ActiveSet:
        """Return the active sets with a copy of the distance bounds.

        A pass changes the bounds in place. So a task of a cluster, which may run again with the same active sets, must
        use a copy.
        """
        if self.bounds is None:
            return self
        return replace(self, bounds=DistanceBounds._make(array.copy() for array in self.bounds))

    @property
    def arrays(self) -> dict[str, NDArray]:
        """Return a dictionary from names to all arrays of the active sets, including the distance bounds."""
        found = {"ids": self.ids, "costs": self.costs}
        found |= {} if self.bounds is None else self.bounds._asdict()
        return {name: array for name, array in found.items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray]) -> ActiveSet:
        """Return active sets from the dictionary of arrays that the property `arrays` returns."""
        bounds = (
            DistanceBounds(*(arrays[name] for name in DistanceBounds._fields))
            if DistanceBounds._fields[0] in arrays
            else None
        )
        return cls(arrays["ids"], arrays.get("costs"), bounds)

    def at(self, places: NDArray) -> ActiveSet:
        """Return the active sets of those of the n points that have the positions `places`, without distance bounds."""
        return ActiveSet(self.ids[places], None if self.costs is None else self.costs[places])


@dataclass(frozen=True)
class Block:
    """Block of n consecutive rows of the data, beginning with row number `first`, in the original or another order.

    X (n, D)    sample_weight (n,) float64, or None for 1 each
    order (n,): position of each row in the original order of the block; None if the order is the original one
    n_before: number of rows of positive weight before the block; None if all weights are positive
    """

    X: Rows
    sample_weight: NDArray[np.float64] | None = None
    first: int = 0
    order: NDArray[np.int64] | None = None
    n_before: int | None = None
    _points: dict[int, Rows] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.X)

    @cached
    def weight(self) -> float:
        """Return the total weight of the points, Σ w_n."""
        return float(len(self.X)) if self.sample_weight is None else float(self.sample_weight.sum())

    @cached
    def n_weighted(self) -> int:
        """Return the number of points with a positive weight."""
        return len(self.X) if self.sample_weight is None else int(np.count_nonzero(self.sample_weight > 0))

    def count(self, mask: NDArray[np.bool_]) -> int:
        """Return the number of points with a positive weight for which the mask (n,) is True."""
        return int(np.count_nonzero(mask if self.sample_weight is None else mask & (self.sample_weight > 0)))

    def weighted_sum(self, values: NDArray) -> float:
        """Return Σ_n w_n values_n over the points of the block, with weights w_n, in float64."""
        return weighted_sum(values, self.sample_weight)

    def reordered(self, places: NDArray[np.int64]) -> Block:
        """Return the block with its rows in another order: row i of the result is row places[i] of this block."""
        w = None if self.sample_weight is None else self.sample_weight[places]
        order = places if self.order is None else self.order[places]
        return Block(self.X.ordered(places), w, self.first, order, self.n_before)

    def embedded(self, embed: Callable[[Rows, Rows | None], Rows]) -> Rows:
        """Return X transformed into the space of the components (for example, whitened).

        The transformation is called each time, because it may depend on the parameters. Its result is stored in the
        block only so that the next call can reuse it.
        embed: transformation, a function of X and of the result stored by the last call (None in the first call), which
        it overwrites, or returns if the result is still valid
        """
        self._points[0] = embed(self.X, self._points.get(0))
        return self._points[0]

    def uniform(self, key: Key, purpose: Purpose, column: int = 0) -> NDArray[np.float64]:
        """Return a random number in [0, 1) for every row: (n,).

        Rows of zero weight use another stream of random numbers, so they do not change the numbers of the other rows.
        key: counter-based random key    purpose, column: select one of several independent streams
        """
        first = self.first if self.n_before is None else self.n_before
        drawn = key.uniform(purpose, first, len(self), column)
        light = self._light()
        if light is None:
            return drawn if self.order is None else drawn[self.order]
        others = key.uniform(purpose, self.first, len(self), _WITHOUT_WEIGHT + column)
        return np.where(light, others if self.order is None else others[self.order], drawn[self.row_numbers() - first])

    def row_numbers(self) -> NDArray[np.int64]:
        """Return for each row the number of earlier points in the data with positive weight: (n,).

        Random draws for a point depend on this number, so rows of zero weight do not change them.
        """
        light, first = self._light(), self.first if self.n_before is None else self.n_before
        if light is None:
            return first + (np.arange(len(self)) if self.order is None else self.order)
        heavy = ~light
        if self.order is not None:  # sort the mask back to the original order of rows
            heavy[self.order] = ~light
        before = first + np.cumsum(heavy) - heavy
        return before if self.order is None else before[self.order]

    def _light(self) -> NDArray[np.bool_] | None:
        """Return the mask of rows with zero weight: (n,); None if there are none."""
        light = None if self.sample_weight is None else self.sample_weight <= 0
        return None if light is None or not light.any() else light

    def rows(self, places: NDArray) -> NDArray[np.int64]:
        """Return, for each position in `places` in this block, the index of the row in the whole data."""
        return self.first + (places if self.order is None else self.order[places])

    def select(self, values: NDArray) -> NDArray:
        """Return the entries of an array (N, …), one for each row of the data, that belong to this block's rows."""
        return values[self.rows(np.arange(len(self)))]


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

    def begun(self) -> Chunk:
        """Return the chunk with only the best component of each point, and with points in their original order."""
        return Chunk() if self.kept is None else Chunk(ActiveSet(self.labels()[:, np.newaxis]))

    def regrouped(self, n_components: int) -> tuple[Chunk, NDArray[np.int64]]:
        """Return the chunk with its points sorted by their best components, and each point's former position (n,)."""
        assert self.kept is not None
        places = grouped_order(np.ascontiguousarray(self.kept.winners), n_components)
        order = places if self.order is None else self.order[places]
        order = order.astype(np.int32) if len(order) < 2**31 else order.astype(np.int64)
        return Chunk(self.kept.at(places), order), places

    def edited(self, rows: NDArray[np.int64], components: NDArray[np.int32]) -> Chunk:
        """Return the chunk with components[i] as the best component of the points rows[i] of the chunk, with cost 0."""
        assert self.kept is not None
        assert self.kept.costs is not None
        ids, costs, places = self.kept.ids.copy(), self.kept.costs.copy(), self.places(rows)
        ids[places, 0], costs[places, 0] = components, 0
        return replace(self, kept=replace(self.kept, ids=ids, costs=costs))

    def labels(self, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return each point's best component, (n,), in the original order of the points; write to `out` if given."""
        assert self.kept is not None
        out = np.empty(len(self.kept.ids), dtype=np.int32) if out is None else out
        out[slice(None) if self.order is None else self.order] = self.kept.winners
        return out

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the present positions (m,) in the chunk of rows with the original indices `rows` (m,) in the chunk."""
        if self.order is None:
            return rows
        places = np.empty(len(self.order), dtype=np.int64)
        places[self.order] = np.arange(len(self.order))
        return places[rows]


def join_active_sets(kept: list[tuple[NDArray[np.intp], ActiveSet]], n: int) -> ActiveSet | None:
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
    """Split indices of rows by chunk, and return a list with a triple for each chunk that has any of the rows.

    The triple is (index of the chunk, positions of its rows in `rows`, indices of these rows in the chunk).
    sizes: number of rows of each chunk
    """
    ends = np.cumsum(sizes)
    chunk = np.searchsorted(ends, rows, side="right")
    found = []
    for i in np.flatnonzero(np.bincount(chunk)):
        mine = np.flatnonzero(chunk == i)
        found.append((int(i), mine, rows[mine] - (ends[i] - sizes[i])))
    return found
