"""Mixtures with a covariance for each component: a base class, and those with diagonal, spherical and full covariances.

The equations are (28)-(31) of Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.execution.block import Block
from cprime.execution.statistics import Sums
from cprime.kernels import Dense, Exact, Floats, GaussianParameters, Responses, Rows, without_negligible
from cprime.model.base import Gaussian, expect_gaussians, register
from cprime.model.conditional import Conditional, others
from cprime.model.covariance import (
    DataScale,
    are_singular,
    checked_precisions,
    covariances_along,
    factors_of_precisions,
    fitted_covariances,
    given_columns,
    inverses,
    inverted,
    of_empty,
    positive,
    repaired,
    scaled_along,
    within,
)
from cprime.model.interface import Expected, Responsibilities, Weights
from cprime.neighbors.components import GaussianCosts


@dataclass(frozen=True)
class OwnMoments(Sums):
    """Moments (sufficient statistics) of mixtures with a covariance for each component.

    Let w be sample weights and q responsibilities.
    counts (C,): N_c = Σ w_n q_nc    sums (C, D): Σ w_n q_nc x_n
    second: Σ w_n q_nc (x_n − μ_c)(x_n − μ_c)ᵀ, (C, D, D), or its diagonals (C, D)
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    second: NDArray[np.float64]


