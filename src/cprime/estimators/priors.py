"""Priors of Gaussian mixtures: the value `Prior`, and priors whose parameters depend on the data if none are given."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.arguments import check_positive, check_real
from cprime._utils.number_types import check_largest
from cprime._utils.storable import storable
from cprime._utils.values import Options
from cprime.estimators.covariances import family_of
from cprime.execution import Data
from cprime.execution.block import ActiveSet, Block
from cprime.model import FAMILIES, BayesianPrior, ConjugatePrior, Model
from cprime.model.interface import Responsibilities
from cprime.sources import array_of

_SHAPES = {"full": "DD", "tied": "DD", "diag": "D", "spherical": ""}  # axes of a covariance prior of each type


@dataclass(frozen=True)
class OneComponent:
    """Pass that sums the moments of all points as those of a single component."""

    model: Model

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, Any]:
        ids = np.zeros((len(block), 1), dtype=np.int32)
        return None, self.model.summarise(block, Responsibilities(ids, None, None))


def mean_and_covariance(data: Data, covariance_type: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted mean (D,) and covariance of all points, (D, D), (D,) or (), divided by the total weight.

    Two passes over the data, the second with sums about the mean. Missing values are left out of these sums.
    """
    family = FAMILIES["full" if covariance_type == "tied" else covariance_type]
    model = family.starting(np.zeros((1, data.n_features), dtype=data.dtype), None, 0.0)
    for _ in range(2):
        model = model.maximise(data.each(OneComponent(model)))
    return model.centers[0].astype(np.float64), np.asarray(model.covariances[0])


def checked_mean(value: Any, name: str, D: int, dtype: Any) -> NDArray[np.float64]:
    """Return the mean (D,) of a prior, for data of a dtype, that a user has given as the argument `name`."""
    mean = array_of(value, name, np.float64)
    if mean.shape != (D,) or not np.isfinite(mean).all():
        raise ValueError(f"{name} must have n_features={D} finite numbers, got {value!r}.")
    check_largest(float(np.abs(mean).max()), dtype, D, name)
    return mean


def checked_scatter(value: Any, name: str, covariance_type: str, D: int) -> NDArray[np.float64]:
    """Return a scatter of a prior, in the shape of one covariance, that a user has given as the argument `name`."""
    shape = (D,) * len(_SHAPES[covariance_type])
    scatter = array_of(value, name, np.float64)
    if scatter.shape != shape or not np.isfinite(scatter).all():
        raise ValueError(
            f"{name} must have finite numbers of shape {shape} for covariance_type={covariance_type!r}, got {value!r}."
        )
    symmetric = len(shape) < 2 or np.allclose(scatter, scatter.T)
    if not symmetric or (np.linalg.eigvalsh(scatter) if len(shape) == 2 else scatter).min() <= 0:
        kind = "symmetric and positive definite" if len(shape) == 2 else "above 0"
        raise ValueError(f"{name} must be {kind}, got {value!r}.")
    return scatter


def bayesian_prior(mixture: Any, data: Data, n_components: int) -> BayesianPrior:
    """Return the prior of a `BayesianGaussianMixture` for the data, from its arguments."""
    D, covariance_type = data.n_features, family_of(mixture.covariance_type)
    dof = float(D if mixture.degrees_of_freedom_prior is None else mixture.degrees_of_freedom_prior)
    if not dof > D - 1:
        raise ValueError(f"degrees_of_freedom_prior must be above n_features - 1 = {D - 1}, got {dof}.")
    given = mixture.mean_prior, mixture.covariance_prior
    mean = covariance = None
    if None in [None if value is None else 0 for value in given]:
        mean, covariance = mean_and_covariance(data, covariance_type)
    if given[0] is not None:
        mean = checked_mean(given[0], "mean_prior", D, data.dtype)
    if given[1] is not None:
        covariance = checked_scatter(given[1], "covariance_prior", covariance_type, D)
    assert mean is not None
    assert covariance is not None
    concentration = mixture.weight_concentration_prior
    return BayesianPrior(
        mean,
        1.0 if mixture.mean_precision_prior is None else float(mixture.mean_precision_prior),
        covariance,
        dof,
        float(mixture.reg_covar),
        concentration=1 / n_components if concentration is None else float(concentration),
        is_process=mixture.weight_concentration_prior_type == "dirichlet_process",
    )


