"""Densities P_b with weights α_b: Gaussians and t distributions in any dimension, scipy.stats ones in one dimension.

The classes compute log densities, draws, and breakpoints for quadrature. They import nothing from the files on
partitions and algorithms.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial, singledispatch
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from scipy.stats import t
from sklearn.utils.validation import check_is_fitted

from cprime._utils.arguments import check_integer
from cprime._utils.random import check_random_state
from cprime.estimators import (
    BayesianGaussianMixture,
    FuzzyKMeans,
    GaussianMixture,
    KMeans,
    SoftKMeans,
    StudentTMixture,
)
from cprime.estimators.fitted import data_for, model_of
from cprime.estimators.mixture import Mixture
from cprime.estimators.opening import preparation_of
from cprime.kernels import Rows
from cprime.model import Model
from cprime.model.covariance import inverses
from cprime.model.student_t import log_normalizer
from cprime.sources import array_of
from cprime.sources.checked import checked

Floats = NDArray[np.float64]
DensityEstimator = KMeans | SoftKMeans | Mixture  # estimators whose components have densities

# Breakpoints of quadrature, in standard deviations from a mean. The probability of a Gaussian beyond 12 is 4e-33.
_REACH = np.concatenate([-np.arange(12, 0, -1.0), [0.0], np.arange(1.0, 13)])
_LEVELS = 10.0 ** -np.arange(1, 16)


@runtime_checkable
class MixtureDensity(Protocol):
    """Interface of a mixture of densities P_b with weights α_b: a model, or a known sampling density."""

    @property
    def weights(self) -> Floats:
        """Return the weights α_b of the component densities, (C,), nonnegative, with sum 1."""

    @property
    def n_features(self) -> int:
        """Return the number of features D."""

    def log_densities(self, X: Floats) -> Floats:
        """Return the log density of each component b at each row of X (n, D): log P_b(x_n), (n, C) [nats]."""

    def sample(self, n_samples: int, random_state: Any = None) -> Floats:
        """Return independent rows (n, D), drawn from the mixture Σ_b α_b P_b of densities P_b with weights α_b."""

    def with_equal_weights(self) -> Self:
        """Return a mixture of the same C densities, each with weight 1/C."""

    def breakpoints(self) -> Floats:
        """Return points (m,) on the line between which a quadrature integrates separately.

        They enclose almost all probability, and the densities are smooth between them.
        """


def log_mixture_density(mixture: MixtureDensity, X: Floats) -> Floats:
    """Return the log density of a mixture, log Σ_b α_b P_b(x_n), at rows X (n, D): (n,) [nats]."""
    return logsumexp(mixture.log_densities(X) + log_weights(mixture.weights), axis=1)


def log_weights(weights: Floats) -> Floats:
    """Return the logarithms (C,) of mixing weights (C,); −∞ if a weight is zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(weights)


def _checked_rows(X: Any, D: int) -> Floats:
    """Return the argument X as an array (n, D) of float64; raise ValueError for another shape or infinite numbers."""
    X = array_of(X, "X", np.float64)
    if X.ndim != 2 or X.shape[1] != D or not np.isfinite(X).all():
        raise ValueError(f"X must be rows of n_features={D} finite numbers, got shape {X.shape} or other numbers.")
    return X


