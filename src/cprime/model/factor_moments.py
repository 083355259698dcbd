"""Moments (sufficient statistics) of factor analyzers, for their M-steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.values import replace
from cprime.execution.block import Block
from cprime.execution.statistics import Sums
from cprime.kernels import Floats
from cprime.model.interface import Responsibilities

TOGETHER = 2**26  # maximum size in bytes of the matrices U = L⁻¹ΛᵀΨ⁻¹ that are in memory at a time


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

    def buffer(self, H: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return arrays to which an M-step writes means (C, D), loadings (C, D, H) of H factors, and noise (C, D).

        The memory of the moments' arrays is reused, if these are contiguous and writeable.
        """
        C, D = self.sums.shape
        cross = self.cross.transpose(0, 2, 1)
        return _room(self.sums, (C, D)), _room(cross, (C, D, H)), _room(self.squares, (C, D))


def _room(array: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    its_own = array.flags.c_contiguous and array.flags.writeable and array.size == np.prod(shape)
    return array.reshape(shape) if its_own else np.empty(shape)


def by_blocks(
    block: Block,
    shares: Responsibilities,
    centers: Floats,
    directions_of: Callable[[slice], NDArray[np.float64]],
    roots: NDArray[np.float64],
) -> FactorMoments:
    """Return the moments of factor analyzers from a block of rows, computed for some components at a time.

    So little memory is needed.    shares: responsibilities    centers (C, D): means
    directions_of: function of a slice of components that returns their matrices U = L⁻¹ΛᵀΨ⁻¹ (c, H, D)
    roots (C, H, H): L⁻ᵀ, where LLᵀ = I + ΛᵀΨ⁻¹Λ for loadings Λ and noise Ψ
    """
    (C, D), H, width = centers.shape, roots.shape[1], shares.ids.shape[1]
    found = FactorMoments.none(C, H, 0)
    sums, squares, cross = np.empty((C, D)), np.empty((C, D)), np.empty((C, H, D))
    q, weight, ids = shares.responsibilities, block.sample_weight, shares.ids.reshape(-1)
    rows_of_all = max(1, ids.size * D * block.X.dtype.itemsize)
    size = max(1, min(TOGETHER // (8 * H * D), TOGETHER * C // rows_of_all))
    for piece, places in _together(ids, C, size):
        rows = places // width
        found.counts[piece], sums[piece], squares[piece], cross[piece], found.means[piece], found.second[piece] = (
            block.X[rows].factor_moments(
                centers[piece],
                directions_of(piece),
                roots[piece],
                (ids[places] - np.int32(piece.start))[:, np.newaxis],
                None if q is None else q.reshape(-1)[places][:, np.newaxis],
                None if weight is None else weight[rows],
            )
        )
    return FactorMoments(found.counts, sums, squares, cross.transpose(0, 2, 1), found.means, found.second)


def _together(ids: NDArray[np.int32], C: int, size: int) -> Iterator[tuple[slice, NDArray[np.intp]]]:
    """Divide C components into slices of `size` components; yield each slice, and where its components occur in `ids`.

    ids (n,): ids of components    The second value has the positions in `ids`, ascending.
    """
    blocks = ids // np.int32(size)
    order = np.argsort(blocks, kind="stable")
    ends = np.searchsorted(blocks[order], np.arange(-(-C // size) + 1))
    for i, begin in enumerate(range(0, C, size)):
        yield slice(begin, min(begin + size, C)), order[ends[i] : ends[i + 1]]
