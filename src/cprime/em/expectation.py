"""The E-step of a block as a job: K(n) by the search, q_nc by the assignment, and the sums of the M-step.

Pure: it is given a block and what its points keep, and returns what they keep from now on and additive totals.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.block import Block, Kept
from cprime.em.assignment import Assignment, Sums
from cprime.kernels.native import Floats
from cprime.model import Model
from cprime.model.base import winner_error
from cprime.neighbors import Cells
from cprime.search import Look, Seen
from cprime.statistics import Movers, Statistics


@dataclass(frozen=True)
class Totals:
    """What an E-step of all data gives; additive.

    statistics: what an M-step needs    n_distances: point-to-centre evaluations
    n_moved: points of positive weight whose kept set is not what it was    n_changed: all such points
    seen: what the search learns
    members (C,): points of positive weight by winner    movers: in place of sums in `statistics`, what moved since the
    last pass; both for a k-means alone
    """

    statistics: Statistics
    n_distances: int
    n_moved: int
    n_changed: int
    seen: Seen
    members: NDArray[np.int64] | None = None
    movers: Movers | None = None

    def __add__(self, other: "Totals") -> "Totals":
        both = self.members is not None and other.members is not None
        return Totals(
            self.statistics + other.statistics,
            self.n_distances + other.n_distances,
            self.n_moved + other.n_moved,
            self.n_changed + other.n_changed,
            self.seen + other.seen,
            self.members + other.members if both else None,  # type: ignore[operator]
            None if self.movers is None or other.movers is None else self.movers + other.movers,
        )


@dataclass(frozen=True)
class EStep:
    """E-step by a search, which keeps C′ components of each point.

    epsilon: laziness of lazy-k-means (21)
    """

    model: Model
    look: Look
    n_kept: int
    assignment: Assignment
    epsilon: float = 0.0

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, before: Kept | None) -> tuple[Kept, Totals]:
        model, components = self.model, self.model.components()
        points = block.embedded(model.embed)
        kept, n_distances, seen = self.look(block, points, before, components, self.n_kept)
        if self.epsilon and before is not None:
            kept = _lingering(block, model, kept, before, self.epsilon)
        assert kept.costs is not None
        moved = np.ones(len(block), dtype=bool) if before is None else _differ(kept.ids, before.ids)
        J = model.quantization_error(block, kept)
        sums: Sums = self.assignment.of_kept(block, model, kept, before, moved, J)
        n_moved, n_changed = block.count(moved), int(np.count_nonzero(moved))
        return replace(kept, squares=None), Totals(
            sums.statistics, n_distances, n_moved, n_changed, seen, sums.members, sums.movers
        )


@dataclass(frozen=True)
class ExactEStep:
    """E-step over all components, of which points keep none."""

    model: Model
    assignment: Assignment

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, before: Kept | None) -> tuple[None, Totals]:
        statistics, n = self.assignment.of_all(block, self.model), len(block)
        return None, Totals(statistics, n * len(self.model.centers), n, n, Seen(n, block.count()))


@dataclass(frozen=True)
class Visit:
    """A look at the points that sums nothing but their costs: first kept sets, labels, the first variance."""

    model: Model
    look: Look
    n_kept: int

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, before: Kept | None) -> tuple[Kept, "Visited"]:
        points = block.embedded(self.model.embed)
        kept, _, seen = self.look(block, points, before, self.model.components(), self.n_kept)
        return kept, Visited(0.0 if kept.costs is None else block.weighted_sum(kept.costs[:, 0]), block.weight, seen)


@dataclass(frozen=True)
class Visited:
    """Σ w_n of the least cost of n, Σ w_n, and what the search learns."""

    cost: float
    weight: float
    seen: Seen

    def __add__(self, other: "Visited") -> "Visited":
        return Visited(self.cost + other.cost, self.weight + other.weight, self.seen + other.seen)


@dataclass(frozen=True)
class NearestStart:
    """The nearest of the starting centres (C, D) of all points, or that which cells offer."""

    centers: Floats
    cells: Cells | None

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, before: Kept | None) -> tuple[Kept, int]:
        if self.cells is None:
            return Kept(kernels.nearest(block.X, self.centers)[0]), len(block)
        return Kept(self.cells.find(block.X)[0][:, np.newaxis]), len(block)


@dataclass(frozen=True)
class HardSums:
    """Statistics of what points keep, all of each to its winner: what a fit starts from."""

    model: Model

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: Kept | None) -> tuple[None, Statistics]:
        assert kept is not None
        labels = kept.winners.copy()
        J = winner_error(block, self.model.centers, labels)
        counts, sums, squares = self.model.sums(block, labels[:, np.newaxis], None, J)
        return None, Statistics(counts, sums, block.weight, squares, quantization_error=J)


def _differ(ids: NDArray, before: NDArray) -> NDArray[np.bool_]:
    """Which rows differ anywhere: (n,)."""
    if ids.shape != before.shape:
        return np.ones(len(ids), dtype=bool)
    return kernels.changed(ids, before)


def _lingering(block: Block, model: Model, kept: Kept, before: Kept, epsilon: float) -> Kept:
    """lazy-k-means (21): a point leaves its component only if (1 + ε) ‖x − μ_new‖ < ‖x − μ_old‖."""
    assert kept.costs is not None
    movers = np.flatnonzero(kept.winners != before.winners)
    old = before.winners[movers]
    no_lists = np.empty((len(model.centers), 0), dtype=np.int32)
    there = kernels.reassign(block.X[movers], model.centers, no_lists, old)[1]
    stay = (1 + epsilon) ** 2 * kept.costs[movers, 0].astype(np.float64) >= there
    ids, costs = kept.ids.copy(), kept.costs.copy()
    ids[movers[stay], 0], costs[movers[stay], 0] = old[stay], there[stay]
    return Kept(ids, costs, kept.bounds)
