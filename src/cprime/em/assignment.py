"""What kept components are given of a point: the truncated posterior, all to the best, or all to one drawn.

Each choice makes the sums of an M-step of what a search has found (`of_kept`), or of all components (`of_all`).
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime._random import Key, Purpose
from cprime.block import Block, Kept
from cprime.model import Model
from cprime.model.base import winner_error
from cprime.statistics import Movers, Statistics

_BLOCK = 2**20  # responsibilities at a time, where a component is drawn from all


class Sums(NamedTuple):
    """Statistics, and for a k-means what `Totals` has of members and movers."""

    statistics: Statistics
    members: NDArray[np.int64] | None = None
    movers: Movers | None = None


class Assignment(Protocol):
    """How kept components share a point."""

    def of_kept(
        self, block: Block, model: Model, kept: Kept, before: Kept | None, moved: NDArray[np.bool_], J: float
    ) -> Sums:
        """Of what a search has found; J: of the winners    moved (n,): points that keep others than before."""
        ...

    def of_all(self, block: Block, model: Model) -> Statistics:
        """Of all components."""
        ...


@dataclass(frozen=True)
class Soft:
    """The truncated posterior (5)."""

    def of_kept(
        self, block: Block, model: Model, kept: Kept, before: Kept | None, moved: NDArray[np.bool_], J: float
    ) -> Sums:
        assert kept.costs is not None
        if kept.costs.shape[1] == 1:
            return Hard().of_kept(block, model, kept, before, moved, J)
        posterior = kernels.posterior(kept.costs, model.scale)
        log_sum, mean = block.weighted_sum(posterior.log_sum), block.weighted_sum(posterior.mean)
        counts, sums, squares = model.sums(block, kept.ids, posterior.responsibilities, mean)
        return Sums(Statistics(counts, sums, block.weight, squares, log_sum, log_sum - model.scale * mean, J))

    def of_all(self, block: Block, model: Model) -> Statistics:
        return model.expect_all(block)


@dataclass(frozen=True)
class Hard:
    """All to the best one, which is then K(n) in F: classification EM (22)."""

    def of_kept(
        self, block: Block, model: Model, kept: Kept, before: Kept | None, moved: NDArray[np.bool_], J: float
    ) -> Sums:
        assert kept.costs is not None
        least = block.weighted_sum(kept.costs[:, 0])
        counts, sums, squares = model.sums(block, kept.ids[:, :1], None, least)
        return Sums(Statistics(counts, sums, block.weight, squares, model.scale * least, 0.0, J))

    def of_all(self, block: Block, model: Model) -> Statistics:
        raise NotImplementedError("a hard assignment keeps what a search has found")


@dataclass(frozen=True)
class Drawn:
    """All to one component, drawn from the truncated posterior: stochastic EM, posterior assignment."""

    key: Key

    def of_kept(
        self, block: Block, model: Model, kept: Kept, before: Kept | None, moved: NDArray[np.bool_], J: float
    ) -> Sums:
        assert kept.costs is not None
        posterior = kernels.posterior(kept.costs, model.scale)
        log_sum, mean = block.weighted_sum(posterior.log_sum), block.weighted_sum(posterior.mean)
        place = _drawn(posterior.responsibilities, block.uniform(self.key, Purpose.POSTERIOR))
        label = np.take_along_axis(kept.ids, place, axis=1)
        cost = block.weighted_sum(np.take_along_axis(kept.costs, place, axis=1)[:, 0])
        counts, sums, squares = model.sums(block, label, None, cost)
        return Sums(Statistics(counts, sums, block.weight, squares, log_sum, log_sum - model.scale * mean, J))

    def of_all(self, block: Block, model: Model) -> Statistics:
        n, C = len(block), len(model.centers)
        winners, labels, entropies = np.empty(n, dtype=np.int32), np.empty((n, 1), dtype=np.int32), np.empty(n)
        uniform = block.uniform(self.key, Purpose.POSTERIOR)
        step = max(1, _BLOCK // C)
        for begin in range(0, n, step):
            rows = slice(begin, begin + step)
            r = model.responsibilities(block.X[rows])
            winners[rows], labels[rows] = r.argmax(axis=1), _drawn(r, uniform[rows])
            entropies[rows] = -(r * np.log(r, out=np.zeros_like(r), where=r > 0)).sum(axis=1)
        points, no_lists = block.embedded(model.embed), np.empty((C, 0), dtype=np.int32)
        cost = block.weighted_sum(model.components().among(points, no_lists, labels, 1).distances[:, 0])
        counts, sums, squares = model.sums(block, labels, None, cost)
        return Statistics(
            counts,
            sums,
            block.weight,
            squares,
            block.weighted_sum(model.log_likelihood(block.X) - model.log_scale),
            block.weighted_sum(entropies),
            winner_error(block, model.centers, winners),
        )


@dataclass(frozen=True)
class Winners:
    """k-means: all to the winner; σ² follows from J on its own.

    moves: whether sums are those of movers only, to be added to the sums of before
    """

    moves: bool = False

    def of_kept(
        self, block: Block, model: Model, kept: Kept, before: Kept | None, moved: NDArray[np.bool_], J: float
    ) -> Sums:
        winners, weight, C = kept.winners, block.sample_weight, len(model.centers)
        movers = None
        if self.moves:
            assert before is not None
            counts, sums = np.bincount(winners, weight, C).astype(np.float64, copy=False), np.zeros((C, 0))
            movers = _movers(block, np.flatnonzero(moved), before.winners, winners, C)
        else:
            counts, sums = kernels.accumulate(block.X, kept.ids[:, :1], None, weight, n_components=C)
        members = counts.astype(np.int64) if weight is None else np.bincount(winners[weight > 0], minlength=C)
        statistics = Statistics(counts, sums, block.weight, J, 0.0, 0.0, J)
        return Sums(statistics, members, movers)

    def of_all(self, block: Block, model: Model) -> Statistics:
        raise NotImplementedError("a k-means keeps what a search has found")


def assignment_of(name: str, key: Key) -> Assignment:
    """By its name."""
    choices: dict[str, Assignment] = {"soft": Soft(), "hard": Hard(), "posterior": Drawn(key)}
    return choices[name]


def _movers(
    block: Block, rows: NDArray[np.intp], before: NDArray[np.int32], after: NDArray[np.int32], n_components: int
) -> Movers:
    """What points that have moved took from one component to another."""
    there = np.column_stack([before[rows], after[rows]])
    touched = np.zeros(n_components, dtype=bool)
    touched[there] = True
    ids = np.flatnonzero(touched).astype(np.int32)
    sums = np.zeros((len(ids), block.X.shape[1]))
    if len(ids):
        place = np.empty(n_components, dtype=np.int32)
        place[ids] = np.arange(len(ids), dtype=np.int32)
        sign = np.broadcast_to([-1.0, 1.0], there.shape)
        kernels.accumulate(
            block.X, place[there], sign, block.sample_weight, n_components=len(ids), rows=rows, onto=sums
        )
    return Movers(ids, sums)


def _drawn(responsibilities: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.intp]:
    """One column of every row, at random by its entries, which sum to 1: (n, 1)."""
    below = (np.cumsum(responsibilities, axis=1) <= uniform[:, np.newaxis]).sum(axis=1, keepdims=True)
    return np.minimum(below, responsibilities.shape[1] - 1)
