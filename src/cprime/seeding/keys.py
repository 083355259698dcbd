"""Weighted draws of rows without replacement, in one pass over data in any number of chunks.

Each row of weight w_n gets a key log E_n − log w_n, with a random E_n from the standard exponential distribution. The
rows with the m smallest keys are m distinct rows drawn by weight (Efraimidis & Spirakis 2006, algorithm A). They are
found from the m smallest keys of each chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime.execution.block import ActiveSet, Block

# Lower bound of the logarithm of a random number of the exponential distribution, because the number may be 0.
_LEAST = -40.0
# This number is added to random keys of rows of zero weight, so that these rows come last, in random order.
_BEHIND = 1e4


@dataclass(frozen=True)
class SmallestRows:
    """Rows with the n smallest random keys, or all rows if there are fewer: their indices and keys, sorted by key."""

    n: int
    rows: NDArray[np.int64]
    keys: NDArray[np.float64]

    def __add__(self, other: SmallestRows) -> SmallestRows:
        rows, keys = np.concatenate([self.rows, other.rows]), np.concatenate([self.keys, other.keys])
        first = np.lexsort((rows, keys))[: self.n]
        return SmallestRows(self.n, rows[first], keys[first])


@dataclass(frozen=True)
class FindSmallestKeys:
    """Job that draws n distinct rows with probability proportional to weight: those with the smallest random keys.

    Rows of zero weight come last. The result for a chunk has the indices and keys of its n smallest rows.
    key: counter-based random key
    """

    key: Key
    n: int

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, SmallestRows]:
        with np.errstate(divide="ignore"):
            keys = np.maximum(np.log(-np.log1p(-block.uniform(self.key, Purpose.SEEDING))), _LEAST)
            if block.sample_weight is not None:
                keys -= np.maximum(np.log(block.sample_weight), -_BEHIND)
        m = min(self.n, len(keys))
        places = np.argpartition(keys, m - 1)[:m] if m < len(keys) else np.arange(len(keys))
        places = places[np.lexsort((block.rows(places), keys[places]))]
        return None, SmallestRows(self.n, block.rows(places), keys[places])


@dataclass(frozen=True)
class WeightedRows:
    """Number n of rows with positive weight, and indices (min(n, limit),) of the first of these rows, ascending."""

    n: int
    rows: NDArray[np.int64]
    limit: int

    def __add__(self, other: WeightedRows) -> WeightedRows:
        return WeightedRows(self.n + other.n, np.concatenate([self.rows, other.rows])[: self.limit], self.limit)


@dataclass(frozen=True)
class SelectWeightedRows:
    """Job that counts the rows with positive weight, and returns the indices of the first `limit` of them.

    If there are fewer such rows than centers to choose, all of them are chosen.
    """

    limit: int

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, WeightedRows]:
        heavy = np.ones(len(block), dtype=bool) if block.sample_weight is None else block.sample_weight > 0
        rows = np.sort(block.rows(np.flatnonzero(heavy)))
        return None, WeightedRows(len(rows), rows[: self.limit], self.limit)
