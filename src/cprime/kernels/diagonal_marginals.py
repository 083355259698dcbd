"""Costs of rows with missing values under components with diagonal covariances, by products of x, x² and the mask.

Let o (n, D) be the mask of observed values, and μ, P the means and precisions (inverse variances) of a component. The
cost of a row is Σ_d o_d (P_d (x_d − μ_d)² + log 2π − log P_d) − 2 log π for a component of weight π. A missing value
adds its expected value 0 to first moments about the mean, and its variance 1/P_d to second moments.
"""

import math

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import by_pieces
from cprime.kernels.arguments import CoreRows
from cprime.kernels.exact import posterior
from cprime.kernels.marginals import Doubles, Ids, Mask, Sums, no_moments
from cprime.kernels.measures import Floats, GaussianParameters, exact_parts, tails_of
from cprime.kernels.rows import Dense, Rows
from cprime.kernels.tables import Givers, TabulatedCosts, givers, narrowed

_LOG_2PI = math.log(2 * math.pi)
# Limit of Σ_d (μ_d − origin_d)² P_d for a component of mean μ and precisions P, where origin is a place near the rows.
# Beyond the limit, costs are computed from differences x − μ, because sums over x and x² would lose precision.
_FAR = {np.dtype(np.float32): 2.0**36, np.dtype(np.float64): 2.0**24}
# Number of rows whose costs under all components are one matrix product; few, so that this table needs little memory.
_ROWS = 512
# Rows are summed in segments that do not depend on the number of threads, so that results do not depend on it either.
# Least number of rows in a segment, and greatest number of segments.
_SEGMENT, _SEGMENTS = 2**13, 32
# Maximum number of values in memory for a block of rows: rows x, their squares x², and the mask of observed values.
_TERMS = 2**22


