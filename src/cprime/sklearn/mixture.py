"""Gaussian mixtures with scikit-learn's signatures, fitted by cprime's estimators of the same names."""

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import sklearn.mixture
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture._base import BaseMixture
from sklearn.utils._array_api import get_namespace
from sklearn.utils.validation import check_is_fitted, validate_data

import cprime
from cprime._utils.messages import warn
from cprime.estimators.fitted_mixture import best_of
from cprime.estimators.mixture_problems import MixtureOptions
from cprime.estimators.opening import check_numbers, taken
from cprime.estimators.savable import documented
from cprime.execution import Data, local
from cprime.kernels import as_rows, computing
from cprime.model import BayesianPrior, Model
from cprime.sklearn.draws import drawing
from cprime.sklearn.kmeans import KMeans, is_small
from cprime.sklearn.nearest import hand_over, squared
from cprime.sklearn.parameters import CheckedOnce, with_generator
from cprime.sources import as_matrix, unmasked

# Fitted attributes that are taken from cprime's mixture, where they have the same names as in scikit-learn.
_FOUND = (
    *("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"),
    *("converged_", "n_iter_"),
)


def _of_another_library(X: Any) -> bool:
    """Return whether X is an array of a library other than NumPy, and scikit-learn would compute with that library."""
    return get_config()["array_api_dispatch"] and hasattr(X, "__array_namespace__") and not isinstance(X, np.ndarray)


def _with_namespace(method: Callable[..., None], *args: Any) -> None:
    """Call a method of scikit-learn that returns nothing, with the argument xp (array namespace) if it has this.

    Versions of scikit-learn from 1.8 on require xp.
    """
    method(*args, **({"xp": get_namespace(args[0])[0]} if "xp" in inspect.signature(method).parameters else {}))


class _OneStart:
    """Base of cprime's mixtures for one of several runs, without a warning, which only the best run may need.

    _before: free energy of a previous fit that is continued (warm start), else ∞
    _from: model with the initial parameters, None for cprime's own initialization
    """

    _before: float = np.inf
    _from: Model | None = None

    def _options(self) -> MixtureOptions:
        model, options = self._from, super()._options()  # type: ignore[misc]
        return options if model is None else replace(options, continued=lambda: model, bound_before=self._before)

    def _warn_of(self, run: Any) -> None:
        pass

    def by_its_name(self, random_state: Any) -> Any:
        """Return the fitted mixture as an instance of cprime's class, without the attributes of this class.

        random_state: the argument of this name in the result, in place of the random generator
        """
        cls: Any = type(self).__mro__[2]
        mixture = cls.__new__(cls)
        mixture.__dict__.update({name: value for name, value in vars(self).items() if name not in ("_from", "_before")})
        mixture.random_state = random_state
        return mixture


class _OneGaussian(_OneStart, cprime.GaussianMixture):
    pass


class _OneBayesian(_OneStart, cprime.BayesianGaussianMixture):
    pass


