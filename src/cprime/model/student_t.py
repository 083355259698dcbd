"""Components with multivariate t densities, whose parameters are robust to outliers (Peel & McLachlan 2000).

    p(x | c) = Γ((ν + D)/2) / (Γ(ν/2) (νπ)^(D/2) |Σ|^½) · (1 + δ/ν)^(−(ν + D)/2),    δ = (x − μ)ᵀ Σ⁻¹ (x − μ)

A t distribution is a Gaussian with precision Σ⁻¹ u, where u ~ Gamma(ν/2, ν/2). Given x, u has the mean
(ν + D)/(ν + δ). The M-step is that of Gaussians with weights q u in place of the responsibilities q. The E-step
computes both q and u, from the old μ, Σ, π and ν. The M-step updates ν first, then μ and Σ, without computing q or u
again (EM, not ECM).

Scatter is divided by Σ q u and not by Σ q. This variant (PX-EM) converges faster, and like EM it never lowers the free
energy F. It corresponds to a model in which u is α times a Gamma variable, with the best-fitting α (Kent, Tyler & Vardi
1994; Liu, Rubin & Wu 1998). Components that share one Σ have one α = Σ_c ν_c Σ q u / Σ_c ν_c Σ q, with new ν.

Values of a row may be missing. The observed values x_o of D_o columns have a t density of the same ν, with μ_o and
Σ_oo. Given x_o, u has the mean (ν + D_o)/(ν + δ_o), with the squared distance δ_o of x_o. The covariance of x given u
and x_o is that of a Gaussian, divided by u; so an M-step adds it with the weight q and not q u (Liu & Rubin 1995).

Components that share one matrix Σ are "tied": M-steps pool the scatter of all components, and points are whitened, so
that costs are computed from squared distances of whitened points and centers.

The equation for ν in the M-step and the terms of the log-density with ν avoid cancellation for large ν; at ν = 10⁹ a t
distribution is a Gaussian.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial, reduce
from operator import add
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammainccinv, gammaincinv, gammaln, ndtr

from cprime._utils.declared import Array
from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.execution.block import Block
from cprime.execution.statistics import Sums
from cprime.kernels import Floats, GaussianParameters, Rows, joined, posterior, scaled_responsibilities
from cprime.model.base import expect_gaussians, new_weights, rows_of_piece
from cprime.model.covariance import DataScale, pooled, positive, scaled_along, within
from cprime.model.interface import Expected, Responsibilities, Weights
from cprime.model.own_covariance import Diag, FullCovariance, OwnCovariance, OwnMoments, Spherical
from cprime.model.pooled import PooledFull
from cprime.model.tied import Whitened
from cprime.neighbors.components import GaussianCosts

# Range to which M-steps clip the degrees of freedom ν; at the upper end a t distribution is a Gaussian.
LEAST, MOST = 0.1, 1e9
# For arguments of at least this size, four terms of Stirling's series are exact up to rounding.
_LARGE = 50.0
# Maximum number of Newton steps for ν; each reduces the error to about 2 % of its previous value.
_STEPS = 9
# Newton steps end once the logarithms of both sides of the equation for ν differ by at most this, hardly more than by
# rounding.
_CLOSE = 1e-12
# First ν if it is estimated; so low that outliers have less weight from the first iteration on.
_FIRST_DOF = 4.0
# Range to which ν is clipped when costs are computed; values beyond it would give the same costs.
_COMPUTED = 1e-30, 1e30
# From this ν/2 on, the Gamma variable u is drawn from its normal approximation.
_NORMAL = 1e6

Doubles = NDArray[np.float64]


def gap(x: Doubles) -> Doubles:
    """Return h(x) = log x − ψ(x), of which the equation for ν consists; h falls from ∞ to 0.    ψ: digamma function"""
    square = 1 / np.square(x)
    series = (0.5 + (1 / 12 - square * (1 / 120 - square / 252)) / x) / x
    with np.errstate(invalid="ignore"):
        return np.where(x < _LARGE, np.log(x) - digamma(np.minimum(x, _LARGE)), series)


def solved(target: Doubles) -> Doubles:
    """Return degrees of freedom ν with log(ν/2) − ψ(ν/2) = target >= 0 (any shape), or the nearest end of [0.1, 10⁹].

    ψ is the digamma function. With x = ν/2 the left side is (3x + 1)/(x (6x + 1)) within 2 % (Minka: Estimating a Gamma
    distribution, 2002). This approximation gives the first x. Newton steps then solve the logarithm of the equation for
    log x, with the slope of the approximation. So each step reduces the error to about 2 % of its previous value.
    """
    target = np.asarray(target, dtype=np.float64)
    least, greatest = gap(np.array([MOST, LEAST]) / 2)
    wanted = np.clip(target, least, greatest)
    x = (3 - wanted + np.sqrt(np.square(3 - wanted) + 24 * wanted)) / (12 * wanted)
    for _ in range(_STEPS):
        off = np.log(gap(x) / wanted)
        x = x * np.exp(off / (1 + 6 * x / ((6 * x + 1) * (6 * x + 2))))
        if np.abs(off).max(initial=0.0) <= _CLOSE:
            break
    return np.where(target >= greatest, LEAST, np.where(target <= least, MOST, np.clip(2 * x, LEAST, MOST)))


def _stirling(x: Doubles) -> Doubles:
    """Return log Γ(x) − (x − ½) log x + x − ½ log 2π for large x: the error of Stirling's formula, by its series."""
    square = 1 / np.square(x)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x


