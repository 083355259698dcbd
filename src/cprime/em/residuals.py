"""Residual codes: a row x is approximated by a sum of L centers, one of each codebook, x ≈ Σ_l μ^l_{c_l}.

A codebook is the array of centers of one level l, and c_l is the code of x, the index of a center. In a greedy code c_l
is the center nearest to the residual, which is x minus the centers of the levels before. A beam search keeps several
codes of each row from level to level.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Dense, Floats, Rows

Codes = NDArray[np.integer]
_VALUES = 2**22  # number of coordinates of residuals in memory at a time in a beam search


def code_type(n_clusters: int) -> np.dtype:
    """Return the smallest unsigned integer type that can represent the codes 0 … C − 1."""
    return np.min_scalar_type(n_clusters - 1)


def encode_rows(codebooks: Floats, X: Rows, beam: int = 1) -> Codes:
    """Return the codes of rows (n, D), as an array (n, L) of the smallest unsigned type.

    codebooks (L, C, D): centers of each level, in the dtype of the rows
    beam: number of codes that are kept for each row from level to level; 1 for greedy codes
    """
    if beam > 1:
        step = max(1, _VALUES // (beam * codebooks.shape[2]))
        return np.concatenate([_best_codes(codebooks, X[i : i + step], beam) for i in range(0, len(X), step)])
    codes = np.empty((len(X), len(codebooks)), dtype=code_type(codebooks.shape[1]))
    for level, codebook in enumerate(codebooks):
        codes[:, level] = X.nearest(codebook)[0][:, 0]
        if level + 1 < len(codebooks):
            X = residuals(codebooks[level : level + 1], codes[:, level : level + 1], X)
    return codes


def _best_codes(codebooks: Floats, X: Rows, beam: int) -> Codes:
    """Return the code (n, L) of least error among those that a beam search finds for each row.

    At each level it keeps the `beam` best continuations of the codes that it has kept at the level before.
    """
    _, C, D = codebooks.shape
    rest, codes = X.dense()[:, np.newaxis], np.empty((len(X), 1, 0), dtype=code_type(C))
    for codebook in codebooks:
        n_codes, n_next = rest.shape[1], min(beam, C)
        ids, squares = (each.reshape(len(X), -1) for each in Dense(rest.reshape(-1, D)).nearest(codebook, n_next))
        best = np.argsort(squares, axis=1, kind="stable")[:, : min(beam, n_codes * n_next)]
        parent, own = best // n_next, np.take_along_axis(ids, best, axis=1)
        before = np.take_along_axis(codes, parent[:, :, np.newaxis], axis=1)
        codes = np.concatenate([before, own[:, :, np.newaxis].astype(codes.dtype)], axis=2)
        rest = np.take_along_axis(rest, parent[:, :, np.newaxis], axis=1) - codebook[own]
    return codes[:, 0]


@dataclass(frozen=True)
class LevelErrors:
    """Job that returns Σ_n w_n ‖x_n − x̂_n‖² after each of L levels, and Σ_n w_n, for the codes (N, L) of all rows."""

    codebooks: Floats
    codes: Codes

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, NDArray[np.float64]]:
        codes, rest, sums = block.select(self.codes), block.X, []
        for level in range(len(self.codebooks)):
            here = slice(level, level + 1)
            rest = residuals(self.codebooks[here], codes[:, here], rest)
            sums.append(block.weighted_sum(np.square(rest.dense(), dtype=np.float64).sum(axis=1)))
        return None, np.array([*sums, block.weight])


def decode_rows(codebooks: Floats, codes: Codes) -> Floats:
    """Return the approximations of n rows, the sums of the centers that their codes select: (n, D).

    codebooks (L, C, D): centers of each level    codes (n, l): codes of the first l <= L levels
    """
    out: Floats = codebooks[0][codes[:, 0]]
    for level in range(1, codes.shape[1]):
        out += codebooks[level][codes[:, level]]
    return out


def residuals(codebooks: Floats, codes: Codes, X: Rows) -> Rows:
    """Return the rows minus the centers that their codes select, subtracted level by level.

    codebooks (L, C, D): centers of each level    codes (n, L): index of a center of each level
    """
    out = X.dense() - codebooks[0][codes[:, 0]]
    for level in range(1, len(codebooks)):
        out -= codebooks[level][codes[:, level]]
    return Dense(out)


@dataclass(frozen=True)
class Residuals:
    """Picklable function for `Data.prepared` that replaces rows by their residuals after the given levels.

    codebooks (L, C, D): centers of the levels
    codes (N, L): codes of all rows of the data; None computes the greedy codes of the rows of each call
    """

    codebooks: Floats
    codes: Codes | None = None

    def __call__(
        self,
        X: Rows,
        name: str,
        order: NDArray[np.int64] | None = None,
        first: int | NDArray[np.int64] = 0,
        weights: NDArray[np.float64] | None = None,
    ) -> Rows:
        """Return the residuals of the rows: the rows minus the sums of their code vectors.

        order: indices of the rows in the order of the result, None for their present order
        first: index of the first row in the data, or indices of all rows (n,)    name, weights: not used
        """
        if self.codes is None:
            codes = encode_rows(self.codebooks, X)
        else:
            codes = self.codes[first : first + len(X)] if isinstance(first, int) else self.codes[first]
        rows = residuals(self.codebooks, codes, X)
        return rows if order is None else rows.ordered(order)
