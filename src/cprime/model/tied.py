"""Gaussian components that share one covariance matrix.

Points and means are whitened: L⁻¹ (x − origin), with Σ = L Lᵀ. The whitened mixture is spherical with σ² = 1, so every
search for squared distances can be used.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.execution.block import Block
from cprime.execution.statistics import Sums
from cprime.kernels import Dense, Floats, Responses, Rows, joined
from cprime.model.base import Embedded, expect_gaussians, log_weights, means_of, new_weights, register, rows_of_piece
from cprime.model.conditional import Conditional, others
from cprime.model.covariance import (
    DataScale,
    checked_precisions,
    factors_along,
    factors_of_precisions,
    fitted_covariances,
    given_columns,
    inverses,
    inverted,
    repaired,
    within,
)
from cprime.model.interface import Expected, Responsibilities, Weights
from cprime.model.pooled import PooledFull
from cprime.model.scatter import Scatter, ScatterOf

# Largest accepted shift of a whitened mean by rounding to float32, in standard deviations; beyond it, float64 is used.
_MOST_ROUNDING = 2.0**-12


@dataclass(frozen=True)
class TiedMoments(Sums):
    """Moments (sufficient statistics) of mixtures with one common covariance matrix.

    With sample weights w and responsibilities q:
    counts (C,): N_c = Σ w_n q_nc    sums (C, D): Σ w_n q_nc x_n    weight: Σ w_n
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    weight: float