def log_normalizer(dof: Doubles, n_features: int) -> Doubles:
    """Return the part of −2 log p(μ) of t distributions that depends on their degrees of freedom ν.

    This part is the difference to a Gaussian with the same Σ and μ in D dimensions:
    D log(ν/2) − 2 log Γ((ν + D)/2) + 2 log Γ(ν/2). For large ν it tends to 0.
    """
    x, a = np.asarray(dof, dtype=np.float64) / 2, n_features / 2
    far = np.maximum(x, _LARGE)
    large = 2 * a - 2 * (far + a - 0.5) * np.log1p(a / far) - 2 * (_stirling(far + a) - _stirling(far))
    return np.where(x < _LARGE, 2 * (a * np.log(x) - gammaln(x + a) + gammaln(x)), large)


def _drawn_factors(half: Doubles, normal: Doubles) -> Doubles:
    """Return quantiles u > 0 (n,) of Gamma(half, half) that standard normal numbers (n,) select.    half (n,): ν/2"""
    exact = np.minimum(half, _NORMAL)
    share = ndtr(-np.abs(normal))
    u = np.where(normal < 0, gammaincinv(exact, share), gammainccinv(exact, share)) / exact
    u = np.where(half > _NORMAL, 1 + normal / np.sqrt(half), u)
    return np.maximum(u, np.finfo(np.float64).tiny)


STUDENT_T: dict[str, Any] = {}  # class of each t family, by the covariance_type of its Gaussian family


@dataclass(frozen=True)
class StudentTMoments(Sums):
    """Moments (sufficient statistics) of t mixtures.

    Let w be sample weights, q responsibilities and u = (ν + D)/(ν + δ), with degrees of freedom ν and squared
    Mahalanobis distances δ.
    counts (C,): Σ w q    weighted: moments of the Gaussian family, with weights w q u    logs (C,): Σ w q log u
    """

    counts: NDArray[np.float64]
    weighted: OwnMoments
    logs: NDArray[np.float64]

    def scaled(self, factor: float) -> Self:
        return type(self)(self.counts * factor, self.weighted.scaled(factor), self.logs * factor)


