"""Sufficient statistics of one E-step: additive, so that threads, chunks, files and machines are the same algorithm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray


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
class Statistics:
    """Sums over points n of weight w_n and their kept components c ∈ K(n), in float64: what an M-step needs.

    counts (C,): N_c = Σ w_n q_nc          sums (C, D): S_c = Σ w_n q_nc x_n [data units]
    weight: Σ w_n                          squares: second moments about the E-step's means, as the model has them
    [data unit²]: Σ_nc w_n q_nc ‖x_n − μ_c‖², or per component Σ_n w_n q_nc (x_n − μ_c)² or (x_n − μ_c)(x_n − μ_c)ᵀ
    log_sum: Σ w_n log Σ_{c∈K(n)} p(c, x_n) less the model's log_scale [nats]
    entropy: −Σ w_n q_nc log q_nc [nats]
    quantization_error: J = Σ w_n ‖x_n − μ_c‖² for the best c ∈ K(n) [data unit²]
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    weight: float
    squares: NDArray[np.float64] | float
    log_sum: float = 0.0
    entropy: float = 0.0
    quantization_error: float = 0.0

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def scaled(self, factor: float) -> Statistics:
        """All sums times a factor: those of points whose weights are multiplied by it."""
        return replace(self, **{name: getattr(self, name) * factor for name in self.__dataclass_fields__})


@dataclass(frozen=True)
class Movers:
    """What points that have changed their winner since the last pass took with them, of the components they touch.

    ids (m,) int32, rising    sums (m, D): Σ w_n x_n of those that came less that of those that went [data units]
    """

    ids: NDArray[np.int32]
    sums: NDArray[np.float64]

    def __add__(self, other: Movers) -> Movers:
        ids = np.union1d(self.ids, other.ids)
        sums = np.zeros((len(ids), self.sums.shape[1]))
        sums[np.searchsorted(ids, self.ids)] = self.sums
        sums[np.searchsorted(ids, other.ids)] += other.sums
        return Movers(ids.astype(np.int32), sums)
