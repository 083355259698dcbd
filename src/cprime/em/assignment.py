"""What kept components are given of a point: the truncated posterior, all to the best, or all to one drawn."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key, Purpose
from cprime.block import Block, Kept
from cprime.kernels import posterior
from cprime.model import Model
from cprime.model.base import Shares


class Assigned(NamedTuple):
    """Shares, and Σ w_n log Σ_{c∈K(n)} p(c, x_n) less log_scale, and −Σ w_n q_nc log q_nc [nats]."""

    shares: Shares
    log_sum: float
    entropy: float


class Assignment(Protocol):
    """How kept components share the points."""

    def __call__(self, block: Block, model: Model, kept: Kept) -> Assigned: ...


@dataclass(frozen=True)
class Soft:
    """The truncated posterior (5)."""

    def __call__(self, block: Block, model: Model, kept: Kept) -> Assigned:
        assert kept.costs is not None
        if kept.costs.shape[1] == 1:
            return Hard()(block, model, kept)
        found = posterior(kept.costs, model.scale)
        log_sum, mean = block.weighted_sum(found.log_sum), block.weighted_sum(found.mean)
        shares = Shares(kept.ids, found.responsibilities, mean, kept.costs)
        return Assigned(shares, log_sum, log_sum - model.scale * mean)


@dataclass(frozen=True)
class Hard:
    """All to the best one, which is then K(n) in F: classification EM (22)."""

    def __call__(self, block: Block, model: Model, kept: Kept) -> Assigned:
        assert kept.costs is not None
        least = block.weighted_sum(kept.costs[:, 0])
        return Assigned(Shares(kept.ids[:, :1], None, least, kept.costs[:, :1]), model.scale * least, 0.0)


@dataclass(frozen=True)
class Drawn:
    """All to one component, drawn from the truncated posterior: stochastic EM, posterior assignment."""

    key: Key

    def __call__(self, block: Block, model: Model, kept: Kept) -> Assigned:
        assert kept.costs is not None
        found = posterior(kept.costs, model.scale)
        log_sum, mean = block.weighted_sum(found.log_sum), block.weighted_sum(found.mean)
        place = self.places(block, found.responsibilities)
        costs = np.take_along_axis(kept.costs, place, axis=1)
        cost = block.weighted_sum(costs[:, 0])
        shares = Shares(np.take_along_axis(kept.ids, place, axis=1), None, cost, costs)
        return Assigned(shares, log_sum, log_sum - model.scale * mean)

    def places(
        self, block: Block, responsibilities: NDArray[np.float64], rows: slice = slice(None)
    ) -> NDArray[np.intp]:
        """One column of each of some rows, at random by its entries, which sum to 1: (n, 1)."""
        uniform = block.uniform(self.key, Purpose.POSTERIOR)[rows]
        below = (np.cumsum(responsibilities, axis=1) <= uniform[:, np.newaxis]).sum(axis=1, keepdims=True)
        return np.minimum(below, responsibilities.shape[1] - 1)


def assignment_of(name: str, key: Key) -> Assignment:
    """By its name."""
    choices: dict[str, Assignment] = {"soft": Soft(), "hard": Hard(), "posterior": Drawn(key)}
    return choices[name]
