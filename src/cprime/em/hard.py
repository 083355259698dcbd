"""E-steps of k-means: each point is assigned to its nearest center, and the sums of the clusters are updated."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime.em.expectation import ReassignmentSums, Totals, moved
from cprime.execution.block import ActiveSet, Block
from cprime.execution.statistics import Sums, Tally
from cprime.kernels import Rows
from cprime.model import TiedSpherical
from cprime.neighbors.components import Centers, Components
from cprime.search import Look, Lookup, SearchStats
from cprime.search.full import FullLookup


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
    """Sums over the points with each label, with weights w: counts (C,) Σ w, and sums (C, D) Σ w x."""

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]


@dataclass(frozen=True)
class SumLabeled:
    """Job that computes `LabeledSums` of C clusters; labels (N,): cluster of each point of the data, −1 for none."""

    labels: NDArray[np.int32]
    n_clusters: int

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, LabeledSums]:
        X, weights, labels = block.X, block.sample_weight, block.select(self.labels)
        if (labels < 0).any():
            rows = np.flatnonzero(labels >= 0)
            X, weights, labels = X[rows], None if weights is None else weights[rows], labels[rows]
        return None, LabeledSums(*X.accumulate(labels[:, np.newaxis], None, weights, n_components=self.n_clusters))


@dataclass(frozen=True)
class SetLabels:
    """Job that makes a given label (N,) the active set of each point."""

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
        return found._replace(kept=ActiveSet(ids, costs, after.bounds))


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
