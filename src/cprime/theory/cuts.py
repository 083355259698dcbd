"""Inequalities between the entries of the matrix of a partition, which tighten Peng and Wei's relaxation.

Z is the matrix of a partition, and s_i the square root of the weight of row i. Y_ij = Z_ij / (s_i s_j) is 1/W_c if rows
i and j are in the same cluster c of weight W_c, otherwise 0. So these inequalities hold:

    pairs        Y_ij <= Y_ii
    triangles    Y_ij + Y_ik <= Y_ii + Y_jk

as in Aloise & Hansen, "A branch-and-cut SDP-based algorithm for minimum sum-of-squares clustering" (2009).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cprime.theory.mixtures import Floats

_MOST_OF_ROW = 2000  # Greatest number of new inequalities Y_ij + Y_ik <= Y_ii + Y_jk (triangles) for one row i.
# Least violation of a new inequality between entries of the matrix Y, divided by the mean diagonal entry Y_ii.
_LEAST = 1e-4
# Triangles Y_ij + Y_ik <= Y_ii + Y_jk are examined if both Y_ij and Y_ik are above this share of Y_ii.
_SUPPORT = 1e-3


@dataclass(frozen=True)
class Cuts:
    """Cuts: inequalities between entries of the matrix Z of a partition, written for Y_ij = Z_ij / (s_i s_j).

    A pair is Y_ij <= Y_ii, a triangle Y_ij + Y_ik <= Y_ii + Y_jk; s_i is the square root of the weight of row i.
    i, j, k (n_cuts,): indices of the rows in each inequality; k is −1 for a pair
    """

    i: NDArray[np.intp]
    j: NDArray[np.intp]
    k: NDArray[np.intp]

    @classmethod
    def none(cls) -> Self:
        """Return `Cuts` without any inequality."""
        return cls(*(np.empty(0, dtype=np.intp) for _ in range(3)))

    def __len__(self) -> int:
        return len(self.i)

    def chosen(self, which: NDArray) -> "Cuts":
        """Return the cuts (inequalities) that `which`, a mask (n_cuts,) or indices, selects, as new `Cuts`."""
        return Cuts(self.i[which], self.j[which], self.k[which])

    def joined(self, other: "Cuts") -> "Cuts":
        """Return new `Cuts`: the inequalities of this instance, followed by those of `other`."""
        return Cuts(*(np.concatenate(pair) for pair in zip(self._all, other._all, strict=True)))

    @property
    def _all(self) -> tuple[NDArray[np.intp], ...]:
        return self.i, self.j, self.k

    def keys(self, n: int) -> NDArray[np.int64]:
        """Return a number for each cut (inequality): (n_cuts,). Equal cuts have equal numbers; n: number of rows."""
        return (self.i.astype(np.int64) * n + self.j) * (n + 1) + self.k + 1

    def matrix(self, roots: Floats) -> sparse.csr_array:
        """Return the coefficients A (n_cuts, n²) of the cuts: cut m is the inequality Σ_ij A_m,ij Z_ij <= 0.

        Z (n, n) is the matrix of a partition, and A_m,ij the entry i n + j of row m. Rows of A have Euclidean length 1.
        roots (n,): square roots of the weights of the n rows of data
        """
        n, m = len(roots), len(self)
        cut = np.arange(m)
        triangle = self.k >= 0
        i, j, k = (index[triangle] for index in self._all)
        terms = [(cut, self.i, self.j, 1.0), (cut, self.i, self.i, -1.0)]
        terms += [(cut[triangle], i, k, 1.0), (cut[triangle], j, k, -1.0)]
        values = [np.full(len(c), sign / 2) / (roots[a] * roots[b]) for c, a, b, sign in terms]
        numbers = np.concatenate([c for c, *_ in terms])
        above = np.concatenate([a * n + b for _, a, b, _ in terms])
        below = np.concatenate([b * n + a for _, a, b, _ in terms])
        places = np.tile(numbers, 2), np.concatenate([above, below])
        made = sparse.csr_array((np.tile(np.concatenate(values), 2), places), shape=(m, n * n))
        lengths = np.sqrt(np.asarray((made * made).sum(axis=1)).ravel())
        made.data /= np.repeat(lengths, np.diff(made.indptr))
        return made

    def combination(self, factors: Floats, roots: Floats) -> tuple[Floats, Floats, int]:
        """Return A = Σ_m f_m A_m (n, n), the weighted sum of all cuts, and two values that bound its rounding error.

        Z (n, n) is the matrix of a partition of n rows: Z_ij = s_i s_j / W_c if rows i and j are in the same cluster c
        of weight W_c, otherwise 0; s_i² is the weight of row i. Cut m is the inequality <A_m, Z> = Σ_ij A_m,ij Z_ij
        <= 0, where A_m (n, n) is row m of `matrix`. So <A, Z> <= 0 holds as well; the lower bound of J uses this.

        The other two values are B = Σ_m f_m |A_m| (n, n), with absolute values of entries, and the greatest number k of
        nonzero terms in the sum of any entry. The rounding error of A_ij is at most about k u B_ij, where u is the unit
        roundoff.
        factors (n_cuts,): f_m >= 0    roots (n,): s_i
        """
        n = len(roots)
        if not len(self):
            return np.zeros((n, n)), np.zeros((n, n)), 0
        A = self.matrix(roots)
        most = int(np.bincount(A.indices).max())
        return (A.T @ factors).reshape(n, n), (abs(A).T @ factors).reshape(n, n), most


def violated(Z: Floats, roots: Floats, known: Cuts, most: int) -> Cuts:
    """Return the new cuts (inequalities) that Z (n, n) violates most, the most violated first.

    Z approximates the matrix of a partition, for which all cuts hold. The violation of a cut is Y_ij − Y_ii (pair) or
    Y_ij + Y_ik − Y_ii − Y_jk (triangle), where Y is Z divided by the roots of its row's and its column's weights.
    roots (n,): square roots of the weights    known: cuts that are left out    most: maximum length of the result
    """
    n = len(Z)
    Y = Z / np.outer(roots, roots)
    own = Y.diagonal().copy()
    limit = _LEAST * own.mean()
    over = Y - own[:, np.newaxis]
    np.fill_diagonal(over, -np.inf)
    i, j = np.nonzero(over > limit)
    found, excess = [Cuts(i, j, np.full(len(i), -1))], [over[i, j]]
    for row in range(n):
        near = np.flatnonzero(Y[row] > _SUPPORT * own[row])
        near = near[near != row]
        over = Y[row, near][:, np.newaxis] + Y[row, near] - own[row] - Y[np.ix_(near, near)]
        j, k = np.nonzero(np.triu(over > limit, 1))
        values = over[j, k]
        if len(values) > _MOST_OF_ROW:
            best = np.argsort(-values, kind="stable")[:_MOST_OF_ROW]
            j, k, values = j[best], k[best], values[best]
        found.append(Cuts(np.full(len(j), row), near[j], near[k]))
        excess.append(values)
    cuts = Cuts(*(np.concatenate(parts) for parts in zip(*(one._all for one in found), strict=True)))
    values = np.concatenate(excess)
    new = ~np.isin(cuts.keys(n), known.keys(n))
    cuts, values = cuts.chosen(new), values[new]
    return cuts.chosen(np.argsort(-values, kind="stable")[:most])