@dataclass(frozen=True)
class StudentT(OwnCovariance):
    """Base class that turns a Gaussian family into a t mixture; `covariances` are the scale matrices Σ of t densities.

    dof (C,): degrees of freedom ν    estimated: whether M-steps estimate ν
    shared: whether M-steps estimate one ν for all components
    """

    dof: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    estimated: bool = True
    shared: bool = False

    attribute_names: ClassVar[tuple[str, ...]] = (*OwnCovariance.attribute_names, "dof_")
    declared: ClassVar[Mapping[str, Any]] = {"dof_": Array("C", above=0)}
    sklearn_type: ClassVar[str] = ""
    options: ClassVar[tuple[str, ...]] = ("dof",)
    settles: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        STUDENT_T[cls.covariance_type] = cls  # the last one of a type is that of complete rows

    @property
    def n_parameters(self) -> int:
        return super().n_parameters + (0 if not self.estimated else 1 if self.shared else len(self.dof))

    @property
    def n_normals(self) -> int:
        return self.n_features + 1

    @cached
    def _offsets(self) -> NDArray[np.float64]:
        """Costs at the centers μ_c, called offsets: −2 log(π_c p(μ_c | c)) (C,), with weights π_c."""
        return super()._offsets + log_normalizer(self.dof, self.n_features)

    @cached
    def gaussians(self) -> GaussianParameters:
        """Parameters of the t densities for kernels; costs are −2 log p(c, x) minus a constant for all c and x."""
        given = super().gaussians
        exact = given.exact and replace(given.exact, normalizer=partial(log_normalizer, self.dof))
        return replace(given, dof=np.clip(self.dof, *_COMPUTED).astype(given.means.dtype), exact=exact)

    def conditional(self, columns: NDArray[np.intp]) -> NoReturn:
        raise ValueError("Conditionals need Gaussian components, got t distributions: their extent depends on the row.")

    def summarise(self, block: Block, shares: Responsibilities) -> StudentTMoments:  # type: ignore[override]
        """Return the moments of a block of rows, computed from the responsibilities `shares`.

        If costs are unknown (in the initialization), every weight factor u of a row is 1, and the M-step does not
        change the degrees of freedom ν.
        """
        if shares.costs is None:
            moments = super().summarise(block, shares)
            return StudentTMoments(moments.counts, moments, self._standing(moments.counts))
        if block.X.observed is not None:
            return self._summarise_observed(block, block.X, shares)
        scaled, counts, logs = scaled_responsibilities(
            self.gaussians, shares.ids, shares.costs, shares.responsibilities, block.sample_weight
        )
        return StudentTMoments(counts, super().summarise(block, replace(shares, responsibilities=scaled)), logs)

    def _summarise_observed(self, block: Block, X: Any, shares: Responsibilities) -> StudentTMoments:
        """Return the moments of a block of rows with missing values.

        Given the observed values x_o of a row, log u has the mean log(u_o) − h(m_o), with u_o = (ν + D_o)/(ν + δ_o),
        m_o = (ν + D_o)/2 and h(x) = log x − ψ(x). M-steps expect h(m) of complete rows, so `logs` contains the
        difference. The covariance of missing values is divided by u, so u_o does not weight it.
        X: the rows of the block, `MissingRows`
        """
        ids, w = shares.ids, block.sample_weight
        q = np.ones(ids.shape) if shares.responsibilities is None else shares.responsibilities
        u, half = self._factors(X, ids)
        logs = np.log(u) - gap(half) + gap((self.dof[ids] + self.n_features) / 2)
        scaled, weights = q * u, q if w is None else q * w[:, np.newaxis]
        of = np.maximum(ids, 0).reshape(-1)  # −1 is no component, and has responsibility 0
        sums: list[Doubles] = [
            np.bincount(of, each.reshape(-1), self.n_components).astype(np.float64)
            for each in (weights, weights * logs)
        ]
        weighted = super().summarise(block, replace(shares, responsibilities=scaled))
        more = X.conditional_scatter(self.gaussians, ids, q - scaled, w)
        return StudentTMoments(sums[0], replace(weighted, second=weighted.second + more), sums[1])

    def _factors(self, X: Any, ids: NDArray[np.int32]) -> tuple[Doubles, Doubles]:
        """Return u_o = (ν + D_o)/(ν + δ_o) and (ν + D_o)/2 of rows with missing values and their H components, (n, H).

        δ_o: squared Mahalanobis distance of the D_o observed values    X: the rows, `MissingRows`
        """
        n_observed, dof = np.count_nonzero(X.observed, axis=1)[:, np.newaxis], self.dof[ids]
        return (dof + n_observed) / (dof + X.squared_distances(self.gaussians, ids)), (dof + n_observed) / 2

    def expect_all(self, block: Block) -> Expected:
        if block.X.observed is not None:
            return self._expect_observed(block)
        found = block.X.respond(self.gaussians, block.sample_weight)
        moments = StudentTMoments(found.shares, self._moments(found), found.logs)
        return expect_gaussians(block, found, moments, self.error_of)

    def _expect_observed(self, block: Block) -> Expected:
        """Return the result of an exact E-step of a block with missing values; in pieces, to limit memory."""
        found, step = [], rows_of_piece(self.n_components)
        for begin in range(0, len(block), step):
            rows = slice(begin, begin + step)
            piece = Block(block.X[rows], None if block.sample_weight is None else block.sample_weight[rows])
            ids, costs = self.components().best(piece.X, self.n_components)
            q, logs, mean = posterior(costs, self.scale)
            log_sum, cost = piece.weighted_sum(logs), piece.weighted_sum(mean)
            moments = self.summarise(piece, Responsibilities(ids, q, cost, costs))
            found.append((moments, log_sum, log_sum - self.scale * cost))
        return Expected(*(reduce(add, values) for values in zip(*found, strict=True)))

    def maximise(self, moments: StudentTMoments, prior: None = None) -> Self:  # type: ignore[override]
        """Return the model after an M-step: that of Gaussians with weights q u, but π_c = N_c / N, and new ν.

        Let q be responsibilities, u weight factors and ν degrees of freedom. With N_c = Σ q and h(x) = log x − ψ(x)
        (digamma function ψ), ν solves h(ν/2) = h((ν_old + D)/2) + Σ q (u − 1 − log u) / N_c. If all components share ν,
        the right side is averaged with weights N_c. ν is clipped to [0.1, 10⁹]. The ν of a component without points is
        unchanged.
        """
        dof, N = self._new_dof(moments) if self.estimated else self.dof, moments.counts
        total = float(dof @ moments.weighted.counts * N.sum() / (dof @ N))
        new = super().maximise(moments.weighted, total=total)
        return replace(new, weights=new_weights(self.weights, N), dof=dof)

    def hold_centers(self, moments: StudentTMoments, prior: None = None) -> tuple[StudentTMoments, None]:
        return replace(moments, weighted=super().hold_centers(moments.weighted)[0]), None

    def _new_dof(self, moments: StudentTMoments) -> NDArray[np.float64]:
        counts = moments.counts
        there = counts > 0
        target = counts * gap((self.dof + self.n_features) / 2) + (moments.weighted.counts - counts - moments.logs)
        target = np.maximum(target, 0)
        if self.shared:
            return np.full(len(counts), solved(target.sum() / counts.sum()))
        return np.where(there, solved(target / np.where(there, counts, 1)), self.dof)

    def _standing(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums Σ_n q_nc log u_nc (C,) for which an M-step leaves the degrees of freedom ν unchanged.

        They are a part of the moments by which the present model is represented, see `pseudo_moments`.
        counts (C,): Σ_n q_nc = Σ_n q_nc u_nc, with responsibilities q and weight factors u of t distributions
        """
        return counts * (gap((self.dof + self.n_features) / 2) - gap(self.dof / 2))

    def extrapolated(self, before: Self, share: float) -> Self:
        dof = np.clip(scaled_along(self.dof, before.dof, share), LEAST, MOST) if self.estimated else self.dof
        return replace(super().extrapolated(before, share), dof=dof)

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[StudentTMoments, None]:  # type: ignore[override]
        """Return moments from which an M-step computes this model's parameters, with all weight factors u equal to 1.

        Stepwise EM averages them with the moments of a batch.
        shares (C,): counts of the moments, with sum 1
        """
        return StudentTMoments(shares, super().pseudo_moments(shares)[0], self._standing(shares)), None

    def outlier_weights(self, X: Rows, n_kept: int) -> NDArray[np.float64]:
        """Return the weight Σ_c q_nc u_nc of each row in M-steps, over its n_kept best components: (n,).

        q: responsibilities    u = (ν + D)/(ν + δ): small for outliers, with degrees of freedom ν and squared
        Mahalanobis distances δ
        """
        ids, costs = self.components().best(self.embed(X), n_kept)
        q = posterior(costs, self.scale).responsibilities
        if X.observed is not None:
            return (q * self._factors(X, ids)[0]).sum(axis=1)
        sums: NDArray[np.float64] = scaled_responsibilities(self.gaussians, ids, costs, q).scaled.sum(axis=1)
        return sums

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return x − μ (n, D) of points x drawn from components `labels` (n,): Gaussian noise divided by √u.

        normal (n, D + 1): standard normal numbers; the last one of each row selects a quantile of Gamma(ν/2, ν/2) as u,
        with degrees of freedom ν
        """
        u = _drawn_factors(self.dof[labels] / 2, normal[:, -1])
        rest = super().noise(labels, np.ascontiguousarray(normal[:, :-1]))
        limit = float(np.finfo(self.centers.dtype).max) / 2  # clips draws, which may overflow if ν is small
        return np.clip(rest / np.sqrt(u)[:, np.newaxis], -limit, limit)

    def imputed(self, X: Rows, ids: NDArray[np.int32], q: NDArray[np.float64], normal: Any = None) -> NDArray:
        if normal is not None:
            u, half = self._factors(X, ids)
            drawn = u[:, 0] * _drawn_factors(half[:, 0], normal[:, -1])
            normal = normal[:, :-1] / np.sqrt(drawn)[:, np.newaxis]
        return super().imputed(X, ids, q, normal)

    def attributes(self) -> dict[str, Any]:
        return {**super().attributes(), "dof_": self.dof.astype(self.centers.dtype)}

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        dof = np.asarray(attributes["dof_"], dtype=np.float64)
        return replace(super().from_attributes(attributes, centers, weights, reg_covar), dof=dof)

    @classmethod
    def starting(
        cls,
        centers: Floats,
        weights: Weights,
        reg_covar: float,
        precisions: Any = None,
        dof: float | str = "estimate",
    ) -> Self:
        model, estimated = super().starting(centers, weights, reg_covar, precisions), isinstance(dof, str)
        first = np.full(len(centers), _FIRST_DOF if estimated else float(dof))
        return replace(model, dof=first, estimated=estimated, shared=dof == "shared")


@storable("model.StudentTFull")
@dataclass(frozen=True)
class StudentTFull(StudentT, FullCovariance):
    """t mixture with full scale matrices; covariances (C, D, D): Σ [data unit²]."""


@storable("model.StudentTDiag")
@dataclass(frozen=True)
class StudentTDiag(StudentT, Diag):
    """t mixture with diagonal scale matrices; covariances (C, D): diagonals of Σ [data unit²]."""


@storable("model.StudentTSpherical")
@dataclass(frozen=True)
class StudentTSpherical(StudentT, Spherical):
    """t mixture with spherical scale matrices; covariances (C,): σ² of Σ = σ² I [data unit²]."""


@dataclass(frozen=True)
class WhitenedOwn(Whitened, OwnCovariance):
    """Gaussians with one covariance matrix for all components, whose moments have weights that do not sum to 1 per row.

    Moments are `OwnMoments` whose second moment is one matrix (D, D): the weighted sum over all points of
    (x − o)(x − o)ᵀ, with the mean o of the centers.
    """

    full: ClassVar[bool] = True
    least_variances = None  # not defined for components that share one Σ

    @cached
    def factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Factors of the precisions of whitened points, which are ones (C, D), and log |L⁻¹| (C,), where Σ = L Lᵀ."""
        log_determinant = float(np.log(np.diagonal(self._inverse)).sum())
        return np.ones(self.centers.shape), np.full(self.n_components, log_determinant)

    @cached
    def gaussians(self) -> GaussianParameters:
        """Parameters of the densities of whitened points, for kernels."""
        centers = self.embedded_centers
        offsets = within(self._offsets - self._offsets.min(), centers.dtype)
        return GaussianParameters(centers, np.ones_like(centers), offsets)

    def components(self) -> GaussianCosts:
        return GaussianCosts(self.gaussians, np.ones(self.centers.shape))

    def summarise(self, block: Block, shares: Responsibilities) -> OwnMoments:
        q = shares.responsibilities
        counts, sums = block.X.accumulate(shares.ids, q, block.sample_weight, n_components=self.n_components)
        weights = np.ones(len(block)) if q is None else q.sum(axis=1)
        if block.sample_weight is not None:
            weights *= block.sample_weight
        return OwnMoments(counts, sums, self._scatter(block, weights))

    def _scatter(self, block: Block, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ_n weights_n (x_n − o)(x_n − o)ᵀ (D, D) over the rows of a block, with the mean o of all centers."""
        origin = self._origin[np.newaxis].astype(self.centers.dtype)
        every = np.zeros((len(block), 1), dtype=np.int32)
        scatter: NDArray[np.float64] = block.X.moments(origin, every, None, weights, full=True)[2][0]
        return scatter

    def _second_about(self, means: NDArray[np.float64], moments: OwnMoments, total: float) -> NDArray[np.float64]:
        return self._within(moments.counts, means, moments.second, self._origin) / total

    def hold_centers(self, moments: OwnMoments, prior: None = None) -> tuple[OwnMoments, None]:
        second = self._scatter_held(moments, moments.second, self._origin)
        return replace(super().hold_centers(moments)[0], second=second), None

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[OwnMoments, None]:
        sums = shares[:, np.newaxis] * self.centers.astype(np.float64)
        return OwnMoments(shares, sums, self._scatter_about(self._origin, shares)), None


@storable("model.StudentTPooled")
@dataclass(frozen=True)
class StudentTPooled(StudentT, PooledFull):
    """t mixture with one scale matrix, for rows with missing values; covariances (C, D, D): C copies of it."""


@storable("model.StudentTTied")
@dataclass(frozen=True)
class StudentTTied(StudentT, WhitenedOwn):  # type: ignore[misc]  # moments are those of t mixtures
    """t mixture with one full scale matrix; covariances (D, D): Σ [data unit²]."""

    covariance_type: ClassVar[str] = "tied"

    def with_missing(self) -> StudentTPooled:  # type: ignore[override]
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        covariances = np.repeat(self.covariances[np.newaxis], self.n_components, axis=0)
        return StudentTPooled(**given | {"covariances": covariances})

    def expect_all(self, block: Block) -> Expected:
        """Return the result of an exact E-step of a block; rows are whitened in pieces, to limit memory."""
        pieces = self._whitened_pieces(block)
        found = joined(points.respond(self.gaussians, weights) for points, weights in pieces)
        sums = found.first @ self._lower.T + found.counts[:, np.newaxis] * self.centers
        weighted = OwnMoments(found.counts, sums, self._scatter(block, found.row_weights))
        return expect_gaussians(block, found, StudentTMoments(found.shares, weighted, found.logs), self.error_of)


@storable("model.StudentTTiedSpherical")
@dataclass(frozen=True)
class StudentTTiedSpherical(StudentT, Spherical):
    """t mixture with one spherical scale matrix; covariances: σ² of Σ = σ² I [data unit²], an array without axes."""

    covariance_type: ClassVar[str] = "tied_spherical"
    axes: ClassVar[str] = ""
    least_variances = None  # not defined for components that share one Σ
    n_singular = 0

    @property
    def spread(self) -> NDArray[np.float64]:
        return np.full(self.centers.shape, float(self.covariances))

    def _covariances_along(self, before: Self, share: float) -> NDArray[np.float64]:
        along = scaled_along(np.atleast_1d(self.covariances), np.atleast_1d(before.covariances), share)
        return positive(along, self.centers.dtype)[0]

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        variance = np.maximum(pooled(shares, second), 0).mean(keepdims=True) + self.reg_covar
        return np.asarray(positive(variance, self.centers.dtype, scale.pool(shares).average_columns())[0])

    def attributes(self) -> dict[str, Any]:
        found = super().attributes()
        return {name: value if name == "dof_" else float(value) for name, value in found.items()}
