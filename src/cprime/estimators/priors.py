"""Priors of Gaussian mixtures, whose parameters depend on the data if none are given."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.number_types import check_largest
from cprime.execution import Data
from cprime.execution.block import ActiveSet, Block
from cprime.model import FAMILIES, BayesianPrior, Model
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
    D, covariance_type = data.n_features, mixture.covariance_type
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
