"""Initial parameters of a mixture: checks of arguments such as `means_init`, and estimates of those not given."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime._utils.number_types import check_largest
from cprime._utils.random import Key
from cprime._utils.values import replace
from cprime.em.hard import SumLabeled
from cprime.estimators.constraints import check_known
from cprime.estimators.problems import KMeansOptions
from cprime.execution import Data
from cprime.kernels import Dense
from cprime.seeding import is_given
from cprime.seeding.methods import copied, is_estimator
from cprime.sources import array_of

# The two meanings of init_params="auto" if there are several starts: initializations of many kinds
# (`em.diverse_start`), or of three kinds in turn (for large data, because these take less time).
DIVERSE, ONE_OF_EACH = "diverse", "one of each"


def check_means_init(means_init: Any, data: Data, C: int, name: str) -> NDArray:
    """Return initial means (C, D) from the user in the dtype of the data; `name` is the name of the argument.

    Raises ValueError if they have another shape, values so large that their squares overflow, or negative rates.
    """
    means = copied(means_init, data, name, ensure_2d=False)
    if means.shape != (C, data.n_features):
        raise ValueError(f"{name} must have shape {(C, data.n_features)}, got {means.shape}.")
    check_largest(Dense(means).extent()[0], data.dtype, data.n_features, name)
    if name == "rates_init" and (means < 0).any():
        raise ValueError(f"rates_init must not be negative, got {means.min()}.")
    return means


def given_shares(options: Any, data: Data) -> NDArray | None:
    """Return labels (N,) int32 or responsibilities (N, C) that are the option `init_params`; None for anything else.

    An array (C, D) contains means, also if N = C = D. Raises ValueError for an array of another shape than these three,
    or if its values are not labels or responsibilities.
    """
    init, N, C, D = options.init_params, data.n_points, options.n_components, data.n_features
    if options.means_init is not None or not is_given(init) or is_estimator(init):
        return None
    values = array_of(init, "init_params")
    if values.shape == (C, D):
        return None
    if values.shape not in ((N,), (N, C)):
        raise ValueError(
            f"init_params must have means of shape {(C, D)}, labels of shape {(N,)} or responsibilities of shape "
            f"{(N, C)}, got an array of shape {values.shape}."
        )
    return checked_shares(values, C)


def checked_shares(values: NDArray, C: int) -> NDArray:
    """Return labels (N,) as int32, or responsibilities (N, C) as float64, that are the option `init_params`.

    Raises ValueError if they are out of range.
    """
    if values.ndim == 1:
        if values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= C:
            raise ValueError(f"init_params must have labels from 0 to n_components - 1 = {C - 1}, got {values!r}.")
        return values.astype(np.int32)
    q = values.astype(np.float64)
    if not (q >= 0).all() or not np.allclose(q.sum(axis=1), 1):
        raise ValueError("init_params must have responsibilities that are not negative and sum to 1 in each row.")
    return np.ascontiguousarray(q)


def means_of_shares(shares: NDArray, data: Data, C: int) -> NDArray:
    """Return the means (C, D) of the points of each component, from labels (N,) or responsibilities (N, C).

    Raises ValueError if a component has no points of positive weight.
    """
    found = data.each(SumLabeled(shares, C))
    empty = np.flatnonzero(~(found.counts > 0))
    if len(empty):
        raise ValueError(f"init_params must have points of each component, got none of {empty.tolist()}.")
    return (found.sums / found.counts[:, np.newaxis]).astype(data.dtype)


def check_weights_init(weights_init: Any, weights: str, C: int) -> NDArray[np.float64] | None:
    """Return the argument `weights_init`, initial mixing weights, as an array (C,); None stays None.

    Raises ValueError unless the weights are not negative and sum to 1. If `weights` is "equal", they must be equal.
    """
    if weights_init is None:
        return None
    given = array_of(weights_init, "weights_init", np.float64)
    if weights == "equal" and (given.shape != (C,) or not np.allclose(given, 1 / C)):
        raise ValueError(
            f"weights_init must be n_components={C} times 1/n_components where weights='equal', got {weights_init!r}."
        )
    if given.shape != (C,) or not (given >= 0).all() or not np.isclose(given.sum(), 1.0):
        raise ValueError(
            f"weights_init must be n_components={C} numbers that are not negative and sum to 1, got {weights_init!r}."
        )
    return given


def fixed_components(options: Any, data: Data) -> Any:
    """Return the option `fixed` of a mixture as a model of the m known components, or None if there are none.

    Raises ValueError if it is invalid.
    """
    if options.fixed is None:
        return None
    family, kinds = options.family, ("full", "diag", "spherical")
    if family.covariance_type not in kinds:
        raise ValueError(f"fixed needs covariance_type in {kinds}, got {family.covariance_type!r}.")
    if not isinstance(options.fixed, tuple | list) or len(options.fixed) != 2:
        raise ValueError(f"fixed must be a pair (means, covariances) of known components, got {options.fixed!r}.")
    means = check_known(options.fixed[0], "the means of fixed", options.n_components, data)
    covariances = array_of(options.fixed[1], "the covariances of fixed", np.float64)
    try:
        family.starting(means, None, 0.0, covariances)  # The rules for precisions are those for covariances.
    except ValueError as error:
        raise ValueError(str(error).replace("precisions_init", "the covariances of fixed")) from None
    return family(means, covariances)


@dataclass(frozen=True)
class GivenParameters:
    """Initial parameters of a mixture that the user gives, and the method that estimates all others.

    shaped: function of means (C, D) and weights (C,) that returns a model with these, and with covariances from the
    user if there are any
    means, covariances: whether the user gives means; whether the user gives covariances
    shares: labels (N,) or responsibilities (N, C) from which all parameters are estimated that are not given, or None
    weights (C,): mixing weights from the user, or None
    free: whether the fit estimates the mixing weights; if not, they are equal
    """

    shaped: Callable[[NDArray, Any], Any]
    means: bool
    weights: NDArray[np.float64] | None
    covariances: bool
    free: bool
    shares: NDArray | None = None

    @classmethod
    def like(cls, model: Any) -> Self:
        """Return `GivenParameters` in which all initial parameters are those of `model`, as if given by the user."""
        return cls(
            lambda centers, weights: replace(model, centers=centers, weights=weights),
            means=True,
            weights=model.weights,
            covariances=True,
            free=model.weights is not None,
        )

    @classmethod
    def of(cls, options: Any, data: Data) -> Self:
        """Return `GivenParameters` with the initial parameters that are options of the fit of a mixture.

        Raises ValueError if they are invalid, for example weights that do not sum to 1.
        """
        C, free, family = options.n_components, options.weights == "free", options.family
        weights, precisions = check_weights_init(options.weights_init, options.weights, C), options.precisions_init
        if precisions is not None:
            precisions = array_of(precisions, "precisions_init", np.float64)
        given = {"reg_covar": options.reg_covar, "precisions": precisions, **options.family_options}

        def shaped(centers: NDArray, weights: Any) -> Any:
            model = family.starting(centers, weights, **given)
            return model.with_missing() if data.has_missing else model

        if precisions is not None or family.options or data.has_missing:
            shaped(np.zeros((C, data.n_features)), None)
        shares = given_shares(options, data)
        means = options.means_init is not None or (shares is None and is_given(options.init_params))
        return cls(shaped, means, weights if free else None, precisions is not None, free, shares)

    def first_model(self, data: Data, start: NDArray, exact: bool) -> Any:
        """Return a model with the initial parameters of a fit.

        Parameters from the user are not changed. Others are estimated by an M-step for the hard assignment of the
        points to the initial means `start` (C, D), or for given labels or responsibilities. If the user gives the
        means, they are `start`, and covariances are about them. Exception: if the EM loop computes the first variance
        itself (`finds_variance` of the model), and weights are equal, the means of the model are always `start`.
        exact: whether points are compared with all initial means
        """
        if self.means and self.covariances and (self.weights is not None or not self.free):
            return self.shaped(start, self.weights)
        model = self.shaped(start, np.full(len(start), 1 / len(start)) if self.free else None)
        if model.finds_variance and not self.free and self.shares is None:
            return model
        found: Any = em.hard_start(data, model, exact, self.means, self.shares)
        if self.covariances:
            found = self.shaped(found.centers, found.weights)
        return found if self.weights is None else replace(found, weights=self.weights)


def k_means_start(data: Data, n_clusters: int, key: Key, max_iter: int) -> NDArray:
    """Run a k-means with default options for the initialization of a mixture, and return its centers (C, D).

    Afterwards the active set of each point in `data` is its nearest center.
    key: counter-based random key
    """
    problem = KMeansOptions(n_clusters, max_iter=max_iter).problem(data)
    centers, plan = problem.centers(data, key), replace(problem.plan, title="start, k-means: ")
    run = em.run(data, partial(problem.first_model, data, centers, False), plan, key)
    data.begin(keep=True)
    return run.model.centers
