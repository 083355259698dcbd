"""Scatter of all points about their mean, which M-steps of components with one common covariance need."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.execution.block import ActiveSet, Block


@storable("model.Scatter")
@dataclass(frozen=True)
class Scatter:
    """Scatter of points about their mean.

    squares: Σ_n w_n (x_n − mean)(x_n − mean)ᵀ (D, D), or its trace [data unit²]
    mean (D,): weighted mean of all points    weight: Σ_n w_n
    """

    mean: NDArray[np.float64]
    squares: NDArray[np.float64] | float
    weight: float

    def scaled(self, factor: float) -> Self:
        """Return the scatter of the same points with all weights multiplied by a factor."""
        return replace(self, squares=self.squares * factor, weight=self.weight * factor)

    def __add__(self, other: Self) -> Self:
        weight = self.weight + other.weight
        if weight == 0:
            return self
        shift = other.mean - self.mean
        between = np.outer(shift, shift) if np.ndim(self.squares) else float(shift @ shift)
        squares = self.squares + other.squares + between * (self.weight * other.weight / weight)
        return replace(self, mean=self.mean + shift * (other.weight / weight), squares=squares, weight=weight)


@dataclass(frozen=True)
class ScatterOf:
    """Job (function of a chunk of data) that computes the scatter of all points about their weighted mean.

    full: whether the scatter is computed as a matrix (D, D); if not, only its trace is
    """

    full: bool

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, Scatter]:
        X, weight, full = block.X, block.sample_weight, self.full
        group = np.zeros((len(X), 1), dtype=np.int32)
        counts, sums = X.accumulate(group, None, weight, n_components=1)
        # Moments are computed about the mean rounded to X's dtype, then corrected for this rounding.
        mean = sums / np.maximum(counts, np.finfo(np.float64).tiny)
        near = mean.astype(X.dtype)
        _, _, second = X.moments(near, group, None, weight, full=full)
        lost = (mean - near)[0]
        if full:
            return None, Scatter(mean[0], second[0] - counts[0] * np.outer(lost, lost), counts[0])
        return None, Scatter(mean[0], float(second.sum() - counts[0] * np.square(lost).sum()), counts[0])