class _Mixture(CheckedOnce, BaseMixture):
    """Base of the mixtures of this module. A subclass names cprime's class, and gives its arguments and its model."""

    cprime_: Any
    means_: NDArray
    weights_: NDArray
    precisions_cholesky_: Any
    covariance_type: str
    reg_covar: float
    _core: type[Any]  # class of cprime's mixture for one run
    _parameters: tuple[str, ...] = ()  # names of further fitted attributes with parameters
    _given: tuple[str, ...] = ()  # names of arguments with starting parameters

    def _arguments(self, n_points: int) -> dict[str, Any]:
        """Return the arguments of cprime's mixture that are not those of scikit-learn's of the same name."""
        return {}

    def _units(self, X: NDArray) -> tuple[float, float]:
        """Return the factor and the summand by which cprime's lower bound becomes scikit-learn's."""
        return 1.0, 0.0

    def _refused(self) -> str | None:
        """Return the reason why scikit-learn's own code must fit after the check of parameters, or None."""
        return None

    @with_generator
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the parameters of the mixture to the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self : the estimator, fitted
        """
        self._fit(X, y)
        return self

    @with_generator
    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Return the same labels as ``fit(X).predict(X)``."""
        labels = self._fit(X, y)
        return self.predict(X) if labels is None else labels

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit(self, X: Any, y: Any) -> Any:
        """Fit the mixture to the rows X; return labels (n,) if scikit-learn's own code made the fit, else None."""
        X = as_matrix(X)
        for name in self._given:
            unmasked(getattr(self, name), name)
        why = "max_iter=0 fits nothing" if self.max_iter == 0 else None
        why = "X is an array of another library" if _of_another_library(X) else why
        if why is not None:
            hand_over(self, why)
            self.cprime_ = None
            return super().fit_predict(X, y)
        X = taken(self, X, reset=True, dtype=[np.float64, np.float32], accept_sparse=False, least=2)
        check_numbers(self, as_rows(X), spread=True)
        if len(X) < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, n_samples = {len(X)}"
            )
        _with_namespace(self._check_parameters, X)
        why = self._refused()
        if why is not None:
            hand_over(self, why)
            self.cprime_ = None
            return super().fit_predict(X, y)
        with computing(None), drawing(self.random_state) as random_state:
            best = self._best(X, random_state)
        if not best.converged_:
            warn(
                "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
                "tol, or check for degenerate data.",
                ConvergenceWarning,
            )
        self._adopt(best, X)
        self.cprime_ = best.by_its_name(self.random_state)
        return None

    def _adopt(self, best: Any, X: NDArray) -> None:
        """Set the fitted attributes to those of cprime's mixture `best` of the rows X."""
        for name in (*_FOUND, *self._parameters):
            setattr(self, name, getattr(best, name))
        factor, summand = self._units(X)
        self.lower_bound_ = factor * best.lower_bound_ + summand
        self.lower_bounds_ = [factor * bound + summand for bound in best.lower_bounds_]

    def _best(self, X: NDArray, random_state: np.random.RandomState) -> Any:
        """Return cprime's mixture of the best of `n_init` runs; if `verbose`, print scikit-learn's messages."""
        goes_on, best = self.warm_start and hasattr(self, "converged_"), None
        factor, summand = self._units(X)
        for run in range(1 if goes_on else self.n_init):
            self._print_verbose_msg_init_beg(run)
            core = self._started(X, goes_on, random_state)
            bounds = [core._before]

            def show(row: Mapping[str, Any], *, bounds: list[float] = bounds) -> None:
                self._print_verbose_msg_iter_end(row["iteration"], factor * (row["lower_bound"] - bounds[-1]))
                bounds.append(row["lower_bound"])

            core.callbacks = show if self.verbose else None
            core.n_features_in_ = X.shape[1]
            core._fit_to(local(X), (X, None, None))
            core.callbacks = None
            self._print_verbose_msg_init_end(factor * core.lower_bound_ + summand, core.converged_)
            if best is None or core.lower_bound_ > best.lower_bound_:
                best = core
        assert best is not None
        return best

    def _started(self, X: NDArray, goes_on: bool, random_state: np.random.RandomState) -> Any:
        """Return a cprime estimator, not yet fitted, with scikit-learn's initialization.

        goes_on: whether the fit continues from the parameters of the previous fit (warm start)
        """
        names = ("n_components", "covariance_type", "init_params", "max_iter", "tol", "reg_covar", *self._given)
        given = {name: getattr(self, name) for name in names} | self._arguments(len(X))
        core = self._core(**given, random_state=random_state)
        if goes_on:
            factor, summand = self._units(X)
            core._before = (self.lower_bounds_[-1] - summand) / factor if self.lower_bounds_ else np.inf
        elif self.init_params == "random" or is_small(X, self.n_components):
            self._start_as_there(X, random_state)
        else:
            return core
        core._from = self._model(self.reg_covar)
        return core

    def _start_as_there(self, X: NDArray, random_state: np.random.RandomState) -> None:
        """Set `weights_`, `means_` and `precisions_cholesky_` to the initial parameters of scikit-learn's mixture.

        Random draws are the same as in scikit-learn, but k-means is computed by cprime. Sums are in float64, because
        scikit-learn subtracts squares of means from means of squares, which float32 does not resolve far from 0.
        """
        wide = X.astype(np.float64, copy=False)
        given = [getattr(self, name) for name in self._given]
        if self.init_params != "kmeans" or (given and all(value is not None for value in given)):
            _with_namespace(self._initialize_parameters, wide, random_state)
        else:
            k_means = KMeans(self.n_components, n_init=1, random_state=random_state)
            labels = k_means._fit(X, None, random_state).labels_
            responsibilities = np.zeros((len(X), self.n_components))
            responsibilities[np.arange(len(X)), labels] = 1
            self._initialize(wide, responsibilities)
        self.means_ = self.means_.astype(X.dtype, copy=False)

    def _fitted_parameters(self) -> dict[str, Any]:
        """Return a dict of the fitted attributes that cprime's model has beside weights and means."""
        return {"precisions_cholesky_": self.precisions_cholesky_}

    def _model(self, reg_covar: float = 0.0) -> Model:
        """Return cprime's model with the parameters in this estimator's attributes."""
        given = self._fitted_parameters()
        weights, means = np.asarray(self.weights_, dtype=np.float64), np.ascontiguousarray(self.means_)
        return self._core._families[self.covariance_type].from_attributes(given, means, weights, reg_covar)

    def _rows(self, X: Any) -> tuple[Data, Model] | None:
        """Return validated rows and the fitted model for a prediction; None if scikit-learn's own code predicts."""
        check_is_fitted(self)
        if _of_another_library(X) or not isinstance(self.means_, np.ndarray):
            hand_over(self, "X is an array of another library")
            return None
        X = validate_data(self, as_matrix(X), reset=False, dtype=[np.float64, np.float32], order="C")
        model: Any = self._model()
        dtype = np.result_type(X, self.means_)
        return local(squared(X.astype(dtype, copy=False))), replace(model, centers=model.centers.astype(dtype))

    @with_generator
    def sample(self, n_samples: int = 1) -> Any:
        """Draw points (n_samples, n_features) and their components (n_samples,) as scikit-learn does."""
        other = copy(self)
        if isinstance(getattr(self, "weights_", None), np.ndarray):
            # float32 weights may sum to more than 1 by rounding, for which NumPy raises an error: normalize in float64.
            other.weights_ = self.weights_.astype(np.float64) / self.weights_.sum(dtype=np.float64)
        return super(_Mixture, other).sample(n_samples)

    def predict(self, X: Any) -> Any:
        """Return the most probable component of each row, (n_samples,); ties go to the lower index."""
        found = self._rows(X)
        if found is None:
            return super().predict(X)
        data, model = found
        with computing(None):
            return data.map(partial(best_of, model), None, np.int64)

    def predict_proba(self, X: Any) -> Any:
        """Return the posterior probability of every component for each row: (n_samples, n_components).

        Each row of the result sums to 1.
        """
        found = self._rows(X)
        if found is None:
            return super().predict_proba(X)
        data, model = found
        with computing(None):
            return data.map(model.responsibilities, len(model.centers), data.dtype)

    def score_samples(self, X: Any) -> Any:
        """Return the log-likelihood of each row, (n_samples,), in nats."""
        found = self._rows(X)
        if found is None:
            return super().score_samples(X)
        data, model = found
        with computing(None):
            return data.map(model.log_likelihood, None, data.dtype)


