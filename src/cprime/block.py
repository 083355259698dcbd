"""Blocks of points, the input of an E-step, and the per-point state that is carried from one iteration to the next.

Both are immutable: a pass over the data creates new ones. Independent of models and searches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key, Purpose
from cprime._storable import storable
from cprime._values import cached, replace
from cprime.kernels import DistanceBounds, Floats, Rows

_WITHOUT_WEIGHT = 2**32  # first random column of rows of zero weight, beyond all other columns


@storable("block.Kept")
@dataclass(frozen=True)
class ActiveSet:
    """Per-point state of n points, in the order of their block's rows.

    ids (n, H) int32: active sets K(n), best first    costs (n, H): their squared distances, or in general their costs
    bounds: arrays of a search with distance bounds; a pass may change them in place, because the bounds stay valid
    """

    ids: NDArray[np.int32]
    costs: Floats | None = None
    bounds: DistanceBounds | None = None

    @property
    def winners(self) -> NDArray[np.int32]:
        """Return the best component of each point: (n,)."""
        return self.ids[:, 0]

    def unshared(self) -> ActiveSet:
        """Return the state with a copy of the bounds, for passes that may be repeated and must not change it."""
        if self.bounds is None:
            return self
        return replace(self, bounds=DistanceBounds._make(array.copy() for array in self.bounds))

    @property
    def arrays(self) -> dict[str, NDArray]:
        """Return all arrays by name, including those of the bounds."""
        found = {"ids": self.ids, "costs": self.costs}
        found |= {} if self.bounds is None else self.bounds._asdict()
        return {name: array for name, array in found.items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray]) -> ActiveSet:
        """Return the state made of its `arrays`."""
        bounds = (
            DistanceBounds(*(arrays[name] for name in DistanceBounds._fields))
            if DistanceBounds._fields[0] in arrays
            else None
        )
        return cls(arrays["ids"], arrays.get("costs"), bounds)

    def at(self, places: NDArray) -> ActiveSet:
        """Return the state of the points at the given positions, without bounds."""
        return ActiveSet(self.ids[places], None if self.costs is None else self.costs[places])


@dataclass(frozen=True)
class Block:
    """Rows `first` … `first + n − 1` of the data, in the original or another order.

    X (n, D)    sample_weight (n,) float64, or None for 1 each
    order (n,): the original position of each row; None for the original order
    n_before: number of earlier rows in the data with positive weight; None if all weights are positive
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
        """Return Σ w_n."""
        return float(len(self.X)) if self.sample_weight is None else float(self.sample_weight.sum())

    @cached
    def n_weighted(self) -> int:
        """Return the number of points with a positive weight."""
        return len(self.X) if self.sample_weight is None else int(np.count_nonzero(self.sample_weight > 0))

    def count(self, mask: NDArray[np.bool_]) -> int:
        """Return the number of points in a mask (n,) with a positive weight."""
        return int(np.count_nonzero(mask if self.sample_weight is None else mask & (self.sample_weight > 0)))

    def weighted_sum(self, values: NDArray) -> float:
        """Return Σ_n w_n values_n in float64."""
        if self.sample_weight is None:
            return float(np.add.reduce(values, dtype=np.float64))
        return float((self.sample_weight * values).sum())  # not a BLAS product: its rounding depends on threads

    def reordered(self, places: NDArray[np.int64]) -> Block:
        """Return the block with the row at position places_i moved to position i."""
        w = None if self.sample_weight is None else self.sample_weight[places]
        order = places if self.order is None else self.order[places]
        return Block(self.X.ordered(places), w, self.first, order, self.n_before)

    def embedded(self, embed: Callable[[Rows, Rows | None], Rows]) -> Rows:
        """Return X in the space of the components, as `embed` computes it.

        embed: function of X and the last result for this block, whose memory it can reuse, or None
        """
        self._points[0] = embed(self.X, self._points.get(0))
        return self._points[0]

    def uniform(self, key: Key, purpose: Purpose, column: int = 0) -> NDArray[np.float64]:
        """Return a random number in [0, 1) for every row: (n,); rows of zero weight use a separate stream."""
        first = self._first_number
        drawn = key.uniform(purpose, first, len(self), column)
        light = self._light()
        if light is None:
            return drawn if self.order is None else drawn[self.order]
        others = key.uniform(purpose, self.first, len(self), _WITHOUT_WEIGHT + column)
        return np.where(light, others if self.order is None else others[self.order], drawn[self.numbers() - first])

    def numbers(self) -> NDArray[np.int64]:
        """Return for each row the number of earlier points in the data with positive weight: (n,).

        Random draws for a point depend on this number, so rows of zero weight do not change them.
        """
        light = self._light()
        if light is None:
            return self._first_number + (np.arange(len(self)) if self.order is None else self.order)
        heavy = ~light
        if self.order is not None:  # back to the original order
            heavy[self.order] = ~light
        before = self._first_number + np.cumsum(heavy) - heavy
        return before if self.order is None else before[self.order]

    @property
    def _first_number(self) -> int:
        return self.first if self.n_before is None else self.n_before

    def _light(self) -> NDArray[np.bool_] | None:
        """Return the mask of rows with zero weight: (n,); None if there are none."""
        light = None if self.sample_weight is None else self.sample_weight <= 0
        return None if light is None or not light.any() else light

    def rows(self, places: NDArray) -> NDArray[np.int64]:
        """Return the indices in the data of the rows at these positions."""
        return self.first + (places if self.order is None else self.order[places])