def _as_tuple(values: Any) -> Any:
    return tuple(map(_as_tuple, values)) if isinstance(values, list) else values


@storable("covariance.Prior")
@dataclass(frozen=True, repr=False)
class Prior(Options):
    """Conjugate prior of the means and covariances of components, for a fit that finds the mode of the posterior.

    It is the value of `prior` of `GaussianMixture`, for the types "full", "tied", "diag" and "spherical". No covariance
    becomes singular, also if a component has fewer points than columns, unless `scale` is singular. The defaults are
    those of `priorControl` in the R package mclust, but with the covariance of the data divided by N.

    Parameters
    ----------
    shrinkage : float, default=0.01
        κ ≥ 0, the number of points that `mean` is worth for the mean of a component; 0 is no prior of means.
    mean : array-like of shape (n_features,) or None, default=None
        Mean of the prior of the means, in data units. None is the mean of the data.
    dof : float or None, default=None
        ν, the degrees of freedom of the inverse Wishart or inverse gamma distribution, above n_features − 1. None is
        n_features + 2.
    scale : float, array-like or None, default=None
        Λ, the scale of this distribution, in data unit²: of shape (D, D) for "full" and "tied"; a number or shape (D,)
        for "diag"; a number for "spherical". None is the covariance of the data, for "diag" and "spherical" the mean of
        their variances, divided by C^(2/D).

    Notes
    -----
    With points of total weight N_c, mean x̄_c and scatter S_c, the M-step is μ_c = (N_c x̄_c + κ m) / (N_c + κ) and
    Σ_c = (Λ + S_c + N_c κ / (N_c + κ) (x̄_c − m)(x̄_c − m)ᵀ) / (N_c + ν + D + 2) for "full". See Fraley & Raftery (2007),
    *Bayesian regularization for normal mixture estimation and model-based clustering*, for the other types.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture, Prior
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [9.0, 9.0]])
    >>> gm = GaussianMixture(2, prior=Prior(), reg_covar=0, init_params=X[[0, 3]]).fit(X)
    >>> bool(np.linalg.eigvalsh(gm.covariances_).min() > 0.01)
    True
    """

    shrinkage: float = 0.01
    mean: Any = None
    dof: float | None = None
    scale: Any = None

    def __post_init__(self) -> None:
        check_real(self.shrinkage, "shrinkage", 0.0)
        if self.dof is not None:
            check_positive(self.dof, "dof")
        for name in ("mean", "scale"):  # as tuples, so that priors can be compared
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _as_tuple(array_of(getattr(self, name), name, np.float64).tolist()))


def conjugate_prior(prior: Prior, covariance_type: str, data: Data, n_components: int) -> ConjugatePrior:
    """Return the prior of the model family for the data, from the value `prior` of the argument of a mixture."""
    D, has_matrix = data.n_features, len(_SHAPES[covariance_type]) == 2
    dof = float(D + 2 if prior.dof is None else prior.dof)
    if not dof > D - 1:
        raise ValueError(f"dof of prior must be above n_features - 1 = {D - 1}, got {dof}.")
    if prior.mean is None or prior.scale is None:
        mean, covariance = mean_and_covariance(data, covariance_type)
        scale = (covariance if has_matrix else covariance.mean()) / n_components ** (2 / D)
    if prior.mean is not None:
        mean = checked_mean(prior.mean, "mean of prior", D, data.dtype)
    if prior.scale is not None:
        shaped = "spherical" if np.ndim(prior.scale) == 0 and not has_matrix else covariance_type
        scale = checked_scatter(prior.scale, "scale of prior", shaped, D)
    of_means = float(prior.shrinkage > 0)
    if covariance_type == "spherical":
        return ConjugatePrior(mean, float(prior.shrinkage), np.asarray(scale / D), (dof + 2) / D + of_means)
    copies = n_components if covariance_type == "tied" else 1
    strength = dof + (D + 1 if has_matrix else 2) + copies * of_means
    return ConjugatePrior(mean, float(prior.shrinkage), np.asarray(scale), strength)
