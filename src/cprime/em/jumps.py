"""Jumps of k-means centers: two clusters are merged, and the center that becomes free is used to split a third cluster.

Neither Lloyd's iterations nor exchanges of points move a center across the data. If two clusters are merged, the error
J rises by `union_costs` of the model (for k-means ‖μ_a − μ_b‖² / (1/W_a + 1/W_b) with centers μ and weights W of the
two clusters, Ward 1963). If a plane through its center splits a cluster, J falls by as much as a merge of the two parts
would raise it. Rise and fall are computed before any center is moved, so only jumps that are sure to lower J are made.
"""

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime._utils.values import replace
from cprime.execution import Data
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Dense, Floats
from cprime.model import TiedSpherical

logger = logging.getLogger("cprime")

# Each cluster's direction of high variance is found from a sample of this number of points per cluster, on average.
_ENOUGH = 32
# Number of nearest clusters with which a cluster may be merged.
N_NEAREST = 8
# Number of values processed at a time, so that temporary arrays fit into the cache.
_BLOCK_VALUES = 2**19


class JumpResult(NamedTuple):
    """Result of n jumps of k-means centers, each of which merges two clusters and splits a third one.

    model: parameters after the jumps    counts (C,): weights Σ w_n of the clusters after the jumps
    gain: decrease of the error J by all jumps
    one, other, cut (n,): ids of the clusters in each jump: `one` was merged into `other`, then `cut` was split into
    two clusters with the ids `cut` and `one`    n_relabelled: number of points of positive weight that were reassigned
    """

    model: TiedSpherical
    counts: NDArray[np.float64]
    gain: float
    one: NDArray[np.intp]
    other: NDArray[np.intp]
    cut: NDArray[np.intp]
    n_relabelled: int


@dataclass(frozen=True)
class ProjectedSums:
    """Pass that sums w p and w p x over the points x of weight w in each cluster, with projections p on a direction.

    p = (x − center)·direction / scale. The result is (C, 1 + D): Σ w p in the first column, Σ w p x in the others.
    centers, directions (C, D): center and direction of each cluster    scale: a typical distance, the unit of p
    step: only every step-th point of positive weight is used
    above: if true, p is replaced by 1 if it is positive, otherwise by 0; the sums are then those of one of the two
    parts into which a plane divides the cluster. If false, they give a direction of higher variance (power iteration)
    """

    centers: Floats
    directions: Floats
    scale: float
    step: int = 1
    above: bool = False

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, NDArray[np.float64]]:
        assert kept is not None
        X, winners, w = block.X, kept.winners, block.sample_weight
        if self.step > 1:
            sample = np.flatnonzero(block.row_numbers() % self.step == 0)
            X, winners, w = X[sample], winners[sample], None if w is None else w[sample]
        winners = np.ascontiguousarray(winners)
        p = X.along(self.centers, self.directions, winners)
        p = (p > 0).astype(np.float64) if self.above else p / self.scale
        sums = X.accumulate(winners[:, np.newaxis], p[:, np.newaxis], w, n_components=len(self.centers))
        return None, np.column_stack(sums)


@dataclass(frozen=True)
class Relabelled:
    """Pass that reassigns the points of merged and split clusters, and returns the number of reassigned points.

    centers, directions (C, D): a split cluster is divided by the plane through its center, normal to its direction
    onto (C,): id of the cluster to which the points of each cluster are reassigned (its own id if unchanged)
    below (C,): id of the new cluster for points on the negative side of that plane; −1 for clusters that are not split
    """

    centers: Floats
    directions: Floats
    onto: NDArray[np.int32]
    below: NDArray[np.int32]

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[ActiveSet, int]:
        assert kept is not None
        before = kept.winners
        after = self.onto[before]
        rows = np.flatnonzero(self.below[before] >= 0)
        inside = np.ascontiguousarray(before[rows])
        under = block.X[rows].along(self.centers, self.directions, inside) <= 0
        after[rows[under]] = self.below[inside[under]]
        return ActiveSet(after[:, np.newaxis], kept.costs), block.count(after != before)


