"""Moments (sufficient statistics) of factor analyzers, for their M-steps."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.values import replace
from cprime.execution.statistics import Sums
from cprime.kernels import Floats


@dataclass(frozen=True)
class FactorMoments(Sums):
    """Moments of factor analyzers: sums over points x_n, weighted by sample weight times responsibility, w_n q_nc.

    Let y = x − μ_c and z = W_c y. If loadings are known, z are the expected factors given x. Otherwise z is the
    projection of y on H random directions, the rows of W_c. All fields are weighted sums; none is divided by a weight.
    counts (C,): sum of the weights    sums, squares (C, D): sums of y and of y²    cross (C, D, H): sum of y zᵀ
    means (C, H): sum of z    second (C, H, H): sum of z zᵀ, without the covariance of the factors given x
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]
    cross: NDArray[np.float64]
    means: NDArray[np.float64]
    second: NDArray[np.float64]

    def select(self, piece: slice) -> Self:
        """Return the moments of a slice of components."""
        first = self.counts[piece], self.sums[piece], self.squares[piece]
        return type(self)(*first, self.cross[piece], self.means[piece], self.second[piece])

    @classmethod
    def none(cls, C: int, H: int, D: int) -> Self:
        """Return the moments of C components in D dimensions without points: zeros.

        H: number of directions along which moments are taken, which may differ from the number of factors
        """
        sums, squares, cross, means = (np.zeros(shape) for shape in ((C, D), (C, D), (C, D, H), (C, H)))
        return cls(np.zeros(C), sums, squares, cross, means, np.zeros((C, H, H)))

    def accumulate(
        self,
        cross: NDArray[np.float64],
        y: NDArray[np.float64],
        q: NDArray[np.float64],
        along: NDArray[np.float64],
        roots: NDArray[np.float64],
    ) -> None:
        """Add the moments of rows about one origin to these, in place; sums of y zᵀ are added to `cross` (D, C·H).

        y (n, D): rows minus the origin    q (n, C): weighted responsibilities
        z: expected factors of row n under component c, given as z = along[n, c] @ roots[c].T from along (n, C, H) and
        roots (C, H, H)
        """
        n, C, H = along.shape
        weighted = np.empty((n, C, H))
        for c in range(C):
            z = along[:, c] @ roots[c].T
            np.multiply(z, q[:, c, np.newaxis], out=weighted[:, c])
            self.second[c] += z.T @ weighted[:, c]
        cross += y.T @ weighted.reshape(n, C * H)
        self.counts[...] += q.sum(axis=0)
        self.sums[...] += q.T @ y
        self.squares[...] += q.T @ np.square(y)
        self.means[...] += weighted.sum(axis=0)

    def about(self, places: NDArray[np.float64], cross: NDArray[np.float64]) -> Self:
        """Return moments about the means `places` (C, D), from these moments about one origin.

        places are relative to the origin    cross (D, C·H): sums of y zᵀ, for points y minus origin and their factors z
        """
        C, H = self.means.shape
        counts = self.counts[:, np.newaxis]
        moved = (
            cross.reshape(places.shape[1], C, H).transpose(1, 0, 2)
            - places[:, :, np.newaxis] * self.means[:, np.newaxis]
        )
        squares = self.squares - 2 * places * self.sums + counts * np.square(places)
        return replace(self, sums=self.sums - counts * places, squares=np.maximum(squares, 0), cross=moved)

    def buffer(self, H: int, dtype: np.dtype) -> tuple[NDArray[np.float64], Floats, NDArray[np.float64]]:
        """Return arrays to which an M-step writes means (C, D), loadings (C, D, H) of H factors, and noise (C, D).

        Means and noise are float64, loadings of the given dtype. Where shape and dtype are the same, the memory of the
        moments is reused.
        """
        C, D = self.sums.shape
        cross = self.cross.transpose(0, 2, 1)
        reused = cross.flags.c_contiguous and cross.flags.writeable and cross.shape[1] == H and dtype == np.float64
        loadings = cross if reused else np.empty((C, H, D), dtype)
        return self.sums, loadings.transpose(0, 2, 1), self.squares
