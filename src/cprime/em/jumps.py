"""Jumps of a k-means: two clusters that can be one give up a center to a cluster that should be two.

No pass of Lloyd's, and no exchange of points, takes a center across the data. By how much J rises where two clusters
become one the model says (`union_costs`: of means ‖μ_a − μ_b‖² / (1/W_a + 1/W_b), Ward 1963); where a plane through its
center cuts one in two, J falls by what it would cost to unite these. Both are known before anything is moved: jumps are
made where J is sure to fall.
"""

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key, Purpose
from cprime._values import replace
from cprime.block import Block, Kept
from cprime.execution import Data
from cprime.kernels import Dense, Floats
from cprime.model import TiedSpherical

logger = logging.getLogger("cprime")

_ENOUGH = 32  # points of an average cluster that show in which direction it is widest
_NEAREST = 8  # neighbors with which a cluster may become one
_BLOCK_VALUES = 2**19  # numbers at a time, so that what is made of them stays in the cache


class Jumped(NamedTuple):
    """Parameters and weights (C,) after jumps, by how much J has fallen, and who took part.

    one, other, cut (n,): clusters; one and other are now other, and cut is cut and one
    n_relabelled: points of positive weight that have another cluster now
    """

    model: TiedSpherical
    counts: NDArray[np.float64]
    gain: float
    one: NDArray[np.intp]
    other: NDArray[np.intp]
    cut: NDArray[np.intp]
    n_relabelled: int


@dataclass(frozen=True)
class Along:
    """Σ w p and Σ w p x of the points of each cluster, p being how far along its direction they lie: (C, 1 + D).

    centers, directions (C, D)    scale: of a typical distance, in whose units p is
    step: of so many points of positive weight one counts
    above: whether p is 1 for points above the center, and 0 for others
    """

    centers: Floats
    directions: Floats
    scale: float
    step: int = 1
    above: bool = False

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: Kept | None) -> tuple[None, NDArray[np.float64]]:
        assert kept is not None
        X, winners, w = block.X, kept.winners, block.sample_weight
        if self.step > 1:
            some = np.flatnonzero(block.numbers() % self.step == 0)
            X, winners, w = X[some], winners[some], None if w is None else w[some]
        winners = np.ascontiguousarray(winners)
        p = X.along(self.centers, self.directions, winners)
        p = (p > 0).astype(np.float64) if self.above else p / self.scale
        sums = X.accumulate(winners[:, np.newaxis], p[:, np.newaxis], w, n_components=len(self.centers))
        return None, np.column_stack(sums)


@dataclass(frozen=True)
class Relabelled:
    """Points of a cluster go to that which `onto` names; of a cluster that is cut, those below to `below`, if >= 0."""

    centers: Floats
    directions: Floats
    onto: NDArray[np.int32]
    below: NDArray[np.int32]

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, kept: Kept | None) -> tuple[Kept, int]:
        assert kept is not None
        before = kept.winners
        after = self.onto[before]
        rows = np.flatnonzero(self.below[before] >= 0)
        inside = np.ascontiguousarray(before[rows])
        under = block.X[rows].along(self.centers, self.directions, inside) <= 0
        after[rows[under]] = self.below[inside[under]]
        return Kept(after[:, np.newaxis], kept.costs), block.count(after != before)


def jump(
    data: Data,
    model: TiedSpherical,
    lists: NDArray[np.int32],
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    key: Key,
) -> Jumped:
    """Makes jumps that lower J, each of three clusters that take part in no other; the cheapest unions go first.

    model: centers are the means of what points keep    lists (C, G): neighbors, for `_near`
    counts (C,), sums (C, D): Σ w_n and Σ w_n x_n of what points keep
    """
    centers = model.centers
    directions = _widest(data, model, key)
    above = data.each(Along(centers, directions, 1.0, above=True))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is no number is no gain
        gains = _cuts(model, counts, sums, above)
        partners, costs = _unions(model, counts, sums, _near(centers, lists, data.n_weighted))
    one, other, cut = _chosen(gains, partners, costs)
    if not len(one):
        return Jumped(model, counts, 0.0, one, other, cut, 0)
    C = len(counts)
    new, after = centers.copy(), counts.copy()
    after[other] += counts[one]
    new[other] = model.centers_of(after[other], sums[one] + sums[other], centers[other])
    for ids, (weight, part) in zip((cut, one), _halves(counts, sums, above, cut), strict=True):
        new[ids], after[ids] = model.centers_of(weight, part, centers[cut]), weight
    onto, below = np.arange(C, dtype=np.int32), np.full(C, -1, dtype=np.int32)
    onto[one], below[cut] = other, one
    n_relabelled = data.each(Relabelled(centers, directions, onto, below))
    data.commit()
    gain = float((gains[cut] - costs[one]).sum())
    logger.info("jumps moved %d center(s) to clusters that they cut in two: J falls by %.6g", len(one), gain)
    return Jumped(replace(model, centers=new), after, gain, one, other, cut, n_relabelled)