class DiagonalMarginals(TabulatedCosts):
    """Gaussians or t distributions with diagonal covariances, for rows with missing values.

    The cost of a row is −2 log of the marginal density of its observed values.
    """

    def __init__(self, gaussians: GaussianParameters):
        self.centers = gaussians.means
        self.exact = exact_parts(gaussians)
        self.precisions = np.square(gaussians.factors.astype(np.float64))
        self.logs = _LOG_2PI - np.log(self.precisions)
        self.tails = tails_of(gaussians)

    def table(self, points: CoreRows, ids: Ids | slice, origin: NDArray) -> Doubles:
        assert points.observed is not None
        X, observed = points.dense(), points.observed
        return self._costs(X, observed, terms_of(X, observed, origin), self._weights(ids, origin), ids)

    def _weights(self, ids: Ids | slice, origin: NDArray) -> tuple[Doubles, Mask]:
        """Return the coefficients (G, 3 D) of y, y² and the mask of observed values in the costs of G components.

        y = x − origin are coordinates relative to a place `origin` (D,) near the rows x. Also return the mask (G,) of
        components so far from the origin that these costs would lose precision.
        """
        P, place = self.precisions[ids], np.subtract(self.centers[ids], origin, dtype=np.float64)
        squares = P * np.square(place)
        weights = np.concatenate([-2 * P * place, P, squares + self.logs[ids]], axis=1)
        return weights, squares.sum(axis=1) > _FAR[self.centers.dtype]

    def _costs(
        self, X: Floats, observed: Mask, terms: Doubles, weights: tuple[Doubles, Mask], ids: Ids | slice
    ) -> Doubles:
        """Return the costs (n, m) of n rows under the m components `ids`.

        terms (n, 3 D): numbers from which costs are computed: y = x − origin, y², and the mask of observed values
        weights: coefficients (m, 3 D) of these numbers in the costs, and the mask (m,) of components whose costs are
        computed from differences x − μ instead, because sums of these numbers would lose precision
        """
        costs: Doubles = Dense(terms).products(weights[0], n_threads=1).astype(np.float64, copy=False)
        numbers = np.arange(len(self.centers))[ids]
        for g in np.flatnonzero(weights[1]).tolist():
            r = self._differences(X, observed, numbers[g])
            P, logs = self.precisions[numbers[g]], self.logs[numbers[g]]
            costs[:, g] = np.einsum("nd,d->n", np.square(r), P) + np.einsum("nd,d->n", observed, logs)
        costs += self.exact.offsets[ids] - self.logs[ids].sum(axis=1)
        if self.tails is not None:
            at_means = observed @ self.logs[ids].T + (self.exact.offsets[ids] - self.logs[ids].sum(axis=1))
            costs = at_means + self.tails.costs(np.maximum(costs - at_means, 0), observed, ids)
        costs[~observed.any(axis=1)] = self.exact.empty[ids]
        return costs

    def _differences(self, X: Floats, observed: Mask, c: int) -> Doubles:
        """Return rows minus the mean of component c (n, D), with zeros for missing values."""
        return np.subtract(X, self.centers[c], dtype=np.float64) * observed

    def squared_distances(self, points: Rows, c: int) -> Doubles:
        """Return the squared Mahalanobis distances (n,) of the observed values of rows to component c."""
        assert points.observed is not None
        squared: Doubles = np.square(self._differences(points.dense(), points.observed, c)) @ self.precisions[c]
        return squared

    def conditional_scatter(self, observed: Mask, kept: Ids, shares: Doubles) -> Doubles:
        """Return the weighted sum over rows of their variances given the observed values: (C, D).

        observed (n, D): mask of the values that are not missing    kept, shares (n, H): components of each row, and the
        weights of their variances
        """
        absent = np.zeros(self.centers.shape)
        for c, rows, share in givers(kept, shares, len(absent)):
            absent[c] = share @ ~observed[rows]
        return absent / self.precisions

    def moments(self, points: Rows, kept: Ids, q: Doubles) -> Sums:
        """Return weighted sums over rows: counts (C,), and first and second moments about the means (C, D).

        kept, q (n, H): components of each row and their responsibilities
        Moments are computed from sums of x, x² and the mask of observed values or, for components far from the mean of
        all centers, from differences x − μ.
        """
        assert points.observed is not None
        X, observed = points.dense(), points.observed
        origin, sums = self.origin(), no_moments(self.centers, full=False)
        C, D = self.centers.shape
        linear = np.zeros((C, 3 * D))
        step = max(1, _TERMS // (3 * D))
        for begin in range(0, len(X), step):
            rows = slice(begin, begin + step)
            terms = Dense(terms_of(X[rows], observed[rows], origin))
            counts, _ = terms.accumulate(kept[rows], q[rows], n_components=C, onto=linear)
            sums[0][...] += counts
        self._add(sums, sums[0].copy(), linear, origin)
        self._add_far(X, observed, kept, q, origin, sums)
        return sums

    def _add(self, sums: Sums, mass: Doubles, linear: Doubles, origin: Doubles) -> None:
        """Compute first and second moments (C, D) about the present means of components, and write them to `sums`.

        origin (D,): point that is subtracted from rows before they are summed
        linear (C, 3 D): weighted sums over rows of y = x − origin, y² and the mask of observed values
        mass (C,): sums of responsibilities
        """
        place = np.subtract(self.centers, origin, dtype=np.float64)
        first, squares, there = np.split(linear, 3, axis=1)
        sums[1][...] = first - place * there
        about = np.maximum(squares - 2 * place * first + np.square(place) * there, 0)
        sums[2][...] = about + np.maximum(mass[:, np.newaxis] - there, 0) / self.precisions

    def _add_far(self, X: Floats, observed: Mask, kept: Ids, q: Doubles, origin: Doubles, sums: Sums) -> None:
        """Recompute the moments of components far from `origin` (D,), and write them to `sums`.

        They are computed from differences x − μ, because sums of x − origin would lose precision for them.
        kept, q (n, H): components of each row and their responsibilities
        """
        far = self._weights(slice(None), origin)[1]
        if not far.any():
            return
        sums[1][far], sums[2][far] = 0, 0

        def add(given: Givers) -> None:
            c, rows, share = given
            r = self._differences(X[rows], observed[rows], c)
            sums[1][c] = share @ r
            sums[2][c] = share @ np.square(r) + (share @ ~observed[rows]) / self.precisions[c]

        by_pieces(add, givers(kept, np.where(far[kept], q, 0), len(self.centers)))

    def respond(
        self, points: CoreRows, weight: Doubles | None, out: Doubles | None, moments: bool
    ) -> tuple[Ids, Doubles, Doubles, Sums]:
        """Compute an exact E-step over all C components.

        Returns for every row the best component, log Σ_c exp(−cost_c/2) and the mean cost, (n,) each. Also returns a
        tuple of sums over rows, weighted by `weight` and responsibilities, of all components: counts (C,), and moments
        about the means, first (C, D) and second (C, D).
        weight (n,): weights of the rows, or None    out (n, C): array to which responsibilities are written, or None
        moments: whether counts and moments are computed; if not, they are zeros
        """
        assert points.observed is not None
        X, observed = points.dense(), points.observed
        C, n, origin = len(self.centers), len(X), self.origin()
        labels, log_sum, mean = np.empty(n, dtype=np.int32), np.empty(n), np.empty(n)
        weights, every = self._weights(slice(None), origin), slice(None)
        sums, far = no_moments(self.centers, full=False), np.flatnonzero(weights[1])
        mass, linear = np.zeros(C), np.zeros((C, 3 * self.centers.shape[1]))

        def piece(segment: slice) -> tuple[Doubles, Doubles, list[Doubles]]:
            own_mass, own = np.zeros(C), np.zeros_like(linear)
            alone = [np.zeros((2, self.centers.shape[1])) for _ in far]
            for begin in range(segment.start, min(segment.stop, n), _ROWS):
                rows = slice(begin, min(begin + _ROWS, segment.stop, n))
                x, o = X[rows], observed[rows]
                terms = terms_of(x, o, origin)
                costs = self._costs(x, o, terms, weights, every)
                q, log_sum[rows], mean[rows] = posterior(costs, -0.5, n_threads=1)
                labels[rows] = narrowed(costs, X.dtype).argmin(axis=1)
                if out is not None:
                    out[rows] = q
                if moments:
                    share = q if weight is None else q * weight[rows, np.newaxis]
                    own_mass += share.sum(axis=0)
                    own += Dense(np.ascontiguousarray(share.T)).products(np.ascontiguousarray(terms.T), n_threads=1)
                    for place, c in enumerate(far.tolist()):
                        r = self._differences(x, o, c)
                        alone[place] += share[:, c] @ r, share[:, c] @ np.square(r)
            return own_mass, own, alone

        apart = np.zeros((len(far), 2, self.centers.shape[1]))
        for own_mass, own, alone in by_pieces(piece, segments(n)):
            mass, linear = mass + own_mass, linear + own
            apart += np.reshape(alone, apart.shape)
        if moments:
            self._add(sums, mass, linear, origin)
            sums[0][...] = mass
            there = linear[far, 2 * self.centers.shape[1] :]
            sums[1][far] = apart[:, 0]
            sums[2][far] = apart[:, 1] + np.maximum(mass[far, np.newaxis] - there, 0) / self.precisions[far]
        return labels, log_sum, mean, sums

    def imputed(self, points: Rows, ids: Ids, q: Doubles, normal: Doubles | None) -> Doubles:
        """Return rows (n, D) with missing values replaced by expected values Σ_c q_c μ_c, or by random ones.

        ids (n, H): components, of means μ_c    q (n, H): responsibilities
        normal (n, D): standard normal numbers; if given, missing values are drawn from the only component (H = 1)
        """
        assert points.observed is not None
        out = np.zeros(points.shape)
        for h in range(ids.shape[1]):
            out += q[:, h, np.newaxis] * self.centers[ids[:, h]]
        if normal is not None:
            out += normal / np.sqrt(self.precisions[ids[:, 0]])
        return np.where(points.observed, points.dense(), out)


def terms_of(X: Floats, observed: Mask, origin: NDArray) -> Doubles:
    """Return o (x − origin), its squares, and the mask o of observed values, side by side: (n, 3 D).

    X (n, D): rows x    origin (D,): a place near the rows; differences from it are computed for precision
    """
    D = X.shape[1]
    out = np.empty((len(X), 3 * D))
    np.subtract(X, origin, out=out[:, :D], dtype=np.float64)
    out[:, :D] *= observed
    np.square(out[:, :D], out=out[:, D : 2 * D])
    out[:, 2 * D :] = observed
    return out


def segments(n: int) -> list[slice]:
    """Return slices that divide n rows into at most 32 segments of at least 8192 rows (the last may be shorter).

    The segments depend on n alone, so that sums over segments do not depend on the number of threads.
    """
    step = max(_SEGMENT, -(-n // _SEGMENTS))
    return [slice(begin, min(begin + step, n)) for begin in range(0, n, step)]
