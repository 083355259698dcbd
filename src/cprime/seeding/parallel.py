"""Seeding by k-means||: an approximation of k-means++ with few passes, for any `Data` (Bahmani et al. 2012).

The first candidate is one random point. In each of five rounds, every point becomes a candidate with probability
ℓ w d² / Σ w d², where w is its weight, d its distance to the nearest candidate so far, and ℓ the expected number of new
candidates per round. Greedy k-means++ then chooses centers among the candidates, each weighted by the total weight of
the points nearest to it. Six passes read the data of N points, with about N·ℓ distances each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime.execution import Data
from cprime.execution.base import ConcatenatedRows
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Floats
from cprime.seeding.keys import FindSmallestKeys
from cprime.seeding.kmeans_plusplus import choose_by_kmeans_plusplus
from cprime.seeding.sampling import complete


@dataclass(frozen=True)
class UpdateNearest:
    """Job that updates the nearest candidate of every point, and its squared distance, after candidates were added.

    The result (m + 1,) for a chunk is Σ w d² (w: weight of a point, d: distance to its nearest candidate), followed by
    the total weight of the points nearest to each of all m candidates.
    more (m − first, D): the added candidates    first: number of candidates before
    """

    more: Floats
    first: int

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[ActiveSet, NDArray[np.float64]]:
        ids, costs = block.X.nearest(self.more)
        ids += np.int32(self.first)
        if kept is not None:
            assert kept.costs is not None
            stay = kept.costs <= costs
            ids, costs = np.where(stay, kept.ids, ids), np.where(stay, kept.costs, costs)
        mass = block.weighted_sum(costs[:, 0])
        held = np.bincount(ids[:, 0], block.sample_weight, self.first + len(self.more))
        return ActiveSet(ids, costs), np.concatenate([[mass], held])


@dataclass(frozen=True)
class Draw:
    """Job that draws each point independently with probability `rate` · w d², and returns the drawn row indices.

    w: weight of the point    d: its distance to the nearest candidate
    key, column: counter-based random key, and number of the round, which give the random numbers
    """

    key: Key
    column: int
    rate: float

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, ConcatenatedRows]:
        assert kept is not None
        assert kept.costs is not None
        chance = self.rate * kept.costs[:, 0].astype(np.float64)
        if block.sample_weight is not None:
            chance *= block.sample_weight
        places = np.flatnonzero(block.uniform(self.key, Purpose.SEEDING, self.column) < chance)
        return None, ConcatenatedRows(np.sort(block.rows(places)))


def choose_in_parallel(
    data: Data, n_clusters: int, rng: np.random.RandomState, n_rounds: int = 5, oversampling: float = 2.0
) -> NDArray[np.int64]:
    """Choose distinct rows as starting centers by k-means||, and return their indices (C,) int64.

    n_rounds: number of rounds, each of which draws candidates in one pass over the data
    oversampling: expected number of new candidates in a round, divided by C
    """
    key = Key(int(rng.randint(2**31)))
    rows = data.each(FindSmallestKeys(key, 1)).rows
    found = data.each(UpdateNearest(data.take(rows).X.dense(), 0))
    for column in range(1, n_rounds + 1):
        data.commit()
        if not found[0] > 0:
            break
        more = data.each(Draw(key, column, oversampling * n_clusters / found[0])).rows
        if len(more):
            rows = np.concatenate([rows, more])
            found = data.each(UpdateNearest(data.take(more).X.dense(), len(rows) - len(more)))
    data.commit()
    if len(rows) <= n_clusters:
        return complete(rows, data.n_points, n_clusters, None, rng)
    chosen = choose_by_kmeans_plusplus(data.take(rows).X, n_clusters, found[1:], rng)
    return rows[chosen]
