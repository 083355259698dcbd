"""Jobs that make one pass over the data: E-steps, and passes that only find labels or sums.

A job is a function that is called with each block of rows: (block, old active sets) -> (new active sets, sums). It has
no side effects, and sums of several blocks are added. The job of an E-step finds the active set K(n) of each point n by
a search and the responsibilities q_nc by an assignment, and sums the moments for the M-step.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime.em.assignment import Assignment, SampledAssignment
from cprime.execution.block import ActiveSet, Block
from cprime.execution.statistics import Sums, Tally
from cprime.kernels import Floats, changed
from cprime.model import Model
from cprime.model.base import rows_of_piece
from cprime.model.interface import Expected, Responsibilities
from cprime.neighbors import Cells
from cprime.search import Look, SearchStats

_BLOCK = 2**20  # number of responsibilities computed at a time if components are drawn from the full posterior


@dataclass(frozen=True)
class Totals(Sums):
    """Sums of an E-step over all data.

    tally: sums that the EM loop needs for every model, such as Σ w_n and the error J
    moments: sufficient statistics for the M-step, in a class of the model family
    stats: sums from which the search updates its state, such as its neighbor lists
    """

    tally: Tally
    moments: Any
    stats: SearchStats


@dataclass(frozen=True)
class EStep:
    """E-step over the active sets of points, which a search finds.

    look: search that finds the active set of each point    n_kept: C′, the size of active sets
    assignment: function that computes the responsibilities of the components in active sets
    """

    model: Model
    look: Look
    n_kept: int
    assignment: Assignment

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, before: ActiveSet | None) -> tuple[ActiveSet, Totals]:
        model = self.model
        kept, n_distances, stats = self.look(
            block, block.embedded(model.embed), before, model.components(), self.n_kept
        )
        shares, log_sum, entropy = self.assignment(block, model, kept)
        error, moments = model.error_of(block, kept), model.summarise(block, shares)
        n_moved = block.count(moved(kept, before))
        tally = Tally(block.weight, log_sum, entropy, n_distances, n_moved, error)
        return kept, Totals(tally, moments, stats)


@dataclass(frozen=True)
class ExactEStep:
    """E-step over all components, computed by the model's method `expect_all`. Active sets are not stored."""

    model: Model

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, before: ActiveSet | None) -> tuple[None, Totals]:
        return None, _of_all(block, self.model, self.model.expect_all(block))


@dataclass(frozen=True)
class DrawFromAll:
    """E-step that assigns each point to one component drawn from its posterior over all components (stochastic EM).

    Active sets are not stored.
    """

    model: Model
    drawn: SampledAssignment

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, before: ActiveSet | None) -> tuple[None, Totals]:
        model, n, C = self.model, len(block), self.model.n_components
        winners, labels, entropies = np.empty(n, dtype=np.int32), np.empty((n, 1), dtype=np.int32), np.empty(n)
        step = max(1, _BLOCK // C)
        for begin in range(0, n, step):
            rows = slice(begin, begin + step)
            r = model.responsibilities(block.X[rows])
            winners[rows], labels[rows] = r.argmax(axis=1), self.drawn.places(block, r, rows)
            entropies[rows] = -(r * np.log(r, out=np.zeros_like(r), where=r > 0)).sum(axis=1)
        points, no_lists = block.embedded(model.embed), np.empty((C, 0), dtype=np.int32)
        costs = model.components().search_lists(points, no_lists, labels, 1).costs
        shares = Responsibilities(labels, None, block.weighted_sum(costs[:, 0]), costs)
        log_sum = block.weighted_sum(model.log_likelihood(block.X) - model.log_scale)
        error = model.error_of(block, ActiveSet(winners[:, np.newaxis]))
        found = Expected(model.summarise(block, shares), log_sum, block.weighted_sum(entropies), error)
        return None, _of_all(block, model, found)


@dataclass(frozen=True)
class CostPass:
    """Pass that finds active sets and sums the cost of each point's best component.

    The cost of a component is, for example, a squared distance. The pass is used to compute the initial active sets,
    the labels, or the first variance σ² of a fit.
    """

    model: Model
    look: Look
    n_kept: int

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, before: ActiveSet | None) -> tuple[ActiveSet, "CostTally"]:
        points = block.embedded(self.model.embed)
        kept, _, stats = self.look(block, points, before, self.model.components(), self.n_kept)
        cost = 0.0 if kept.costs is None else block.weighted_sum(kept.costs[:, 0])
        return kept, CostTally(cost, block.weight, stats)


