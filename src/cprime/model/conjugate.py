"""Gaussian families with a conjugate prior of means and covariances, whose M-steps maximize the posterior density.

The log-density of the prior is, up to a constant and with a strength p, a scatter Λ, a mean m and its precision κ,

    log p(Θ) = −½ Σ_c (p log |Σ_c| + tr Λ Σ_c⁻¹ + κ (μ_c − m)ᵀ Σ_c⁻¹ (μ_c − m)).

The first two terms occur only once if all components share one Σ. The M-step is that of κ more points at m in each
component, whose scatter has the additional term Λ and is divided by N_c + p. See Fraley & Raftery, *Bayesian
regularization for normal mixture estimation and model-based clustering*. `bayesian.py` has posteriors instead of modes.
"""

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.kernels import Floats
from cprime.model.base import Gaussian, means_of
from cprime.model.covariance import DataScale
from cprime.model.interface import Weights
from cprime.model.own_covariance import Diag, FullCovariance, OwnCovariance, OwnMoments, Spherical
from cprime.model.pooled import PooledFull
from cprime.model.scatter import Scatter
from cprime.model.tied import Tied, TiedMoments


@storable("model.ConjugatePrior")
@dataclass(frozen=True)
class ConjugatePrior:
    """Conjugate prior of the means and covariances of a mixture, the same for every component.

    mean (D,): m [data units]    mean_precision: κ ≥ 0, the number of points that m is worth
    scatter: Λ [data unit²], a matrix (D, D), its diagonal (D,), or λ where Λ is λ times the unit matrix
    strength: p    addition: number added to the variance of each point in M-steps [data unit²]
    """

    mean: NDArray[np.float64]
    mean_precision: float
    scatter: NDArray[np.float64]
    strength: float
    addition: float = 0.0


class PriorTerms(NamedTuple):
    """Terms of the log-density of the prior for each component, with covariance Σ_c and mean μ_c: (C,) each.

    log_determinants: log |Σ_c|    traces: tr Λ Σ_c⁻¹    squares: (μ_c − m)ᵀ Σ_c⁻¹ (μ_c − m)
    """

    log_determinants: NDArray[np.float64]
    traces: NDArray[np.float64]
    squares: NDArray[np.float64]


@dataclass(frozen=True)
class Conjugate(Gaussian):
    """Base of families with a conjugate prior `hyper` of means and covariances."""

    _: KW_ONLY
    hyper: Any = None

    # Whether components that share one covariance have each their own prior of it.
    repeats: ClassVar[bool] = False
    axes: ClassVar[Any]
    _terms: ClassVar[Any]  # property: the `PriorTerms` of the present parameters

    @property
    def is_shared(self) -> bool:
        """True if all components share one covariance."""
        return not self.axes.startswith("C")

    @property
    def log_prior(self) -> float:
        """Log-density of the prior at these parameters, up to a constant [nats]."""
        terms, prior = self._terms, self.hyper
        covariances = prior.strength * terms.log_determinants + terms.traces
        once = covariances.mean() if self.is_shared else covariances.sum()
        return -0.5 * float(once + prior.mean_precision * terms.squares.sum())

    @classmethod
    def with_prior(cls, model: Any, hyper: ConjugatePrior) -> Self:
        """Return the parameters of a model without this prior as an instance of this class."""
        given = {each.name: getattr(model, each.name) for each in fields(cls) if hasattr(model, each.name)}
        return cls(**given | {"hyper": hyper})

    @classmethod
    def starting(
        cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None, *, hyper: Any = None
    ) -> Self:
        model: Self = super().starting(centers, weights, reg_covar, precisions)  # type: ignore[misc]
        return replace(model, hyper=hyper)

    def _new_means(self, moments: Any) -> NDArray[np.float64]:
        prior = self.hyper
        counts, sums = moments.counts + prior.mean_precision, moments.sums + prior.mean_precision * prior.mean
        return means_of(counts, sums, self.centers)

    def _divided(self, scatter: NDArray[np.float64], counts: Any) -> NDArray[np.float64]:
        """Return covariances (…, D, D) or variances (…, D) from scatters of points of total weight `counts` (…)."""
        prior, copies = self.hyper, self.n_components if self.is_shared and self.repeats else 1
        counts = np.reshape(counts, np.shape(counts) + (1,) * (scatter.ndim - np.ndim(counts)))
        eye = np.eye(scatter.shape[-1]) if self.axes.endswith("DD") else 1.0
        whole = scatter + copies * prior.scatter + counts * prior.addition * eye
        return np.asarray(whole / (counts + copies * prior.strength))