@dataclass(frozen=True)
class OwnCovariance(Gaussian, ABC):
    """Parameters Θ of a mixture with a covariance for each component.

    A subclass defines the shape of covariances (full, diagonal or spherical), and computes them and their inverses.
    centers (C, D): means [data units], of the data's dtype
    covariances: float64 array of the subclass's shape [data unit²]
    reg_covar: number added to the variances in M-steps [data unit²]    weights (C,), None for 1/C each
    fixed: ids of the components whose means and covariances do not change in M-steps
    """

    centers: Floats
    covariances: NDArray[np.float64]
    reg_covar: float = 0.0
    weights: Weights = None
    _: KW_ONLY
    fixed: tuple[int, ...] = ()

    factors: ClassVar[Any]  # factors A_c of the precisions, with A_cᵀA_c = Σ_c⁻¹, and log |A_c| (C,)

    @property
    def spread(self) -> NDArray[np.float64]:
        """Covariances in the shape that kernels take: variances (C, D) or matrices (C, D, D)."""
        return self.covariances

    @property
    def variances(self) -> NDArray[np.float64]:
        return np.diagonal(self.spread, axis1=1, axis2=2) if self.full else self.spread

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.full:
            return directions @ self.spread @ directions.T
        return np.einsum("id,cd,jd->cij", directions, self.spread, directions)

    def with_fixed(self, known: Self) -> Self:
        """Return a copy whose first m components are those of `known`; M-steps do not change them."""
        centers, covariances = (
            np.concatenate([first, own[len(first) :]])
            for first, own in ((known.centers, self.centers), (known.covariances, self.covariances))
        )
        return replace(self, centers=centers, covariances=covariances, fixed=tuple(range(known.n_components)))

    @abstractmethod
    def _covariances_along(self, before: Self, share: float) -> NDArray[np.float64]:
        """Return the covariances, extrapolated by `share` times their change since the model `before`."""

    @abstractmethod
    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        """Return the new covariances of an M-step: second moments about new means, plus `reg_covar` on the diagonal.

        shares (C,): share of the points in each component    scale: scale of the data, to repair singular covariances
        second: mean of (x − μ_c)(x − μ_c)ᵀ over the points x of each component (C, D, D), or its diagonals (C, D)
        """

    @cached
    def _offsets(self) -> NDArray[np.float64]:
        """Costs at the means, called offsets: log |2πΣ_c| − 2 log π_c (C,) for covariances Σ_c and weights π_c."""
        constant = self.n_features * math.log(2 * math.pi)
        return constant - 2 * self.factors[1] - 2 * self._log_weights

    @cached
    def gaussians(self) -> GaussianParameters:
        """Parameters of the Gaussians for kernels; costs are −2 log p(c, x) minus a constant for all components."""
        dtype, least = self.centers.dtype, self._offsets.min()
        offsets = self._offsets - least
        empty = -2 * self._log_weights - least  # costs of rows without observed values
        exact = Exact(offsets, empty, self.factors[0] if self.full else None)
        return GaussianParameters(self.centers, within(self.factors[0], dtype), within(offsets, dtype), exact=exact)

    @property
    def least_variances(self) -> NDArray[np.float64] | None:
        least: NDArray[np.float64] = 1 / self._own_precisions.max(axis=1)
        return least

    @property
    def n_singular(self) -> int:
        return int(are_singular(self.variances, self._own_precisions).sum())

    @property
    def _own_precisions(self) -> NDArray[np.float64]:
        """Diagonals (C, D) of the precisions; (C, 1) if all columns have one variance."""
        precisions = np.asarray(self._precisions()["precisions_"])
        return np.diagonal(precisions, axis1=1, axis2=2) if self.full else precisions.reshape(len(precisions), -1)

    def components(self) -> GaussianCosts:
        return GaussianCosts(self.gaussians, self.spread)

    def expect_all(self, block: Block) -> Expected:
        found = block.X.respond(self.gaussians, block.sample_weight)
        return expect_gaussians(block, found, self._moments(found), self.error_of)

    def _moments(self, found: Responses) -> OwnMoments:
        sums = found.first + found.counts[:, np.newaxis] * self.centers
        return OwnMoments(found.counts, sums, np.asarray(found.second))

    def summarise(self, block: Block, shares: Responsibilities) -> OwnMoments:
        components = self.centers if shares.cost is None else self.gaussians  # costs are None until Σ is known
        counts, first, second = block.X.moments(
            components, shares.ids, shares.responsibilities, block.sample_weight, full=self.full
        )
        return OwnMoments(counts, first + counts[:, np.newaxis] * self.centers, second)

    def maximise(self, moments: OwnMoments, prior: None = None, total: float | None = None) -> Self:
        """Return the model after an M-step: weighted means μ_c, covariances Σ_c, weights π_c (shares of the points).

        The mean of a component without points is unchanged. `reg_covar` is added to the variances, as in scikit-learn.
        So in an iteration the free energy F increases by at least reg_covar/2 Σ_c π_c (tr Σ_c,new⁻¹ − tr Σ_c,old⁻¹),
        with the new π_c; this bound may be negative.
        total: number by which families with one common covariance divide the scatter; None is the weight of all points
        """
        total = float(moments.counts.sum()) if total is None else total
        means = self._new_means(moments)
        second = self._second_about(means, moments, total)
        variances = np.atleast_2d(np.diagonal(second, axis1=-2, axis2=-1)) if self.full else second
        scale = DataScale.measure(moments.counts, means, variances, self.centers.dtype)
        centers = without_negligible(means.astype(self.centers.dtype))
        covariances = self._shaped(moments.counts / total, second, scale)
        if self.fixed:
            fixed = list(self.fixed)
            centers[fixed], covariances[fixed] = self.centers[fixed], self.covariances[fixed]
        return replace(self, centers=centers, covariances=covariances, **self._new_weights(moments.counts))

    def _second_about(self, means: NDArray[np.float64], moments: OwnMoments, total: float) -> NDArray[np.float64]:
        """Return the mean of (x − μ)(x − μ)ᵀ over the points x of each component, about its new mean μ in `means`.

        The result has matrices (C, D, D), or only their diagonals (C, D) if the family has no full covariances. A
        family that whitens all points alike returns one matrix (D, D): the sum over all points, divided by `total`.
        moments: sums over the points of each component, with second moments about its old mean
        """
        shift = means - self.centers
        counts = np.maximum(moments.counts, np.finfo(np.float64).tiny)
        second: NDArray[np.float64] = moments.second / counts.reshape(-1, *[1] * (2 if self.full else 1))
        second -= shift[:, :, np.newaxis] * shift[:, np.newaxis] if self.full else np.square(shift)
        return second

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[OwnMoments, None]:
        extent = self.spread.copy()
        diagonal = np.einsum("cii->ci", extent) if self.full else extent
        diagonal -= self.reg_covar
        second = shares.reshape(-1, *[1] * (extent.ndim - 1)) * extent
        return OwnMoments(shares, shares[:, np.newaxis] * self.centers.astype(np.float64), second), None

    def log_likelihood(self, X: Rows) -> NDArray[np.float64]:
        return self.log_scale + self.embed(X).respond(self.gaussians, moments=False).log_sum

    def responsibilities(self, X: Rows) -> NDArray[np.float64]:
        return self.embed(X).responsibilities(self.gaussians)

    def with_missing(self) -> Self:
        return self

    def imputed(self, X: Rows, ids: NDArray[np.int32], q: NDArray[np.float64], normal: Any = None) -> NDArray:
        return X.imputed(self.gaussians, ids, q, normal)

    def _precisions(self) -> dict[str, NDArray[np.float64]]:
        """Return a dict of the fitted attributes precisions_ and precisions_cholesky_ (Cholesky factors)."""
        return {"precisions_": 1 / self.covariances, "precisions_cholesky_": 1 / np.sqrt(self.covariances)}

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        return cls(centers, fitted_covariances(attributes, cls.full), reg_covar, weights)

    @classmethod
    def starting(cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None) -> Self:
        shape: Any = cls.shape(*centers.shape)
        if precisions is None:
            covariances = np.broadcast_to(np.eye(shape[-1]), shape).copy() if cls.full else np.ones(shape)
        else:
            precisions = checked_precisions(precisions, shape, cls.covariance_type)
            if cls.full:
                covariances = inverted(precisions)
            elif (precisions > 0).all():
                covariances = 1 / precisions
            else:
                raise ValueError("precisions_init must be > 0, got entries that are not.")
        return cls(centers, covariances, reg_covar, weights)


