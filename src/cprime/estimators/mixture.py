"""Base class of mixtures of any model family, with the methods that fit all data at once or batch by batch."""

from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning

from cprime import em
from cprime._utils.declared import Array, Centers, Ids, Number, Presence
from cprime._utils.messages import warn
from cprime._utils.random import Key, seed_of
from cprime._utils.values import replace
from cprime.estimators.approximate import certify
from cprime.estimators.base import Clusterer
from cprime.estimators.budget import opened_within
from cprime.estimators.constraints import partial_labels, refuse_labels
from cprime.estimators.covariances import Factors, as_covariances, family_of
from cprime.estimators.fitted import model_of
from cprime.estimators.fitted_mixture import (
    aic,
    best_of,
    bic,
    nearest,
    of_log_likelihood,
    predict,
    predict_proba,
    sample,
    score_samples,
    uncertainty,
)
from cprime.estimators.mixture_problems import MixtureOptions
from cprime.estimators.solutions import (
    FitRecord,
    MixtureSolution,
    adopt,
    history_of,
    implied,
    mixture_solution,
    record_of_batch,
)
from cprime.estimators.updating import updated
from cprime.estimators.validation import (
    check_decay,
    check_enough,
    check_mixture,
    resolve_n_active,
)
from cprime.estimators.watching import restore_on_error, with_callbacks
from cprime.execution import Data
from cprime.model import FAMILIES, Model
from cprime.persistence import checkpoints
from cprime.search import Full

_KMEANS_ITERATIONS = 30  # Maximum number of iterations of the k-means that initializes a mixture.


