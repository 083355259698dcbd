"""What Gaussians of covariance matrices cost rows of which some numbers are missing: marginal densities.

With P = AᵀA the precision of a component, o and m what is observed of a row and what is not, and r = x − μ with zeros
where x is missing: the squared distance under Σ_oo is rᵀPr − (Pr)_mᵀ P_mm⁻¹ (Pr)_m, log |Σ_oo| = log |Σ| + log |P_mm|,
and given x_o what is missing has the mean μ_m − P_mm⁻¹ (Pr)_m and the covariance P_mm⁻¹ (Little & Rubin, *Statistical
Analysis with Missing Data*; Ghahramani & Jordan 1994). Rows of one pattern share the factor of P_mm.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._threads import by_pieces
from cprime.kernels.arguments import CoreRows
from cprime.kernels.exact import posterior
from cprime.kernels.measures import Floats, Gaussians
from cprime.kernels.rows import Dense, Rows
from cprime.kernels.tables import Givers, Tabled, givers, mixed, narrowed

Ids = NDArray[np.int32]
Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]
Sums = tuple[Doubles, Doubles, Doubles]

_LOG_2PI = math.log(2 * math.pi)
_NUMBERS = 2**20  # of matrices at a time
_PIECE, _BLOCK = 2048, 2**15  # rows of a table, and that are summed together


def no_moments(centers: Floats, full: bool) -> Sums:
    """Counts (C,), first moments (C, D), second ones (C, D) or (C, D, D), all 0."""
    C, D = centers.shape
    return np.zeros(C), np.zeros((C, D)), np.zeros((C, D, D) if full else (C, D))


def _symmetric(sums: Sums) -> Sums:
    """Second moments that are products of two roundings, as matrices that are symmetric to the bit."""
    counts, first, second = sums
    return counts, first, (second + second.transpose(0, 2, 1)) / 2


class Alike(NamedTuple):
    """Some of the rows with k gaps: rows (r,), the missing columns of p patterns (p, k), the pattern of each (r,)."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    of: NDArray[np.intp]


