"""Costs of rows with missing values under Gaussians and t distributions with matrices, from marginal densities.

Let P = AᵀA be the precision of a component of mean μ and covariance Σ, o the observed and m the missing columns of a
row x, and r = x − μ with zeros in the missing columns. With y = A r and the QR decomposition A_m = QR, the squared
distance of x_o under Σ_oo is ‖y − QQᵀy‖², and log |Σ_oo| = log |Σ| + 2 log |det R|. Given x_o, the missing values have
the mean μ_m − R⁻¹Qᵀy and the covariance (RᵀR)⁻¹ (Little & Rubin, *Statistical Analysis with Missing Data*; Ghahramani &
Jordan 1994). Let ε be the machine epsilon and κ the condition number of Σ. The projection y − QQᵀy gives a rounding
error of ε √κ. A difference ‖y‖² − ‖Qᵀy‖², or a Cholesky factor of A_mᵀA_m, would give ε κ. Q and R are computed once
for all rows with the same missing columns.

A marginal density of a t distribution is one of the same degrees of freedom, with μ_o and Σ_oo.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import by_pieces
from cprime.kernels.arguments import CoreRows
from cprime.kernels.exact import posterior
from cprime.kernels.measures import Floats, GaussianParameters, exact_parts, tails_of
from cprime.kernels.rows import Dense, Rows
from cprime.kernels.tables import Givers, TabulatedCosts, givers, mixed, narrowed

Ids = NDArray[np.int32]
Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]
Sums = tuple[Doubles, Doubles, Doubles]

_LOG_2PI = math.log(2 * math.pi)
# Matrices, one for each set of missing columns, are computed together up to this number of entries, to limit memory.
_NUMBERS = 2**20
# To limit memory: number of rows in one table of costs (rows × components), and number of rows in a block, whose
# responsibilities are computed before its moments are summed.
_PIECE, _BLOCK = 2048, 2**15


def no_moments(centers: Floats, full: bool) -> Sums:
    """Return arrays of zeros: counts (C,), first moments (C, D), second moments (C, D), or (C, D, D) if `full`."""
    C, D = centers.shape
    return np.zeros(C), np.zeros((C, D)), np.zeros((C, D, D) if full else (C, D))


def _symmetric(sums: Sums) -> Sums:
    """Return counts and first moments unchanged, and second moments S made symmetric despite rounding: (S + Sᵀ)/2."""
    counts, first, second = sums
    return counts, first, (second + second.transpose(0, 2, 1)) / 2


class MissingPatterns(NamedTuple):
    """r rows with k missing values each, grouped by pattern (set of missing columns).

    rows (r,): indices of the rows in the data    columns (p, k): missing columns of each of p patterns
    of (r,): index of each row's pattern
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    of: NDArray[np.intp]