def jump(
    data: Data,
    model: TiedSpherical,
    lists: NDArray[np.int32],
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    key: Key,
) -> JumpResult:
    """Make all jumps that lower the error J; return a `JumpResult` with the new model and the clusters in each jump.

    A jump merges two clusters and splits a third. The cheapest merges come first, and a cluster takes part in at most
    one jump.

    model: its centers are the means of the current clusters    lists (C, G): ids of G neighbors of each center
    counts (C,), sums (C, D): Σ w_n and Σ w_n x_n of the current clusters    key: random key
    A cluster is split by a plane through its center, normal to the direction of greatest variance. This is approximated
    by one power iteration, which begins with a random direction.
    """
    centers, C, n_near = model.centers, len(counts), min(N_NEAREST + 1, lists.shape[1])
    directions = _widest(data, model, key)
    halves = data.each(ProjectedSums(centers, directions, 1.0, above=True))  # Σ w and Σ w x above the planes of cuts
    above, upper = halves[:, 0], halves[:, 1:]
    gains = np.empty(C)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # infinite and NaN gains of a jump count as 0
        for part in _blocks(sums):
            below = counts[part] - above[part]
            fall = model.union_costs((above[part], upper[part]), (below, sums[part] - upper[part]))
            gains[part] = np.where((above[part] > 0) & (below > 0) & np.isfinite(fall), fall, 0.0)
        # The near clusters are taken from the lists if C² distances would take longer than an E-step along the lists.
        # Otherwise they are computed, because lists may lack a center that has just jumped from far away.
        near = Dense(centers).nearest(centers, n_near)[0] if is_cheap_to_list(data, lists) else lists[:, :n_near]
        partners, costs = cheapest_unions(model, counts, sums, near)
    one, other, cut = best_jumps(gains, partners, costs)
    if not len(one):
        return JumpResult(model, counts, 0.0, one, other, cut, 0)
    new, after = centers.copy(), counts.copy()
    after[other] += counts[one]
    after[cut], after[one] = above[cut], counts[cut] - above[cut]
    new[other] = model.centers_of(after[other], sums[one] + sums[other], centers[other])
    new[cut] = model.centers_of(after[cut], upper[cut], centers[cut])
    new[one] = model.centers_of(after[one], sums[cut] - upper[cut], centers[cut])
    onto, lower = np.arange(C, dtype=np.int32), np.full(C, -1, dtype=np.int32)
    onto[one], lower[cut] = other, one
    n_relabelled = data.each(Relabelled(centers, directions, onto, lower))
    data.commit()
    gain = float((gains[cut] - costs[one]).sum())
    logger.info("jumps moved %d center(s) to clusters that were split: J falls by %.6g", len(one), gain)
    return JumpResult(replace(model, centers=new), after, gain, one, other, cut, n_relabelled)


def is_cheap_to_list(data: Data, lists: NDArray[np.int32]) -> bool:
    """Return whether all C² distances of centers are no more than those of an E-step along the lists (C, G)."""
    return len(lists) ** 2 <= data.n_weighted * lists.shape[1]


def _widest(data: Data, model: TiedSpherical, key: Key) -> Floats:
    """Return a direction of high variance for each cluster (C, D): random directions after one power iteration."""
    centers = model.centers
    generator, start, directions = key.generator(Purpose.JUMPS), np.empty_like(centers), np.empty_like(centers)
    for part in _blocks(centers):
        start[part] = model.tangent(generator.standard_normal(start[part].shape), part)
    step = max(1, data.n_weighted // (_ENOUGH * len(centers)))
    along = data.each(ProjectedSums(centers, start, math.sqrt(model.variance), step))
    for part in _blocks(centers):
        moments = model.tangent(along[part, 1:] - centers[part].astype(np.float64) * along[part, :1], part)
        directions[part] = unit_directions(moments)
    return directions


def _blocks(rows: NDArray) -> Iterator[slice]:
    """Yield slices that together cover all rows of an array; each covers about 2^19 numbers, which fit into a cache."""
    step = max(1, _BLOCK_VALUES // max(1, rows.shape[1]))
    for begin in range(0, len(rows), step):
        yield slice(begin, begin + step)


def cheapest_unions(
    model: TiedSpherical, counts: NDArray, sums: NDArray, near: NDArray[np.int32]
) -> tuple[NDArray, NDArray]:
    """Return for each cluster the neighbor with which a merge raises the error J least, and this rise: (C,) each.

    The rise is infinite if a cluster has no neighbor.
    counts (C,), sums (C, D): Σ w and Σ w x over the points x of each cluster
    near (C, m): ids of m near clusters of each cluster, −1 for none
    """
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


def best_jumps(gains: NDArray, partners: NDArray, costs: NDArray) -> NDArray[np.intp]:
    """Choose n jumps that lower the error J; return the ids of the clusters in each, one column per jump: (3, n).

    The first two clusters of a column are merged, the third is split.

    gains (C,): decrease of J if a cluster is split
    partners, costs (C,): cluster with which a merge raises J least, and this rise
    """
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


def unit_directions(directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows scaled to length 1; rows that have no direction become 0."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        units = directions / np.abs(directions).max(axis=1, keepdims=True)
        units /= np.sqrt(np.square(units).sum(axis=1, keepdims=True))
    return np.where(np.isfinite(units).all(axis=1, keepdims=True), units, 0.0)
