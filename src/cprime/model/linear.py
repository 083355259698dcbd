"""Base class of families whose log-density is linear in a transformed row z(x): log p(x given c) = z(x)·θ_c − a_c.

Poisson and categorical components are of this form, with natural parameters θ_c and log normalizers a_c. The
sufficient statistics of each component are Σ q and Σ q x, with responsibilities q.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.values import cached, replace
from cprime.execution.block import Block
from cprime.execution.statistics import Sums
from cprime.kernels import Dense, Floats, Rows, SparseRows
from cprime.model.base import Family, log_weights, means_of, new_weights
from cprime.model.interface import Responsibilities, Weights
from cprime.neighbors import least_lists
from cprime.neighbors.components import Components, Ids

_VALUES = 2**20  # maximum number of costs (rows × components) in memory at a time


@dataclass(frozen=True)
class LinearMoments(Sums):
    """Sufficient statistics: counts (C,) Σ w q and sums (C, D) Σ w q x, with weights w and responsibilities q."""

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]


@dataclass(eq=False)
class LinearCosts(Components):
    """Components with the cost −2 log p(c, x) = offset_c − 2 z·θ_c of a transformed row z (float64).

    m: length of z    parameters (C, m): θ    centers (C, m): the mean of z under each component
    offsets (C,): 2 a_c − 2 log π_c, with log normalizers a_c and weights π_c
    """

    parameters: NDArray[np.float64]
    offsets: NDArray[np.float64]
    centers: NDArray[np.float64]

    def costs(self, points: Rows, ids: Ids) -> Floats:
        products: Floats
        if isinstance(points, SparseRows):
            values, columns = points.entries
            terms = values[:, np.newaxis] * self.parameters[ids[points.owners], columns[:, np.newaxis]]
            sums = [np.bincount(points.owners, column, len(points)) for column in terms.T]
            products = np.column_stack(sums)
        else:
            z = points.dense()
            products = np.empty(ids.shape)
            step = max(1, _VALUES // max(1, ids.shape[1] * z.shape[1]))
            for begin in range(0, len(z), step):
                rows = slice(begin, begin + step)
                products[rows] = np.einsum("nm,nhm->nh", z[rows], self.parameters[ids[rows]])
        found: Floats = self.offsets[ids] - 2 * products
        return found

    def _products(self, points: Rows, ids: Ids | slice) -> Floats:
        """Return z·θ_c for each transformed row z and the parameters θ_c of the m components `ids`: (n, m)."""
        if isinstance(points, SparseRows):
            products: Floats = points.given() @ self.parameters[ids].T
            return products
        return points.products(self.parameters[ids])

    def table(self, points: Rows, ids: Ids | slice = slice(None)) -> Floats:
        """Return the costs of n points under each of the m components `ids`: (n, m)."""
        found: Floats = self.offsets[ids] - 2 * self._products(points, ids)
        return found

    def best(self, points: Rows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        C = len(self.parameters)
        kept, costs = np.empty((len(points), n_kept), dtype=np.int32), np.empty((len(points), n_kept))
        step = max(1, _VALUES // C)
        for begin in range(0, len(points), step):
            rows = slice(begin, begin + step)
            every = self.table(points[rows])
            order = np.argsort(every, axis=1, kind="stable")[:, :n_kept]
            kept[rows], costs[rows] = order, np.take_along_axis(every, order, axis=1)
        return kept, costs

    def lists(self, n_neighbors: int, previous: Ids | None = None) -> Ids:
        """Return for each component the others of least mean cost for its points: (C, min(n_neighbors, C) − 1)."""

        def mean_costs(begin: int, end: int) -> Floats:
            found: Floats = self.offsets - 2 * Dense(self.centers[begin:end]).products(self.parameters)
            return found

        return least_lists(mean_costs, len(self.centers), n_neighbors)

    def mean_costs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return L and R (C, m + 1): L Rᵀ (C, C) has the mean costs of each component's points under all components."""
        ones = np.ones((len(self.centers), 1))
        return np.column_stack([self.centers, ones]), np.column_stack([-2 * self.parameters, self.offsets])


