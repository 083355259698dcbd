"""What M-steps of factor analysers are made of."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime.statistics import Sums


@dataclass(frozen=True)
class FactorMoments(Sums):
    """Sums with q, for y = x − μ_c and z = W_c y.

    counts (C,): of 1    sums, squares (C, D): of y and y²    cross (C, D, H): of y zᵀ    means (C, H): of z
    second (C, H, H): of z zᵀ
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]
    cross: NDArray[np.float64]
    means: NDArray[np.float64]
    second: NDArray[np.float64]

    def of(self, some: slice) -> Self:
        """Those of some components."""
        first = self.counts[some], self.sums[some], self.squares[some]
        return type(self)(*first, self.cross[some], self.means[some], self.second[some])

    @classmethod
    def none(cls, C: int, H: int, D: int) -> Self:
        """Those of no points; H may be the number of any directions that z is along."""
        sums, squares, cross, means = (np.zeros(shape) for shape in ((C, D), (C, D), (C, D, H), (C, H)))
        return cls(np.zeros(C), sums, squares, cross, means, np.zeros((C, H, H)))
