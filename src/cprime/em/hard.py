"""E-steps of k-means: each point is assigned to its nearest center, and the sums of the clusters are updated.

An empty cluster is repaired: its center is moved to one of the points that are farthest from their centers.
"""

import logging
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.values import replace
from cprime.em.expectation import ReassignmentSums, Totals, ids_of_shares, moved
from cprime.execution import Data
from cprime.execution.block import ActiveSet, Block
from cprime.execution.statistics import Sums, Tally
from cprime.kernels import Floats, Rows
from cprime.model import TiedSpherical
from cprime.neighbors.components import Centers, Components
from cprime.search import Look, Lookup, SearchStats
from cprime.search.full import FullLookup

logger = logging.getLogger("cprime")

# If a point has left a cluster, and the remaining weight of the cluster is below this share of the weight of the point,
# the sums of all clusters are recomputed, because a difference of sums is then mostly a rounding error.
_CANCELLED = 2.0**-20


@dataclass(frozen=True)
class ClusterSums(Sums):
    """Sums of a k-means E-step over the points assigned to each center.

    counts (C,): Σ w_n    members (C,): number of points of positive weight
    sums (C, D): Σ w_n x_n [data units], or `ReassignmentSums`, their change since the previous pass
    """

    counts: NDArray[np.float64]
    members: NDArray[np.int64]
    sums: NDArray[np.float64] | ReassignmentSums


@dataclass(frozen=True)
class LabeledSums(Sums):
    """Sums from which the means of given clusters follow: counts (C,) Σ w, and sums (C, D) Σ w x.

    x are the points with the label of the cluster, w their weights.
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]


@dataclass(frozen=True)
class SumLabeled:
    """Job that sums the points of C given clusters, as `LabeledSums`.

    labels: cluster of each point, −1 if it has none (N,), or responsibilities (N, C)
    """

    labels: NDArray
    n_clusters: int

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, LabeledSums]:
        X, weights, labels = block.X, block.sample_weight, block.select(self.labels)
        if labels.ndim == 1 and (labels < 0).any():
            rows = np.flatnonzero(labels >= 0)
            X, weights, labels = X[rows], None if weights is None else weights[rows], labels[rows]
        return None, LabeledSums(*X.accumulate(*ids_of_shares(labels), weights, n_components=self.n_clusters))


@dataclass(frozen=True)
class SetLabels:
    """Job that starts a fit from a partition: each point's active set becomes the component in `labels` (N,)."""

    labels: NDArray[np.int32]

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[ActiveSet, int]:
        return ActiveSet(block.select(self.labels)[:, np.newaxis]), len(block)


@dataclass(frozen=True)
class HardEStep:
    """E-step of k-means: assigns every point to its nearest center.

    look: search that finds the nearest center
    components: centers with factors by which an exchange step multiplies squared distances; None for the centers alone
    follow: if true, only the change of the clusters' sums Σ w_n x_n by reassigned points is computed, not these sums
    """

    model: TiedSpherical
    look: Look
    components: Centers | None = None
    follow: bool = False

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, before: ActiveSet | None) -> tuple[ActiveSet, Totals]:
        if isinstance(self.look, FullLookup) and self.components is None and not self.follow:
            return self._at_once(block, before)
        model, C, weight = self.model, self.model.n_components, block.sample_weight
        kept, n_distances, stats = self.look(
            block, block.embedded(model.embed), before, self.components or model.components(), 1
        )
        others = moved(kept, before)
        winners = kept.winners
        sums: NDArray[np.float64] | ReassignmentSums
        if self.follow:
            assert before is not None
            counts = np.bincount(winners, weight, C).astype(np.float64, copy=False)
            sums = _reassignment_sums(block, np.flatnonzero(others), before.winners, winners, C)
        else:
            counts, sums = block.X.accumulate(kept.ids, None, weight, n_components=C)
        members = counts.astype(np.int64) if weight is None else np.bincount(winners[weight > 0], minlength=C)
        tally = Tally(block.weight, 0.0, 0.0, n_distances, block.count(others), model.error_of(block, kept))
        return kept, Totals(tally, ClusterSums(counts, members, sums), stats)

    def _at_once(self, block: Block, before: ActiveSet | None) -> tuple[ActiveSet, Totals]:
        """Make the E-step for a block by a single call of a compiled kernel; return new active sets and sums.

        The kernel compares points with all centers, by distances without factors, and computes complete sums.
        """
        model = self.model
        known = None if before is None or before.ids.shape[1] != 1 else before.ids
        won = block.X.assign(model.centers, known, block.sample_weight)
        kept = ActiveSet(won.kept, won.costs)
        n_distances, error = len(block) * model.n_components, model.error_of(block, kept)
        tally = Tally(block.weight, 0.0, 0.0, n_distances, won.n_moved, error)
        return kept, Totals(tally, ClusterSums(won.counts, won.members, won.sums), SearchStats(block.n_weighted))


