"""Gaussian mixture with one spherical variance shared by all components, and equal or free weights.

    p(c) = 1/C or π_c        p(x | c) = (2πσ²)^(−D/2) exp(−‖x − μ_c‖² / 2σ²)

These are eq. (1)-(3) of Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*. With
equal weights and active sets of one component (C′ = 1), the EM algorithm for this mixture is k-means (Proposition 2).
"""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from cprime._utils.declared import Positive
from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.execution.block import ActiveSet, Block
from cprime.execution.statistics import Sums
from cprime.kernels import Floats, Rows, means, without_negligible
from cprime.model.base import (
    Embedded,
    centers_beyond,
    expect_gaussians,
    log_weights,
    new_weights,
    register,
    winner_error,
)
from cprime.model.conditional import Conditional, others
from cprime.model.covariance import scaled_along
from cprime.model.interface import Expected, Responsibilities, Weights
from cprime.model.pooled import PooledSpherical
from cprime.model.scatter import Scatter, ScatterOf

# Upper bound of the relative rounding error of a sum of squared distances, for each dtype in which it may be computed
# (that of the centers); then the same bound for float64.
ROUNDING = {np.dtype(kind): 64 * float(np.finfo(kind).eps) for kind in (np.float32, np.float64)}
OF_DOUBLE = ROUNDING[np.dtype(np.float64)]
_CANCELLED = 2.0**-20  # a difference of sums of squares that is below this share of the minuend is imprecise

Summed = tuple[NDArray[np.float64], NDArray[np.float64]]  # sums over points of n clusters: Σ w (n,) and Σ w x (n, D)


