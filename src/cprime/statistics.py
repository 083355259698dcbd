"""Sufficient statistics of one E-step: additive, so that threads, chunks, files and machines are the same algorithm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray


@dataclass
class Statistics:
    """Sums over points n of weight w_n and their kept components c ∈ K(n), in float64.

    counts (C,): N_c = Σ w_n q_nc          sums (C, D): S_c = Σ w_n q_nc x_n [data units]
    weight: Σ w_n                          squares: second moments about the E-step's means, as the model has them
    [data unit²]: Σ_nc w_n q_nc ‖x_n − μ_c‖², or per component Σ_n w_n q_nc (x_n − μ_c)² or (x_n − μ_c)(x_n − μ_c)ᵀ
    log_sum: Σ w_n log Σ_{c∈K(n)} p(c, x_n) less the model's log_scale [nats]
    entropy: −Σ w_n q_nc log q_nc [nats]
    quantization_error: J = Σ w_n ‖x_n − μ_c‖² for the best c ∈ K(n) [data unit²]
    n_distances: point-to-centre evaluations     n_moved: points whose kept set is not what it was
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    weight: float
    squares: NDArray[np.float64] | float
    log_sum: float
    entropy: float
    quantization_error: float
    n_distances: int
    n_moved: int

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def scaled(self, factor: float) -> Statistics:
        """All sums times a factor: those of points whose weights are multiplied by it."""
        sums = ("counts", "sums", "weight", "squares", "log_sum", "entropy", "quantization_error")
        return replace(self, **{name: getattr(self, name) * factor for name in sums})


def merge(parts: Iterable[Statistics]) -> Statistics:
    """The sum of the parts, in their order."""
    return reduce(Statistics.__add__, parts)