def _near(centers: Floats, lists: NDArray[np.int32], n_points: int) -> NDArray[np.int32]:
    """The nearest centers of each, itself mostly among them: (C, 9 at most).

    Those of lists where all C² distances would take more than a pass along lists; else where centers are now, since
    one that has come from afar is in no list of those beside it.
    """
    C, n = len(centers), min(_NEAREST + 1, lists.shape[1])
    return lists[:, :n] if n_points * lists.shape[1] < C * C else Dense(centers).nearest(centers, n)[0]


def _widest(data: Data, model: TiedSpherical, key: Key) -> Floats:
    """Directions (C, D) in which the clusters are wide: one turn of the power iteration, from random ones."""
    centers = model.centers
    generator, start, directions = key.generator(Purpose.JUMPS), np.empty_like(centers), np.empty_like(centers)
    for part in _blocks(centers):
        start[part] = model.tangent(generator.standard_normal(start[part].shape), part)
    step = max(1, data.n_weighted // (_ENOUGH * len(centers)))
    along = data.each(Along(centers, start, math.sqrt(model.variance), step))
    for part in _blocks(centers):
        moments = model.tangent(along[part, 1:] - centers[part].astype(np.float64) * along[part, :1], part)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            moments /= np.abs(moments).max(axis=1, keepdims=True)
            moments /= np.sqrt(np.square(moments).sum(axis=1, keepdims=True))
        directions[part] = np.where(np.isfinite(moments).all(axis=1, keepdims=True), moments, 0.0)
    return directions


def _blocks(rows: NDArray) -> Iterator[slice]:
    """Ranges of rows that together are all."""
    step = max(1, _BLOCK_VALUES // max(1, rows.shape[1]))
    for begin in range(0, len(rows), step):
        yield slice(begin, begin + step)


def _halves(
    counts: NDArray, sums: NDArray, above: NDArray, ids: NDArray | slice
) -> tuple[tuple[NDArray, NDArray], tuple[NDArray, NDArray]]:
    """Weights (n,) and sums (n, D) of the upper and of the lower half of some clusters."""
    up, upper = above[ids, 0], above[ids, 1:]
    return (up, upper), (counts[ids] - up, sums[ids] - upper)


def _cuts(model: TiedSpherical, counts: NDArray, sums: NDArray, above: NDArray) -> NDArray[np.float64]:
    """By how much J falls where each cluster is cut in two: (C,)."""
    gains = np.empty(len(counts))
    for part in _blocks(sums):
        upper, lower = _halves(counts, sums, above, part)
        gain = model.union_costs(upper, lower)
        gains[part] = np.where((upper[0] > 0) & (lower[0] > 0) & np.isfinite(gain), gain, 0.0)
    return gains


def _unions(model: TiedSpherical, counts: NDArray, sums: NDArray, near: NDArray[np.int32]) -> tuple[NDArray, NDArray]:
    """The neighbor with which each cluster had best become one, and by how much J rises then, infinite for none."""
    every = np.arange(len(counts))
    partners, costs = np.zeros(len(counts), dtype=np.int32), np.full(len(counts), np.inf)
    for column in np.ascontiguousarray(near.T):
        cost = np.empty(len(counts))
        for part in _blocks(sums):
            there = column[part]
            cost[part] = model.union_costs((counts[part], sums[part]), (counts[there], sums[there]))
        better = (cost < costs) & (column >= 0) & (column != every)
        partners[better], costs[better] = column[better], cost[better]
    return partners, costs


def _chosen(gains: NDArray, partners: NDArray, costs: NDArray) -> NDArray[np.intp]:
    """Clusters (3, n): the first two become one, and the third is cut, while that lowers J."""
    free, chosen = np.ones(len(gains), dtype=bool), []
    cuts = iter(np.argsort(-gains, kind="stable").tolist())
    cut = next(cuts)
    for one in np.argsort(costs, kind="stable").tolist():
        other = int(partners[one])
        if not (free[one] and free[other]):
            continue
        free[one] = free[other] = False
        while cut is not None and not free[cut]:
            cut = next(cuts, None)
        if cut is None or not gains[cut] > costs[one]:
            break
        free[cut] = False
        chosen.append((one, other, cut))
    return np.array(chosen, dtype=np.intp).reshape(-1, 3).T
