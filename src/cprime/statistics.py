"""Sums over points that are additive over threads, chunks, files and machines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, TypeVar


class Additive(Protocol):
    """Partial result of a pass over the data, which can be added."""

    def __add__(self, other: Any, /) -> Any: ...


P = TypeVar("P", bound=Additive)


def merge(parts: Iterable[P]) -> P:
    """Return the sum of the parts, added in a fixed binary tree over their order.

    The pairs do not depend on where the parts were computed, so the sum is bit-identical. At most log₂ n partial sums
    are in memory at a time.
    """
    stack: list[tuple[int, P]] = []
    for part in parts:
        size = 1
        while stack and stack[-1][0] == size:
            part, size = stack.pop()[1] + part, 2 * size
        stack.append((size, part))
    total = stack.pop()[1]
    while stack:
        total = stack.pop()[1] + total
    return total


@dataclass(frozen=True)
class Sums:
    """Base of sums that are added field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def scaled(self, factor: float) -> Self:
        """Return all sums times a factor, as if the weights of all points were multiplied by it."""
        return type(self)(*(getattr(self, field.name) * factor for field in fields(self)))


@dataclass(frozen=True)
class Tally(Sums):
    """Sums that the EM loop computes for every model, over points n of weight w_n.

    weight: Σ w_n    log_sum: Σ w_n log Σ_{c∈K(n)} p(c, x_n) less the model's log_scale [nats]
    entropy: −Σ w_n q_nc log q_nc [nats]    n_distances: evaluations of a point and a component
    n_moved: reassigned points: points of positive weight whose active set has changed
    error: J of points with the best component of their active set [data unit²]; NaN if that needs an extra pass
    """

    weight: float
    log_sum: float
    entropy: float
    n_distances: int
    n_moved: int
    error: float
