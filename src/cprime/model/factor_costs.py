"""Costs −2 log p(c, x) of factor analyzers with H factors, by which searches compare components, in O(D·H) each.

The covariance of a component is ΛΛᵀ + Ψ with loadings Λ (D, H) and diagonal noise Ψ. With M = I + ΛᵀΨ⁻¹Λ = LLᵀ and
U = L⁻¹ΛᵀΨ⁻¹ (H, D), a squared Mahalanobis distance is Σ_d (x_d − μ_d)²/ψ_d − ‖U(x − μ)‖². All computations are in
double precision. Costs of a few components are computed by kernels, from loadings and differences x − μ. Costs of all
components are computed by matrix products with U, from points relative to an origin near them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import by_pieces, plain_products
from cprime.kernels import FactorAnalysers, Floats, Rows, TabulatedCosts
from cprime.kernels.arguments import CoreRows
from cprime.model.factor_steps import Component, explained, factored
from cprime.neighbors import EXACT_LISTS, exact_lists, least_lists, refined_lists
from cprime.neighbors.components import Components, Ids

# Largest accepted rounding error of a cost, divided by 1 + cost. Less accurate costs are computed again from residuals.
_ROUNDING = 2.0**-27
# If the Kullback-Leibler divergences of all pairs of components take more multiplications than this number, neighbor
# lists are made from distances of means instead.
_CLOSED_FORM = 2**36
# Maximum number of entries of products (loadings times matrices U) that are computed at a time, to limit memory.
_PRODUCTS = 2**22
# Number of components that are processed at a time, to limit the memory of temporary arrays.
_TOGETHER = 64
# Maximum number of entries of the matrices U of the components whose costs are tabulated at a time, to limit memory.
_DIRECTIONS = 2**21
# If costs are tabulated for some components at a time, blocks of rows are as large as for at most this number of
# factors. Larger blocks save time, because U is computed again for each block, but need more memory.
_NUMBERS = 7


def parts(C: int) -> Iterator[slice]:
    """Return an iterator of slices that divide C components into blocks of 64, so that temporary arrays are small."""
    return (slice(begin, begin + _TOGETHER) for begin in range(0, C, _TOGETHER))


class Terms(NamedTuple):
    """Precomputed arrays for the costs of points under G factor analyzers; points are given relative to `origin`.

    ids: indices of the G components    origin (D,)    precisions (G, D): 1/ψ, inverse noise variances
    directions (G, H, D): U = L⁻¹ΛᵀΨ⁻¹, where LLᵀ = I + ΛᵀΨ⁻¹Λ, for loadings Λ and noise covariance Ψ = diag ψ
    With m = μ − origin for means μ: pulls (G, D): m/ψ    constants (G,): Σ_d m_d²/ψ_d    own (G, H): U m
    """

    ids: Ids | slice
    origin: NDArray[np.float64]
    precisions: NDArray[np.float64]
    directions: NDArray[np.float64]
    pulls: NDArray[np.float64]
    constants: NDArray[np.float64]
    own: NDArray[np.float64]


@dataclass(eq=False)
class FactorCosts(TabulatedCosts, Components):
    """Factor analyzers with costs −2 log p(c, x), minus a constant that is common to all components.

    centers (C, D)    loadings (C, D, H): Λ    noise (C, D): diagonals ψ of the noise covariances Ψ
    roots (C, H, H): L⁻ᵀ, where LLᵀ = I + ΛᵀΨ⁻¹Λ    offsets (C,): costs at the means
    empty (C,): costs of a row without observed values, −2 log π_c (weights π) minus that constant
    together: number of components whose matrices U are in memory at a time
    Kernels read Λᵀ. So the memory of `loadings` is that of a contiguous array (C, H, D), transposed; others are copied.
    """

    centers: Floats
    loadings: Floats
    noise: Floats
    roots: NDArray[np.float64]
    offsets: NDArray[np.float64]
    empty: NDArray[np.float64]

    scattered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        C, D, H = self.loadings.shape
        self.loadings = np.ascontiguousarray(self.loadings.transpose(0, 2, 1)).transpose(0, 2, 1)
        self.together = min(C, max(1, _DIRECTIONS // max(1, H * D)))
        self.n_numbers = 1 + (H if self.together == C else min(H, _NUMBERS))

    def directions_of(self, piece: Ids | slice) -> NDArray[np.float64]:
        """Return the matrices U = L⁻¹ΛᵀΨ⁻¹ (c, H, D), where LLᵀ = I + ΛᵀΨ⁻¹Λ, for the c components of `piece`.

        Λ: loadings    Ψ: diagonal noise covariance
        """
        loadings, precisions, roots = self.loadings[piece], self.precisions[piece], self.roots[piece]
        C, D, H = loadings.shape
        found = np.empty((C, H, D))

        def make(part: slice) -> None:
            scaled = loadings[part].transpose(0, 2, 1) * precisions[part, np.newaxis]
            np.matmul(roots[part].transpose(0, 2, 1), scaled, out=found[part])

        by_pieces(make, parts(C))
        return found

    @cached_property
    def precisions(self) -> NDArray[np.float64]:
        """Inverse variances of the noise: (C, D)."""
        return np.divide(1, self.noise, dtype=np.float64)

    @property
    def factors(self) -> FactorAnalysers:
        """Parameters of all factor analyzers in the form that kernels take."""
        return FactorAnalysers(
            self.centers, self.precisions, self.loadings.transpose(0, 2, 1), self.roots, self.offsets
        )

    @cached_property
    def terms(self) -> Terms:
        """Precomputed arrays for the costs of all components, with the mean of the centers as origin."""
        return self._terms(slice(None), self.origin())

    def forget(self) -> None:
        for name in ("precisions", "terms"):
            vars(self).pop(name, None)

    def top_k(self, points: Rows, lists: Ids, previous: Ids, n_kept: int) -> tuple[Ids, Floats]:  # type: ignore[override]
        if points.observed is not None:
            return super().top_k(points, lists, previous, n_kept)
        return points.top_k_factors(self.factors, lists, previous, n_kept)

    def costs(self, points: Rows, ids: Ids) -> Floats:  # type: ignore[override]
        return super().costs(points, ids) if points.observed is not None else points.factor_costs(self.factors, ids)

    def table(self, points: CoreRows, ids: Ids | slice, origin: NDArray) -> NDArray[np.float64]:
        if points.observed is None:
            return self._measured_by_pieces(points.dense(), ids, origin)
        X, numbers = points.dense(), np.arange(len(self.centers))[ids]
        complete = points.observed.all(axis=1)
        out = np.empty((len(X), len(numbers)))
        out[complete] = self._measured_by_pieces(X[complete], ids, origin)
        for g, c in enumerate(numbers.tolist()):
            out[~complete, g] = self._of_observed(X[~complete], points.observed[~complete], c)
        return out

    def _measured_by_pieces(self, X: Floats, ids: Ids | slice, origin: NDArray) -> NDArray[np.float64]:
        """Return the costs (n, G) of rows without missing values under G components: those of `ids`, or all.

        The matrices U of all components may need much memory, so they are computed for some components at a time.
        origin (D,): a place near the rows
        """
        C = len(self.centers)
        if not isinstance(ids, slice):
            return self.measured(X, self._terms(ids, origin))[0]
        if self.together == C:
            return self.measured(X, self.terms)[0]
        pieces = (slice(first, first + self.together) for first in range(0, C, self.together))
        return np.concatenate([self.measured(X, self._terms(piece, origin))[0] for piece in pieces], axis=1)

    def component(self, c: int) -> Component:
        loadings, noise = (np.asarray(values[c], dtype=np.float64) for values in (self.loadings, self.noise))
        return Component(self.centers[c], loadings, noise)

    def _of_observed(self, X: Floats, observed: NDArray[np.bool_], c: int) -> NDArray[np.float64]:
        """Return the costs (n,) of component c from the marginal densities of each row's observed values.

        observed (n, D): mask of the values that are not missing
        """
        parts = [part.squares + part.logs for _, _, part in factored(X, observed, self.component(c))]
        return np.concatenate(parts) + self.empty[c] if parts else np.empty(0)

    def _terms(self, ids: Ids | slice, origin: NDArray[np.float64]) -> Terms:
        precisions, directions = self.precisions[ids], self.directions_of(ids)
        place = np.subtract(self.centers[ids], origin, dtype=np.float64)
        pulls = precisions * place
        own = np.matmul(directions, place[..., np.newaxis])[..., 0]
        place *= pulls
        return Terms(ids, origin, precisions, directions, pulls, place.sum(axis=1), own)

    def measured(self, X: Floats, terms: Terms) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the costs (n, G) of rows under the G components of `terms`, and U(x − μ) (n, G, H).

        X (n, D): rows near the origin of `terms`    terms: precomputed arrays of the components
        U = L⁻¹ΛᵀΨ⁻¹, where LLᵀ = I + ΛᵀΨ⁻¹Λ for loadings Λ and noise Ψ
        A cost is a difference of numbers. If these are so much larger that rounding errors matter, the cost is
        recomputed from the residual x − μ − Λz, with the expected factors z.
        """
        ids, origin, precisions, directions, pulls, constants, own = terms
        G, H, D = directions.shape
        y = np.subtract(X, origin, dtype=np.float64)
        costs = np.square(y) @ precisions.T
        costs += constants
        rounding = 4 * np.finfo(np.float64).eps * costs
        costs -= 2 * (y @ pulls.T)
        along = (y @ directions.reshape(G * H, D).T).reshape(len(y), G, H)
        along -= own
        costs -= np.einsum("ngh,ngh->ng", along, along)
        unsure = rounding > _ROUNDING * (1 + costs)
        if unsure.any():
            numbers = np.arange(len(self.centers))[ids]
            for g in np.flatnonzero(unsure.any(axis=0)).tolist():
                rows = unsure[:, g]
                costs[rows, g], along[rows, g] = self._from_residual(X[rows], numbers[g], directions[g])
        return np.maximum(costs, 0, out=costs) + self.offsets[ids], along

    def _from_residual(
        self, X: Floats, c: int, U: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the squared Mahalanobis distances (n,) of rows to component c, and U y (n, H), without cancellation.

        The squared distance is ‖Ψ^−½(y − Λz)‖² + ‖z‖², with y = x − μ, loadings Λ, noise Ψ and factors z = E[z | x].
        U (H, D): L⁻¹ΛᵀΨ⁻¹, where LLᵀ = I + ΛᵀΨ⁻¹Λ
        """
        y = np.subtract(X, self.centers[c], dtype=np.float64)
        along = y @ U.T
        z = along @ self.roots[c].T
        rest = y - z @ self.loadings[c].T
        return np.square(rest) @ self.precisions[c] + np.square(z).sum(axis=1), along

    @property
    def reach(self) -> float:
        """Largest Σ_d (μ_d − m_d)²/ψ_d of a component of mean μ and noise variances ψ, for an origin m.

        If this squared distance is too large, moments computed about the origin would lose precision.
        """
        return float(
            (np.square(np.subtract(self.centers, self.origin(), dtype=np.float64)) / self.noise).sum(axis=1).max()
        )

    @plain_products()
    def lists(self, n_neighbors: int, previous: Ids | None = None) -> Ids:
        """Return neighbor lists: for each component c, ids of the components c̃ of least mean cost for points from c.

        The shape is (C, min(n_neighbors, C) − 1).    previous: earlier lists, from which a search may start, or None
        The mean cost is KL(c‖c̃) − log π_c̃ plus a constant (KL: Kullback-Leibler divergence, π: weights). It is
        computed in closed form for all C² pairs. If this needs more than 7·10¹⁰ multiplications, lists are made from
        distances of means instead.
        """
        C, D, H = self.loadings.shape
        if C**2 * max(1, H) ** 2 * D > _CLOSED_FORM:
            if previous is None or C <= EXACT_LISTS:
                return exact_lists(self.centers, n_neighbors, previous)
            return refined_lists(self.centers, previous, n_neighbors)[0]
        _, origin, precisions, directions, pulls, constants, own = self.terms
        means, flat = np.subtract(self.centers, origin, dtype=np.float64), directions.reshape(-1, D)
        spread = explained(self.loadings) + self.noise
        constants = self.offsets + constants
        squares = np.square(directions).sum(axis=1)

        def mean_costs(begin: int, end: int) -> NDArray[np.float64]:
            piece = slice(begin, end)
            out = (spread[piece] + np.square(means[piece])) @ precisions.T - 2 * (means[piece] @ pulls.T) + constants
            out -= self.noise[piece] @ squares.T
            along = (means[piece] @ flat.T).reshape(end - begin, C, H)
            along -= own
            out -= np.square(along, out=along).sum(axis=2)
            del along
            step = max(1, _PRODUCTS // (C * max(1, H) ** 2))
            for first in range(begin, end, step):
                few = self.loadings[first : min(first + step, end)]
                products = flat @ few.transpose(1, 0, 2).reshape(D, len(few) * H)
                np.square(products, out=products)
                out[first - begin :][: len(few)] -= products.reshape(C, H, len(few), H).sum(axis=(1, 3)).T
            return out

        return least_lists(mean_costs, C, n_neighbors)