@documented
class GaussianMixture(_Mixture, sklearn.mixture.GaussianMixture):
    """Gaussian mixture with scikit-learn's arguments, attributes and errors, fitted by `cprime.GaussianMixture`.

    Parameters are scikit-learn's. Up to 16 components, every iteration is exact EM. For more components, the active set
    of a point has the 5 best components and momentum halves the number of iterations; `lower_bound_` is then the free
    energy, a lower bound of the log-likelihood, and `score` is the exact log-likelihood. For small data, the
    initialization makes the same random draws as scikit-learn's, so the same `random_state` gives the same mixture. For
    larger data, the initialization is that of `cprime.GaussianMixture`.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_, converged_, n_iter_, lower_bound_, lower_bounds_
        Same meaning as in scikit-learn, in the dtype of the data. `lower_bound_` belongs to the returned parameters,
        the last value of `lower_bounds_` to the parameters before the last M-step.
    n_features_in_, feature_names_in_
        Same meaning as in scikit-learn.
    cprime_ : cprime.GaussianMixture or None
        The estimator underneath, with its `certificate_`, `history_`, `bounds` and `save`; None if scikit-learn's own
        code ran: with max_iter=0, which fits nothing, and for arrays of other libraries.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.sklearn import GaussianMixture
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> gm = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> gm.means_.round(6)
    array([[10.,  2.],
           [ 1.,  2.]])
    """

    cprime_: cprime.GaussianMixture | None
    _core = _OneGaussian
    _given = ("weights_init", "means_init", "precisions_init")


