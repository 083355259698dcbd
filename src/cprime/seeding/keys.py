"""Draws of rows with the probabilities of their weights, in one pass over data in any number of chunks.

The m smallest of log E_n − log w_n, with E_n standard exponential, are such a draw (Efraimidis & Spirakis 2006, A),
and the smallest of all are among the smallest of each chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key, Purpose
from cprime.block import Block, Kept

_LEAST = -40.0  # below the logarithm of any draw but 0
_BEHIND = 1e4  # what keys of rows without weight have more; they keep a random order of their own


@dataclass(frozen=True)
class Smallest:
    """Rows of the smallest keys, in the order of these: (m,) each; n: the most there may be."""

    n: int
    rows: NDArray[np.int64]
    keys: NDArray[np.float64]

    def __add__(self, other: Smallest) -> Smallest:
        rows, keys = np.concatenate([self.rows, other.rows]), np.concatenate([self.keys, other.keys])
        first = np.lexsort((rows, keys))[: self.n]
        return Smallest(self.n, rows[first], keys[first])


@dataclass(frozen=True)
class SmallestKeys:
    """n rows, each as likely as its weight among those left; rows without weight come last."""

    key: Key
    n: int

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: Kept | None) -> tuple[None, Smallest]:
        with np.errstate(divide="ignore"):
            keys = np.maximum(np.log(-np.log1p(-block.uniform(self.key, Purpose.SEEDING))), _LEAST)
            if block.sample_weight is not None:
                keys -= np.maximum(np.log(block.sample_weight), -_BEHIND)
        m = min(self.n, len(keys))
        places = np.argpartition(keys, m - 1)[:m] if m < len(keys) else np.arange(len(keys))
        places = places[np.lexsort((block.rows(places), keys[places]))]
        return None, Smallest(self.n, block.rows(places), keys[places])


@dataclass(frozen=True)
class HeavyRows:
    """How many rows have a weight, and the first of them: (≤ most,)."""

    n: int
    rows: NDArray[np.int64]
    most: int

    def __add__(self, other: HeavyRows) -> HeavyRows:
        return HeavyRows(self.n + other.n, np.concatenate([self.rows, other.rows])[: self.most], self.most)


@dataclass(frozen=True)
class Heavy:
    """The rows that have a weight, `most` of them."""

    most: int

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: Kept | None) -> tuple[None, HeavyRows]:
        heavy = np.ones(len(block), dtype=bool) if block.sample_weight is None else block.sample_weight > 0
        rows = np.sort(block.rows(np.flatnonzero(heavy)))
        return None, HeavyRows(len(rows), rows[: self.most], self.most)
