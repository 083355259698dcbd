"""Assignments: functions that compute the responsibilities of the components in each point's active set K(n).

An assignment is soft (truncated posterior), hard (best component only), or drawn from the posterior.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import posterior
from cprime.model import Model
from cprime.model.interface import Responsibilities


class Assigned(NamedTuple):
    """Result of an assignment for one block.

    shares: responsibilities q_nc and costs of the components in the active sets K(n) of the block's points
    log_sum: Σ_n w_n (log Σ_{c∈K(n)} p(c, x_n) − log_scale) [nats], with point weights w_n. `log_scale` is the term that
    the log densities of all points and components have in common; `free_energy` adds it.
    entropy: −Σ w_n q_nc log q_nc [nats] of the responsibilities q_nc; 0 for hard assignments
    """

    shares: Responsibilities
    log_sum: float
    entropy: float


class Assignment(Protocol):
    """Function that computes responsibilities q_nc from a block of points, a model and active sets (`kept`)."""

    def __call__(self, block: Block, model: Model, kept: ActiveSet) -> Assigned: ...


def soft_assignment(block: Block, model: Model, kept: ActiveSet) -> Assigned:
    """Return the truncated posterior as responsibilities, eq. (5) of Lücke & Forster 2019."""
    assert kept.costs is not None
    if kept.costs.shape[1] == 1:
        return hard_assignment(block, model, kept)
    found = posterior(kept.costs, model.scale)
    log_sum, mean = block.weighted_sum(found.log_sum), block.weighted_sum(found.mean)
    shares = Responsibilities(kept.ids, found.responsibilities, mean, kept.costs)
    return Assigned(shares, log_sum, log_sum - model.scale * mean)


def hard_assignment(block: Block, model: Model, kept: ActiveSet) -> Assigned:
    """Assign each point to its best component: classification EM, eq. (22) of Lücke & Forster 2019.

    The best component of a point is then the only one in its active set K(n), also when the free energy F is computed.
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


def assignment_of(name: str, key: Key) -> Assignment:
    """Return the assignment called "soft", "hard" or "posterior" (drawn). key: counter-based random key of the draws"""
    choices: dict[str, Assignment] = {"soft": soft_assignment, "hard": hard_assignment}
    return SampledAssignment(key) if name == "posterior" else choices[name]