class Mixture(DensityMixin, Clusterer):
    """Base of mixtures fitted by EM; a subclass defines the constructor arguments and the available model families.

    The methods that use fitted parameters also work without a fit if the user sets `weights_`, `means_`, and either
    `precisions_cholesky_` or `covariances_`.

    Parameters
    ----------
    n_components : int
        Number of components C, at most the number of points.
    weights : {"free", "equal"}
        Whether the mixing weights π_c are estimated, or are 1/C for every component.
    n_active : int, "auto" or None
        C′, the number of active components of a point; None is all, that is, exact EM. "auto" is all for up to 16
        components, 5 for more, and 1 with assignment="hard".
    assignment : {"soft", "hard", "sampled"}
        Responsibilities of the active components of a point, as in `GaussianMixture`.
    search : str or object of cprime.search
        Candidate components of a point, as in `GaussianMixture`.
    n_init : int
        Number of starts; the result of greatest lower bound F is returned.
    max_iter : int
        Maximum number of iterations of one start.
    tol : float
        A start has converged if F changes by less than this, in nats per point.
    learning_decay : float
        κ of `partial_fit`, as in `GaussianMixture`.
    warm_start : bool
        Whether `fit` starts from the parameters of the previous fit.
    weights_init : array-like of shape (n_components,) or None
        Starting weights.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Mixing weights π, in the dtype of the data, like all arrays of parameters.
    means_ : ndarray of shape (n_components, n_features)
        Means of the components, in data units.
    labels_ : ndarray of shape (n_samples,), int32
        The most probable component of each training point, or the one found by a partial search.
    """

    _families: ClassVar[Mapping[str, Any]] = FAMILIES  # class of the models for each covariance_type

    n_components: int
    n_active: int | str | None
    n_active_: Annotated[int, Number(least=1, below="C+1")] = implied(
        lambda m: resolve_n_active(m.n_active, len(m.means_), m.assignment)
    )
    means_: Centers
    weights_: Annotated[
        NDArray,
        Array("C", least=0),
        lambda value, sizes: abs(value.sum(dtype=np.float64) - 1) < 1e-6,
    ]
    labels_: Annotated[Ids, Presence.OPTIONAL]
    counts_: Annotated[NDArray, Array("C", least=0), Presence.WITH_RECORD]
    lower_bound_: Annotated[float, Presence.WITH_RECORD]
    covariances_: Annotated[Any, Presence.OPTIONAL] = implied(
        lambda m: model_of(m).attributes()["covariances_"], "precisions_cholesky_"
    )
    precisions_: Annotated[Any, Presence.OPTIONAL] = implied(lambda m: model_of(m).attributes().get("precisions_"))
    precisions_cholesky_: Annotated[Any, Presence.OPTIONAL] = implied(
        lambda m: model_of(m).attributes()["precisions_cholesky_"], "covariances_"
    )
    covariance_type: Any
    covariance_type_: str = implied(lambda m: family_of(m.covariance_type))
    equal_weights_: bool = implied(lambda m: m.weights == "equal" and len(set(m.weights_)) == 1, "weights_")
    weights: str
    assignment: str
    max_iter: int
    warm_start: bool
    tol: float
    momentum: bool | str
    reg_covar: float
    init_params: Any
    weights_init: Any
    means_init: Any
    _means_argument: ClassVar[str] = "means_init"
    precisions_init: Any
    learning_decay: float
    _size_name = "n_components"

    predict = predict
    nearest = nearest
    predict_proba = predict_proba
    score_samples = score_samples
    uncertainty = uncertainty
    bic = bic
    aic = aic
    sample = sample
    certify = certify

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
        return of_log_likelihood(self, X, sample_weight, lambda total, k, n: total / n)

    @restore_on_error
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers. Arrays of the narrow types uint8, int8, bool, float16 and bfloat16 are not converted as a
            whole; the computation uses float32. Other types of up to 16 bits and float32 become float32, wider types
            become float64. A C-contiguous array is not copied, except for "tied" and for "tied_spherical" with free
            weights. "factors" and "ppca" convert narrow rows chunk by chunk. A memory map of more than 512
            MiB is read in chunks.
        y : array-like of shape (n_samples,), default=None
            Labels of some points if the estimator has a parameter `semi_supervised`, and it is True; otherwise ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the point twice; None is 1 for each.

        Returns
        -------
        self : the estimator, fitted

        Raises
        ------
        ValueError
            If an argument is out of its range or not supported, or there are fewer points than components.
        """
        self._check_arguments()
        data = opened_within(self, X, sample_weight)
        labels = partial_labels(self, y, data.n_points, self.n_components)
        return self._fit_to(data, (X, y, sample_weight), labels)

    def _check_arguments(self) -> None:
        check_mixture(self)

    def _options(self) -> MixtureOptions:
        covariances = as_covariances(self.covariance_type)
        family = self._families[family_of(covariances)]
        owner = covariances if isinstance(covariances, Factors) else self
        given = {name: getattr(owner, name) for name in family.options}
        others: dict[str, Any] = {}
        if self.warm_start and hasattr(self, "means_"):
            self._check_goes_on("warm_start")
            others["continued"] = partial(self._parameters, self.reg_covar)
            others["bound_before"] = self.lower_bounds_[-1] if hasattr(self, "lower_bounds_") else np.inf
        return MixtureOptions.of(
            self, family=family, family_options=given, means_argument=self._means_argument, **others
        )

    def _warn_of(self, run: em.Run) -> None:
        n_singular = 0 if getattr(self, "reg_covar", None) else run.model.n_singular
        if n_singular:
            warn(
                f"{n_singular} component(s) have a singular covariance, in which some 1e-10 of other variances replace "
                "0, so the likelihood, BIC and AIC mean nothing: give reg_covar > 0 or fewer components, or leave out "
                "columns that are constant or determined by others.",
                ConvergenceWarning,
            )
        if run.end == em.End.MAX_ITER and not em.ASSIGNMENTS[self.assignment].is_drawn:
            warn(
                f"The fit did not converge in {len(run.rows)} iterations, with max_iter={self.max_iter}: try more of "
                "them, a larger tol, or check for degenerate data.",
                ConvergenceWarning,
            )

    @restore_on_error
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the parameters with one batch of points: stepwise EM (Cappé & Moulines 2009).

        The E-step on the batch evaluates all components and uses the best C′ of each point. Then the sufficient
        statistics move toward those of the batch by the share min(1, W/n^κ) of the difference, and the parameters are
        computed from the result. W is the weight of the batch, n is the total weight of all batches so far, and κ is
        `learning_decay`. For the first batch the parameters are initialized as in `fit`. After a call of `fit`,
        batches update the fitted parameters.

        Options of the search, of the iterations of a fit, and of its memory have no effect: `search`, `n_init`,
        `max_iter`, `tol`, `momentum`, `callbacks`, `checkpoint`, `max_memory`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A batch. The first one must have at least n_components points.
        y : Ignored
            Batches have no labels, so `semi_supervised` must be False.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the point twice; None is 1 for each.

        Returns
        -------
        self : the estimator
            `labels_` and `lower_bound_` are those of this batch, for the parameters before the update; `history_` has
            one additional row.
        """
        begin = perf_counter()
        check_mixture(self)
        C, first = self.n_components, not hasattr(self, "means_")
        decay = check_decay(self.learning_decay)
        if getattr(self, "fixed", None) is not None:
            raise ValueError("partial_fit needs fixed=None: it changes all components.")
        if getattr(self, "prior", None) is not None:
            raise ValueError(f"partial_fit needs prior=None, got {self.prior!r}.")
        refuse_labels(self, "partial_fit")
        if not first:
            self._check_goes_on("partial_fit")
        n_active = resolve_n_active(self.n_active, C, self.assignment)
        data = self._opened(X, sample_weight, reset=first)
        if first:
            check_enough(self, data.n_points, "partial_fit")
        counts = np.zeros(C) if first else self.counts_
        history = history_of(self)
        key = Key(seed_of(self.random_state), iteration=len(history))
        stage = em.EM(em.MixtureSettings(1, 0.0, n_active, self.assignment))
        model = self._first_batch(data, key) if first else self._model_of(data, self.reg_covar)
        labels = data.map(partial(best_of, model), None, np.int32)
        data.begin(keep=False)
        new, counts, totals = em.mixture_step(model, counts, data, stage, decay, key)
        tally, bound = totals.tally, em.free_energy(model, totals.tally)
        row = ("online", bound, tally.error, tally.n_distances, 0, tally.n_moved, perf_counter() - begin)
        record = record_of_batch(history, row, labels, "exact")
        adopt(self, mixture_solution(self, new, n_active, counts=counts, lower_bound=bound, record=record))
        return self

    def update(self, X: Any, n_components: int | None = None, sample_weight: Any = None) -> Self:
        """Continue the fit on changed data, for example with some rows replaced; ids of components keep their meaning.

        The fit starts from the fitted parameters. If the number of components changes, it starts from the means only.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
            The data as they are now, with the columns of the fit.
        n_components : int or None, default=None
            New number of components; None keeps the present one. Additional components start at distant points (D²
            sampling). For a smaller number, means are joined by Ward's criterion, and the component of greatest weight
            of those that are joined keeps its id.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the points; None is 1 for each.

        Returns
        -------
        self : the estimator
            Fitted attributes are those of the new data. `origin_` has the former id of each component, or −1 for a new
            component: a component continues a former one if they share more than half of the points of either. The log
            lists new and ended components. `history_` and `lower_bounds_` continue. After an error the estimator is
            unchanged. No checkpoint is written.

        Raises
        ------
        ValueError
            If X has other columns than the training data, or fewer points than components.
        """
        self.__dict__ = updated(self, X, n_components, sample_weight)
        return self

    def _first_batch(self, data: Data, key: Key) -> Model:
        """Return the model that the first call of `partial_fit` updates, initialized from its batch `data`."""
        problem = self._options().problem(data, quick=True)
        plan = replace(problem.plan, search=Full(), regroup=False)
        return em.begin(data, problem.plain_start(data, key), plan, key).model

    def _solution(self, run: em.Run, n_active: int, record: FitRecord) -> MixtureSolution:
        return mixture_solution(self, run.model, n_active, counts=run.counts, lower_bound=run.bound, record=record)

    @property
    def _family(self) -> Any:
        return self._families[self.covariance_type_]

    def _attribute_types(self) -> dict[str, Any]:
        if self.covariance_type_ not in tuple(self._families):
            raise ValueError(f"covariance_type_ must be one of {', '.join(self._families)}")
        return super()._attribute_types() | self._family.attribute_types()

    def _searched_by(self) -> tuple[str, ...]:
        return ("means_", "weights_", *self._family.attribute_names)

    def _parameters(self, reg_covar: float = 0.0) -> Model:
        weights = None if self.equal_weights_ else np.asarray(self.weights_, dtype=np.float64)
        means = np.asarray(self.means_)
        means = np.ascontiguousarray(means, means.dtype if means.dtype in (np.float32, np.float64) else np.float64)
        family = self._family
        given = {name: vars(self)[name] for name in family.attribute_names if name in vars(self)}
        if not given:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {family.attribute_names[0]!r}")
        return family.from_attributes(given, means, weights, reg_covar)

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
            given = getattr(self, name)
            if (family_of(given) if isinstance(value, str) else given) != value:
                raise ValueError(f"{what} goes on from a fit with {name}={value!r}, got {name}={given!r}.")

    def _options_of_fit(self) -> dict[str, Any]:
        """Return arguments with options of the model family with which the present parameters were fitted.

        An option that is "auto" in the constructor is left out, because "auto" is compatible with every value.
        """
        return {}

    def _continued(self) -> dict[str, Any] | None:
        if not (self.warm_start and hasattr(self, "means_")):
            return None
        family = self._family.attribute_names
        names = [name for name in (*checkpoints.WARM, *family) if name != "precisions_" and hasattr(self, name)]
        return {name: getattr(self, name) for name in names}

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Fit the mixture and return the most probable component of each training point: `fit(X, y).labels_`."""
        return self.fit(X, y, sample_weight).labels_