@dataclass(frozen=True)
class Label:
    """Pass that finds the best of all components for each point, and stores it as the point's active set.

    Rows are transformed into the space of the components (for example whitened) some at a time, to limit memory.
    """

    model: Model

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, before: ActiveSet | None) -> tuple[ActiveSet, int]:
        model, components = self.model, self.model.components()
        labels, step = np.empty((len(block), 1), dtype=np.int32), rows_of_piece(model.n_features)
        for begin in range(0, len(block), step):
            rows = slice(begin, begin + step)
            labels[rows] = components.best(model.embed(block.X[rows]), 1)[0]
        return ActiveSet(labels), len(block)


@dataclass(frozen=True)
class CostTally(Sums):
    """Sums of a `CostPass`.

    cost: Σ_n w_n min_c cost_nc, for points n and components c    weight: Σ_n w_n
    stats: sums from which the search updates its state
    """

    cost: float
    weight: float
    stats: SearchStats


@dataclass(frozen=True)
class NearestStart:
    """Pass that assigns each point to its nearest starting center.

    centers (C, D)    cells: groups of nearby centers. Only cells near a point are searched; None searches all centers.
    """

    centers: Floats
    cells: Cells | None

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, before: ActiveSet | None) -> tuple[ActiveSet, int]:
        if self.cells is None:
            return ActiveSet(block.X.nearest(self.centers)[0]), len(block)
        return ActiveSet(self.cells.find(block.X)[0][:, np.newaxis]), len(block)


@dataclass(frozen=True)
class HardMoments:
    """Pass that sums the sufficient statistics for the first M-step of a fit, by hard assignment to best components."""

    model: Model

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, Any]:
        assert kept is not None
        return None, self.model.summarise(block, Responsibilities(kept.ids[:, :1].copy(), None, None))


@dataclass(frozen=True)
class LogLikelihood:
    """Pass that returns [Σ_n w_n log p(x_n), Σ_n w_n], where p is the density of the whole mixture (all components)."""

    model: Model

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, NDArray[np.float64]]:
        total = block.weighted_sum(self.model.log_likelihood(block.X))
        return None, np.array([total, block.weight])


@dataclass(frozen=True)
class ReassignmentSums:
    """Change of each component's sum Σ w_n x_n caused by the points that were reassigned in this pass.

    ids (m,) int32: components that gained or lost points, ascending
    sums (m, D): Σ w_n x_n over the points gained minus that over the points lost [data units]
    """

    ids: NDArray[np.int32]
    sums: NDArray[np.float64]

    def __add__(self, other: "ReassignmentSums") -> "ReassignmentSums":
        ids = np.union1d(self.ids, other.ids)
        sums = np.zeros((len(ids), self.sums.shape[1]))
        sums[np.searchsorted(ids, self.ids)] = self.sums
        sums[np.searchsorted(ids, other.ids)] += other.sums
        return ReassignmentSums(ids.astype(np.int32), sums)


def moved(kept: ActiveSet, before: ActiveSet | None) -> NDArray[np.bool_]:
    """Return the mask (n,) of the points whose active set has changed in a pass, from `before` to `kept`.

    Another order of the same components counts as a change. If `before` is None, the mask is true everywhere.
    """
    if before is None or kept.ids.shape != before.ids.shape:
        return np.ones(len(kept.ids), dtype=bool)
    return changed(kept.ids, before.ids)


def _of_all(block: Block, model: Model, found: Expected) -> Totals:
    n = len(block)
    tally = Tally(block.weight, found.log_sum, found.entropy, n * model.n_components, n, found.error)
    return Totals(tally, found.moments, SearchStats(block.n_weighted))
