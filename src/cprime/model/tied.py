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
from cprime.kernels import Dense, Floats, Rows, joined
from cprime.model.base import (
    Embedded,
    Gaussian,
    expect_gaussians,
    register,
    rows_of_piece,
)
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
    repaired,
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


class Whitened(Gaussian):
    """Base class of families with one matrix Σ = L Lᵀ for all components, whose points are whitened: L⁻¹ (x − origin).

    Squared distances of whitened points and centers are squared Mahalanobis distances.
    """

    covariances: NDArray[np.float64]  # Σ (D, D) [data unit²]

    axes: ClassVar[str] = "DD"
    scale_free: ClassVar[bool] = True

    @cached
    def _lower(self) -> NDArray[np.float64]:
        return repaired(self.covariances[np.newaxis])[1][0]

    @cached
    def _inverse(self) -> NDArray[np.float64]:
        return inverses(self._lower[np.newaxis])[0]

    @property
    def _whitening(self) -> NDArray[np.float64]:
        """Matrix that whitens points: L⁻¹ (D, D), where Σ = L Lᵀ is the common covariance."""
        return self._inverse

    @cached
    def _origin(self) -> NDArray[np.float64]:
        """Mean of the centers, rounded to their dtype, so that points and centers are shifted by the same value."""
        return self.centers.mean(axis=0, dtype=np.float64).astype(self.centers.dtype).astype(np.float64)

    @cached
    def embedded_centers(self) -> Floats:
        """Whitened means, one row per component; float64 if rounding to float32 exceeds 2⁻¹² standard deviations."""
        centers = (self.centers - self._origin) @ self._whitening.T
        farthest = float(np.square(centers).sum(axis=1).max())
        self._add_coordinates(centers)
        dtype = self.centers.dtype
        is_far = farthest * float(np.finfo(dtype).eps) ** 2 > _MOST_ROUNDING**2
        return np.ascontiguousarray(centers, dtype=np.float64 if is_far else dtype)

    def _add_coordinates(self, centers: NDArray[np.float64]) -> None:
        """Set the coordinate of whitened centers that represents free weights, in place; the base class sets none."""

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        """Return the whitened rows. The memory of `before`, rows whitened earlier, is reused if dtypes are equal."""
        dtype, buffer = self.embedded_centers.dtype, None if before is None else before.dense()
        if X.dtype != dtype:
            X = X.as_type(dtype)
        buffer = buffer if buffer is not None and buffer.dtype == dtype else None
        return X.alike(X.products(self._whitening.astype(dtype), self._origin.astype(dtype), out=buffer))

    def _whitened_pieces(self, block: Block) -> Iterator[tuple[Rows, NDArray[np.float64] | None]]:
        """Yield pieces of a block, to limit memory: whitened rows, and their sample weights."""
        step = rows_of_piece(self.n_features)
        for begin in range(0, max(1, len(block)), step):
            rows = slice(begin, begin + step)
            weights = None if block.sample_weight is None else block.sample_weight[rows]
            yield self.embed(block.X[rows]), weights

    def _within(
        self,
        counts: NDArray[np.float64],
        means: NDArray[np.float64],
        scatter: NDArray[np.float64],
        about: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the scatter of points about the means of their components (D, D), not divided by their weight.

        counts (C,), means (C, D): weights of the points of each component, and their means
        scatter (D, D): weighted sum over all points x of (x − about)(x − about)ᵀ
        """
        shift = means - about
        within: NDArray[np.float64] = scatter - (counts[:, np.newaxis] * shift).T @ shift
        return within

    def _scatter_held(
        self, moments: Any, scatter: NDArray[np.float64], about: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return a scatter (D, D) for which `_within`, at the present centers, is the scatter of points about these.

        moments: counts (C,) and sums (C, D) of the components
        scatter (D, D): weighted sum over all points x of (x − about)(x − about)ᵀ
        """
        counts, places = moments.counts[:, np.newaxis], self.centers - about
        cross = (moments.sums - counts * about).T @ places
        held: NDArray[np.float64] = scatter - cross - cross.T + 2 * (counts * places).T @ places
        return held

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        """Return the new matrix Σ (D, D) of an M-step: `second`, plus `reg_covar` on the diagonal.

        second (D, D): mean of (x − μ)(x − μ)ᵀ over all points x, with the mean μ of the component of each
        shares (C,): share of the points in each component    scale: scale of the data, for the repair of a singular Σ
        """
        second[np.diag_indices(self.n_features)] += self.reg_covar
        second = (second + second.T) / 2
        return repaired(second[np.newaxis], self.centers.dtype, scale.pool(shares))[0][0]

    def _scatter_about(self, mean: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of w (x − mean)(x − mean)ᵀ (D, D) over points x of weights w for which an M-step keeps Σ.

        These are points of total weight shares_c in component c, with the mean μ_c and the covariance Σ less
        `reg_covar`.    shares (C,): weights of the components' points
        """
        shift = self.centers - mean
        within = self.covariances - self.reg_covar * np.eye(self.n_features)
        scatter: NDArray[np.float64] = shares.sum() * within + (shares[:, np.newaxis] * shift).T @ shift
        return scatter

    def _covariances_along(self, before: Self, share: float) -> NDArray[np.float64]:
        """Return the common covariance Σ, extrapolated by `share` times its change since the model `before`."""
        along: NDArray[np.float64] = covariances_along(self.covariances[np.newaxis], before.covariances, share)[0]
        return along

    def _precisions(self) -> dict[str, NDArray[np.float64]]:
        """Return a dict of the fitted attributes precisions_ and precisions_cholesky_ (the Cholesky factor)."""
        factors = factors_of_precisions(self._lower[np.newaxis])[0]
        return {"precisions_": factors @ factors.T, "precisions_cholesky_": factors}

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        return normal @ self._lower.T

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        scaled = Dense(self._moved(X, labels)).products(self._inverse)
        return np.sqrt(np.einsum("nd,nd->n", scaled, scaled))

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        one = directions @ self.covariances @ directions.T
        return np.broadcast_to(one, (self.n_components, *one.shape))

    @property
    def n_singular(self) -> int:
        """Number of components that have a singular covariance: all or none, because they share it."""
        found = are_singular(self.covariances.diagonal()[np.newaxis], np.square(self._inverse).sum(axis=0)[np.newaxis])
        return self.n_components * int(found[0])

    @property
    def variances(self) -> NDArray[np.float64]:
        return np.broadcast_to(self.covariances.diagonal(), self.centers.shape)

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        covariances = self.covariances[columns[:, np.newaxis], columns]
        return replace(self, centers=self._places(columns), covariances=covariances)


@register
@storable("model.Tied")
@dataclass(frozen=True)
class Tied(Whitened, Embedded):
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
    prior: ClassVar[Any] = ScatterOf(full=True)
    steady: ClassVar[bool] = False

    @cached
    def _whitening(self) -> NDArray[np.float64]:
        """Matrix that whitens points: L⁻¹ (D, D) for the covariance L Lᵀ, plus one row of zeros if weights are free."""
        return self._inverse if self.weights is None else np.vstack([self._inverse, np.zeros(self.n_features)])

    def _add_coordinates(self, centers: NDArray[np.float64]) -> None:
        if self.weights is not None:
            centers[:, -1] = self._handicap

    @cached
    def log_scale(self) -> float:
        """Part of log p(c, x) that is equal for all components and points, max_c log π_c − ½ log |2πΣ| [nats]."""
        log_determinant = 2 * float(np.log(np.diagonal(self._lower)).sum())
        return float(self._log_weights.max()) - 0.5 * (self.n_features * math.log(2 * math.pi) + log_determinant)

    def expect_all(self, block: Block) -> Expected:
        """Return the result of an exact E-step of a block; rows are whitened in pieces, to limit memory."""
        pieces = self._whitened_pieces(block)
        found = joined(points.respond(self._gaussians, weights) for points, weights in pieces)
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
        means = self._new_means(moments)
        second = self._within(moments.counts, means, np.asarray(prior.squares), prior.mean) / moments.weight
        scale = DataScale.measure(moments.counts, means, np.diagonal(second)[np.newaxis], self.centers.dtype)
        return replace(
            self,
            centers=means.astype(self.centers.dtype),
            covariances=self._shaped(moments.counts / moments.counts.sum(), second, scale),
            **self._new_weights(moments.counts),
        )

    def hold_centers(self, moments: TiedMoments, prior: Scatter | None = None) -> tuple[TiedMoments, Scatter]:
        assert prior is not None
        scatter = self._scatter_held(moments, np.asarray(prior.squares), prior.mean)
        return super().hold_centers(moments)[0], replace(prior, squares=scatter)

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[TiedMoments, Scatter]:
        mean = shares @ self.centers
        scatter = Scatter(mean, self._scatter_about(mean, shares), 1.0)
        return TiedMoments(shares, shares[:, np.newaxis] * self.centers.astype(np.float64), 1.0), scatter

    def with_missing(self) -> PooledFull:
        covariances = np.repeat(self.covariances[np.newaxis], self.n_components, axis=0)
        return PooledFull(self.centers, covariances, self.reg_covar, self.weights)

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

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        rest = others(columns, self.n_features)
        (slopes,), (covariances,) = given_columns(self.covariances[np.newaxis], columns, rest)
        left = replace(self, centers=self._places(rest), covariances=covariances)
        every = np.broadcast_to(slopes, (self.n_components, *slopes.shape))
        return Conditional(self.marginal(columns), left, (every,))