@documented
class BayesianGaussianMixture(_Mixture, sklearn.mixture.BayesianGaussianMixture):
    """Bayesian mixture with scikit-learn's arguments, attributes and errors, by `cprime.BayesianGaussianMixture`.

    Parameters are scikit-learn's. Up to 16 components, the iterations are scikit-learn's. For more components, the
    active set of a point has the 5 best components, and momentum halves the number of iterations; `lower_bound_` is
    still a lower bound of the evidence.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_, converged_, n_iter_, weight_concentration_, \
mean_precision_, degrees_of_freedom_, weight_concentration_prior_, mean_precision_prior_, mean_prior_, \
degrees_of_freedom_prior_, covariance_prior_
        Same meaning as in scikit-learn.
    lower_bound_, lower_bounds_
        The evidence lower bound without the constants that scikit-learn leaves out. Values follow E-steps, where
        scikit-learn's follow M-steps, which lie between them; `lower_bound_` belongs to the returned posterior.
    n_features_in_, feature_names_in_
        Same meaning as in scikit-learn.
    cprime_ : cprime.BayesianGaussianMixture or None
        The estimator underneath, as in `GaussianMixture`; None also if the covariance of X, which is the default of
        `covariance_prior`, is singular.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.sklearn import BayesianGaussianMixture
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [4, 2], [12, 4], [10, 7]])
    >>> bgm = BayesianGaussianMixture(n_components=2, random_state=42).fit(X)
    >>> bgm.means_.round(1)
    array([[2.5, 2.3],
           [8.5, 4.5]])
    """

    _core = _OneBayesian
    _parameters = ("weight_concentration_", "mean_precision_", "degrees_of_freedom_")
    _priors = (
        *("weight_concentration_prior", "mean_precision_prior", "mean_prior", "degrees_of_freedom_prior"),
        "covariance_prior",
    )

    @property
    def _is_process(self) -> bool:
        return self.weight_concentration_prior_type == "dirichlet_process"

    def _arguments(self, n_points: int) -> dict[str, Any]:
        found = {name: getattr(self, f"{name}_") for name in self._priors}
        found["weight_concentration_prior_type"] = self.weight_concentration_prior_type
        return found | {"tol": self.tol / n_points}

    def _units(self, X: NDArray) -> tuple[float, float]:
        prior = BayesianPrior.from_attributes(vars(self), self._is_process)
        return len(X), 0.5 * X.size * np.log(2 * np.pi) + prior.log_integral(self.n_components)

    def _start_as_there(self, X: NDArray, random_state: np.random.RandomState) -> None:
        super()._start_as_there(X, random_state)
        self._set_parameters(self._get_parameters())  # sets weights_, too

    def _refused(self) -> str | None:
        scatter = np.asarray(self.covariance_prior_, dtype=np.float64)
        spread = np.linalg.eigvalsh(scatter) if scatter.ndim == 2 else np.atleast_1d(scatter)
        return "covariance_prior is singular" if spread.min() <= 1e-14 * spread.max() else None

    def _adopt(self, best: Any, X: NDArray) -> None:
        super()._adopt(best, X)
        for name in self._parameters:
            value = getattr(self, name)
            value = value.astype(X.dtype) if isinstance(value, np.ndarray) else value
            setattr(self, name, tuple(value) if np.ndim(value) == 2 else value)

    def _fitted_parameters(self) -> dict[str, Any]:
        names = (*self._parameters, *(f"{name}_" for name in self._priors))
        return super()._fitted_parameters() | {name: getattr(self, name) for name in names}
