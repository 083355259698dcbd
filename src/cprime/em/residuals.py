"""Residual codes: a row x is approximated by a sum of L centers, one of each codebook, x ≈ Σ_l μ^l_{c_l}.

A codebook is the array of centers of one level l, and c_l is the code of x, the index of a center. Codes are greedy:
c_l is the center nearest to the residual, which is x minus the centers of the levels before.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Dense, Floats, Rows

Codes = NDArray[np.integer]


def code_type(n_clusters: int) -> np.dtype:
    """Return the smallest unsigned integer type that can represent the codes 0 … C − 1."""
    return np.min_scalar_type(n_clusters - 1)


def encode_rows(codebooks: Floats, X: Rows) -> Codes:
    """Return the greedy codes of rows (n, D), as an array (n, L) of the smallest unsigned type.

    codebooks (L, C, D): centers of each level, in the dtype of the rows
    """
    codes = np.empty((len(X), len(codebooks)), dtype=code_type(codebooks.shape[1]))
    for level, codebook in enumerate(codebooks):
        codes[:, level] = X.nearest(codebook)[0][:, 0]
        if level + 1 < len(codebooks):
            X = residuals(codebooks[level : level + 1], codes[:, level : level + 1], X)
    return codes


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
