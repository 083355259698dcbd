"""Components of independent Laplace columns: p(x given c) = Π_d exp(−|x_d − μ_cd| / b_cd) / 2b_cd.

The best centers are weighted medians. They are no function of sums over points, so the moments contain the rows of the
points with their responsibilities, and the M-step is exact. A missing value leaves the product over the columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from cprime._utils.declared import Array, Positive
from cprime._utils.storable import storable
from cprime._utils.threads import by_pieces
from cprime._utils.values import cached, replace
from cprime.execution.block import Block
from cprime.kernels import Floats, Rows
from cprime.model.base import Family, log_weights, n_weights, new_weights
from cprime.model.interface import Responsibilities, Weights
from cprime.model.row_moments import RowMoments
from cprime.neighbors.components import Components

Ids = NDArray[np.int32]
Doubles = NDArray[np.float64]

_VALUES = 2**15  # number of differences of rows and centers that are computed at a time; they fit into a cache
_QUANTILES = 32  # number of rows on each side of a center by which pseudo moments represent a component
_LEAST_SHARE = 1e-10  # least scale, as a share of the mean scale of all components


@dataclass(frozen=True)
class LaplaceMoments(RowMoments):
    """Points of an M-step.    held: whether the M-step keeps the centers"""

    held: bool = False


class LaplaceCosts(Components):
    """Components with the cost −2 log p(c, x) = Σ_d (2 |x_d − μ_cd| / b_cd + 2 log 2b_cd) − 2 log π_c.

    scales: b of shape (C, D), (C, 1), (1, D) or (1, 1)    logs (C,): 2 log π_c
    """

    def __init__(self, centers: Floats, scales: Doubles, logs: Doubles):
        self.centers, self.scales, self.logs = centers, scales, logs
        self.log_scales = np.broadcast_to(2 * np.log(2 * scales), centers.shape)
        self.offsets = self.log_scales.sum(axis=1) - logs
        self.snapshot = (centers, np.broadcast_to(scales, centers.shape), logs)

    def costs(self, points: Rows, ids: Ids) -> Floats:
        X, observed, found = points.dense(), points.observed, np.empty(ids.shape)
        factors = np.broadcast_to(2 / self.scales, self.centers.shape)

        def measure(rows: slice) -> None:
            c = ids[rows]
            off = np.abs(np.subtract(X[rows, np.newaxis], self.centers[c], dtype=np.float64)) * factors[c]
            if observed is None:
                found[rows] = off.sum(axis=2) + self.offsets[c]
            else:
                found[rows] = ((off + self.log_scales[c]) * observed[rows, np.newaxis]).sum(axis=2) - self.logs[c]

        by_pieces(measure, _pieces(len(X), ids.shape[1] * X.shape[1]))
        return found

    def best(self, points: Rows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        X, observed, C = points.dense(), points.observed, len(self.centers)
        kept, costs = np.empty((len(X), n_kept), dtype=np.int32), np.empty((len(X), n_kept))
        centers, factors = self.centers.T.astype(np.float64), np.broadcast_to(2 / self.scales, self.centers.shape).T

        def search(rows: slice) -> None:
            every, off = np.empty((2, len(X[rows]), C))
            every[:] = self.offsets if observed is None else -self.logs
            for d, (center, factor) in enumerate(zip(centers, factors, strict=True)):
                np.subtract(X[rows, d, np.newaxis], center, out=off)
                np.abs(off, out=off)
                off *= factor
                if observed is not None:
                    off += self.log_scales[:, d]
                    off *= observed[rows, d, np.newaxis]
                every += off
            if n_kept == 1:
                order = every.argmin(axis=1)[:, np.newaxis]
            else:
                order = np.argsort(every, axis=1, kind="stable")[:, :n_kept]
            kept[rows], costs[rows] = order, np.take_along_axis(every, order, axis=1)

        by_pieces(search, _pieces(len(X), C))
        return kept, costs


def _pieces(n: int, n_values: int) -> list[slice]:
    """Return slices of n rows, with `n_values` numbers for each row, in which these numbers stay in a cache."""
    step = max(1, _VALUES // max(1, n_values))
    return [slice(begin, begin + step) for begin in range(0, n, step)]


@dataclass(frozen=True)
class Laplace(Family):
    """Base class of Laplace families; a subclass has one `covariance_type`, the form of the scales b.

    centers (C, D): medians    scales: b (C, D), (C, 1), (1, D) or (1, 1) [data unit]    weights (C,): π, or None
    reg_covar: least variance 2b² [data unit²]
    """

    centers: Floats
    scales: Doubles
    reg_covar: float = 0.0
    weights: Weights = None

    attribute_names: ClassVar[tuple[str, ...]] = ("scales_",)
    shared_axes: ClassVar[tuple[int, ...]] = ()  # axes of (C, D) along which all scales are equal

    @property
    def n_parameters(self) -> int:
        return self.centers.size + self.scales.size + n_weights(self.weights)

    @property
    def least_variances(self) -> Doubles | None:
        return None if 0 in self.shared_axes else self.variances.min(axis=1)

    @property
    def variances(self) -> Doubles:
        return np.broadcast_to(2 * np.square(self.scales), self.centers.shape)

    @cached
    def _components(self) -> LaplaceCosts:
        return LaplaceCosts(self.centers, self.scales, 2 * log_weights(self.weights, self.centers))

    def components(self) -> LaplaceCosts:
        return self._components

    def density_limit(self, X: Rows) -> float | Doubles:
        peak = float(logsumexp(-0.5 * self._components.offsets))
        return peak if X.observed is None else peak + 0.5 * (~X.observed) @ self._components.log_scales.max(axis=0)

    def with_missing(self) -> Self:
        return self

    def summarise(self, block: Block, shares: Responsibilities) -> LaplaceMoments:
        return LaplaceMoments.of(block, shares, self.n_components)

    def maximise(self, moments: LaplaceMoments, prior: None = None) -> Self:
        centers, sums, totals = _medians_of(moments, self.centers)
        if self.shared_axes:
            sums, totals = (each.sum(axis=self.shared_axes, keepdims=True) for each in (sums, totals))
        old = np.broadcast_to(self.scales, sums.shape)
        scales = np.divide(sums, totals, out=old.astype(np.float64), where=totals > 0)
        least = max(np.sqrt(self.reg_covar / 2), _LEAST_SHARE * float(scales.mean()), np.finfo(centers.dtype).tiny)
        weights = new_weights(self.weights, moments.counts)
        return replace(self, centers=centers, scales=np.maximum(scales, least), weights=weights)

    def hold_centers(self, moments: LaplaceMoments, prior: None = None) -> tuple[LaplaceMoments, None]:
        return replace(moments, held=True), None

    def pseudo_moments(self, shares: Doubles) -> tuple[LaplaceMoments, None]:
        """Return moments of rows at quantiles of each component, from which an M-step computes this model.

        shares (C,): counts of the moments, with sum 1
        """
        off = -np.log1p(-(np.arange(_QUANTILES) + 0.5) / _QUANTILES)
        off = np.concatenate([-off[::-1], off]) / off.mean()
        C, D = self.centers.shape
        X = self.centers[:, np.newaxis] + off[:, np.newaxis] * np.broadcast_to(self.scales, (C, D))[:, np.newaxis]
        ids = np.repeat(np.arange(C, dtype=np.int32), len(off))[:, np.newaxis]
        return LaplaceMoments(shares, ((X.reshape(-1, D), None, ids, shares[ids] / len(off)),)), None

    def noise(self, labels: NDArray, normal: Doubles) -> Doubles:
        quantile = -np.sign(normal) * (log_ndtr(-np.abs(normal)) + np.log(2))
        return quantile * np.broadcast_to(self.scales, self.centers.shape)[labels]

    def attributes(self) -> dict[str, Any]:
        shape = [n for axis, n in enumerate(self.centers.shape) if axis not in self.shared_axes]
        scales = self.scales.astype(self.centers.dtype).reshape(shape)
        return {"scales_": scales if shape else float(scales)}

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        shape = [1 if axis in cls.shared_axes else n for axis, n in enumerate(centers.shape)]
        return cls(centers, np.asarray(attributes["scales_"], dtype=np.float64).reshape(shape), reg_covar, weights)

    @classmethod
    def starting(cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None) -> Self:
        shape = [1 if axis in cls.shared_axes else n for axis, n in enumerate(centers.shape)]
        return cls(centers, np.ones(shape), reg_covar, weights)

    def distances(self, X: Rows, labels: Ids) -> Doubles:
        off = np.square(X.dense() - self.centers[labels]) / self.variances[labels]
        return np.sqrt((off if X.observed is None else off * X.observed).sum(axis=1))

    def covariances_along(self, directions: Doubles) -> Doubles:
        return np.einsum("id,cd,jd->cij", directions, self.variances, directions)


@storable("model.LaplaceDiag")
@dataclass(frozen=True)
class LaplaceDiag(Laplace):
    """Laplace mixture with one scale for each component and column."""

    covariance_type: ClassVar[str] = "diag"
    declared: ClassVar[Mapping[str, Any]] = {"scales_": Array("C D", above=0)}


@storable("model.LaplaceTiedDiag")
@dataclass(frozen=True)
class LaplaceTiedDiag(Laplace):
    """Laplace mixture with one scale for each column, in all components."""

    covariance_type: ClassVar[str] = "tied_diag"
    declared: ClassVar[Mapping[str, Any]] = {"scales_": Array("D", above=0)}
    shared_axes: ClassVar[tuple[int, ...]] = (0,)


@storable("model.LaplaceSpherical")
@dataclass(frozen=True)
class LaplaceSpherical(Laplace):
    """Laplace mixture with one scale for each component, in all columns."""

    covariance_type: ClassVar[str] = "spherical"
    declared: ClassVar[Mapping[str, Any]] = {"scales_": Array("C", above=0)}
    shared_axes: ClassVar[tuple[int, ...]] = (1,)


@storable("model.LaplaceTiedSpherical")
@dataclass(frozen=True)
class LaplaceTiedSpherical(Laplace):
    """Laplace mixture with one scale. With equal weights and hard assignment it is k-medians."""

    covariance_type: ClassVar[str] = "tied_spherical"
    declared: ClassVar[Mapping[str, Any]] = {"scales_": Positive}
    shared_axes: ClassVar[tuple[int, ...]] = (0, 1)


LAPLACE = {
    each.covariance_type: each for each in (LaplaceDiag, LaplaceTiedDiag, LaplaceSpherical, LaplaceTiedSpherical)
}


def _medians_of(moments: LaplaceMoments, centers: Floats) -> tuple[Floats, Doubles, Doubles]:
    """Return the weighted medians (C, D) of the points of each component, and two sums about them, (C, D) each.

    The sums are Σ w q |x − median| and Σ w q over the observed values x of a column, with weights w q.
    centers (C, D): present centers; a column in which a component has no values keeps its center
    """
    X, owned = moments.by_component()
    masks = [np.ones(X.shape, dtype=bool) if mask is None else mask for X, mask, *_ in moments.parts]
    observed = None if all(mask is None for _, mask, *_ in moments.parts) else np.concatenate(masks)
    out, sums, totals = centers.copy(), np.zeros(centers.shape), np.zeros(centers.shape)
    for c, (rows, weights) in enumerate(owned):
        if not len(rows):
            continue
        values = X[rows].astype(np.float64)
        if observed is not None:
            weights = weights[:, np.newaxis] * observed[rows]
        totals[c] = weights.sum(axis=0)
        if not moments.held:
            out[c] = np.where(totals[c] > 0, median_of(values, weights), centers[c])
        sums[c] = (weights.reshape(len(rows), -1) * np.abs(values - out[c])).sum(axis=0)
    return out, sums, totals


def median_of(values: NDArray, weights: Doubles) -> Doubles:
    """Return the weighted median of each column of `values` (m, D): (D,).

    weights (m,), above 0; or (m, D) for each value, not negative
    A row of weight 2 counts as two rows. If exactly half of the weight lies on each side of a gap between two values,
    the median is the mean of both.
    """
    if weights.ndim == 1 and (weights == weights[0]).all():
        return np.median(values.astype(np.float64), axis=0)
    ranks = np.argsort(values, axis=0, kind="stable")
    mass = np.cumsum(weights[ranks] if weights.ndim == 1 else np.take_along_axis(weights, ranks, axis=0), axis=0)
    half = mass[-1] / 2
    ordered = np.take_along_axis(values, ranks, axis=0).astype(np.float64)
    low = (mass < half * (1 - 1e-12)).sum(axis=0)
    high = np.minimum((mass <= half * (1 + 1e-12)).sum(axis=0), len(values) - 1)
    columns = np.arange(values.shape[1])
    found: Doubles = (ordered[low, columns] + ordered[high, columns]) / 2
    return found
