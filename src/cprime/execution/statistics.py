"""Sums over points, computed in parts (by thread, chunk, file or machine) and added by `+`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol, Self


class Additive(Protocol):
    """Partial result of a pass over the data, to which the results of other parts can be added by `+`."""

    def __add__(self, other: Any, /) -> Any: ...


@dataclass(frozen=True)
class Sums:
    """Base of classes whose fields are sums over points; two instances are added field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def scaled(self, factor: float) -> Self:
        """Return all sums times a factor, as if the weights of all points were multiplied by it."""
        return type(self)(*(getattr(self, field.name) * factor for field in fields(self)))


@dataclass(frozen=True)
class Tally(Sums):
    """Sums that the EM loop computes for every model, over points x_n of weight w_n.

    weight: Σ w_n    entropy: −Σ w_n q_nc log q_nc [nats], with responsibilities q_nc
    log_sum: Σ w_n log Σ_{c∈K(n)} p(c, x_n) [nats], with active sets K(n); a constant of the log densities, log_scale,
    is left out
    n_distances: number of evaluated pairs of a point and a component
    n_moved: number of reassigned points, which are points of positive weight whose active set has changed
    error: J, the weighted sum of squared distances to the best component [data unit²]; NaN if not computed
    """

    weight: float
    log_sum: float
    entropy: float
    n_distances: int
    n_moved: int
    error: float