def patterns_of(observed: Mask) -> list[MissingPatterns]:
    """Return the rows with missing values, grouped by pattern (set of missing columns), as a list of `MissingPatterns`.

    An element of the list has patterns with the same number of missing columns, in ascending order of this number.
    Rows are divided among several elements if the matrices of all their patterns would need much memory.

    observed (n, D): mask of the values that are not missing
    """
    rows = np.flatnonzero(~observed.all(axis=1))
    if not len(rows):
        return []
    packed = np.packbits(observed[rows], axis=1)
    as_one = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, of = np.unique(as_one, return_index=True, return_inverse=True)
    missing = ~observed[rows[first]]
    sizes = np.count_nonzero(missing, axis=1)
    order = np.lexsort((of, sizes[of]))
    found = []
    for k in np.flatnonzero(np.bincount(sizes)).tolist():
        mine = order[sizes[of[order]] == k]
        step = max(1, _NUMBERS // (k * observed.shape[1]))
        for begin in range(0, len(mine), step):
            piece = mine[begin : begin + step]
            patterns, place = np.unique(of[piece], return_inverse=True)
            columns = np.nonzero(missing[patterns])[1].reshape(len(patterns), k)
            found.append(MissingPatterns(rows[piece], columns, place))
    return found


def root_of(products: Doubles, squared: Callable[[], Doubles]) -> NDArray:
    """Return p lower triangular matrices L (p, k, k) with L Lᵀ = AᵀA, where A are p matrices of m rows and k columns.

    products (p, k, k): AᵀA    squared: function that returns A (p, m, k)
    L are Cholesky factors of the products. If rounding made a product indefinite, L is computed from the QR
    decomposition of A.
    """
    try:
        return np.linalg.cholesky(products)
    except np.linalg.LinAlgError:
        upper = np.linalg.qr(squared(), mode="r")
        signs = np.sign(np.diagonal(upper, axis1=1, axis2=2))
        lower: NDArray = (upper * signs[:, :, np.newaxis]).transpose(0, 2, 1)
        return lower


def _add_conditional(scatter: Doubles, alike: MissingPatterns, inverse: Doubles, share: Doubles) -> None:
    """Add covariances R⁻¹R⁻ᵀ of missing values, given the observed ones, with weights `share` (n,) to scatter (D, D).

    alike: p patterns of k missing columns each    inverse (p, k, k): R⁻¹ of each pattern
    """
    mass = np.bincount(alike.of, share[alike.rows], len(alike.columns))
    covariances = np.matmul(inverse, inverse.transpose(0, 2, 1)) * mass[:, np.newaxis, np.newaxis]
    np.add.at(scatter, (alike.columns[:, :, np.newaxis], alike.columns[:, np.newaxis, :]), covariances)


class MarginalCosts(TabulatedCosts):
    """Base class of components whose costs are −2 log of marginal densities; `full` says that moments are matrices."""

    full: bool = True

    @abstractmethod
    def add(self, points: Rows, c: int, share: Doubles, sums: Sums) -> None:
        """Add rows with weights `share` (n,) to the moments about the mean of component c, in place.

        sums: counts (C,), first (C, D) and second moments (C, D, D) or (C, D)
        """

    def moments(self, points: Rows, kept: Ids, q: Doubles) -> Sums:
        """Return weighted sums over rows: counts (C,), and moments about the means, first (C, D) and second.

        kept, q (n, H): components of each row and their responsibilities
        """
        sums = no_moments(self.centers, self.full)

        def add(given: Givers) -> None:
            c, rows, share = given
            self.add(points[rows], c, share, sums)

        by_pieces(add, givers(kept, q, len(self.centers)))
        return _symmetric(sums) if self.full else sums

    def respond(
        self, points: Rows, weight: Doubles | None, out: Doubles | None, moments: bool
    ) -> tuple[Ids, Doubles, Doubles, Sums]:
        """Compute an exact E-step over all C components.

        Returns for every row the best component, log Σ_c exp(−cost_c/2) and the mean cost, (n,) each. Also returns a
        tuple of sums over rows, weighted by `weight` and responsibilities, of all components: counts (C,), and moments
        about the means, first (C, D) and second.
        weight (n,): weights of the rows, or None    out (n, C): array to which responsibilities are written, or None
        moments: whether counts and moments are computed; if not, they are zeros
        """
        C, n, origin = len(self.centers), len(points), self.origin()
        labels, log_sum, mean = np.empty(n, dtype=np.int32), np.empty(n), np.empty(n)
        sums = no_moments(self.centers, self.full)
        for begin in range(0, n, _BLOCK):
            block = points[begin : begin + _BLOCK]
            rows, costs = slice(begin, begin + len(block)), np.empty((len(block), C))

            def table(piece: slice, block: Rows = block, costs: Doubles = costs) -> None:
                costs[piece] = self.table(block[piece], slice(None), origin)

            by_pieces(table, (slice(place, place + _PIECE) for place in range(0, len(block), _PIECE)))
            q, log_sum[rows], mean[rows] = posterior(costs, -0.5)
            labels[rows] = narrowed(costs, points.dtype).argmin(axis=1)
            if out is not None:
                out[rows] = q
            if moments:
                share = q if weight is None else q * weight[rows, np.newaxis]

                def add(c: int, block: Rows = block, share: Doubles = share) -> None:
                    rows = share[:, c] != 0
                    self.add(block[rows], c, share[rows, c], sums)

                by_pieces(add, range(C))
        return labels, log_sum, mean, _symmetric(sums) if self.full else sums


class Marginals(MarginalCosts):
    """Gaussians or t distributions with covariance matrices, for rows with missing values.

    The cost of a row is −2 log of the marginal density of its observed values.
    """

    def __init__(self, gaussians: GaussianParameters):
        self.centers, self.n_numbers = gaussians.means, gaussians.means.shape[1]
        self.offsets, self.empty, factors, _ = exact_parts(gaussians)
        assert factors is not None
        self.factors: Doubles = factors
        self.tails = tails_of(gaussians)

    def table(self, points: CoreRows, ids: Ids | slice, origin: NDArray) -> Doubles:
        assert points.observed is not None
        X, observed, patterns = points.dense(), points.observed, patterns_of(points.observed)
        return np.column_stack(
            [self._costs(X, observed, patterns, c) for c in np.arange(len(self.centers))[ids].tolist()]
        )

    def _costs(self, X: Floats, observed: Mask, patterns: list[MissingPatterns], c: int) -> Doubles:
        """Return the costs (n,) of rows X (n, D) under component c.

        observed (n, D): mask of the values that are not missing    patterns: the rows, grouped by their missing columns
        """
        logs, squared = self._parts(X, observed, patterns, c)
        if self.tails is not None:
            squared = self.tails.costs(squared[:, np.newaxis], observed, slice(c, c + 1))[:, 0]
        costs: Doubles = logs + squared
        costs[~observed.any(axis=1)] = self.empty[c]
        return costs

    def squared_distances(self, points: Rows, c: int) -> Doubles:
        """Return the squared Mahalanobis distances (n,) of the observed values of rows to component c."""
        assert points.observed is not None
        return self._parts(points.dense(), points.observed, patterns_of(points.observed), c)[1]

    def _parts(self, X: Floats, observed: Mask, patterns: list[MissingPatterns], c: int) -> tuple[Doubles, Doubles]:
        """Return the costs (n,) of rows at the mean of component c, and squared distances (n,), as in `_costs`."""
        _, y = self._scaled(X, observed, c)
        logs = np.full(len(X), float(self.offsets[c]))
        for alike in patterns:
            Q, R = self._factored(alike, c)
            Q, rows = Q[alike.of], y[alike.rows, np.newaxis]
            y[alike.rows] = (rows - np.matmul(np.matmul(rows, Q), Q.transpose(0, 2, 1)))[:, 0]
            diagonals = np.diagonal(R, axis1=1, axis2=2)
            logs[alike.rows] += (2 * np.log(diagonals).sum(axis=1) - R.shape[1] * _LOG_2PI)[alike.of]
        return logs, np.einsum("nd,nd->n", y, y)

    def _scaled(self, X: Floats, observed: Mask, c: int) -> tuple[Doubles, Doubles]:
        """Return r = x − μ_c for each row x, with 0 in missing columns, and A r: (n, D) each.

        A is a square factor of the precision AᵀA of component c.
        """
        r: Doubles = np.subtract(X, self.centers[c], dtype=np.float64) * observed
        y: Doubles = np.asarray(Dense(r).products(self.factors[c], n_threads=1), dtype=np.float64)
        return r, y

    def _factored(self, alike: MissingPatterns, c: int) -> tuple[Doubles, Doubles]:
        """Return the QR decomposition of the missing columns of A, where AᵀA is the precision of component c.

        alike: p patterns of k missing columns each    Returns Q (p, D, k), and R (p, k, k) of positive diagonal.
        """
        Q, R = np.linalg.qr(self.factors[c].T[alike.columns].transpose(0, 2, 1))
        signs = np.where(np.diagonal(R, axis1=1, axis2=2) < 0, -1.0, 1.0)
        upper: Doubles = np.asarray(R * signs[:, :, np.newaxis], dtype=np.float64)
        return Q * signs[:, np.newaxis], upper

    def _completed(
        self, X: Floats, observed: Mask, patterns: list[MissingPatterns], c: int
    ) -> tuple[Doubles, list[Doubles]]:
        """Return rows minus μ_c (n, D) with missing values replaced, and factors of conditional covariances.

        A missing value is replaced by its conditional mean given the observed values of the row, minus μ_c. A pattern
        is a set of missing columns. For each element of `patterns` (p patterns of k missing columns), the second result
        has the matrices R⁻¹ (p, k, k). The conditional covariance of the missing values is R⁻¹R⁻ᵀ.
        """
        r, y = self._scaled(X, observed, c)
        inverses: list[Doubles] = []
        for alike in patterns:
            Q, R = self._factored(alike, c)
            inverses.append(np.asarray(np.linalg.inv(R), dtype=np.float64))
            along = np.matmul(y[alike.rows, np.newaxis], Q[alike.of])
            means = -np.matmul(along, inverses[-1][alike.of].transpose(0, 2, 1))[:, 0]
            r[alike.rows[:, np.newaxis], alike.columns[alike.of]] = means
        return r, inverses

    def add(self, points: Rows, c: int, share: Doubles, sums: Sums) -> None:
        assert points.observed is not None
        patterns, (counts, first, second) = patterns_of(points.observed), sums
        r, inverses = self._completed(points.dense(), points.observed, patterns, c)
        counts[c] += share.sum()
        first[c] += share @ r
        second[c] += (share[:, np.newaxis] * r).T @ r
        for alike, inverse in zip(patterns, inverses, strict=True):
            _add_conditional(second[c], alike, inverse, share)

    def conditional_scatter(self, observed: Mask, kept: Ids, shares: Doubles) -> Doubles:
        """Return the weighted sum over rows of their covariances given the observed values: (C, D, D).

        observed (n, D): mask of the values that are not missing    kept, shares (n, H): components of each row, and the
        weights of their covariances
        """
        C, D = self.centers.shape
        scatter = np.zeros((C, D, D))

        def add(given: Givers) -> None:
            c, rows, share = given
            for alike in patterns_of(observed[rows]):
                inverse: Doubles = np.asarray(np.linalg.inv(self._factored(alike, c)[1]), dtype=np.float64)
                _add_conditional(scatter[c], alike, inverse, share)

        by_pieces(add, givers(kept, shares, C))
        return (scatter + scatter.transpose(0, 2, 1)) / 2

    def imputed(self, points: Rows, ids: Ids, q: Doubles, normal: Doubles | None) -> Doubles:
        """Return rows (n, D) with missing values replaced by expected values Σ_c q_c E[x | x_o, c], or by random ones.

        x_o: observed values of a row    ids (n, H): components    q (n, H): responsibilities
        normal (n, D): standard normal numbers; if given, missing values are drawn from the only component (H = 1)
        """
        assert points.observed is not None
        X, observed = points.dense(), points.observed

        def filled(c: int, rows: NDArray[np.intp]) -> Doubles:
            patterns = patterns_of(observed[rows])
            r, inverses = self._completed(X[rows], observed[rows], patterns, c)
            if normal is not None:
                for alike, inverse in zip(patterns, inverses, strict=True):
                    at = (alike.rows[:, np.newaxis], alike.columns[alike.of])
                    r[at] += np.einsum("nkl,nl->nk", inverse[alike.of], normal[rows][at])
            return r + self.centers[c]

        return np.where(observed, X, mixed(ids, q, X.shape, filled))
