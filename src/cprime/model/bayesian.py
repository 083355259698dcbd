"""Gaussian mixtures whose parameters have a posterior: variational Bayes (Attias 2000; Bishop 2006, section 10.2).

The posterior is q(Θ) = q(π) Π_c q(μ_c, Λ_c) with precision matrices Λ_c. The weights π have a Dirichlet prior, or that
of a truncated Dirichlet process, π_c = v_c Π_{j<c} (1 − v_j) with beta variables v_c (Blei & Jordan 2006). Means and
precisions have Normal-Wishart priors. The expected log-density of component c for a point x,

    E[log π_c] + ½ E[log |Λ_c|] − D/2 log 2π − D/(2β_c) − ½ (x − m_c)ᵀ Σ_c⁻¹ (x − m_c),   Σ_c⁻¹ = E[Λ_c] = ν_c W_c,

is that of a Gaussian with another factor in place of π_c. So kernels and searches for Gaussians compute E-steps. The
M-step is that of `conjugate.py`, because the strength of the prior is ν_0. The objective F has the additional term
−KL(q(Θ) ‖ p(Θ)), which makes N F the evidence lower bound, also if active sets are truncated.

All types have Wishart distributions of D × D matrices, as in scikit-learn, where W_c is diagonal for "diag", and a
multiple of the unit matrix for "spherical". For "tied" all C precisions have the same posterior, but each has its own
prior, so counts of points enter as N / C.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln

from cprime._utils.declared import Array, Positive, Sizes
from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.kernels import Floats
from cprime.model.base import Gaussian
from cprime.model.conjugate import Conjugate, ConjugateOwn, ConjugatePrior, ConjugateTied
from cprime.model.covariance import scaled_along
from cprime.model.interface import Weights
from cprime.model.own_covariance import Diag, FullCovariance, Spherical
from cprime.model.pooled import PooledFull
from cprime.model.tied import Tied


@storable("model.BayesianPrior")
@dataclass(frozen=True)
class BayesianPrior(ConjugatePrior):
    """Prior of all parameters: scatter Λ is the inverse of the Wishart scale matrix W_0, strength its degrees ν_0.

    concentration: parameter of the Dirichlet distribution of weights, or α of the Dirichlet process
    is_process: whether weights have the prior of a truncated Dirichlet process
    """

    _: KW_ONLY
    concentration: float
    is_process: bool

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, Any], is_process: bool, addition: float = 0.0) -> Self:
        """Return the prior that is described by the fitted attributes whose names end in "prior_"."""
        return cls(
            np.asarray(attributes["mean_prior_"], dtype=np.float64),
            float(attributes["mean_precision_prior_"]),
            np.asarray(attributes["covariance_prior_"], dtype=np.float64),
            float(attributes["degrees_of_freedom_prior_"]),
            addition,
            concentration=float(attributes["weight_concentration_prior_"]),
            is_process=is_process,
        )

    @property
    def weight_parameters(self) -> Any:
        """Parameters of the prior of the weights: one number, or those of the beta distributions (2, 1)."""
        return np.array([[1.0], [self.concentration]]) if self.is_process else self.concentration

    @property
    def log_wishart(self) -> float:
        """Logarithm of the normalizing integral of the prior of the precisions, without a term that depends on D."""
        D, scatter = len(self.mean), self.scatter
        if scatter.ndim == 2:
            log_determinant = 2 * np.log(np.diagonal(np.linalg.cholesky(scatter))).sum()
        else:
            log_determinant = np.log(np.broadcast_to(scatter, D)).sum()
        return float(_log_wishart(np.array([self.strength]), -log_determinant, D)[0])

    def log_integral(self, C: int) -> float:
        """Return the logarithm of the normalizing integral of the prior of C components, up to a function of D and C.

        scikit-learn leaves it out of the lower bound, of which it is subtracted.
        """
        alpha, D = self.concentration, len(self.mean)
        weights = C * betaln(1.0, alpha) if self.is_process else C * gammaln(alpha) - gammaln(C * alpha)
        return float(C * (self.log_wishart - 0.5 * D * np.log(self.mean_precision)) + weights)


def _is_concentration(value: Any, sizes: Sizes) -> bool:
    return Array("C" if np.ndim(value) == 1 else "2 C", above=0)(value, sizes)


def _log_wishart(dof: NDArray[np.float64], log_determinant: NDArray[np.float64] | float, D: int) -> NDArray[np.float64]:
    """Return the logarithm of the normalizing integral of Wishart distributions with scale matrices W, (C,) each.

    dof: degrees of freedom    log_determinant: log |W|. A term that depends on D only is left out.
    """
    gammas = gammaln(0.5 * (dof[:, np.newaxis] - np.arange(D))).sum(axis=1)
    return np.asarray(0.5 * dof * (log_determinant + D * np.log(2)) + gammas)


@dataclass(frozen=True)
class Bayesian(Conjugate):
    """Base of families of posteriors q(Θ). Their covariances are Σ_c = (ν_c W_c)⁻¹, and their weights are E[π_c].

    counts (C,): N_c, the weight of the points from which the posterior of each component was computed; the parameters
    β_c = κ + N_c, ν_c = ν_0 + N_c and those of the weights follow from it.
    """

    _: KW_ONLY
    counts: Any = None

    repeats: ClassVar[bool] = True

    @property
    def mean_precision(self) -> NDArray[np.float64]:
        """Precisions β_c (C,) of the means, in points."""
        return np.asarray(self.hyper.mean_precision + self.counts)

    @property
    def dof(self) -> NDArray[np.float64]:
        """Degrees of freedom ν_c (C,) of the Wishart distributions."""
        counts = np.full(self.n_components, self.counts.mean()) if self.is_shared else self.counts
        return np.asarray(self.hyper.strength + counts)

    @property
    def concentration(self) -> NDArray[np.float64]:
        """Parameters of the posterior of the weights: Dirichlet (C,), or the beta distributions of a process (2, C)."""
        counts, prior = self.counts, self.hyper
        if not prior.is_process:
            return np.asarray(prior.concentration + counts)
        return np.stack([1 + counts, prior.concentration + np.append(np.cumsum(counts[:0:-1])[::-1], 0.0)])

    @cached
    def _expected_log_weights(self) -> NDArray[np.float64]:
        """E[log π_c] (C,)."""
        given = self.concentration
        if not self.hyper.is_process:
            return np.asarray(digamma(given) - digamma(given.sum()))
        logs, others = digamma(given) - digamma(given.sum(axis=0))
        return np.asarray(logs + np.append(0.0, np.cumsum(others)[:-1]))

    @cached
    def _expected_log_precisions(self) -> NDArray[np.float64]:
        """E[log |Λ_c|] − log |E[Λ_c]| (C,)."""
        D, dof = self.n_features, self.dof
        degrees = 0.5 * (dof[:, np.newaxis] - np.arange(D))
        return np.asarray(digamma(degrees).sum(axis=1) + D * np.log(2 / dof))

    @cached
    def _log_weights(self) -> NDArray[np.float64]:
        """Logarithm (C,) of the factor of the Gaussian density that has the mean m_c and the covariance Σ_c."""
        spread = self._expected_log_precisions - self.n_features / self.mean_precision
        return np.asarray(self._expected_log_weights + 0.5 * spread)

    @property
    def log_prior(self) -> float:
        """−KL(q(Θ) ‖ p(Θ)) [nats]."""
        terms, prior, D, dof = self._terms, self.hyper, self.n_features, self.dof
        ratio = prior.mean_precision / self.mean_precision
        means = 0.5 * (D * (ratio - 1 - np.log(ratio)) + prior.mean_precision * terms.squares)
        log_det = -terms.log_determinants  # log |E[Λ_c]|
        precisions = prior.log_wishart - _log_wishart(dof, log_det - D * np.log(dof), D)
        precisions += 0.5 * (
            (dof - prior.strength) * (self._expected_log_precisions + log_det) - D * dof + terms.traces
        )
        return -float(means.sum() + precisions.sum() + self._divergence_of_weights)

    @property
    def _divergence_of_weights(self) -> float:
        """KL(q(π) ‖ p(π)) [nats]."""
        given, before, C = self.concentration, self.hyper.weight_parameters, self.n_components
        if not self.hyper.is_process:
            norms = gammaln(given.sum()) - gammaln(given).sum() - gammaln(C * before) + C * gammaln(before)
            return float(norms + ((given - before) * self._expected_log_weights).sum())
        logs = digamma(given) - digamma(given.sum(axis=0))
        norms_of_betas = betaln(*before) - betaln(*given)
        return float((norms_of_betas + ((given - before) * logs).sum(axis=0)).sum())

    @classmethod
    def starting(
        cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None, *, hyper: Any = None
    ) -> Self:
        # The prior has `reg_covar` already, as the addition to the variance of each point.
        return super().starting(centers, weights, 0.0, precisions, hyper=hyper)

    def _new_weights(self, counts: NDArray[np.float64]) -> dict[str, Any]:
        new = replace(self, counts=counts)
        given = new.concentration
        if self.hyper.is_process:
            left = given[1] / given.sum(axis=0)
            given = (1 - left) * np.append(1.0, np.cumprod(left[:-1]))
        return {"counts": counts, "weights": given / given.sum()}

    def extrapolated(self, before: Self, share: float) -> Self:
        return replace(super().extrapolated(before, share), counts=scaled_along(self.counts, before.counts, share))

    def attributes(self) -> dict[str, Any]:
        prior, dof = self.hyper, self.dof
        return super().attributes() | {
            "weight_concentration_": self.concentration,
            "mean_precision_": self.mean_precision,
            "degrees_of_freedom_": float(dof[0]) if self.is_shared else dof,
            "weight_concentration_prior_": prior.concentration,
            "mean_precision_prior_": prior.mean_precision,
            "mean_prior_": prior.mean,
            "degrees_of_freedom_prior_": prior.strength,
            "covariance_prior_": prior.scatter if prior.scatter.ndim else float(prior.scatter),
        }

    @classmethod
    def attribute_types(cls) -> dict[str, Any]:
        """Return the types of the attributes, by name."""
        shape = {"full": Array("D D"), "tied": Array("D D"), "diag": Array("D", above=0), "spherical": Positive}
        return super().attribute_types() | {
            "weight_concentration_": Annotated[Any, _is_concentration],
            "mean_precision_": Annotated[NDArray, Array("C", above=0)],
            "degrees_of_freedom_": Positive
            if cls.covariance_type == "tied"
            else Annotated[NDArray, Array("C", above=0)],
            "weight_concentration_prior_": Positive,
            "mean_precision_prior_": Positive,
            "mean_prior_": Annotated[NDArray, Array("D")],
            "degrees_of_freedom_prior_": Positive,
            "covariance_prior_": Annotated[Any, shape[cls.covariance_type]],
        }

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        """Return the posterior with these attributes, which must all be there."""
        model: Any = super().from_attributes(attributes, centers, weights)  # type: ignore[misc]
        prior = BayesianPrior.from_attributes(attributes, np.ndim(attributes["weight_concentration_"]) == 2, reg_covar)
        counts = np.asarray(attributes["mean_precision_"], dtype=np.float64) - prior.mean_precision
        return replace(model, hyper=prior, counts=np.maximum(counts, 0.0))


NAMES = (
    *Gaussian.attribute_names,
    *("weight_concentration_", "mean_precision_", "degrees_of_freedom_", "weight_concentration_prior_"),
    *("mean_precision_prior_", "mean_prior_", "degrees_of_freedom_prior_", "covariance_prior_"),
)


@storable("model.BayesianFull")
@dataclass(frozen=True)
class BayesianFull(Bayesian, ConjugateOwn, FullCovariance):
    """Posterior of a Gaussian mixture with full covariances."""

    attribute_names: ClassVar[tuple[str, ...]] = NAMES


@storable("model.BayesianDiag")
@dataclass(frozen=True)
class BayesianDiag(Bayesian, ConjugateOwn, Diag):
    """Posterior of a Gaussian mixture with diagonal covariances."""

    attribute_names: ClassVar[tuple[str, ...]] = NAMES


@storable("model.BayesianSpherical")
@dataclass(frozen=True)
class BayesianSpherical(Bayesian, ConjugateOwn, Spherical):
    """Posterior of a Gaussian mixture with spherical covariances."""

    attribute_names: ClassVar[tuple[str, ...]] = NAMES


@storable("model.BayesianPooled")
@dataclass(frozen=True)
class BayesianPooled(Bayesian, ConjugateOwn, PooledFull):
    """Posterior of a Gaussian mixture with one covariance, for rows with missing values."""

    attribute_names: ClassVar[tuple[str, ...]] = NAMES


@storable("model.BayesianTied")
@dataclass(frozen=True)
class BayesianTied(Bayesian, ConjugateTied):
    """Posterior of a Gaussian mixture with one covariance."""

    attribute_names: ClassVar[tuple[str, ...]] = NAMES

    def with_missing(self) -> BayesianPooled:
        found = Tied.with_missing(self)
        return replace(BayesianPooled.with_prior(found, self.hyper), counts=self.counts)


BAYESIAN: dict[str, Any] = {
    each.covariance_type: each for each in (BayesianFull, BayesianTied, BayesianDiag, BayesianSpherical)
}
