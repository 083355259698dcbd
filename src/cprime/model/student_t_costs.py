"""What a search compares points with where components have t densities: squared distances by the kernels of Gaussians.

    −2 log p(c, x) = o_c + (ν_c + D) log(1 + δ_c(x)/ν_c),    δ_c(x) = (x − μ_c)ᵀ Σ_c⁻¹ (x − μ_c)

In units of the least power, K = min ν + D, the exponential of that is convex in δ: above a tangent, a_c + b_c δ, which
is what a Gaussian costs. So kernels find the components whose tangents are lowest, and where the best of these by their
own costs are below the last tangent that was looked at, no other is better. Where all ν are equal tangents are all.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._threads import by_pieces
from cprime.components import Components, GaussianCosts, Ids
from cprime.kernels import Floats, Found, Gaussians, Rows
from cprime.kernels.offered import evidence_of
from cprime.kernels.tables import least_of

_NUMBERS, _WORTH = 2**17, 2**21  # of a table: what caches hold; what may be for as many as _ROWS rows
_ROWS, _FEW = 4096, 64  # for which a call is nothing; for which a table takes longer to begin than to make
_MOST_LOG = 600.0  # of numbers of double precision, with room for more
AT_ONCE = 2**18  # rows, of which little more than what they keep is in memory
_CANDIDATES = 2**22  # at a time
_TOUCH = 1.5  # tangents touch at δ = D^1.5, where components that compete for a point are
_MORE = 5  # components beyond what is kept, of which tangents are looked at


class StudentTCosts(Components):
    """Less what all components have in common.

    gaussians: costs δ_c, without offsets    near: those of the Gaussians that they are near, for lists
    dof (C,): ν    offsets (C,): o
    """

    def __init__(
        self, gaussians: Gaussians, near: GaussianCosts, dof: NDArray[np.float64], offsets: NDArray[np.float64]
    ):
        self.centers = gaussians.means
        self.gaussians, self.near, self.dof, self.offsets = gaussians, near, dof, offsets
        self.powers = dof + self.centers.shape[1]
        self.least_power = float(self.powers.min())
        self.alike = bool((self.powers == self.least_power).all())
        self._most = float(np.finfo(self.centers.dtype).max) / 2 * min(1.0, float(dof.min()))  # of δ, for a finite δ/ν
        self._every = np.empty((0, len(dof)), dtype=np.int32)
        self._touch()

    def _touch(self) -> None:
        """The tangents, as Gaussians, of v = K (e^(cost/K) − 1); δ/ν is their cost times a slope less a shift."""
        (means, factors, _), K = self.gaussians, self.least_power
        most, at = np.finfo(means.dtype).max, means.shape[1] ** _TOUCH
        logs = np.minimum((self.offsets + self.powers * np.log1p(at / self.dof)) / K, _MOST_LOG)
        slopes = np.minimum(np.exp(logs) * (self.powers / (self.dof + at)), most)
        starts = np.minimum(K * np.expm1(logs) - slopes * at, most)
        scaled = np.clip(factors * np.sqrt(slopes).reshape(-1, *[1] * (factors.ndim - 1)), -most, most)
        self.tangents = Gaussians(means, scaled.astype(means.dtype), starts.astype(means.dtype))
        self._slopes = 1 / (slopes * self.dof)
        self._shifts = starts * self._slopes

    def ratios(self, points: Rows) -> Floats:
        """δ/ν of every component and row: (C, n) of the points' dtype; what a component has in common is one number a
        line.
        """
        if len(points) < _FEW < len(self.dof):
            ids, squares = points.nearest(self.gaussians, len(self.dof), n_threads=1)
            out = np.empty(squares.shape[::-1], dtype=points.dtype)
            np.put_along_axis(out.T, ids.astype(np.intp), squares, axis=1)
        else:
            out = points.table(self.gaussians, n_threads=1)
        np.minimum(out, self._most, out=out)
        out /= self.column(self.dof)
        return out

    def table(self, points: Rows) -> Floats:
        """The cost of every row and component: (n, C)."""
        costs = self.ratios(points)
        np.log1p(costs, out=costs)
        costs *= self.column(self.powers)
        costs += self.column(self.offsets)
        return np.ascontiguousarray(costs.T)

    def column(self, values: NDArray[np.float64]) -> Floats:
        """A number of each component (C,) for a table: (C, 1)."""
        return values[:, np.newaxis].astype(self.centers.dtype)

    def every(self, n: int) -> Ids:
        """All components for each of some rows: (n, C)."""
        if len(self._every) < n:
            self._every = np.tile(np.arange(len(self.dof), dtype=np.int32), (n, 1))
        return self._every[:n]

    def blocks(self, n: int) -> Iterator[slice]:
        """Rows of which tables for all components are made at a time."""
        C = len(self.dof)
        step = max(_FEW, _NUMBERS // C, min(_ROWS, _WORTH // C))
        return _slices(n, step)

    def best(self, points: Rows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        def by_table(rows: Rows) -> tuple[Ids, Floats]:
            ids, costs = np.empty((len(rows), n_kept), dtype=np.int32), np.empty((len(rows), n_kept), rows.dtype)
            every = np.arange(len(self.dof), dtype=np.int32)

            def some(part: slice) -> None:
                ids[part], costs[part] = least_of(every, self.table(rows[part]), n_kept)

            by_pieces(some, self.blocks(len(rows)))
            return ids, costs

        def look(rows: slice) -> tuple[Ids, Floats]:
            some, hints = points[rows], hint[rows] if self.alike and hint is not None else None
            ids, values = some.nearest(self.tangents, m, hint=hints)
            return self._surely(ids, values, n_kept, lambda places: by_table(some[places]))

        m = self._looked_at(n_kept)
        if not self.alike and m > len(self.dof) // 2:
            return by_table(points)
        return _joined(look, _slices(len(points), AT_ONCE))

    def keep(self, points: Rows, lists: Ids, previous: Ids, n_kept: int) -> tuple[Ids, Floats]:
        def look(rows: slice) -> tuple[Ids, Floats]:
            some, before = points[rows], previous[rows]

            def all_of(places: NDArray) -> tuple[Ids, Floats]:
                ids, squares = some[places].keep(self.gaussians, lists, before[places], width)
                return least_of(ids, self._costs(ids, squares / self.dof.take(ids), points.dtype), n_kept)

            return self._surely(*some.keep(self.tangents, lists, before, m), n_kept, all_of, width)

        width = max(1, min(previous.shape[1] + lists.shape[1], len(self.dof)))
        m = min(self._looked_at(n_kept), max(width, n_kept) + 1)  # the last is empty where all have been seen
        return _joined(look, _slices(len(points), AT_ONCE))

    def among(
        self,
        points: Rows,
        lists: Ids,
        previous: Ids,
        n_kept: int,
        extra: Ids | None = None,
        evidence: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Found:
        def all_of(rows: NDArray | slice) -> Found:
            more = None if extra is None else extra[rows]
            met = points[rows].among(self.gaussians, lists, previous[rows], width, more)
            costs = self._costs(met.kept, met.costs / self.dof.take(met.kept), points.dtype)
            return met._replace(costs=costs)

        def best_of(rows: NDArray) -> tuple[Ids, Floats]:
            met = all_of(rows)
            return least_of(met.kept, met.costs, n_kept)

        def look(rows: slice) -> tuple[NDArray, ...]:
            more = None if extra is None else extra[rows]
            found = points[rows].among(self.tangents, lists, previous[rows], m, more)
            kept = self._surely(found.kept, found.costs, n_kept, lambda p: best_of(p + rows.start), width)
            return *kept, found.counts

        C, offered = len(self.dof), previous.shape[1] * (1 + lists.shape[1])
        width = max(1, min(offered + (0 if extra is None else extra.shape[1]), C))
        if evidence:
            met = all_of(slice(None))
            kept, costs = least_of(met.kept, met.costs, n_kept)
            return Found(kept, costs, met.counts, evidence_of(kept[:, 0], met.kept, met.costs, sample_weight, C))
        m = min(self._looked_at(n_kept), max(width, n_kept) + 1)  # the last is empty where all have been seen
        kept, costs, counts = _joined(look, _slices(len(points), AT_ONCE))
        return Found(kept, costs, counts, None)

    def lists(self, n_neighbors: int, previous: Ids | None = None) -> Ids:
        """Those of the Gaussians of the same Σ: the mean cost for what a component generates has no closed form."""
        return self.near.lists(n_neighbors, previous)

    def _looked_at(self, n_kept: int) -> int:
        return n_kept if self.alike else n_kept + _MORE

    def _surely(
        self,
        ids: Ids,
        values: Floats,
        n_kept: int,
        others: Callable[[NDArray], tuple[Ids, Floats]],
        width: int = 1,
    ) -> tuple[Ids, Floats]:
        """The best of the components of least tangents; others: the best of all, `width` for each, for rows of which
        that is not sure.
        """
        K = self.least_power
        unsure = (np.isinf(values) & (ids >= 0)).any(axis=1)  # tangents beyond the type, as costs are not
        if self.alike:
            kept, least = ids, (K * np.log1p(values / np.float64(K))).astype(values.dtype)
        else:
            ratios = values * self._slopes.take(ids)
            ratios -= self._shifts.take(ids)
            costs = self._costs(ids, np.maximum(ratios, 0, out=ratios), values.dtype)
            kept, least = least_of(ids, costs, n_kept)
            with np.errstate(over="ignore"):
                worst = K * np.expm1(least[:, -1].astype(np.float64) / K)
            unsure |= ~((worst <= values[:, -1]) | np.isinf(values[:, -1]))
        rows = np.flatnonzero(unsure)
        if len(rows):
            parts = (rows[part] for part in _slices(len(rows), max(1, _CANDIDATES // width)))
            kept[rows], least[rows] = _joined(others, parts)
        return kept, least

    def _costs(self, ids: Ids, ratios: NDArray[np.float64], dtype: np.dtype) -> Floats:
        """Costs (n, m) by δ/ν, which may be beyond the type as costs are not; infinite for −1."""
        costs = np.log1p(np.minimum(ratios, self._most / self.dof.take(ids)))
        costs *= self.powers.take(ids)
        costs += self.offsets.take(ids)
        costs[ids < 0] = np.inf
        return costs.astype(dtype)


def _slices(n: int, step: int) -> Iterator[slice]:
    return (slice(begin, begin + step) for begin in range(0, max(1, n), step))


def _joined(find: Callable[[Any], tuple[Any, ...]], parts: Iterable[Any]) -> tuple[Any, ...]:
    """Arrays found for parts of the rows, one after the other."""
    found = [find(part) for part in parts]
    return found[0] if len(found) == 1 else tuple(np.concatenate(arrays) for arrays in zip(*found, strict=True))