def gaps_of(observed: Mask) -> list[Alike]:
    """The rows that have gaps, by how many these are, in parts of which each has not too many numbers."""
    rows = np.flatnonzero(~observed.all(axis=1))
    if not len(rows):
        return []
    packed = np.packbits(observed[rows], axis=1)
    as_one = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, of = np.unique(as_one, return_index=True, return_inverse=True)
    gaps = ~observed[rows[first]]
    sizes = np.count_nonzero(gaps, axis=1)
    order = np.lexsort((of, sizes[of]))
    found = []
    for k in np.unique(sizes).tolist():
        mine = order[sizes[of[order]] == k]
        step = max(1, _NUMBERS // k**2)
        for begin in range(0, len(mine), step):
            some = mine[begin : begin + step]
            patterns, place = np.unique(of[some], return_inverse=True)
            columns = np.nonzero(gaps[patterns])[1].reshape(len(patterns), k)
            found.append(Alike(rows[some], columns, place))
    return found


def root_of(products: Doubles, squared: Callable[[], Doubles]) -> NDArray:
    """Lower triangles L (p, k, k) with L Lᵀ = AᵀA, which are given (p, k, k).

    squared: makes A (p, m, k), of whose QR factors they are where rounding has left a product indefinite
    """
    try:
        return np.linalg.cholesky(products)
    except np.linalg.LinAlgError:
        upper = np.linalg.qr(squared(), mode="r")
        signs = np.sign(np.diagonal(upper, axis1=1, axis2=2))
        lower: NDArray = (upper * signs[:, :, np.newaxis]).transpose(0, 2, 1)
        return lower


class Marginals(Tabled):
    """Gaussians (means, factors (C, D, D), offsets) by the marginal density of what is observed."""

    def __init__(self, gaussians: Gaussians):
        self.centers = gaussians.means
        self.offsets = gaussians.offsets
        self.factors = gaussians.factors.astype(np.float64, copy=False)
        self.precisions = np.matmul(self.factors.transpose(0, 2, 1), self.factors)

    @property
    def n_numbers(self) -> int:
        return self.centers.shape[1]

    def table(self, points: CoreRows, ids: Ids | slice, origin: NDArray) -> Doubles:
        assert points.observed is not None
        X, observed, gaps = points.dense(), points.observed, gaps_of(points.observed)
        return np.column_stack([self._costs(X, observed, gaps, c) for c in np.arange(len(self.centers))[ids].tolist()])

    def _costs(self, X: Floats, observed: Mask, gaps: list[Alike], c: int) -> Doubles:
        r = np.subtract(X, self.centers[c], dtype=np.float64) * observed
        y = Dense(r).products(self.factors[c], n_threads=1)
        costs, pulls = np.einsum("nd,nd->n", y, y), Dense(y).products(self.factors[c].T, n_threads=1)
        for alike in gaps:
            inverse, logs = self._inverses(alike, c)
            left = np.einsum("nkl,nl->nk", inverse[alike.of], pulls[alike.rows[:, np.newaxis], alike.columns[alike.of]])
            costs[alike.rows] += logs[alike.of] - np.einsum("nk,nk->n", left, left)
        return costs + float(self.offsets[c])

    def _inverses(self, alike: Alike, c: int) -> tuple[Doubles, Doubles]:
        """With P_mm = LLᵀ of each pattern: L⁻¹ (p, k, k) and log |P_mm| − k log 2π (p,)."""
        P, columns = self.precisions[c], alike.columns
        products = P[columns[:, :, np.newaxis], columns[:, np.newaxis, :]]
        lower = root_of(products, lambda: self.factors[c].T[columns].transpose(0, 2, 1))
        logs = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        return np.linalg.inv(lower), logs - columns.shape[1] * _LOG_2PI

    def _completed(self, X: Floats, observed: Mask, gaps: list[Alike], c: int) -> tuple[Doubles, list[Doubles]]:
        """x̂ − μ_c of rows whose gaps have their conditional means (n, D); for each of `gaps` L⁻¹ of its patterns."""
        r, roots = np.subtract(X, self.centers[c], dtype=np.float64) * observed, []
        pulls = r @ self.precisions[c]
        for alike in gaps:
            inverse, at = self._inverses(alike, c)[0], (alike.rows[:, np.newaxis], alike.columns[alike.of])
            left = np.einsum("nkl,nl->nk", inverse[alike.of], pulls[at])
            r[at] = -np.einsum("nlk,nl->nk", inverse[alike.of], left)
            roots.append(inverse)
        return r, roots

    def _add(self, X: Floats, observed: Mask, c: int, share: Doubles, sums: Sums) -> None:
        """Adds rows of shares (n,) to moments about μ_c: of what is missing the conditional mean and covariance."""
        gaps, (counts, first, second) = gaps_of(observed), sums
        r, roots = self._completed(X, observed, gaps, c)
        counts[c] += share.sum()
        first[c] += share @ r
        second[c] += (share[:, np.newaxis] * r).T @ r
        for alike, root in zip(gaps, roots, strict=True):
            mass = np.bincount(alike.of, share[alike.rows], len(alike.columns))
            covariances = np.matmul(root.transpose(0, 2, 1), root) * mass[:, np.newaxis, np.newaxis]
            at = (alike.columns[:, :, np.newaxis], alike.columns[:, np.newaxis, :])
            np.add.at(second[c], at, covariances)

    def moments(self, X: Floats, observed: Mask, kept: Ids, q: Doubles) -> Sums:
        """Of rows that give q (n, H) to kept (n, H), component by component."""
        sums = no_moments(self.centers, full=True)

        def add(given: Givers) -> None:
            c, rows, share = given
            self._add(X[rows], observed[rows], c, share, sums)

        by_pieces(add, givers(kept, q, len(self.centers)))
        return _symmetric(sums)

    def respond(
        self, points: Rows, weight: Doubles | None, out: Doubles | None, moments: bool
    ) -> tuple[Ids, Doubles, Doubles, Sums]:
        """All components: of every row label, log-sum and mean cost (n,); moments of shares times weights (n,), and of
        shares themselves in `out` (n, C).
        """
        C, n, origin = len(self.centers), len(points), self.origin()
        labels, log_sum, mean = np.empty(n, dtype=np.int32), np.empty(n), np.empty(n)
        sums = no_moments(self.centers, full=True)
        for begin in range(0, n, _BLOCK):
            block = points[begin : begin + _BLOCK]
            rows, costs = slice(begin, begin + len(block)), np.empty((len(block), C))

            def table(some: slice, block: Rows = block, costs: Doubles = costs) -> None:
                costs[some] = self.table(block[some], slice(None), origin)

            by_pieces(table, (slice(place, place + _PIECE) for place in range(0, len(block), _PIECE)))
            q, log_sum[rows], mean[rows] = posterior(costs, -0.5)
            labels[rows] = narrowed(costs, points.dtype).argmin(axis=1)
            if out is not None:
                out[rows] = q
            if moments:
                share = q if weight is None else q * weight[rows, np.newaxis]

                def add(c: int, block: Rows = block, share: Doubles = share) -> None:
                    some = block[share[:, c] != 0]
                    assert some.observed is not None
                    self._add(some.dense(), some.observed, c, share[share[:, c] != 0, c], sums)

                by_pieces(add, range(C))
        return labels, log_sum, mean, _symmetric(sums)

    def imputed(self, X: Floats, observed: Mask, ids: Ids, q: Doubles, normal: Doubles | None) -> Doubles:
        """Rows with Σ_c q_c E[x | x_o, c] in their gaps, of components ids and shares q, both (n, H); or with a draw
        of the only component by standard normal numbers (n, D).
        """

        def filled(c: int, rows: NDArray[np.intp]) -> Doubles:
            gaps = gaps_of(observed[rows])
            r, roots = self._completed(X[rows], observed[rows], gaps, c)
            if normal is not None:
                for alike, root in zip(gaps, roots, strict=True):
                    at = (alike.rows[:, np.newaxis], alike.columns[alike.of])
                    r[at] += np.einsum("nlk,nl->nk", root[alike.of], normal[rows][at])
            return r + self.centers[c]

        return np.where(observed, X, mixed(ids, q, X.shape, filled))
