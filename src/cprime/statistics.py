"""Sums over points, additive, so that threads, chunks, files and machines are the same algorithm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, TypeVar


class Additive(Protocol):
    """What parts of a pass over the data are."""

    def __add__(self, other: Any, /) -> Any: ...


P = TypeVar("P", bound=Additive)


def merge(parts: Iterable[P]) -> P:
    """The sum of the parts, by a binary counter over their order: the same pairs wherever the parts were computed.

    At most log₂ n sums are alive at a time.
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
        """All sums times a factor: those of points whose weights are multiplied by it."""
        return type(self)(*(getattr(self, field.name) * factor for field in fields(self)))


@dataclass(frozen=True)
class Tally(Sums):
    """What the loop sums itself, over points n of weight w_n.

    weight: Σ w_n    log_sum: Σ w_n log Σ_{c∈K(n)} p(c, x_n) less the model's log_scale [nats]
    entropy: −Σ w_n q_nc log q_nc [nats]    n_distances: evaluations of a point and a component
    n_moved: points of positive weight whose kept set is not what it was
    error: J of points with the best of what they keep [data unit²]; NaN where that would take a pass of its own
    """

    weight: float
    log_sum: float
    entropy: float
    n_distances: int
    n_moved: int
    error: float
