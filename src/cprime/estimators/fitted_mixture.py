"""Methods of a fitted mixture: best components, probabilities, densities, information criteria and samples."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from cprime import em
from cprime._utils.random import check_random_state
from cprime.estimators.approximate import approximate_search, certify, near_best
from cprime.estimators.base import Clusterer
from cprime.estimators.quality import say_truncated
from cprime.estimators.solutions import MixtureSolution
from cprime.estimators.validation import check_integer, resolve_n_active
from cprime.execution.results import kept_entries
from cprime.kernels import Rows, computing, posterior
from cprime.model import FAMILIES, Model
from cprime.persistence import checkpoints
from cprime.search.nearby import Nearby


def best_of(model: Model, X: Rows) -> NDArray[np.int32]:
    """Return the index of the most probable component of each row: (n,)."""
    return model.components().best(model.embed(X), 1)[0][:, 0]


def _best_with_distances(model: Model, X: Rows) -> tuple[NDArray[np.int32], NDArray]:
    """Return the index of each row's most probable component, and the Mahalanobis distance to its mean, (n,) each."""
    labels = best_of(model, X)
    return labels, model.distances(X, labels)


def _truncated(model: Model, nearby: Nearby | None, n_kept: int, sparse: bool, X: Rows) -> NDArray | csr_array:
    """Return the posterior probabilities of each row, (n, C), truncated to the row's C′ best components.

    nearby: search structure that finds approximately best components; None is an exact search    n_kept: C′
    sparse: whether to return a CSR array of the C′ nonzero entries of each row
    """
    points = model.embed(X)
    ids, costs = model.components().best(points, n_kept) if nearby is None else nearby.find(points, n_kept)
    responsibilities = posterior(costs, model.scale).responsibilities
    return kept_entries(ids, responsibilities, len(model.centers), sparse)


class _DerivedAttribute:
    """Descriptor of a fitted attribute that is computed from other attributes if a user has set parameters by hand.

    A value that a fit has set takes precedence, because Python uses this descriptor only if the instance has no
    attribute of this name.    found: function that computes the value from the mixture
    needed: names of the attributes that must be set; without them, or if `found` returns None, there is no attribute
    """

    def __init__(self, found: Callable[[Any], Any], *needed: str):
        self.found = found
        self.needed = needed

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, mixture: Any, owner: type) -> Any:
        if mixture is not None and all(name in vars(mixture) for name in self.needed):
            with computing(mixture.n_threads):
                value = self.found(mixture)
            if value is not None:  # None if the model family lacks this parameter
                return value
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}", name=self.name, obj=mixture)


def _implied(found: Callable[[Any], Any], *needed: str) -> Any:
    return _DerivedAttribute(found, "means_", *needed)