class ConjugateOwn(Conjugate, OwnCovariance):
    """Base of families with a covariance for each component, or a copy of the common one, and a conjugate prior."""

    def _second_about(self, means: NDArray[np.float64], moments: OwnMoments, total: float) -> NDArray[np.float64]:
        """Return the new covariances (C, D, D) or variances (C, D), before they get the shape of the family."""
        prior, centers = self.hyper, self.centers.astype(np.float64)
        scatter = moments.second
        before = np.full(len(means), prior.mean_precision)
        for shift, weight in ((prior.mean - centers, before), (means - centers, -moments.counts - before)):
            weighted = weight[:, np.newaxis] * shift
            scatter = scatter + (weighted[:, :, np.newaxis] * shift[:, np.newaxis] if self.full else weighted * shift)
        if not self.is_shared:
            return self._divided(scatter, moments.counts)
        return np.broadcast_to(self._divided(scatter.sum(axis=0), moments.counts.sum()), scatter.shape)

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        # Equal shares, because components without points have the covariance of the prior, not the mean of the others.
        equal = np.full(len(shares), 1 / len(shares))
        shaped: NDArray[np.float64] = super()._shaped(equal, second, scale)  # type: ignore[safe-super]
        return shaped

    @cached
    def _terms(self) -> PriorTerms:
        (factors, logs), scatter = self.factors, self.hyper.scatter
        shift = self.centers - self.hyper.mean
        if self.full:
            traces = np.square(factors @ np.linalg.cholesky(scatter)).sum(axis=(1, 2))
            scaled = np.matmul(factors, shift[:, :, np.newaxis])[:, :, 0]
        else:
            traces, scaled = (np.square(factors) * scatter).sum(axis=1), factors * shift
        return PriorTerms(-2 * logs, traces, np.square(scaled).sum(axis=1))


class ConjugateTied(Conjugate, Tied):
    """Base of families with one covariance matrix for all components, by which points are whitened, and a prior."""

    def maximise(self, moments: TiedMoments, prior: Scatter | None = None) -> Self:
        assert prior is not None
        hyper, counts = self.hyper, moments.counts
        means, points = self._new_means(moments), means_of(counts, moments.sums, self.centers)
        scatter = self._within(counts, points, np.asarray(prior.squares), prior.mean)
        for shift, weight in ((points - means, counts), (means - hyper.mean, hyper.mean_precision)):
            scatter = scatter + shift.T @ (np.reshape(weight, (-1, 1)) * shift)
        second = self._divided(scatter, moments.weight)
        scale = DataScale.measure(counts, means, np.diagonal(second)[np.newaxis], self.centers.dtype)
        covariances = self._shaped(counts / counts.sum(), second, scale)
        centers = means.astype(self.centers.dtype)
        return replace(self, centers=centers, covariances=covariances, **self._new_weights(counts))

    @cached
    def _terms(self) -> PriorTerms:
        C, inverse = self.n_components, self._inverse
        log_determinant = 2 * np.log(np.diagonal(self._lower)).sum()
        trace = np.square(inverse @ np.linalg.cholesky(self.hyper.scatter)).sum()
        squares = np.square((self.centers - self.hyper.mean) @ inverse.T).sum(axis=1)
        return PriorTerms(np.full(C, log_determinant), np.full(C, trace), squares)


@storable("model.PenalizedFull")
@dataclass(frozen=True)
class PenalizedFull(ConjugateOwn, FullCovariance):
    """Gaussian mixture with full covariances and a Normal-inverse-Wishart prior."""


@storable("model.PenalizedDiag")
@dataclass(frozen=True)
class PenalizedDiag(ConjugateOwn, Diag):
    """Gaussian mixture with diagonal covariances and a Normal-inverse-gamma prior for each column."""


@storable("model.PenalizedSpherical")
@dataclass(frozen=True)
class PenalizedSpherical(ConjugateOwn, Spherical):
    """Gaussian mixture with spherical covariances and a Normal-inverse-gamma prior."""


@storable("model.PenalizedPooled")
@dataclass(frozen=True)
class PenalizedPooled(ConjugateOwn, PooledFull):
    """Gaussian mixture with one covariance and a Normal-inverse-Wishart prior, for rows with missing values."""


@storable("model.PenalizedTied")
@dataclass(frozen=True)
class PenalizedTied(ConjugateTied):
    """Gaussian mixture with one covariance and a Normal-inverse-Wishart prior."""

    def with_missing(self) -> PenalizedPooled:
        return PenalizedPooled.with_prior(super().with_missing(), self.hyper)


PENALIZED: dict[str, Any] = {
    each.covariance_type: each for each in (PenalizedFull, PenalizedDiag, PenalizedSpherical, PenalizedTied)
}