@register
@storable("model.Tied")
@dataclass(frozen=True)
class Tied(Embedded):
    """Parameters Θ of a mixture with one common covariance matrix.

    centers (C, D) data units, of the data's dtype    covariances (D, D) [data unit²], float64
    reg_covar: added to the variances in M-steps [data unit²]    weights (C,), None for 1/C each
    """

    centers: Floats
    covariances: NDArray[np.float64]
    reg_covar: float = 0.0
    weights: Weights = None

    covariance_type: ClassVar[str] = "tied"
    sklearn_type: ClassVar[str] = "tied"
    scale_free: ClassVar[bool] = True
    axes: ClassVar[str] = "DD"
    has_matrices: ClassVar[bool] = True
    prior: ClassVar[Any] = ScatterOf(full=True)
    steady: ClassVar[bool] = False

    @cached
    def _lower(self) -> NDArray[np.float64]:
        return repaired(self.covariances[np.newaxis])[1][0]

    @cached
    def _inverse(self) -> NDArray[np.float64]:
        return inverses(self._lower[np.newaxis])[0]

    @cached
    def _whitening(self) -> NDArray[np.float64]:
        """Matrix that whitens points: L⁻¹ (D, D) for the covariance L Lᵀ, plus one row of zeros if weights are free."""
        return self._inverse if self.weights is None else np.vstack([self._inverse, np.zeros(self.n_features)])

    @cached
    def _origin(self) -> NDArray[np.float64]:
        """Mean of the centers, rounded to their dtype, so that points and centers are shifted by the same value."""
        return self.centers.mean(axis=0, dtype=np.float64).astype(self.centers.dtype).astype(np.float64)

    @cached
    def embedded_centers(self) -> Floats:
        """Whitened means, one row per component; float64 if rounding to float32 exceeds 2⁻¹² standard deviations."""
        centers = (self.centers - self._origin) @ self._whitening.T
        farthest = float(np.square(centers).sum(axis=1).max())
        if self.weights is not None:
            centers[:, -1] = self._handicap
        dtype = self.centers.dtype
        is_narrow = farthest * float(np.finfo(dtype).eps) ** 2 > _MOST_ROUNDING**2
        return np.ascontiguousarray(centers, dtype=np.float64 if is_narrow else dtype)

    @cached
    def log_scale(self) -> float:
        """Part of log p(c, x) that is equal for all components and points, max_c log π_c − ½ log |2πΣ| [nats]."""
        log_determinant = 2 * float(np.log(np.diagonal(self._lower)).sum())
        return float(log_weights(self.weights, self.centers).max()) - 0.5 * (
            self.n_features * math.log(2 * math.pi) + log_determinant
        )

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        """Return the whitened rows. The memory of `before`, rows whitened earlier, is reused if dtypes are equal."""
        dtype, buffer = self.embedded_centers.dtype, None if before is None else before.dense()
        if X.dtype != dtype:
            X = X.as_type(dtype)
        buffer = buffer if buffer is not None and buffer.dtype == dtype else None
        return X.alike(X.products(self._whitening.astype(dtype), self._origin.astype(dtype), out=buffer))

    def expect_all(self, block: Block) -> Expected:
        """Return the result of an exact E-step of a block; rows are whitened in pieces, to limit memory."""

        def respond() -> Iterator[Responses]:
            step = rows_of_piece(self.n_features)
            for begin in range(0, max(1, len(block)), step):
                rows = slice(begin, begin + step)
                weights = None if block.sample_weight is None else block.sample_weight[rows]
                yield self.embed(block.X[rows]).respond(self._gaussians, weights)

        found = joined(respond())
        sums = found.first[:, : self.n_features] @ self._lower.T + found.counts[:, np.newaxis] * self.centers
        return expect_gaussians(block, found, TiedMoments(found.counts, sums, block.weight), self.error_of)

    def summarise(self, block: Block, shares: Responsibilities) -> TiedMoments:
        counts, sums = block.X.accumulate(
            shares.ids, shares.responsibilities, block.sample_weight, n_components=self.n_components
        )
        return TiedMoments(counts, sums, block.weight)

    def maximise(self, moments: TiedMoments, prior: Scatter | None = None) -> Self:
        """Return the model after an M-step: means μ_c, weights π_c = N_c / W, and the common covariance.

        N_c is the weight of the points of component c. The covariance is (T − Σ_c N_c (μ_c − m)(μ_c − m)ᵀ) / W plus
        `reg_covar` on the diagonal.
        prior: scatter T of all points about their mean m, of total weight W
        """
        assert prior is not None
        means = means_of(moments.counts, moments.sums, self.centers)
        shift = means - prior.mean
        between = (moments.counts[:, np.newaxis] * shift).T @ shift
        covariance = (np.asarray(prior.squares) - between) / moments.weight
        scale = DataScale.measure(moments.counts, means, np.diagonal(covariance)[np.newaxis], self.centers.dtype)
        shares = moments.counts / moments.counts.sum()
        covariance[np.diag_indices(self.n_features)] += self.reg_covar
        covariance = (covariance + covariance.T) / 2
        return replace(
            self,
            centers=means.astype(self.centers.dtype),
            covariances=repaired(covariance[np.newaxis], self.centers.dtype, scale.pool(shares))[0][0],
            weights=new_weights(self.weights, moments.counts),
        )

    def extrapolated(self, before: Self, share: float) -> Self:
        covariances = factors_along(self._lower[np.newaxis], before._lower[np.newaxis], share)[0]
        return replace(self, covariances=covariances, **self._means_extrapolated(before, share))

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[TiedMoments, Scatter]:
        mean = shares @ self.centers
        shift = self.centers - mean
        within = self.covariances - self.reg_covar * np.eye(self.n_features)
        scatter = Scatter(mean, within + (shares[:, np.newaxis] * shift).T @ shift, 1.0)
        return TiedMoments(shares, shares[:, np.newaxis] * self.centers.astype(np.float64), 1.0), scatter

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        return normal @ self._lower.T

    def with_gaps(self) -> PooledFull:
        covariances = np.repeat(self.covariances[np.newaxis], self.n_components, axis=0)
        return PooledFull(self.centers, covariances, self.reg_covar, self.weights)

    def attributes(self) -> dict[str, Any]:
        factors = factors_of_precisions(self._lower[np.newaxis])
        found = {
            "covariances_": self.covariances,
            "precisions_": (factors @ factors.transpose(0, 2, 1))[0],
            "precisions_cholesky_": factors[0],
        }
        return {name: within(value, self.centers.dtype) for name, value in found.items()}

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        return cls(centers, fitted_covariances(attributes, full=True), reg_covar, weights)

    @classmethod
    def starting(cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None) -> Self:
        D = centers.shape[1]
        if precisions is None:
            return cls(centers, np.eye(D), reg_covar, weights)
        return cls(centers, inverted(checked_precisions(precisions, (D, D), cls.covariance_type)), reg_covar, weights)

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        scaled = Dense(self._moved(X, labels)).products(self._inverse)
        return np.sqrt(np.einsum("nd,nd->n", scaled, scaled))

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        one = directions @ self.covariances @ directions.T
        return np.broadcast_to(one, (self.n_components, *one.shape))

    @property
    def variances(self) -> NDArray[np.float64]:
        return np.broadcast_to(self.covariances.diagonal(), self.centers.shape)

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        covariances = self.covariances[columns[:, np.newaxis], columns]
        return replace(self, centers=self._places(columns), covariances=covariances)

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        rest = others(columns, self.n_features)
        (slopes,), (covariances,) = given_columns(self.covariances[np.newaxis], columns, rest)
        left = replace(self, centers=self._places(rest), covariances=covariances)
        every = np.broadcast_to(slopes, (self.n_components, *slopes.shape))
        return Conditional(self.marginal(columns), left, (every,))