@dataclass(frozen=True)
class SphericalMoments(Sums):
    """Moments (sufficient statistics) of mixtures with one common spherical variance.

    Let w be sample weights and q responsibilities.    counts (C,): N_c = Σ w_n q_nc    sums (C, D): Σ w_n q_nc x_n
    weight: Σ w_n    squares: Σ w_n q_nc ‖x_n − μ_c‖² [data unit²]
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    weight: float
    squares: float


@register
@storable("model.TiedSpherical")
@dataclass(frozen=True)
class TiedSpherical(Embedded):
    """Parameters Θ of a mixture with one common spherical variance.

    centers (C, D) data units, of the data's dtype    variance: σ² [data unit²]    weights (C,), None for 1/C each
    variance_floor: least σ² of M-steps [data unit²], which keeps the likelihood bounded if points coincide
    n_fixed: number of centers, the first ones, that k-means does not move
    """

    centers: Floats
    variance: float
    variance_floor: float
    weights: Weights = None
    _: KW_ONLY
    n_fixed: int = 0

    covariance_type: ClassVar[str] = "tied_spherical"
    sklearn_type: ClassVar[str] = "spherical"
    axes: ClassVar[str | None] = ""
    finds_variance: ClassVar[bool] = True
    attribute_names: ClassVar[tuple[str, ...]] = ("covariances_", "precisions_", "precisions_cholesky_", "variance_")
    declared: ClassVar[Mapping[str, Any]] = {"variance_": Positive}
    prior: ClassVar[Any] = ScatterOf(full=False)

    @cached
    def log_scale(self) -> float:
        """Part of log p(c, x) that is the same for all components and points [nats].

        This part is max_c log π_c − (D/2) log 2πσ². So log p(c, x) = log_scale − cost/2σ².
        """
        return self.log_scale_of(self.variance)

    def log_scale_of(self, variance: float) -> float:
        """Return the value that `log_scale` (a constant left out of all log densities) has for another variance σ²."""
        equal = self.weights is None
        largest = -float(np.log(self.n_components)) if equal else log_weights(self.weights, self.centers).max()
        return float(largest) - self.n_features / 2 * math.log(2 * math.pi * variance)

    @property
    def moves_to_means(self) -> bool:
        """Return whether an M-step of k-means moves every center to the mean of its points."""
        return self.n_fixed == 0 and self.weights is None

    @property
    def scale(self) -> float:
        """Factor −1/2σ² from squared distances to log p(c, x), up to the constant `log_scale` [nats per data unit²]."""
        return -0.5 / self.variance

    @property
    def covariances(self) -> float:
        return self.variance

    @cached
    def embedded_centers(self) -> Floats:
        if self.weights is None:
            return self.centers
        return np.column_stack([self.centers, self._handicap.astype(self.centers.dtype)])

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        if self.weights is None:
            return X
        if before is not None and before.shape[1] == self.n_features + 1:
            return before
        return X.widened()

    def expect_all(self, block: Block) -> Expected:
        if self.weights is None:
            exact = block.X.expect_all(self.centers, self.variance, block.sample_weight)
            moments = SphericalMoments(exact.counts, exact.sums, block.weight, exact.squares)
            return Expected(moments, exact.log_sum, exact.entropy, exact.quantization_error)
        found, D = block.embedded(self.embed).respond(self._gaussians, block.sample_weight), self.n_features
        sums = found.first[:, :D] + found.counts[:, np.newaxis] * self.centers
        squares = float(np.asarray(found.second)[:, :D].sum())
        moments = SphericalMoments(found.counts, sums, block.weight, squares)
        return expect_gaussians(block, found, moments, self.error_of)

    def summarise(self, block: Block, shares: Responsibilities) -> SphericalMoments:
        counts, sums = block.X.accumulate(
            shares.ids, shares.responsibilities, block.sample_weight, n_components=self.n_components
        )
        if shares.cost is None:
            # Costs are unknown in a start. Those of soft assignments are not needed, because the scatter is known.
            is_hard = shares.responsibilities is None
            squares = winner_error(block, self.centers, shares.ids[:, 0]) if is_hard else math.inf
        elif self.weights is None:
            squares = shares.cost
        else:
            squares = shares.cost - float((counts * np.square(self._handicap)).sum())
        return SphericalMoments(counts, sums, block.weight, squares)

    def error_of(self, block: Block, kept: ActiveSet) -> float:
        if kept.costs is None:
            return winner_error(block, self.centers, kept.winners.copy())
        J = block.weighted_sum(kept.costs[:, 0])
        if self.weights is not None:
            J -= block.weighted_sum(np.square(self.embedded_centers[:, -1], dtype=np.float64)[kept.winners])
        return max(J, 0.0)

    def with_variance(self, mean_square: float) -> Self:
        """Return the model with σ² = mean_square / D, eq. (14) of Lücke & Forster 2019.

        mean_square: mean squared distance of points to their nearest centers [data unit²]
        """
        variance = max(float(mean_square) / self.n_features, self.variance_floor)
        return self if variance == self.variance else replace(self, variance=variance)

    def maximise(self, moments: SphericalMoments, prior: Scatter | None = None) -> Self:
        """Return the model after an M-step, eq. (6) of Lücke & Forster 2019.

        μ_c = S_c / N_c, or the old μ_c if N_c = 0; σ² = 1/(DW) Σ_nc w_n q_nc ‖x_n − μ_c^new‖², with responsibilities q,
        sample weights w, N_c = Σ_n w_n q_nc, S_c = Σ_n w_n q_nc x_n and W = Σ_n w_n
        """
        model, squares = self._recentred_by(moments, prior)
        weights = new_weights(self.weights, moments.counts)
        return replace(model.with_variance(squares / moments.weight), weights=weights)

    def _recentred_by(self, moments: SphericalMoments, prior: Scatter | None) -> tuple[Self, float]:
        """Return the results of `recentred` for the moments of a soft assignment, without negligible coordinates."""
        model, squares = self.recentred(moments.counts, moments.sums, moments.squares, prior)
        centers = without_negligible(model.centers)
        centers[: self.n_fixed] = self.centers[: self.n_fixed]
        return replace(model, centers=centers), squares

    def recentred(
        self, counts: NDArray[np.float64], sums: NDArray[np.float64], squares: float, prior: Scatter | None = None
    ) -> tuple[Self, float]:
        """Return the model with the new means, and the sum of squares about them [data unit²].

        counts (C,), sums (C, D): N_c = Σ w q and Σ w q x of each component, with weights w and responsibilities q
        squares: sum of squares about the old centers    prior: scatter of all points, or None
        The new sum is `squares` minus Σ_c N_c ‖μ_c^new − μ_c‖² or, if that would cancel more, the scatter of all points
        minus Σ_c N_c ‖μ_c^new − mean‖². If the difference is only rounding error, its upper bound is returned.
        """
        origin = None
        if prior is not None and float(prior.squares) < squares:
            origin, squares = prior.mean, float(prior.squares)
        centers, shift = means(counts, sums, self.centers, origin)
        centers[: self.n_fixed], shift[: self.n_fixed] = self.centers[: self.n_fixed], 0.0
        own = ROUNDING[self.centers.dtype] * squares
        rest = squares - float(np.add.reduce(counts * shift)) + OF_DOUBLE * squares
        if squares > 0 and rest < _CANCELLED * squares:  # the difference is small, so rounding errors matter
            reach = float(np.abs(centers).max()) * math.sqrt(centers.shape[1] * float(counts.sum()) * squares)
            own = max(own, 4 * float(np.finfo(np.float64).eps) * reach)
        return replace(self, centers=centers), max(rest, own)

    def centers_of(
        self, counts: NDArray[np.float64], sums: NDArray[np.float64], otherwise: Floats
    ) -> NDArray[np.float64]:
        """Return the centers (n, D) of n clusters with the least weighted sum of squared distances J.

        counts (n,), sums (n, D): Σ w and Σ w x over the points of each cluster
        otherwise (n, D): centers of clusters for which the center of least J is not defined
        """
        return sums / counts[:, np.newaxis]

    def union_costs(self, a: Summed, b: Summed) -> NDArray[np.float64]:
        """Return by how much the error J rises if clusters a and b are merged, or falls if one is split in two: (n,).

        a, b: sums N = Σ w (n,) of weights and S = Σ w x (n, D), of n clusters each. The result, in [data unit²], is
        ‖S_a/N_a − S_b/N_b‖² / (1/N_a + 1/N_b) (Ward 1963); it is bit-identical if a and b are swapped.
        """
        between = np.square(a[1] / a[0][:, np.newaxis] - b[1] / b[0][:, np.newaxis]).sum(axis=1)
        return between / (1 / a[0] + 1 / b[0])

    def tangent(self, directions: NDArray[np.float64], ids: slice) -> NDArray[np.float64]:
        """Return the part v of each direction (n, D) for which Σ w (x − center)·v over the points x of a cluster is 0.

        ids: slice of the n clusters to which the directions belong    w: weights of the points
        Planes with the normals v divide clusters in two. If centers are means of the clusters, v is the direction.
        """
        return directions

    def exchange_factors(
        self, counts: NDArray, sums: NDArray | None, weight: float | NDArray
    ) -> tuple[NDArray, NDArray] | None:
        """Return factors of squared distances for the change of the error J if a point is reassigned and centers move.

        Returns two arrays (C,), for a point's own component and for others, or None for no factors. If a point of
        weight w leaves c, of weight W_c, J falls by w W_c/(W_c − w) ‖x − μ_c‖². If the point joins b, J rises by
        w W_b/(W_b + w) ‖x − μ_b‖² (Hartigan 1975; Hartigan & Wong 1979). An exchange changes active sets and parameters
        of the free energy, eq. (15) of Lücke & Forster 2019, together. So a local optimum of exchanges is a local
        optimum of k-means, but not vice versa.
        counts (C,), sums (C, D): Σ w_n and Σ w_n x_n of the last pass; sums may be None
        weight: mean weight of a point. The factors are finite even if a component has at most one point.
        """
        dtype = self.centers.dtype
        inside = counts / np.maximum(counts - weight, 1e-3 * weight)
        outside = np.maximum(counts, 1e-3 * weight) / (counts + weight)
        return inside.astype(dtype), outside.astype(dtype)

    def beyond(self, before: Floats, shares: NDArray[np.float64]) -> Self:
        """Return the model with each center extrapolated by a share of its change.

        before (C, D): the centers before the change    shares (C,): by which part of its change each center is moved on
        """
        return replace(self, centers=centers_beyond(self.centers, before, shares[:, np.newaxis]))

    def extrapolated(self, before: Self, share: float) -> Self:
        variance = float(scaled_along(np.array(self.variance), np.array(before.variance), share))
        return replace(self, variance=max(variance, self.variance_floor), **self._means_extrapolated(before, share))

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[SphericalMoments, Scatter]:
        mean, within = shares @ self.centers, self.n_features * self.variance
        between = float((shares * np.square(self.centers - mean).sum(axis=1)).sum())
        sums = shares[:, np.newaxis] * self.centers.astype(np.float64)
        return SphericalMoments(shares, sums, 1.0, within), Scatter(mean, within + between, 1.0)

    def log_likelihood(self, X: Rows) -> NDArray[np.float64]:
        if self.weights is None:
            return self.log_scale + X.log_sum_exp(self.centers, self.variance)
        return super().log_likelihood(X)

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        return normal * math.sqrt(self.variance)

    def as_sklearn(self) -> dict[str, Any]:
        C, dtype = self.n_components, self.centers.dtype
        shared = {name: value for name, value in self.attributes().items() if name != "variance_"}
        return {name: np.full(C, value, dtype) for name, value in shared.items()}

    def with_missing(self) -> PooledSpherical:
        variances = np.full(self.n_components, self.variance)
        return PooledSpherical(self.centers, variances, self.variance_floor, self.weights)

    def attributes(self) -> dict[str, Any]:
        return {
            "covariances_": self.variance,
            "precisions_": 1 / self.variance,
            "precisions_cholesky_": 1 / np.sqrt(self.variance),
            "variance_": self.variance,
        }

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        variance = attributes.get("covariances_")
        if variance is None:
            variance = 1 / np.square(np.asarray(attributes["precisions_cholesky_"], dtype=np.float64))
        return cls(centers, float(variance), max(reg_covar, variance_floor(centers)), weights)

    @classmethod
    def starting(cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None) -> Self:
        floor = max(reg_covar, variance_floor(centers))
        if precisions is None:
            return cls(centers, 1.0, floor, weights)
        if np.size(precisions) != 1:
            raise ValueError(f"precisions_init must be one number, got an array of shape {np.shape(precisions)}.")
        value = precisions.item() if isinstance(precisions, np.ndarray | np.generic) else precisions
        value = float(check_scalar(value, "precisions_init", Real, min_val=np.nextafter(0, 1)))
        if not math.isfinite(value):
            raise ValueError(f"precisions_init must be finite, got {value}.")
        variance = 1 / value
        return cls(centers, max(variance, reg_covar) if weights is None else variance, floor, weights)

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        scaled = self._moved(X, labels) * (1 / np.sqrt(self.variance))
        return np.sqrt(np.einsum("nd,nd->n", scaled, scaled))

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        one = self.variance * (directions @ directions.T)
        return np.broadcast_to(one, (self.n_components, *one.shape))

    @property
    def variances(self) -> NDArray[np.float64]:
        return np.broadcast_to(self.variance, self.centers.shape)

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        return replace(self, centers=self._places(columns))

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        return Conditional(self.marginal(columns), self.marginal(others(columns, self.n_features)))


@storable("model.Stiff")
@dataclass(frozen=True)
class FixedVariance(TiedSpherical):
    """Parameters Θ of MacKay's soft k-means of stiffness β = 1/2σ²: a mixture with a fixed variance σ².

    Responsibilities are r_nc ∝ exp(−β ‖x_n − μ_c‖²). M-steps change only the centers.
    """

    axes: ClassVar[str | None] = None  # no attribute `covariances_`: σ² is no free parameter

    def maximise(self, moments: SphericalMoments, prior: Scatter | None = None) -> Self:
        return self._recentred_by(moments, prior)[0]


def variance_floor(centers: Floats) -> float:
    """Return the least variance that numbers as large as the centers can resolve: (ε · largest)² [data unit²].

    ε is the machine epsilon. If all centers are 0, return a small variance for which costs can still be computed.
    """
    resolution = float(np.finfo(centers.dtype).eps) * max(float(centers.max()), -float(centers.min()))
    single = centers.dtype == np.float32
    if resolution == 0:
        return 2.0**-120 if single else 1e-200
    return max(resolution**2, 1e-60 if single else 1e-200)