class FittedMixture(DensityMixin, Clusterer):
    """Base of mixtures with the methods that use fitted parameters; a subclass adds the methods that fit.

    The methods also work without a fit if the user sets `weights_`, `means_`, and either `precisions_cholesky_` or
    `covariances_`.
    """

    _families: ClassVar[Mapping[str, Any]] = FAMILIES  # class of the models for each covariance_type

    n_components: int
    n_active: int | str | None
    n_active_: int = _implied(lambda m: resolve_n_active(m.n_active, len(m.means_), m.assignment))
    means_: NDArray
    weights_: NDArray
    covariances_: Any = _implied(lambda m: m._parameters().attributes()["covariances_"], "precisions_cholesky_")
    precisions_: Any = _implied(lambda m: m._parameters().attributes().get("precisions_"))
    precisions_cholesky_: Any = _implied(lambda m: m._parameters().attributes()["precisions_cholesky_"], "covariances_")
    covariance_type: str
    covariance_type_: str = _implied(lambda m: m.covariance_type)
    equal_weights_: bool = _implied(lambda m: m.weights == "equal" and len(set(m.weights_)) == 1, "weights_")
    weights: str
    assignment: str
    max_iter: int
    warm_start: bool

    certify = certify

    @property
    def _family(self) -> Any:
        return self._families[self.covariance_type_]

    def _searched_by(self) -> tuple[str, ...]:
        return ("means_", "weights_", *self._family.attribute_names)

    def _solution_of(self, model: Model, n_active: int, **results: Any) -> MixtureSolution:
        """Return a `MixtureSolution` with the parameters of `model`.

        n_active: C′, the size of active sets    results: further fields of the solution, by name
        """
        return MixtureSolution(model, self.covariance_type, 1 if self.assignment == "hard" else n_active, **results)

    def _parameters(self, reg_covar: float = 0.0) -> Model:
        weights = None if self.equal_weights_ else np.asarray(self.weights_, dtype=np.float64)
        means = np.asarray(self.means_)
        means = np.ascontiguousarray(means, means.dtype if means.dtype in (np.float32, np.float64) else np.float64)
        family = self._family
        given = {name: vars(self)[name] for name in family.attribute_names if name in vars(self)}
        if not given:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {family.attribute_names[0]!r}")
        return family.from_attributes(given, means, weights, reg_covar)

    def _say_truncated(self, method: str) -> None:
        """Log a warning if n_active="auto" means that a method uses only C′ < C components of each row.

        The same warning is logged only once.    method: name of the method, for the text
        """
        C = len(self.means_)
        if self.n_active_ < C and self.n_active == "auto":
            say_truncated(method, self.n_active_, C)

    def _check_goes_on(self, what: str) -> None:
        """Raise ValueError if the earlier fit of this estimator cannot be continued with its present arguments.

        what: the feature that continues the fit, "partial_fit" or "warm_start"
        """
        if what == "partial_fit" and not hasattr(self, "counts_"):
            raise ValueError("partial_fit goes on from a fit: parameters set by hand or derived have no counts_.")
        fitted = {
            "n_components": len(self.means_),
            "covariance_type": self.covariance_type_,
            "weights": "equal" if self.equal_weights_ else "free",
        }
        for name, value in {**fitted, **self._options_of_fit()}.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{what} goes on from a fit with {name}={value!r}, got {name}={getattr(self, name)!r}."
                )

    def _options_of_fit(self) -> dict[str, Any]:
        """Return the options of the model family, such as n_factors, with which the present parameters were fitted.

        Options that are "auto" in the constructor are left out, because "auto" is compatible with every value.
        """
        return {}

    def _bound_before(self) -> float:
        """Return the free energy F of the last iteration of the earlier fit that is continued; ∞ if there is none."""
        return self.lower_bounds_[-1] if self.warm_start and hasattr(self, "lower_bounds_") else np.inf

    def _continued(self) -> dict[str, Any] | None:
        if not (self.warm_start and hasattr(self, "means_")):
            return None
        family = self._family.attribute_names
        return {name: getattr(self, name) for name in (*checkpoints.WARM, *family) if name != "precisions_"}

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Fit the mixture and return the most probable component of each training point: `fit(X).labels_`."""
        return self.fit(X, y, sample_weight).labels_

    def _scale(self, model: Model) -> float:
        return model.scale

    def predict(self, X: Any, approximate: bool = False, *, out: Any = None) -> NDArray[np.int32]:
        """Return the index of the most probable component of each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        approximate : bool, default=False
            False searches all components. True searches only components near each row, if there are more than 8,192
            components (4,096 for tied_spherical and tied covariances); `certify` measures the quality.
        out : ndarray, str or path-like, default=None
            Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
            file, which is written completely or not at all and returned as a memory map.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        data = self._opened(X)
        with computing(self.n_threads):
            model = self._model_of(data)
            job = partial(near_best, model, approximate_search(self, model)) if approximate else partial(best_of, model)
            return data.map(job, None, np.int32, out)

    def nearest(self, X: Any, *, out: Any = None) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the index of the most probable component of each row and the distance to its mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        out : tuple of two, default=None
            Destinations of labels and distances, each like `out` of `predict`.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
            The same as those of `predict`.
        distances : ndarray of shape (n_samples,), float64
            Mahalanobis distances √((x − μ)ᵀ Σ⁻¹ (x − μ)), in standard deviations of the component.
        """
        data = self._opened(X)
        with computing(self.n_threads):
            model = self._model_of(data)
            return data.map(partial(_best_with_distances, model), None, (np.int32, np.float64), out)

    def predict_proba(
        self, X: Any, sparse: bool = False, approximate: bool = False, *, out: Any = None
    ) -> NDArray | csr_array:
        """Return the truncated posterior of each row, eq. (5) of Lücke & Forster; the exact one if `n_active_` is C.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        sparse : bool, default=False
            True returns a CSR array of the `n_active_` entries of each row; False a dense N×C array, zero elsewhere.
        approximate : bool, default=False
            False searches all components for the best ones of each row. True searches only components near each row, if
            there are more than 8,192 components (4,096 for tied_spherical and tied covariances) and `n_active_` is less
            than C; `certify` measures the quality.
        out : ndarray, str or path-like, default=None
            Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
            file, which is written completely or not at all and returned as a memory map. It must be None if `sparse`.

        Returns
        -------
        probabilities : ndarray or csr_array of shape (n_samples, n_components)
            In the dtype of the means. Rows sum to 1.
        """
        if sparse and out is not None:
            raise ValueError("out must be None where sparse=True: a CSR array has no file or array of its own.")
        data = self._opened(X)
        H, C = self.n_active_, len(self.means_)
        self._say_truncated("predict_proba")
        with computing(self.n_threads):
            model = self._model_of(data)
            nearby = approximate_search(self, model) if approximate and H < C else None
            truncated = partial(_truncated, model, nearby, H, sparse)
            job = model.responsibilities if not sparse and C == H else truncated
            return data.map(job, C, model.centers.dtype, out)

    def score_samples(self, X: Any, *, out: Any = None) -> NDArray:
        """Return the exact log-likelihood of each row, log Σ_c π_c p(x | c) over all components, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        out : ndarray, str or path-like, default=None
            Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
            file, which is written completely or not at all and returned as a memory map.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            In the dtype of the means.
        """
        data = self._opened(X)
        with computing(self.n_threads):
            model = self._model_of(data)
            return data.map(model.log_likelihood, None, model.centers.dtype, out)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean exact log-likelihood per point (or unit of weight), in nats: eq. (3) of Lücke & Forster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        log_likelihood : float
        """
        data = self._opened(X, sample_weight)
        with computing(self.n_threads):
            total, weight = data.each(em.LogLikelihood(self._model_of(data)))
            return float(total / weight)

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion −2 N L + k log N; lower is better.

        L: mean exact log-likelihood of the N rows [nats]    k: number of free parameters
        """
        total, n_parameters, n = self._log_likelihood(X)
        return float(-2 * total + n_parameters * np.log(n))

    def aic(self, X: Any) -> float:
        """Return the Akaike information criterion −2 N L + 2 k; lower is better.

        L: mean exact log-likelihood of the N rows [nats]    k: number of free parameters
        """
        total, n_parameters, _ = self._log_likelihood(X)
        return float(-2 * total + 2 * n_parameters)

    def _log_likelihood(self, X: Any) -> tuple[float, int, int]:
        """Return the log-likelihood of all rows [nats], the number of free parameters and the number of rows."""
        data = self._opened(X)
        with computing(self.n_threads):
            model = self._model_of(data)
            return float(data.each(em.LogLikelihood(model))[0]), model.n_parameters, data.n_points

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> tuple[NDArray, NDArray[np.int32]]:
        """Draw points from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None is the `random_state` of the estimator. If that is an int, every call draws the same points; if it is
            None or a generator, every call draws new ones.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            In the dtype of the means.
        components : ndarray of shape (n_samples,), int32
            The component that each point was drawn from, in ascending order.
        """
        check_is_fitted(self)
        check_integer(n_samples, "n_samples", 1)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        with computing(self.n_threads):
            model, weights = self._parameters(), np.asarray(self.weights_, dtype=np.float64)
            counts = rng.multinomial(n_samples, weights / weights.sum())
            components = np.repeat(np.arange(len(model.centers), dtype=np.int32), counts)
            normal = rng.standard_normal((n_samples, model.n_normals))
            return model.drawn(components, normal).astype(model.centers.dtype, copy=False), components