@dataclass(frozen=True)
class Linear(Family, ABC):
    """Base class of families with log p(x given c) = z(x)·θ_c − a_c.

    A subclass defines θ and a (`natural`), the transformation z (`embed`), and random draws (`drawn`).
    centers (C, D): mean of the rows under each component    weights (C,): π, or None for 1/C each
    """

    centers: Floats
    weights: Weights = None

    scale_free: ClassVar[bool] = True
    has_diverse_starts: ClassVar[bool] = False

    @property
    @abstractmethod
    def natural(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the natural parameters θ (C, m) and log normalizers a (C,) of log p(x given c) = z(x)·θ_c − a_c."""

    @property
    @abstractmethod
    def variances(self) -> NDArray[np.float64]:
        """Return the variance of each column under each component: (C, D)."""

    def components(self) -> LinearCosts:
        return self._components

    @cached
    def _components(self) -> LinearCosts:
        parameters, log_normalizers = self.natural
        offsets = 2 * log_normalizers - 2 * log_weights(self.weights, self.centers)
        centers, means = (
            np.zeros(parameters.shape),
            self.moments_of_sums(np.ones(self.n_components), self.centers.astype(np.float64)).sums,
        )
        centers[:, : means.shape[1]] = means
        return LinearCosts(parameters, offsets, centers)

    def density_limit(self, X: Rows) -> float:
        return 0.0  # probabilities of counts and categories are at most 1

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        return Dense(np.asarray(X.dense(), dtype=np.float64))

    def summarise(self, block: Block, shares: Responsibilities) -> LinearMoments:
        X = block.X if block.X.observed is None else self.without_missing(block.X)
        return LinearMoments(
            *X.accumulate(shares.ids, shares.responsibilities, block.sample_weight, n_components=self.n_components)
        )

    def without_missing(self, X: Rows) -> Rows:
        """Return rows with zeros for missing values, whose sums are those of the observed values."""
        assert X.observed is not None
        return Dense(np.where(X.observed, X.dense(), 0.0))

    def complete(self) -> Self:
        """Return the model for rows without missing values."""
        return self

    def moments_of_sums(self, counts: NDArray[np.float64], sums: NDArray[np.float64]) -> LinearMoments:
        """Return the moments of rows without missing values, from Σ w q (C,) and Σ w q x (C, D)."""
        return LinearMoments(counts, sums)

    def with_missing(self) -> Self:
        return self

    def imputed(self, X: Rows, ids: NDArray[np.int32], q: NDArray[np.float64], normal: Any = None) -> NDArray:
        if normal is not None:
            raise TypeError(f"missing values of {self.covariance_type!r} components can only be replaced by means.")
        means = np.einsum("nh,nhd->nd", q, self.centers[ids].astype(np.float64))
        return X.dense() if X.observed is None else np.where(X.observed, X.dense(), means)

    def maximise(self, moments: LinearMoments, prior: None = None) -> Self:
        centers = means_of(moments.counts, moments.sums, self.centers).astype(self.centers.dtype)
        return replace(self, centers=centers, weights=new_weights(self.weights, moments.counts))

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[LinearMoments, None]:
        return LinearMoments(shares, shares[:, np.newaxis] * self.centers), None

    def attributes(self) -> dict[str, Any]:
        return {}

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        found, step = np.empty(len(X)), max(1, _VALUES // X.shape[1])
        variances = np.maximum(self.variances, np.finfo(float).tiny)
        for begin in range(0, len(X), step):
            rows = slice(begin, begin + step)
            off = np.square(X[rows].dense() - self.centers[labels[rows]]) / variances[labels[rows]]
            found[rows] = np.sqrt((off if X.observed is None else off * X.observed[rows]).sum(axis=1))
        return found

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.einsum("id,cd,jd->cij", directions, self.variances, directions)

    @classmethod
    def starting(cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None) -> Self:
        return cls(centers, weights)

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        return cls(centers, weights)
