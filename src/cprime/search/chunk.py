"""The per-point state of a fit: what is remembered of each point between iterations."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Bounds
from cprime.kernels.native import Floats


class Remembered(NamedTuple):
    """Bounds on the distances of points to centers, and which centers (C, D) these were."""

    bounds: Bounds
    centers: Floats


@dataclass
class Chunk:
    """Some of the points.

    X (n, D)    sample_weight (n,) float64 or None    kept (n, H) int32: K(n), best first
    distances (n, H): squared distances of what is kept, or in general its costs
    points (n, D′): X as the model's components are compared with it, X itself to begin with
    sums (C, D) float64: Σ w_n x_n by winner, of `kept` with H = 1; few moves change them in place
    remembered: what a search by bounds has found so far; it holds whatever becomes of `kept`
    """

    X: Floats
    sample_weight: NDArray[np.float64] | None = None
    kept: NDArray[np.int32] | None = None
    distances: Floats | None = None
    sums: NDArray[np.float64] | None = None
    remembered: Remembered | None = None
    points: Floats = None  # type: ignore[assignment]  # X, see below

    def __post_init__(self) -> None:
        if self.points is None:
            self.points = self.X

    def weighted_sum(self, values: NDArray) -> float:
        """Σ_n w_n values_n in float64."""
        if self.sample_weight is None:
            return float(values.sum(dtype=np.float64))
        return float((self.sample_weight * values).sum())  # not a BLAS product, whose bits depend on its threads

    @property
    def weight(self) -> float:
        return float(len(self.X)) if self.sample_weight is None else float(self.sample_weight.sum())
