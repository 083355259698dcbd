"""Jobs that make one pass over the data: E-steps, and passes that only find labels or sums.

A job is a function that is called with each block of rows: (block, old active sets) -> (new active sets, sums). It has
no side effects, and sums of several blocks are added. The job of an E-step finds the active set K(n) of each point n by
a search and the responsibilities q_nc by an assignment, and sums the moments for the M-step.

An assignment is a function that computes the responsibilities of the components in each point's active set. It is soft
(truncated posterior), hard (best component only), or drawn from the posterior.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime._utils.threads import union_of_ids
from cprime.execution.block import ActiveSet, Block
from cprime.execution.statistics import Sums, Tally
from cprime.kernels import Floats, changed, posterior
from cprime.model import Model
from cprime.model.base import rows_of_piece
from cprime.model.interface import Expected, Responsibilities
from cprime.neighbors import Cells
from cprime.search import Look, SearchStats

_BLOCK = 2**20  # number of responsibilities in memory at a time if components are drawn from the full posterior


class Assigned(NamedTuple):
    """Responsibilities of the points of one block, and sums over these points: the result of an assignment.

    shares: responsibilities q_nc and costs of the components in the active sets K(n) of the block's points
    log_sum: Σ_n w_n (log Σ_{c∈K(n)} p(c, x_n) − log_scale) [nats], with point weights w_n. `log_scale` is the term that
    the log densities of all points and components have in common; `free_energy` adds it.
    entropy: −Σ w_n q_nc log q_nc [nats] of the responsibilities q_nc; 0 for hard assignments
    """

    shares: Responsibilities
    log_sum: float
    entropy: float


class Assignment(Protocol):
    """Function of a block of points, a model and active sets (`kept`) that returns responsibilities, as `Assigned`."""

    def __call__(self, block: Block, model: Model, kept: ActiveSet) -> Assigned: ...


def soft_assignment(block: Block, model: Model, kept: ActiveSet) -> Assigned:
    """Return responsibilities, with their sums: the truncated posterior, eq. (5) of Lücke & Forster 2019."""
    assert kept.costs is not None
    if kept.costs.shape[1] == 1:
        return hard_assignment(block, model, kept)
    found = posterior(kept.costs, model.scale)
    log_sum, mean = block.weighted_sum(found.log_sum), block.weighted_sum(found.mean)
    shares = Responsibilities(kept.ids, found.responsibilities, mean, kept.costs)
    return Assigned(shares, log_sum, log_sum - model.scale * mean)


def hard_assignment(block: Block, model: Model, kept: ActiveSet) -> Assigned:
    """Return responsibilities of 1 for the best components: classification EM, eq. (22) of Lücke & Forster 2019.

    The best component is the only one in the active set K(n) of the result, from which the free energy F is computed.
    """
    assert kept.costs is not None
    least = block.weighted_sum(kept.costs[:, 0])
    return Assigned(Responsibilities(kept.ids[:, :1], None, least, kept.costs[:, :1]), model.scale * least, 0.0)


@dataclass(frozen=True)
class SampledAssignment:
    """Assignment to one component that is drawn from the truncated posterior: stochastic EM."""

    key: Key

    def __call__(self, block: Block, model: Model, kept: ActiveSet) -> Assigned:
        assert kept.costs is not None
        found = posterior(kept.costs, model.scale)
        log_sum, mean = block.weighted_sum(found.log_sum), block.weighted_sum(found.mean)
        place = self.places(block, found.responsibilities)
        costs = np.take_along_axis(kept.costs, place, axis=1)
        cost = block.weighted_sum(costs[:, 0])
        shares = Responsibilities(np.take_along_axis(kept.ids, place, axis=1), None, cost, costs)
        return Assigned(shares, log_sum, log_sum - model.scale * mean)

    def places(
        self, block: Block, responsibilities: NDArray[np.float64], rows: slice = slice(None)
    ) -> NDArray[np.intp]:
        """Draw one of H components for each of n rows, with the probabilities `responsibilities` (n, H).

        rows: slice that selects the n rows, if `responsibilities` describes only a part of the block. It selects the
        random numbers of these rows, because each row of the data has its own random number.
        Returns the column of `responsibilities` that is drawn for each row: (n, 1).
        """
        uniform = block.uniform(self.key, Purpose.POSTERIOR)[rows]
        below = (np.cumsum(responsibilities, axis=1) <= uniform[:, np.newaxis]).sum(axis=1, keepdims=True)
        return np.minimum(below, responsibilities.shape[1] - 1)


class AssignmentRule(NamedTuple):
    """Rule by which responsibilities follow from costs: a value of the argument `assignment` of mixtures.

    make: function that returns the assignment for one pass, from the counter-based random key of the pass
    is_posterior: whether responsibilities are the truncated posterior, so that exact E-steps and momentum can be used
    is_single: whether each point belongs to its best component only, so that C′ = 1 suffices
    is_drawn: whether components are drawn at random, so that F does not converge and fits run to `max_iter`
    """

    make: Callable[[Key], Assignment]
    is_posterior: bool = False
    is_single: bool = False
    is_drawn: bool = False


ASSIGNMENTS = {
    "soft": AssignmentRule(lambda key: soft_assignment, is_posterior=True),
    "hard": AssignmentRule(lambda key: hard_assignment, is_single=True),
    "sampled": AssignmentRule(SampledAssignment, is_drawn=True),
}


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
class GivenMoments:
    """Pass that sums the sufficient statistics for the first M-step of a fit from labels or responsibilities.

    shares: components (N,) int32 of all points of the data, or their responsibilities (N, C)
    """

    model: Model
    shares: NDArray

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, Any]:
        ids, q = ids_of_shares(block.select(self.shares))
        return None, self.model.summarise(block, Responsibilities(ids, q, None))


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
        ids = union_of_ids(self.ids, other.ids)
        sums = np.zeros((len(ids), self.sums.shape[1]))
        sums[np.searchsorted(ids, self.ids)] = self.sums
        sums[np.searchsorted(ids, other.ids)] += other.sums
        return ReassignmentSums(ids, sums)


def ids_of_shares(shares: NDArray) -> tuple[NDArray[np.int32], NDArray[np.float64] | None]:
    """Return components and responsibilities of n points as kernels take them, from labels or responsibilities.

    shares: labels (n,), for which the result is (n, 1) and None, or responsibilities (n, C), for which both are (n, C)
    """
    if shares.ndim == 1:
        return shares[:, np.newaxis], None
    return np.tile(np.arange(shares.shape[1], dtype=np.int32), (len(shares), 1)), shares


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