@register
@storable("model.Diag")
@dataclass(frozen=True)
class Diag(OwnCovariance):
    """Gaussian mixture with diagonal covariances; covariances (C, D): variances [data unit²]."""

    covariance_type: ClassVar[str] = "diag"
    sklearn_type: ClassVar[str] = "diag"
    axes: ClassVar[str] = "CD"
    full: ClassVar[bool] = False
    scale_free: ClassVar[bool] = True

    @cached
    def factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        factors = 1 / np.sqrt(self.spread)
        return factors, np.log(factors).sum(axis=1)

    def _covariances_along(self, before: Self, share: float) -> NDArray[np.float64]:
        return positive(scaled_along(self.covariances, before.covariances, share), self.centers.dtype)

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        return positive(of_empty(shares, np.maximum(second, 0) + self.reg_covar), self.centers.dtype, scale)

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        return normal * np.sqrt(self.spread[labels])

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        scaled = self._moved(X, labels) * self.factors[0][labels]
        return np.sqrt(np.einsum("nd,nd->n", scaled, scaled))

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        return replace(self, centers=self._places(columns), covariances=self.covariances[:, columns])

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        return Conditional(self.marginal(columns), self.marginal(others(columns, self.n_features)))


@register
@storable("model.Spherical")
@dataclass(frozen=True)
class Spherical(Diag):
    """Gaussian mixture with spherical covariances; covariances (C,): variances [data unit²]."""

    covariance_type: ClassVar[str] = "spherical"
    sklearn_type: ClassVar[str] = "spherical"
    axes: ClassVar[str] = "C"
    scale_free: ClassVar[bool] = False

    @property
    def spread(self) -> NDArray[np.float64]:
        return np.repeat(self.covariances[:, np.newaxis], self.n_features, axis=1)

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        variances = np.maximum(second, 0).mean(axis=1) + self.reg_covar
        return positive(of_empty(shares, variances), self.centers.dtype, scale.average_columns())

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        return replace(self, centers=self._places(columns))


@register
@storable("model.Full")
@dataclass(frozen=True)
class FullCovariance(OwnCovariance):
    """Gaussian mixture with full covariances; covariances (C, D, D) [data unit²]."""

    covariance_type: ClassVar[str] = "full"
    sklearn_type: ClassVar[str] = "full"
    axes: ClassVar[str] = "CDD"
    full: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True

    @cached
    def _lower(self) -> NDArray[np.float64]:
        return repaired(self.covariances)[1]

    @cached
    def factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        factors = inverses(self._lower)
        return factors, np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)

    def _covariances_along(self, before: Self, share: float) -> NDArray[np.float64]:
        return covariances_along(self.covariances, before.covariances, share)

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        covariances = of_empty(shares, second)
        D = self.n_features
        covariances[:, np.arange(D), np.arange(D)] += self.reg_covar
        return repaired(covariances, self.centers.dtype, scale)[0]

    def _precisions(self) -> dict[str, NDArray[np.float64]]:
        factors = factors_of_precisions(self._lower)
        return {"precisions_": factors @ factors.transpose(0, 2, 1), "precisions_cholesky_": factors}

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.empty_like(normal)
        for c in np.unique(labels):
            out[labels == c] = normal[labels == c] @ self._lower[c].T
        return out

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        scaled = self._moved(X, labels)
        order = np.argsort(labels, kind="stable")
        bounds = np.searchsorted(labels[order], np.arange(self.n_components + 1))
        for c in np.flatnonzero(np.diff(bounds)):
            rows = order[bounds[c] : bounds[c + 1]]
            scaled[rows] = Dense(scaled[rows]).products(self.factors[0][c])
        return np.sqrt(np.einsum("nd,nd->n", scaled, scaled))

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        covariances = self.covariances[..., columns[:, np.newaxis], columns]
        return replace(self, centers=self._places(columns), covariances=covariances)

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        rest = others(columns, self.n_features)
        slopes, covariances = given_columns(self.covariances, columns, rest)
        left = replace(self, centers=self._places(rest), covariances=covariances)
        return Conditional(self.marginal(columns), left, (slopes,))
