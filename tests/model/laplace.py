"""A user-defined family in plain NumPy: components with Laplace densities and one scale per direction.

    p(x | c) = Π_d exp(−|x_d − μ_cd| / b_cd) / 2b_cd

The M-step of the medians is one step of reweighted means: |r| is at most r²/2|r₀| + |r₀|/2, and equal at r₀ (Hunter
& Lange 2004), so F never decreases. `reg_covar` is the least b². `register(Laplace)` makes the family available.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cprime.execution.block import Block
from cprime.execution.statistics import Sums
from cprime.kernels import Floats, Rows
from cprime.model.base import Family, log_weights, new_weights
from cprime.model.covariance import checked_precisions
from cprime.model.interface import Responsibilities, Weights
from cprime.neighbors.components import Components

_NEAR = 1e-9  # in scales: points nearer than this have no larger weight


@dataclass(frozen=True)
class LaplaceMoments(Sums):
    """Sufficient statistics: counts (C,), Σ w q/|x − μ| and Σ w q x/|x − μ| (C, D), Σ w q |x − μ| (C, D)."""

    counts: NDArray[np.float64]
    pulls: NDArray[np.float64]
    places: NDArray[np.float64]
    extents: NDArray[np.float64]


class LaplaceCosts(Components):
    """Costs −2 log p(c, x) of all components."""

    def __init__(self, centers: Floats, scales: NDArray[np.float64], offsets: NDArray[np.float64]):
        self.centers, self.scales, self.offsets = centers, scales, offsets

    def costs(self, points: Rows, ids: NDArray[np.int32]) -> Floats:
        off = np.abs(points.dense()[:, np.newaxis] - self.centers[ids]) / self.scales[ids]
        return (2 * off.sum(axis=2) + self.offsets[ids]).astype(points.dtype)


@dataclass(frozen=True)
class Laplace(Family):
    """Parameters: centers (C, D), scales b (C, D) [data units], weights (C,) or None."""

    centers: Floats
    scales: NDArray[np.float64]
    reg_covar: float = 0.0
    weights: Weights = None

    covariance_type: ClassVar[str] = "laplace"
    axes: ClassVar[str] = "CD"
    attribute_names: ClassVar[tuple[str, ...]] = ("covariances_",)

    @cached_property
    def _offsets(self) -> NDArray[np.float64]:
        return 2 * np.log(2 * self.scales).sum(axis=1) - 2 * log_weights(self.weights, self.centers)

    def components(self) -> LaplaceCosts:
        return LaplaceCosts(self.centers, self.scales, self._offsets)

    def summarise(self, block: Block, shares: Responsibilities) -> LaplaceMoments:
        X, C, D = block.X.dense().astype(np.float64), self.n_components, self.n_features
        counts, sums = np.zeros(C), np.zeros((3, C, D))
        for h, ids in enumerate(shares.ids.T):
            q = np.ones(len(X)) if shares.responsibilities is None else shares.responsibilities[:, h]
            q = (q if block.sample_weight is None else q * block.sample_weight)[:, np.newaxis]
            off = np.abs(X - self.centers[ids])
            pull = q / np.maximum(off, _NEAR * self.scales[ids])
            np.add.at(counts, ids, q[:, 0])
            for total, values in zip(sums, (pull, pull * X, q * off), strict=True):
                np.add.at(total, ids, values)
        return LaplaceMoments(counts, *sums)

    def maximise(self, moments: LaplaceMoments, prior: None = None) -> Self:
        there = (moments.counts > 0)[:, np.newaxis]
        centers = np.divide(moments.places, moments.pulls, out=self.centers.astype(float), where=there)
        scales = np.divide(moments.extents, moments.counts[:, np.newaxis], out=self.scales.copy(), where=there)
        scales = np.maximum(scales, np.sqrt(self.reg_covar))
        weights = new_weights(self.weights, moments.counts)
        return replace(self, centers=centers.astype(self.centers.dtype), scales=scales, weights=weights)

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[LaplaceMoments, None]:
        each = np.broadcast_to(shares[:, np.newaxis], self.scales.shape)
        return LaplaceMoments(shares, each, each * self.centers, each * self.scales), None

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        return -np.sign(normal) * np.log(2 * ndtr(-np.abs(normal))) * self.scales[labels]

    def attributes(self) -> dict[str, Any]:
        return {"covariances_": self.variances.astype(self.centers.dtype)}

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        return cls(centers, np.sqrt(np.asarray(attributes["covariances_"], dtype=float) / 2), reg_covar, weights)

    @classmethod
    def starting(cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None) -> Self:
        if precisions is None:
            return cls(centers, np.ones(centers.shape), reg_covar, weights)
        return cls(centers, np.sqrt(0.5 / checked_precisions(precisions, centers.shape, "laplace")), reg_covar, weights)

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        return np.linalg.norm((X.dense() - self.centers[labels]) / (np.sqrt(2) * self.scales[labels]), axis=1)

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.einsum("id,cd,jd->cij", directions, self.variances, directions)

    @property
    def variances(self) -> NDArray[np.float64]:
        return 2 * np.square(self.scales)