@dataclass(frozen=True)
class Lazy:
    """Search of lazy-k-means, which omits reassignments to slightly nearer centers: eq. (21) of Lücke & Forster 2019.

    The search `look` finds the nearest center μ_new of a point x. The point is reassigned to it from its old center
    μ_old only if (1 + ε) ‖x − μ_new‖ < ‖x − μ_old‖.
    """

    look: Look
    epsilon: float

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        found = self.look(block, points, kept, components, n_kept)
        after = found.kept
        if kept is None:
            return found
        assert after.costs is not None
        movers = np.flatnonzero(after.winners != kept.winners)
        old = kept.winners[movers]
        there = block.X[movers].own_distances(components.centers, old)
        stay = (1 + self.epsilon) ** 2 * after.costs[movers, 0].astype(np.float64) >= there
        ids, costs = after.ids.copy(), after.costs.copy()
        ids[movers[stay], 0], costs[movers[stay], 0] = old[stay], there[stay]
        return replace(found, kept=ActiveSet(ids, costs, after.bounds))


def _reassignment_sums(
    block: Block, rows: NDArray[np.intp], before: NDArray[np.int32], after: NDArray[np.int32], n_components: int
) -> ReassignmentSums:
    """Return by how much the clusters' sums Σ w x (over points x of weight w) change because of reassigned points.

    rows: indices of the reassigned points    before, after (n,): old and new labels of all points of the block
    """
    there = np.column_stack([before[rows], after[rows]])
    touched = np.zeros(n_components, dtype=bool)
    touched[there] = True
    ids = np.flatnonzero(touched).astype(np.int32)
    sums = np.zeros((len(ids), block.X.shape[1]))
    if len(ids):
        place = np.empty(n_components, dtype=np.int32)
        place[ids] = np.arange(len(ids), dtype=np.int32)
        sign = np.broadcast_to([-1.0, 1.0], there.shape)
        block.X.accumulate(place[there], sign, block.sample_weight, n_components=len(ids), rows=rows, onto=sums)
    return ReassignmentSums(ids, sums)


@dataclass(frozen=True)
class FarthestPoints:
    """Up to `n` points that are farthest from their nearest centers, sorted by descending distance.

    The centers of empty clusters are moved to such points.
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

    The centers of empty clusters are moved to such points.
    beyond: only points with greater squared distances than this are considered
    alone (C,): mask of clusters with a single point; these points are not considered
    labels (N,): known cluster of each point, −1 if it is unknown, or None; points with a label are not considered
    """

    n: int
    beyond: float
    alone: NDArray[np.bool_]
    labels: NDArray[np.int32] | None = None

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, FarthestPoints]:
        assert kept is not None
        assert kept.costs is not None
        distances = np.where(self.alone[kept.winners], 0, kept.costs[:, 0])
        if block.sample_weight is not None:
            distances = np.where(block.sample_weight > 0, distances, 0)
        if self.labels is not None:
            distances = np.where(block.select(self.labels) < 0, distances, 0)
        bar = np.partition(distances, -self.n)[-self.n] if self.n < len(distances) else distances.min()
        places = np.flatnonzero((distances >= bar) & (distances > self.beyond))
        places = places[np.lexsort((block.rows(places), -distances[places]))][: self.n]
        return None, FarthestPoints(self.n, block.rows(places), kept.winners[places], kept.costs[places, 0])


@dataclass(frozen=True)
class SumByComponent:
    """Pass that sums over the points x of each center: Σ w (first column) and Σ w x (other columns), (C, 1 + D).

    The result replaces sums that were updated by differences and have large rounding errors.
    """

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
    labels: NDArray[np.int32] | None = None,
) -> tuple[TiedSpherical, NDArray[np.float64], NDArray[np.float64], float, int]:
    """Move the center of each empty cluster that is not fixed to one of the points farthest from their centers.

    This point becomes the only member of the cluster. It is subtracted from the sums of its old cluster and from J, so
    J falls. No cluster loses its only point.
    counts (C,), sums (C, D): Σ w_n and Σ w_n x_n over each center's points    error: J
    members (C,): number of points of positive weight in each cluster
    labels (N,): known cluster of each point, −1 if it is unknown, or None; points with a label keep their cluster
    Returns the new model, counts, sums and J, and the number of centers that were moved.
    """
    empty = model.n_fixed + np.flatnonzero(counts[model.n_fixed :] == 0)
    if not len(empty):
        return model, counts, sums, error, 0
    resolution = 4 * model.n_features * model.variance_floor  # squared distances below this may be rounding errors
    far = data.each(FindFarthest(len(empty), resolution, members == 1, labels))
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