def _checked_weights(weights: ArrayLike | None, C: int) -> Floats:
    if weights is None:
        return np.full(C, 1 / C)
    checked = array_of(weights, "weights", np.float64)
    if checked.shape != (C,) or not (checked >= 0).all() or not np.isclose(checked.sum(), 1):
        raise ValueError(f"weights must be {C} numbers that are not negative and sum to 1, got {weights!r}.")
    return checked


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Gaussian densities with weights: components to be evaluated, or a sampling density Q.

    Parameters
    ----------
    means : array-like of shape (n_components, n_features)
    covariances : array-like of shape (n_components, n_features, n_features)
        Symmetric and positive definite, in data unit².
    weights : array-like of shape (n_components,), default=None
        Not negative, with sum 1; None is equal weights.

    Raises
    ------
    ValueError
        If a shape does not fit, a number is not finite, or a covariance is not positive definite.

    Examples
    --------
    >>> from cprime.theory import Gaussians
    >>> Q = Gaussians.spherical([-2, 2], [1.5, 1.5])
    >>> Q.n_components, Q.n_features
    (2, 1)
    """

    means: Floats
    covariances: Floats
    weights: Floats = None  # type: ignore[assignment]
    _factors: Floats = field(init=False, repr=False)  # lower Cholesky factors of the covariances

    def __post_init__(self) -> None:
        means = array_of(self.means, "means", np.float64).copy()
        covariances = array_of(self.covariances, "covariances", np.float64).copy()
        if means.ndim != 2 or 0 in means.shape:
            raise ValueError(f"means must have shape (n_components, n_features), got {means.shape}.")
        C, D = means.shape
        if covariances.shape != (C, D, D):
            raise ValueError(f"covariances must have shape {(C, D, D)}, got {covariances.shape}.")
        if not (np.isfinite(means).all() and np.isfinite(covariances).all()):
            raise ValueError("means and covariances must be finite (covariances are squares of standard_deviations).")
        try:
            factors = np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError as error:
            raise ValueError("covariances must be positive definite.") from error
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "covariances", covariances)
        object.__setattr__(self, "weights", _checked_weights(self.weights, C))
        object.__setattr__(self, "_factors", factors)

    @classmethod
    def spherical(cls, means: ArrayLike, standard_deviations: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return Gaussians N(μ_b, σ_b² I).

        Parameters
        ----------
        means : array-like of shape (n_components, n_features) or (n_components,)
            Shape (n_components,) means one dimension.
        standard_deviations : float or array-like of shape (n_components,)
            σ_b, positive, in data units.
        weights : array-like of shape (n_components,), default=None
            None is equal weights.

        Returns
        -------
        gaussians : Gaussians
        """
        centers = np.atleast_1d(array_of(means, "means", np.float64))
        centers = centers[:, np.newaxis] if centers.ndim == 1 else centers
        deviations = array_of(standard_deviations, "standard_deviations", np.float64)
        if deviations.shape not in ((), (len(centers),)) or not (deviations > 0).all():
            raise ValueError(f"standard_deviations must be {len(centers)} positive numbers, as many as means, or one.")
        variances = np.broadcast_to(np.square(deviations), len(centers))
        return cls(centers, variances[:, np.newaxis, np.newaxis] * np.eye(centers.shape[1]), weights)  # type: ignore[arg-type]

    @classmethod
    def from_estimator(cls, estimator: KMeans | GaussianMixture) -> Self:
        """Return the components of a fitted estimator.

        Parameters
        ----------
        estimator : KMeans or GaussianMixture
            A fitted estimator. k-means is the mixture with equal weights and the variance σ² of eq. (14) of Lücke &
            Forster.

        Returns
        -------
        gaussians : Gaussians
        """
        found = densities_of(estimator)
        if not isinstance(found, cls) or found is estimator:
            raise TypeError(
                f"estimator must be a KMeans or GaussianMixture, got {estimator!r}: Gaussians cannot represent others."
            )
        return found

    @property
    def n_components(self) -> int:
        """Return the number of components C."""
        return self.means.shape[0]

    @property
    def n_features(self) -> int:
        """Return the number of features D."""
        return self.means.shape[1]

    @property
    def standard_deviations(self) -> Floats:
        """Return σ_b of each component, (C,) [data units]: σ_b² is the mean of the variances of the features."""
        return np.sqrt(np.trace(self.covariances, axis1=1, axis2=2) / self.n_features)

    def log_densities(self, X: Floats) -> Floats:
        """Return the log density of each row of X (n, D) under each Gaussian, log N(x_n; μ_b, Σ_b): (n, C) [nats]."""
        X = _checked_rows(X, self.n_features)
        result = np.empty((self.n_components, len(X)))
        constant = self.n_features / 2 * np.log(2 * np.pi)
        each = zip(result, self.means, self._factors, inverses(self._factors), strict=True)
        for row, mean, factor, inverse in each:
            scaled = (X - mean) @ inverse.T
            row[:] = -0.5 * np.einsum("nd,nd->n", scaled, scaled) - np.log(np.diag(factor)).sum() - constant
        return result.T

    def sample(self, n_samples: int, random_state: Any = None) -> Floats:
        """Draw independent rows from the mixture, in random order.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        n_samples = check_integer(n_samples, "n_samples", 1)
        rng = check_random_state(random_state)
        component = rng.choice(self.n_components, n_samples, p=self.weights)
        noise = rng.standard_normal((n_samples, self.n_features))
        return self.means[component] + np.einsum("nij,nj->ni", self._factors[component], noise)

    def with_equal_weights(self) -> Self:
        """Return a mixture of the same C densities, each with weight 1/C."""
        return replace(self, weights=None)  # type: ignore[arg-type]

    def breakpoints(self) -> Floats:
        """Return points (m,) between which quadrature integrates separately: μ, and μ ± 1, … 12 standard deviations."""
        return (self.means + self.standard_deviations[:, np.newaxis] * _REACH).ravel()


@dataclass(frozen=True, eq=False)
class Univariate:
    """One-dimensional densities of scipy.stats, with weights.

    Parameters
    ----------
    distributions : sequence of frozen continuous distributions
        Such as ``scipy.stats.laplace(0, 1)``.
    weights : array-like of shape (n_components,), default=None
        Not negative, with sum 1; None is equal weights.

    Examples
    --------
    >>> from scipy.stats import expon, norm
    >>> from cprime.theory import Univariate
    >>> Univariate([norm(0, 1), expon()]).weights.tolist()
    [0.5, 0.5]
    """

    distributions: Sequence[Any]
    weights: Floats = None  # type: ignore[assignment]
    n_features: ClassVar[int] = 1

    def __post_init__(self) -> None:
        given, names = self.distributions, ("logpdf", "rvs", "ppf", "isf")
        if not isinstance(given, Sequence) or not given or not all(hasattr(d, name) for d in given for name in names):
            raise ValueError("distributions must be frozen continuous distributions of scipy.stats, at least one.")
        object.__setattr__(self, "weights", _checked_weights(self.weights, len(self.distributions)))

    def log_densities(self, X: Floats) -> Floats:
        """Return the log density of each component b at each row of X (n, 1): log P_b(x_n), (n, C) [nats]."""
        x = _checked_rows(X, 1)[:, 0]
        return np.column_stack([distribution.logpdf(x) for distribution in self.distributions])

    def sample(self, n_samples: int, random_state: Any = None) -> Floats:
        """Return independent rows (n_samples, 1), drawn from the mixture of the densities."""
        check_integer(n_samples, "n_samples", 1)
        rng = check_random_state(random_state)
        component = rng.choice(len(self.distributions), n_samples, p=self.weights)
        draws = np.column_stack([d.rvs(size=n_samples, random_state=rng) for d in self.distributions])
        return np.take_along_axis(draws, component[:, np.newaxis], axis=1)

    def with_equal_weights(self) -> Self:
        """Return a mixture of the same C densities, each with weight 1/C."""
        return replace(self, weights=None)  # type: ignore[arg-type]

    def breakpoints(self) -> Floats:
        """Return points (m,) on the line between which a quadrature integrates separately.

        They are the quantiles of all densities for probabilities 0.2 … 0.8, 10⁻¹ … 10⁻¹⁵, and 1 minus the latter.
        """
        middle = np.linspace(0.2, 0.8, 7)
        places = [np.concatenate([d.ppf(_LEVELS), d.ppf(middle), d.isf(_LEVELS)]) for d in self.distributions]
        return np.concatenate(places)


@dataclass(frozen=True, eq=False)
class StudentTs:
    """Multivariate t densities with weights: the components of a fitted `StudentTMixture`.

    gaussians: `Gaussians` with the means μ, the scale matrices Σ as covariances, and the weights
    dof (C,): degrees of freedom ν
    """

    gaussians: Gaussians
    dof: Floats

    @property
    def weights(self) -> Floats:
        """Return the mixing weights α_b of the components, (C,)."""
        return self.gaussians.weights

    @property
    def n_features(self) -> int:
        """Return the number of features D."""
        return self.gaussians.n_features

    def log_densities(self, X: Floats) -> Floats:
        """Return log t(x_n; μ_b, Σ_b, ν_b), the log density of each row of X (n, D) under each component: (n, C)."""
        D, factors = self.n_features, self.gaussians._factors
        peaks = -np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1) - D / 2 * np.log(2 * np.pi)
        squares = 2 * (peaks - self.gaussians.log_densities(X))  # squared Mahalanobis distances (n, C)
        return peaks - 0.5 * (log_normalizer(self.dof, D) + (self.dof + D) * np.log1p(squares / self.dof))

    def sample(self, n_samples: int, random_state: Any = None) -> Floats:
        """Return independent rows (n, D), drawn from the mixture of t densities.

        Each row is drawn from a Gaussian with precision u Σ⁻¹, where u is a random number of Gamma(ν/2, ν/2).
        """
        rng, C = check_random_state(random_state), len(self.dof)
        component = rng.choice(C, n_samples, p=self.weights)
        noise = rng.standard_normal((n_samples, self.n_features))
        noise /= np.sqrt(rng.chisquare(self.dof[component]) / self.dof[component])[:, np.newaxis]
        return self.gaussians.means[component] + np.einsum("nij,nj->ni", self.gaussians._factors[component], noise)

    def with_equal_weights(self) -> Self:
        """Return a mixture of the same C densities, each with weight 1/C."""
        return replace(self, gaussians=self.gaussians.with_equal_weights())

    def breakpoints(self) -> Floats:
        """Return points (m,) on the line between which quadrature integrates separately: quantiles of all densities."""
        means, deviations = self.gaussians.means[:, 0], self.gaussians.standard_deviations
        return Univariate([t(*each) for each in zip(self.dof, means, deviations, strict=True)]).breakpoints()


@dataclass(frozen=True, eq=False)
class FittedDensities:
    """Densities of the components of a fitted mixture of any family, or probabilities if its columns are discrete.

    weights (C,): mixing weights α_b
    """

    estimator: Mixture
    weights: Floats

    @property
    def n_features(self) -> int:
        """Return the number of features D."""
        return int(self.estimator.n_features_in_)

    def log_densities(self, X: Floats) -> Floats:
        """Return the log density of each row of X (n, D) under each component: (n, C)."""
        data = data_for(self.estimator, X)
        given: Any = model_of(self.estimator, data)
        model = replace(given, weights=None)
        return data.map(partial(_log_densities, model), None, np.float64) + preparation_of(self.estimator).log_volume

    def sample(self, n_samples: int, random_state: Any = None) -> Floats:
        """Return independent rows (n, D), drawn from the mixture with these weights.

        Raises TypeError for columns of categories, whose draws are codes.
        """
        if hasattr(self.estimator, "categories_"):
            raise TypeError(f"The sampling density must be of numbers, got {type(self.estimator).__name__}.")
        rng, model = check_random_state(random_state), model_of(self.estimator)
        labels = rng.choice(len(self.weights), n_samples, p=self.weights / self.weights.sum())
        drawn = model.drawn(labels, rng.standard_normal((n_samples, model.n_normals)))
        return np.asarray(preparation_of(self.estimator).restored(drawn), dtype=np.float64)

    def with_equal_weights(self) -> Self:
        """Return a mixture of the same C densities, each with weight 1/C."""
        return replace(self, weights=np.full(len(self.weights), 1 / len(self.weights)))

    def breakpoints(self) -> None:
        """Return None: integrals are estimated by random draws, also in one dimension."""


@singledispatch
def densities_of(model: Any) -> MixtureDensity | None:
    """Return the `MixtureDensity` of a fitted estimator, or `model` itself if it is one; None for other objects.

    If the fit has scaled its data, the density is that of the data before the scaling.
    """
    return model if isinstance(model, MixtureDensity) else None


@densities_of.register
def _(estimator: KMeans) -> Gaussians:
    check_is_fitted(estimator)
    means = np.asarray(estimator.cluster_centers_, dtype=np.float64)
    preparation = preparation_of(estimator)
    if preparation.scale is None:
        return Gaussians.spherical(means, np.sqrt(estimator.variance_))
    covariances = preparation.restored_covariances(estimator.variance_ * np.eye(means.shape[1]))
    return Gaussians(preparation.restored(means), np.broadcast_to(covariances, (len(means), *covariances.shape)))


@densities_of.register
def _(estimator: SoftKMeans) -> Gaussians:
    check_is_fitted(estimator)
    return Gaussians.spherical(estimator.cluster_centers_, np.sqrt(estimator.variance_))


@densities_of.register
def _(estimator: FuzzyKMeans) -> Gaussians | None:
    check_is_fitted(estimator)
    if estimator.regularizer_ != "entropy":
        return None
    assert estimator.regularization_ is not None
    return Gaussians.spherical(estimator.cluster_centers_, np.sqrt(estimator.regularization_ / 2))


@densities_of.register
def _(estimator: BayesianGaussianMixture) -> None:
    return None


@densities_of.register
def _(estimator: Mixture) -> Any:
    check_is_fitted(estimator)
    return FittedDensities(estimator, np.asarray(estimator.weights_, dtype=np.float64))


@densities_of.register
def _(estimator: GaussianMixture | StudentTMixture) -> Gaussians | StudentTs:
    check_is_fitted(estimator)
    means, model = np.asarray(estimator.means_, dtype=np.float64), model_of(estimator)
    preparation = preparation_of(estimator)
    covariances = preparation.restored_covariances(model.covariances_along(np.eye(means.shape[1])))
    gaussians = Gaussians(preparation.restored(means), covariances, estimator.weights_)
    dof = getattr(model, "dof", None)
    return gaussians if dof is None else StudentTs(gaussians, dof)


def as_rows_of(model: Any, X: Any, name: str = "X", **checks: Any) -> Floats:
    """Return data as a checked matrix (n, D) for the density of `model`, in the units of the data.

    Missing values are filled if `model` is an estimator that fills them.
    name: argument that errors name    checks: further arguments of `checked`; the dtype is float64 by default
    """
    preparation = preparation_of(model)
    found = checked(X, name, allow_missing=preparation.fill is not None, **{"dtype": np.float64, **checks})
    return preparation.filled(found)


def as_mixture(model: Any, name: str) -> MixtureDensity:
    """Return `model` if it is a `MixtureDensity`, or that of a fitted estimator; raise TypeError for other objects.

    name: name of the argument, for the message
    """
    found = densities_of(model)
    if found is None:
        raise TypeError(
            f"{name} must be Gaussians, Univariate, or a fitted KMeans, SoftKMeans or mixture that is not Bayesian, "
            f"got {model!r}."
        )
    return found


def _log_densities(model: Model, X: Rows) -> Floats:
    """Return log p(x_n | c) (n, C) of rows under the components of a model, whose weights are equal."""
    ids, costs = model.components().best(model.embed(X), model.n_components)
    out = np.empty(costs.shape)
    np.put_along_axis(out, ids.astype(np.intp), model.log_scale + model.scale * costs, axis=1)
    return out + np.log(model.n_components)
