"""Repair of empty k-means clusters: each center is moved to one of the points that are farthest from their centers."""

import logging
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.values import replace
from cprime.execution import Data
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Floats
from cprime.model import TiedSpherical

logger = logging.getLogger("cprime")

_CANCELLED = 2.0**-20  # sums are recomputed if a cluster's remaining weight is below this share of the moved point's


@dataclass(frozen=True)
class FarthestPoints:
    """Up to `n` points that are farthest from their nearest centers, sorted by descending distance.

    rows: indices of the points in the data    winners: index of each point's nearest center
    distances: squared distance to this center [data unit²]
    """

    n: int
    rows: NDArray[np.int64]
    winners: NDArray[np.int32]
    distances: Floats

    def __add__(self, other: "FarthestPoints") -> "FarthestPoints":
        rows, winners, distances = (
            np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("rows", "winners", "distances")
        )
        first = np.lexsort((rows, -distances))[: self.n]
        return FarthestPoints(self.n, rows[first], winners[first], distances[first])


@dataclass(frozen=True)
class FindFarthest:
    """Pass that finds the n points of positive weight that are farthest from their nearest center.

    beyond: only points with greater squared distances than this are considered
    alone (C,): mask of clusters with a single point; these points are not considered
    """

    n: int
    beyond: float
    alone: NDArray[np.bool_]

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, FarthestPoints]:
        assert kept is not None
        assert kept.costs is not None
        distances = np.where(self.alone[kept.winners], 0, kept.costs[:, 0])
        if block.sample_weight is not None:
            distances = np.where(block.sample_weight > 0, distances, 0)
        bar = np.partition(distances, -self.n)[-self.n] if self.n < len(distances) else distances.min()
        places = np.flatnonzero((distances >= bar) & (distances > self.beyond))
        places = places[np.lexsort((block.rows(places), -distances[places]))][: self.n]
        return None, FarthestPoints(self.n, block.rows(places), kept.winners[places], kept.costs[places, 0])


@dataclass(frozen=True)
class SumByComponent:
    """Pass that recomputes Σ w (first column) and Σ w x (other columns) over each center's points: (C, 1 + D)."""

    n_components: int

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, NDArray[np.float64]]:
        assert kept is not None
        ids = kept.ids[:, :1]
        sums = block.X.accumulate(ids, None, block.sample_weight, n_components=self.n_components)
        return None, np.column_stack(sums)


def relocate_empty(
    data: Data,
    model: TiedSpherical,
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    error: float,
    members: NDArray[np.int64],
) -> tuple[TiedSpherical, NDArray[np.float64], NDArray[np.float64], float, int]:
    """Move the center of each empty cluster that is not fixed to one of the points farthest from their centers.

    This point becomes the only member of the cluster. It is subtracted from the sums of its old cluster and from J, so
    J falls. No cluster loses its only point.
    counts (C,), sums (C, D): Σ w_n and Σ w_n x_n over each center's points    error: J
    members (C,): number of points of positive weight in each cluster
    Returns the new model, counts, sums and J, and the number of centers that were moved.
    """
    empty = model.n_fixed + np.flatnonzero(counts[model.n_fixed :] == 0)
    if not len(empty):
        return model, counts, sums, error, 0
    resolution = 4 * model.n_features * model.variance_floor  # squared distances below this may be rounding errors
    far = data.each(FindFarthest(len(empty), resolution, members == 1))
    taken = data.take(far.rows)
    points = taken.X.dense()
    centers, members, squares = model.centers.copy(), members.copy(), error
    after, moments = counts.copy(), sums.copy()
    places, cancelled = [], False
    for component, i in zip(empty, range(len(far.rows)), strict=False):
        winner, weight = far.winners[i], 1.0 if taken.sample_weight is None else taken.sample_weight[i]
        if members[winner] == 1:
            continue
        members[winner] -= 1
        moment = weight * points[i].astype(np.float64)
        moments[winner] -= moment
        after[winner] -= weight
        cancelled |= bool(after[winner] < _CANCELLED * weight)
        moments[component], after[component], centers[component] = moment, weight, points[i]
        squares -= weight * float(far.distances[i])
        places.append((far.rows[i], component))
    if not places:
        return model, counts, sums, error, 0
    rows, components = (np.array(column) for column in zip(*places, strict=True))
    data.edit(rows, components.astype(np.int32))
    if cancelled:  # a moved point was so heavy that the sums of the other points are mostly rounding errors
        anew = data.each(SumByComponent(len(counts)))
        after, moments = anew[:, 0].copy(), anew[:, 1:].copy()
    logger.info("centers of %d empty cluster(s) moved to the points farthest from their centers", len(places))
    rounding = 64 * float(np.finfo(np.float64).eps) * error
    squares = max(squares, 0.0) + rounding  # add the rounding error, so that J is not underestimated
    return replace(model, centers=centers), after, moments, squares, len(places)
