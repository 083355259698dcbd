"""Some of the points, as an E-step sees them, and what these keep from one iteration to the next.

Both are values: a pass over the data makes new ones. Knows nothing of models and searches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key, Purpose
from cprime._storable import storable
from cprime._values import cached, replace
from cprime.kernels import Bounds, Floats, Rows

_WITHOUT_WEIGHT = 2**32  # beyond the columns of any draw


@storable("block.Kept")
@dataclass(frozen=True)
class Kept:
    """What n points keep, in the order of their block's rows.

    ids (n, H) int32: K(n), best first    costs (n, H): their squared distances, or in general their costs
    bounds: what a search by bounds knows of the points; the one array that a pass may write to, since it stays true
    """

    ids: NDArray[np.int32]
    costs: Floats | None = None
    bounds: Bounds | None = None

    @property
    def winners(self) -> NDArray[np.int32]:
        """The best component of each point: (n,)."""
        return self.ids[:, 0]

    def unshared(self) -> Kept:
        """With bounds of its own, for who may run a pass again."""
        if self.bounds is None:
            return self
        return replace(self, bounds=Bounds._make(array.copy() for array in self.bounds))

    @property
    def arrays(self) -> dict[str, NDArray]:
        """All of them by name, those of the bounds among them."""
        found = {"ids": self.ids, "costs": self.costs}
        found |= {} if self.bounds is None else self.bounds._asdict()
        return {name: array for name, array in found.items() if array is not None}

    @classmethod
    def of(cls, arrays: dict[str, NDArray]) -> Kept:
        """Made of its `arrays`."""
        bounds = Bounds(*(arrays[name] for name in Bounds._fields)) if Bounds._fields[0] in arrays else None
        return cls(arrays["ids"], arrays.get("costs"), bounds)

    def at(self, places: NDArray) -> Kept:
        """Of some of the points, without bounds."""
        return Kept(self.ids[places], None if self.costs is None else self.costs[places])


@dataclass(frozen=True)
class Block:
    """Rows `first` … `first + n − 1` of the data, or these in another order.

    X (n, D)    sample_weight (n,) float64, or None for 1 each
    order (n,): which of them each row is, None where they are as they come
    n_before: points of positive weight among the rows before, None where all of them are
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
        """Σ w_n."""
        return float(len(self.X)) if self.sample_weight is None else float(self.sample_weight.sum())

    @cached
    def n_weighted(self) -> int:
        """How many of the points have a positive weight."""
        return len(self.X) if self.sample_weight is None else int(np.count_nonzero(self.sample_weight > 0))

    def count(self, mask: NDArray[np.bool_]) -> int:
        """How many of those of a mask (n,) have a positive weight."""
        return int(np.count_nonzero(mask if self.sample_weight is None else mask & (self.sample_weight > 0)))

    def weighted_sum(self, values: NDArray) -> float:
        """Σ_n w_n values_n in float64."""
        if self.sample_weight is None:
            return float(np.add.reduce(values, dtype=np.float64))
        return float((self.sample_weight * values).sum())  # not a BLAS product, whose bits depend on its threads

    def reordered(self, places: NDArray[np.int64]) -> Block:
        """With row places_i as the i-th."""
        w = None if self.sample_weight is None else self.sample_weight[places]
        order = places if self.order is None else self.order[places]
        return Block(self.X.ordered(places), w, self.first, order, self.n_before)

    def embedded(self, embed: Callable[[Rows, Rows | None], Rows]) -> Rows:
        """X as the components are compared with it; `embed` is given what it has made of this block before."""
        self._points[0] = embed(self.X, self._points.get(0))
        return self._points[0]

    def uniform(self, key: Key, purpose: Purpose, column: int = 0) -> NDArray[np.float64]:
        """A number in [0, 1) for every row: (n,); those of rows without weight are of a stream of their own."""
        first = self._first_number
        drawn = key.uniform(purpose, first, len(self), column)
        light = self._light()
        if light is None:
            return drawn if self.order is None else drawn[self.order]
        others = key.uniform(purpose, self.first, len(self), _WITHOUT_WEIGHT + column)
        return np.where(light, others if self.order is None else others[self.order], drawn[self.numbers() - first])

    def numbers(self) -> NDArray[np.int64]:
        """How many points of positive weight come before each row among all data: (n,).

        Whatever is drawn for a point is drawn for its number: rows without weight change nothing.
        """
        light = self._light()
        if light is None:
            return self._first_number + (np.arange(len(self)) if self.order is None else self.order)
        heavy = ~light
        if self.order is not None:  # as they come
            heavy[self.order] = ~light
        before = self._first_number + np.cumsum(heavy) - heavy
        return before if self.order is None else before[self.order]

    @property
    def _first_number(self) -> int:
        return self.first if self.n_before is None else self.n_before

    def _light(self) -> NDArray[np.bool_] | None:
        """Which rows have no weight: (n,); None where all have."""
        light = None if self.sample_weight is None else self.sample_weight <= 0
        return None if light is None or not light.any() else light

    def rows(self, places: NDArray) -> NDArray[np.int64]:
        """The numbers that rows at these places have among all data."""
        return self.first + (places if self.order is None else self.order[places])
