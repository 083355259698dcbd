"""What a search compares points with where components are factor analysers: matrices of low rank, O(D·H) a cost.

With M = I + ΛᵀΨ⁻¹Λ = LLᵀ and U = L⁻¹ΛᵀΨ⁻¹ (H, D), a squared distance is Σ_d (x_d − μ_d)²/ψ_d − ‖U(x − μ)‖². All is
products of matrices in double precision, of points relative to an origin near them.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cprime._threads import by_pieces, plain_products
from cprime.components import Components, Ids
from cprime.kernels import Floats, Rows
from cprime.neighbors import exact_lists, least_lists, refined_lists

_NUMBERS = 2**22  # of a table at a time
_ROUNDING = 2.0**-27  # of a cost, that is taken
_CLOSED_FORM = 2**36  # most products for lists by divergences; beyond, distances of means make them
_MANY = 32768  # components whose lists of distances follow from lists before

Group = tuple[int, NDArray[np.intp]]  # a component, and the places where it is


class FactorCosts(Components):
    """−2 log p(c, x), less what all components have in common.

    centers (C, D)    loadings (C, D, H)    noise (C, D): ψ    directions (C, H, D): U    roots (C, H, H): L⁻ᵀ
    offsets (C,)
    """

    def __init__(
        self,
        centers: Floats,
        loadings: NDArray[np.float64],
        noise: NDArray[np.float64],
        directions: NDArray[np.float64],
        roots: NDArray[np.float64],
        offsets: NDArray[np.float64],
    ):
        self.centers, self.loadings, self.noise = centers, loadings, noise
        self.directions, self.roots, self.offsets = directions, roots, offsets

    def table(self, X: Floats, ids: Ids | slice, origin: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The costs of components `ids` (n, G), and U(x − μ) for each (n, G, H); origin (D,): a point near the rows.

        Where terms are so much larger than a cost that their rounding shows, it is measured from the residual.
        """
        precisions, directions = 1 / self.noise[ids], self.directions[ids]
        G, H, D = directions.shape
        y = np.subtract(X, origin, dtype=np.float64)
        place = np.subtract(self.centers[ids], origin, dtype=np.float64)
        pulls = precisions * place
        costs = np.square(y) @ precisions.T
        costs += (pulls * place).sum(axis=1)
        rounding = 4 * np.finfo(np.float64).eps * costs
        costs -= 2 * (y @ pulls.T)
        own = np.matmul(directions, place[..., np.newaxis])[..., 0]
        along = (y @ directions.reshape(G * H, D).T).reshape(len(y), G, H) - own
        costs -= np.einsum("ngh,ngh->ng", along, along)
        unsure = rounding > _ROUNDING * (1 + costs)
        if unsure.any():
            numbers = np.arange(len(self.centers))[ids]
            for g in np.flatnonzero(unsure.any(axis=0)).tolist():
                rows = unsure[:, g]
                costs[rows, g], along[rows, g] = self._measured(X[rows], numbers[g])
        return np.maximum(costs, 0, out=costs) + self.offsets[ids], along

    def _measured(self, X: Floats, c: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Squared distances ‖Ψ^−½(y − Λz)‖² + ‖z‖² of rows to one component, z = E[z | x], and U y; nothing cancels."""
        y = np.subtract(X, self.centers[c], dtype=np.float64)
        along = y @ self.directions[c].T
        z = along @ self.roots[c].T
        rest = y - z @ self.loadings[c].T
        return np.square(rest) @ (1 / self.noise[c]) + np.square(z).sum(axis=1), along

    def origin(self) -> NDArray[np.float64]:
        """One for all components."""
        return self.centers.mean(axis=0, dtype=np.float64)

    @property
    def reach(self) -> float:
        """The greatest squared distance of a mean from that origin, in units of its component's noise."""
        return float(
            (np.square(np.subtract(self.centers, self.origin(), dtype=np.float64)) / self.noise).sum(axis=1).max()
        )

    def blocks(self, n: int) -> Iterator[slice]:
        """Rows of which tables for all components are made at a time."""
        C, H, D = self.directions.shape
        step = max(1, _NUMBERS // max(C * (H + 1), D))
        return (slice(begin, begin + step) for begin in range(0, n, step))

    def best(self, points: Rows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        X, C, every, origin = points.dense(), len(self.centers), slice(None), self.origin()
        ids = np.empty((len(X), n_kept), dtype=np.int32)
        costs = np.empty((len(X), n_kept), dtype=points.dtype)

        def some(rows: slice) -> None:
            found = self.table(X[rows], every, origin)[0].astype(points.dtype)
            ids[rows], costs[rows] = _least(np.arange(C, dtype=np.int32), found, n_kept)

        by_pieces(some, self.blocks(len(X)))
        return ids, costs

    def keep(self, points: Rows, lists: Ids, previous: Ids, n_kept: int) -> tuple[Ids, Floats]:
        """Component by component: its points have its list in common; what else they keep is measured by itself."""
        X, C = points.dense(), len(self.centers)
        ids = np.full((len(X), n_kept), -1, dtype=np.int32)
        costs = np.full((len(X), n_kept), np.inf, dtype=points.dtype)
        others = previous.copy()

        def look(group: Group) -> None:
            c, rows = group
            near = np.unique(lists[c][: np.argmax(lists[c] < 0)] if (lists[c] < 0).any() else lists[c])
            if len(near):
                found = self.table(X[rows], near, self.centers[c])[0].astype(points.dtype)
                ids[rows], costs[rows] = _least(near, found, n_kept)
                listed = np.zeros(C + 1, dtype=bool)  # the last one is that of −1
                listed[near] = True
                others[rows] = np.where(listed[others[rows]], -1, others[rows])

        by_pieces(look, groups(previous[:, 0], C))
        joined = np.column_stack([ids, others])
        all_costs = np.column_stack([costs, self.costs(points, others)])
        order = np.lexsort((joined, all_costs), axis=1)[:, :n_kept]
        kept, least = np.take_along_axis(joined, order, axis=1), np.take_along_axis(all_costs, order, axis=1)
        return np.where(np.isfinite(least), kept, np.int32(-1)), least

    def costs(self, points: Rows, ids: Ids) -> Floats:
        """Infinite for −1."""
        X, out = points.dense(), np.full(ids.size, np.inf, dtype=points.dtype)

        def measure(group: Group) -> None:
            c, places = group
            rows = X[places // ids.shape[1]]
            out[places] = self.table(rows, np.array([c], dtype=np.int32), self.centers[c])[0][:, 0]

        by_pieces(measure, groups(ids.reshape(-1), len(self.centers)))
        return out.reshape(ids.shape)

    @plain_products()
    def lists(self, n_neighbors: int, previous: Ids | None = None) -> Ids:
        """By the mean cost of c̃ for what c generates, i.e. by KL(c‖c̃) − log π_c̃ up to a constant, in closed form.

        From products of all C² pairs; beyond some 10¹¹ multiplications by the distances of means.
        """
        C, H, D = self.directions.shape
        if C**2 * max(1, H) ** 2 * D > _CLOSED_FORM:
            if previous is None or C <= _MANY:
                return exact_lists(self.centers, n_neighbors, previous)
            return refined_lists(self.centers, previous, n_neighbors)
        means = np.subtract(self.centers, self.origin(), dtype=np.float64)
        precisions, flat = 1 / self.noise, self.directions.reshape(-1, D)
        pulls = precisions * means
        spread = self.noise + np.square(self.loadings).sum(axis=2)
        own = np.matmul(self.directions, means[..., np.newaxis])[..., 0]
        constants = self.offsets + (pulls * means).sum(axis=1)
        squares = np.square(self.directions).sum(axis=1)

        def mean_costs(begin: int, end: int) -> NDArray[np.float64]:
            some = slice(begin, end)
            n = end - begin
            out = (spread[some] + np.square(means[some])) @ precisions.T - 2 * (means[some] @ pulls.T) + constants
            out -= self.noise[some] @ squares.T
            out -= np.square((means[some] @ flat.T).reshape(n, C, H) - own).sum(axis=2)
            turned = self.loadings[some].transpose(1, 0, 2).reshape(D, n * H)
            out -= np.square(flat @ turned).reshape(C, H, n, H).sum(axis=(1, 3)).T
            return out

        return least_lists(mean_costs, C, n_neighbors)


def groups(components: NDArray[np.int32], n_components: int) -> Iterator[Group]:
    """Every component that is there, with the places where it is, rising; −1 is none."""
    order = np.argsort(components, kind="stable")
    ends = np.searchsorted(components[order], np.arange(n_components + 1))
    for c in np.flatnonzero(np.diff(ends)).tolist():
        yield c, order[ends[c] : ends[c + 1]]


def _least(ids: Ids, costs: Floats, n_kept: int) -> tuple[Ids, Floats]:
    """Of components ids (G,), rising, the n_kept of least cost (n, G) for each row, by (cost, id)."""
    n, G = costs.shape
    if n_kept == 1:
        first = costs.argmin(axis=1)
        return ids[first][:, np.newaxis], costs[np.arange(n), first][:, np.newaxis]
    places = np.broadcast_to(np.arange(G), (n, G))
    if n_kept < G:
        bar = np.partition(costs, n_kept - 1, axis=1)[:, n_kept - 1 : n_kept]
        if (np.count_nonzero(costs <= bar, axis=1) == n_kept).all():  # else some tie, and the lower index goes first
            places = np.sort(np.argpartition(costs, n_kept - 1, axis=1)[:, :n_kept], axis=1)
    found = np.take_along_axis(costs, places, axis=1)
    order = np.argsort(found, axis=1, kind="stable")[:, :n_kept]
    places, found = np.take_along_axis(places, order, axis=1), np.take_along_axis(found, order, axis=1)
    kept = np.where(np.isfinite(found), ids[places], np.int32(-1)).astype(np.int32)
    missing = ((0, 0), (0, n_kept - kept.shape[1]))
    return np.pad(kept, missing, constant_values=-1), np.pad(found, missing, constant_values=np.inf)
