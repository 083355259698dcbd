"""Mixture of regressions: each component is a linear or Poisson regression of y on the columns of X."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d

from cprime import em
from cprime._utils.arguments import naming
from cprime._utils.declared import Array, Columns, Count, Ids, Number, Presence
from cprime._utils.messages import warn
from cprime._utils.number_types import check_largest
from cprime._utils.random import Key, Purpose, check_random_state, seed_of
from cprime._utils.values import replace
from cprime.em.diverse_starts import best_of as best_of_runs
from cprime.estimators.columns import resolve_columns
from cprime.estimators.fitted_mixture import best_of
from cprime.estimators.mixture_parameters import checked_shares, k_means_start
from cprime.estimators.opening import names_of, validated
from cprime.estimators.savable import SavableEstimator
from cprime.estimators.solutions import FitRecord, without_solution
from cprime.estimators.validation import (
    check_choice,
    check_integer,
    check_real,
    check_weights,
    resolve_n_active,
)
from cprime.estimators.watching import CallbackSupportMixin, Watch, restore_on_error, unfitted_copy, with_callbacks
from cprime.execution import Data, local
from cprime.kernels import Rows, computing
from cprime.model import REGRESSION, Regression
from cprime.persistence import model_files
from cprime.search import Full
from cprime.sources import array_of

# With n_init="auto" there are at most _MOST_STARTS starts, fewer if these have more than _EVALUATIONS pairs of a row
# and a component.
_MOST_STARTS, _EVALUATIONS = 20, 2_000_000
# Number of iterations of each short run in a round, and number of runs that are continued after it. Rounds are longer
# than those of other mixtures, because lines separate slowly.
_ROUNDS = ((8, 8), (16, 4), (40, 1))
_STARTS = ("lines", "k-means", "lines", "random")  # kinds of successive starts
_KMEANS_ITERATIONS = 10
# Least variance of a component, as a share of the variance of y: with reg_covar="auto", and in any case.
_LEAST_SHARE, _ROUNDING = 1e-8, 1e-20


class _Units(NamedTuple):
    """Columns of a fit, and their affine maps: rows have (x − x_mean)/x_scale, y − y_mean and (w − w_mean)/w_scale.

    regressors, concomitants: positions of x and w in X
    """

    regressors: NDArray[np.intp]
    concomitants: NDArray[np.intp]
    x_mean: NDArray[np.float64]
    x_scale: NDArray[np.float64]
    y_mean: float
    w_mean: NDArray[np.float64]
    w_scale: NDArray[np.float64]

    def restored(self, model: Regression) -> Regression:
        """Return the model of the given rows from that of mapped ones."""
        centers = _restored(model.centers, self.x_mean, self.x_scale)
        centers[:, -1] += self.y_mean
        gates = None if model.gates is None else _restored(model.gates, self.w_mean, self.w_scale)
        return replace(model, centers=centers, gates=gates)


def _restored(coefs: NDArray, mean: NDArray, scale: NDArray) -> NDArray[np.float64]:
    """Return coefficients, with intercepts in the last column, for columns that are not centered and scaled."""
    slopes = coefs[:, :-1] / scale
    return np.column_stack([slopes, coefs[:, -1] - slopes @ mean])


def _scaled(X: NDArray, w: NDArray | None) -> tuple[NDArray, NDArray, NDArray]:
    """Return columns of mean 0 and variance 1, their means and their standard deviations (1 for constant columns)."""
    share = np.full(len(X), 1 / len(X)) if w is None else w / w.sum()
    mean = share @ X
    moved = X - mean
    scale = np.sqrt(share @ np.square(moved))
    scale[scale <= 1e-14 * np.abs(X).max(axis=0, initial=0)] = 1.0
    return moved / scale, mean, scale


@model_files.register
class RegressionMixture(CallbackSupportMixin, RegressorMixin, SavableEstimator):
    """Mixture of regressions of y on X: p(y given x) = Σ_c π_c p(y given β_c·x + β_c0), fitted by EM.

    Components are linear regressions with normal noise of variance σ_c² (family="gaussian"), or Poisson regressions of
    counts with the mean exp(β_c·x + β_c0) (family="poisson"). With n_active=1, each row belongs to its best component
    only, which is clusterwise regression if weights="equal". The mixing weights may depend on columns of X, the
    concomitant variables w: π_c(w) is then proportional to exp(γ_c·w + γ_c0).

    Parameters
    ----------
    n_components : int, default=1
        Number of components C, at most the number of rows.
    family : {"gaussian", "poisson"}, default="gaussian"
        Distribution of y: normal with a linear mean, or Poisson with the logarithm of the mean linear.
    weights : {"free", "equal"}, default="free"
        Whether the mixing weights π_c are estimated, or are 1/C for every component.
    regressors : columns or None, default=None
        Names or positions of the columns of X on which y depends; None is all.
    concomitant : columns or None, default=None
        Names or positions of the columns of X on which the weights depend; None is none. They are also regressors
        unless `regressors` leaves them out. They are columns of X, so cross-validation, pipelines and `predict` need no
        further argument.
    n_active : int, "auto" or None, default="auto"
        C′, the number of active components of a row; None is all, that is, exact EM. "auto" is all for up to 16
        components, 5 for more, and 1 with assignment="hard".
    assignment : {"soft", "hard", "sampled"}, default="soft"
        Responsibilities of the active components of a row, as in `GaussianMixture`.
    init_params : "auto", labels of shape (n_samples,), or responsibilities of shape (n_samples, n_components)
        Components of the rows from which the first regressions are computed. "auto" (the default) takes in turn the
        nearest of random regressions through D + 2 rows each, a k-means of (x, y), the first again, and random ones.
    n_init : int or "auto", default="auto"
        Number of starts. The worse ones end after short runs, and the best one is continued. Likelihoods of regression
        mixtures have many local maxima, so "auto" is 20; less if starts times rows times components exceed 2,000,000.
    max_iter : int, default=500
        Maximum number of iterations after the short runs.
    tol : float, default=1e-6
        The fit has converged if F changes by less than this, in nats per row.
    reg_covar : float or "auto", default="auto"
        Least variance σ² of a component, in the squared unit of y; "auto" is 1e-8 of the variance of y. It is at least
        1e-20 of that variance, above the squares of rounding errors.
    random_state : int, RandomState, Generator or None, default=None
    n_threads : int or None, default=None
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0

    Attributes
    ----------
    coefs_ : ndarray of shape (n_components, n_regressors)
        Coefficients β of the regressors, in the units of X and y (of log y with family="poisson").
    intercepts_ : ndarray of shape (n_components,)
        Intercepts β₀.
    variances_ : ndarray of shape (n_components,)
        Variances σ² of the noise; only with family="gaussian".
    weights_ : ndarray of shape (n_components,)
        Mixing weights π; with concomitant variables their mean over the training rows.
    concomitant_coefs_ : ndarray of shape (n_components, n_concomitants)
        Coefficients γ, zeros for the first component; only with concomitant variables.
    concomitant_intercepts_ : ndarray of shape (n_components,)
        Intercepts γ₀, 0 for the first component.
    regressors_, concomitants_ : ndarray of int
        Positions of these columns.
    family_ : str
        Family of the fit.
    labels_ : ndarray of shape (n_samples,), int32
        The most probable component of each training row, given its y.
    lower_bound_, lower_bounds_, history_, n_iter_, converged_, counts_, n_active_
        As in `GaussianMixture`; quantization_error of the history is NaN.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    The fit is in float64 and in memory, for columns that are centered and scaled. Each pass compares all rows with all
    components: regressions intersect, so neighbors of a good component need not be good. If rows do not determine some
    coefficients of a component, because columns are collinear or its rows are too few, these stay as they were at its
    last step, 0 at first. A component of no more rows than coefficients has the least variance, `reg_covar`; starts
    with such components lose against those without, and a fit that ends in one warns. `history_` and `n_iter_` are of
    the run that continues the best short run.

    References
    ----------
    Leisch (2004), *FlexMix: a general framework for finite mixture models and latent class regression in R*. DeSarbo &
    Cron (1988), *A maximum likelihood methodology for clusterwise linear regression*. Späth (1979), *Algorithm 39:
    clusterwise linear regression*. Dayton & Macready (1988), *Concomitant-variable latent-class models*. McLachlan &
    Peel (2000), *Finite mixture models*, chapter 5.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import RegressionMixture
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, size=400)
    >>> y = np.where(np.arange(400) < 200, 5 * x, 40 - 2 * x) + rng.standard_normal(400)
    >>> rm = RegressionMixture(2, random_state=0).fit(x[:, np.newaxis], y)
    >>> np.sort(rm.coefs_[:, 0]).round()
    array([-2.,  5.])
    """

    coefs_: Annotated[NDArray, Array("C R", "float64", is_first=True)]
    intercepts_: Annotated[NDArray, Array("C", "float64")]
    variances_: Annotated[NDArray, Array("C", "float64", above=0), Presence.OPTIONAL]
    weights_: Annotated[NDArray, Array("C", "float64", least=0), lambda value, sizes: abs(value.sum() - 1) < 1e-6]
    concomitant_coefs_: Annotated[NDArray, Array("C V", "float64"), Presence.OPTIONAL]
    concomitant_intercepts_: Annotated[NDArray, Array("C", "float64"), Presence.OPTIONAL]
    regressors_: Annotated[NDArray, Array("R", "i", least=0)]
    concomitants_: Annotated[NDArray, Array("V", "i", least=0)]
    family_: Annotated[str, lambda value, sizes: value in REGRESSION]
    labels_: Annotated[Ids, Presence.OPTIONAL]
    counts_: Annotated[NDArray, Array("C", least=0), Presence.WITH_RECORD]
    n_active_: Annotated[int, Number(least=1, below="C+1")]
    n_iter_: Annotated[Count, Presence.RECORD]
    converged_: Annotated[bool, Presence.RECORD]
    lower_bound_: Annotated[float, Presence.WITH_RECORD]
    lower_bounds_: Annotated[list[float], Presence.RECORD]
    history_: Annotated[NDArray, Columns(em.HISTORY), Presence.RECORD]

    def __init__(
        self,
        n_components: int = 1,
        *,
        family: str = "gaussian",
        weights: str = "free",
        regressors: Any = None,
        concomitant: Any = None,
        n_active: int | str | None = "auto",
        assignment: str = "soft",
        init_params: Any = "auto",
        n_init: int | str = "auto",
        max_iter: int = 500,
        tol: float = 1e-6,
        reg_covar: float | str = "auto",
        random_state: Any = None,
        n_threads: int | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.weights = weights
        self.regressors = regressors
        self.concomitant = concomitant
        self.n_active = n_active
        self.assignment = assignment
        self.init_params = init_params
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.random_state = random_state
        self.n_threads = n_threads
        self.callbacks = callbacks
        self.verbose = verbose

    @restore_on_error
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, dense and in memory.
        y : array-like of shape (n_samples,)
            Finite numbers; not negative with family="poisson".
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the row twice; None is 1 for each.

        Returns
        -------
        self : the estimator, fitted

        Raises
        ------
        ValueError
            If an argument is out of its range, or there are fewer rows than components.
        """
        C, n_active = self._check_arguments()
        rows = validated(self, X)
        if len(rows) < C:
            raise ValueError(f"n_samples={len(rows)} should be >= n_components={C}.")
        y = _checked_y(y, len(rows), self.family)
        sample_weight = check_weights(sample_weight, rows.given())
        values = rows.dense().astype(np.float64)
        chosen = self._columns("regressors", np.arange(values.shape[1])), self._columns("concomitant", np.arange(0))
        x, x_mean, x_scale = _scaled(values[:, chosen[0]], sample_weight)
        w, w_mean, w_scale = _scaled(values[:, chosen[1]], sample_weight)
        y_mean = float(np.average(y, weights=sample_weight))
        variance = float(np.average(np.square(y - y_mean), weights=sample_weight))
        is_auto = isinstance(self.reg_covar, str)
        least = _LEAST_SHARE * variance if is_auto else max(float(self.reg_covar), _ROUNDING * variance)
        units = _Units(*chosen, x_mean, x_scale, y_mean if self.family == "gaussian" else 0.0, w_mean, w_scale)
        data = local(np.column_stack([x, y - units.y_mean, w]), sample_weight)
        watch = Watch(self, (X, y, sample_weight), lambda run: unfitted_copy(self)._set_run(run, units, n_active, {}))
        settings = em.MixtureSettings(self.max_iter, self.tol, n_active, self.assignment)
        plan = em.FitPlan(n_active, Full(), em.EM(settings))
        key = Key(seed_of(self.random_state))
        problem = self._problem(plan, data, units, y_mean, least, key)
        with watch.fit(1, self.max_iter):
            run, measured = em.solve(data, problem, key, watch)
        self._set_run(run, units, n_active, {"labels": measured["labels"]})
        if run.end == em.End.MAX_ITER and not em.ASSIGNMENTS[self.assignment].is_drawn:
            text = f"The fit did not converge in {len(run.rows)} iterations, with max_iter={self.max_iter}: try more."
            warn(text, ConvergenceWarning)
        if run.model.n_exact:
            text = f"{run.model.n_exact} component(s) fit their rows exactly, so the likelihood means nothing: "
            warn(text + "give fewer components, a larger n_init or reg_covar.", ConvergenceWarning)
        return self

    def _check_arguments(self) -> tuple[int, int]:
        """Raise TypeError or ValueError if an argument is invalid for any data; return C and C′."""
        C = check_integer(self.n_components, "n_components", 1)
        check_choice(self.family, "family", tuple(REGRESSION))
        check_choice(self.weights, "weights", ("free", "equal"))
        check_choice(self.assignment, "assignment", tuple(em.ASSIGNMENTS))
        if isinstance(self.init_params, str):
            check_choice(self.init_params, "init_params", ("auto",))
        if isinstance(self.n_init, str):
            check_choice(self.n_init, "n_init", ("auto",))
        else:
            check_integer(self.n_init, "n_init", 1)
        check_integer(self.max_iter, "max_iter", 1)
        check_real(self.tol, "tol", 0.0)
        if isinstance(self.reg_covar, str):
            check_choice(self.reg_covar, "reg_covar", ("auto",))
        else:
            check_real(self.reg_covar, "reg_covar", 0.0)
        if self.concomitant is not None and self.weights != "free":
            raise ValueError(f'weights must be "free" if concomitant is given, got {self.weights!r}.')
        return C, resolve_n_active(self.n_active, C, self.assignment)

    def _columns(self, name: str, default: NDArray) -> NDArray[np.intp]:
        """Return the positions of the columns that an argument names."""
        if getattr(self, name) is None:
            return default
        try:
            return resolve_columns(getattr(self, name), self.n_features_in_, names_of(self))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from None

    def _problem(
        self, plan: em.FitPlan, data: Data, units: _Units, y_mean: float, least: float, key: Key
    ) -> em.Problem:
        """Return the problem of the fit of rows (x, y, w).

        y_mean: mean of y, before it was centered    least: least variance of a component
        """
        C, D, V = self.n_components, len(units.regressors), len(units.concomitants)
        options: dict[str, Any] = {"reg_covar": least} if self.family == "gaussian" else {}
        centers = np.zeros((C, D + 1))
        if self.family == "poisson":
            centers[:, -1] = np.log(max(y_mean, np.finfo(float).tiny))
        weights = None if self.weights == "equal" else np.full(C, 1 / C)
        empty: Any = REGRESSION[self.family](centers, weights, np.zeros((C, V + 1)) if V else None, **options)

        def begun(shares: NDArray) -> Any:
            data.begin(keep=False)
            return em.hard_start(data, empty, True, shares=shares)

        starts: list[Callable[[], Any]]
        if isinstance(self.init_params, str):
            n_starts = self.n_init
            if isinstance(n_starts, str):
                n_starts = max(1, min(_MOST_STARTS, _EVALUATIONS // (data.n_weighted * C)))
            keys = [replace(key, run=number) for number in range(1 if C == 1 else n_starts)]
            starts = [partial(lambda key: begun(_partition(data, C, D, self.family, key)), each) for each in keys]
        else:
            values = array_of(self.init_params, "init_params")
            if values.shape not in ((data.n_points,), (data.n_points, C)):
                raise ValueError(
                    f"init_params must have labels of shape {(data.n_points,)} or responsibilities of shape "
                    f"{(data.n_points, C)}, got an array of shape {values.shape}."
                )
            starts = [partial(begun, checked_shares(values, C))]

        def first_model(data: Data, centers: NDArray, exact: bool) -> Any:
            return starts[0]() if len(starts) == 1 else best_of_runs(starts, data, plan, [key] * len(starts), _ROUNDS)

        return em.Problem(plan, None, lambda data, key: centers, first_model)

    def _set_run(self, run: em.Run, units: _Units, n_active: int, measured: dict[str, Any]) -> Self:
        """Set the fitted attributes from the state of a run, and return the estimator.    n_active: C′"""
        model: Any = units.restored(run.model)
        C = model.n_components
        weights = np.full(C, 1 / C) if model.weights is None else model.weights
        found: dict[str, Any] = {"coefs_": model.centers[:, :-1].copy(), "intercepts_": model.centers[:, -1].copy()}
        found |= {"weights_": weights, "family_": self.family, "n_active_": n_active}
        found |= {"regressors_": units.regressors, "concomitants_": units.concomitants}
        found |= {"lower_bound_": run.bound, "counts_": run.counts}
        if self.family == "gaussian":
            found["variances_"] = model.noise_variances
        if model.gates is not None:
            gates = model.gates
            found |= {"concomitant_coefs_": gates[:, :-1].copy(), "concomitant_intercepts_": gates[:, -1].copy()}
        record = FitRecord(run.history, run.end == em.End.CONVERGED, measured)
        self.__dict__ = without_solution(vars(self)) | found | record.attributes()
        return self

    def _parameters(self) -> Regression:
        """Return the fitted parameters as a model of rows (x, y, w)."""
        check_is_fitted(self)
        gates = None
        if len(self.concomitants_):
            gates = np.column_stack([self.concomitant_coefs_, self.concomitant_intercepts_])
        centers = np.column_stack([self.coefs_, self.intercepts_])
        options = {"noise_variances": self.variances_} if self.family_ == "gaussian" else {}
        weights = None if self.weights == "equal" else self.weights_
        model: Regression = REGRESSION[self.family_](centers, weights, gates, **options)
        return model

    def _check_fitted(self) -> None:
        super()._check_fitted()
        if max(self.regressors_.max(), self.concomitants_.max(initial=0)) >= self.n_features_in_:
            raise ValueError(f"regressors_ and concomitants_ are not below n_features_in_ = {self.n_features_in_}")
        needed = ["variances_"] if self.family_ == "gaussian" else []
        needed += ["concomitant_coefs_", "concomitant_intercepts_"] if len(self.concomitants_) else []
        for name in needed:
            if not hasattr(self, name):
                raise ValueError(f"it has no {name}")

    def _dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def _opened(self, X: Any, *given: Any, sample_weight: Any = None) -> Data:
        """Return rows (x, y, w) as `Data`.    given: y, or nothing for zeros in its place"""
        rows = validated(self, X, reset=False)
        values = rows.dense()
        y = _checked_y(given[0], len(values), self.family_) if given else np.zeros(len(values))
        columns = np.column_stack([values[:, self.regressors_], y, values[:, self.concomitants_]])
        return local(columns, check_weights(sample_weight, rows.given()))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the expected value of y for each row: the mean of the components' predictions, weighted by π.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """

        def expected(model: Regression, rows: Rows) -> NDArray:
            x, _, w = model.split(rows.dense())
            weights, means = np.exp(model.log_mixing(w)), model.mean(model.predictors(x))
            return np.multiply(weights, means, out=np.zeros(means.shape), where=weights > 0).sum(axis=1)

        return self._mapped(expected, None, X)

    def predict_components(self, X: Any) -> NDArray[np.float64]:
        """Return the expected value of y for each row under each component.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples, n_components)
        """

        def means(model: Regression, rows: Rows) -> NDArray:
            return model.mean(model.predictors(model.split(rows.dense())[0]))

        check_is_fitted(self)
        return self._mapped(means, len(self.coefs_), X)

    def predict_weights(self, X: Any) -> NDArray[np.float64]:
        """Return the mixing weights of each row, which differ between rows only if there are concomitant variables.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        weights : ndarray of shape (n_samples, n_components)
            Rows sum to 1.
        """

        def weights(model: Regression, rows: Rows) -> NDArray:
            found = np.exp(model.log_mixing(model.split(rows.dense())[2]))
            return np.broadcast_to(found, (len(rows), model.n_components))

        check_is_fitted(self)
        return self._mapped(weights, len(self.coefs_), X)

    def responsibilities(self, X: Any, y: Any) -> NDArray[np.float64]:
        """Return the posterior probability of each component for each row and its y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        responsibilities : ndarray of shape (n_samples, n_components)
            Rows sum to 1. All components count, also if `n_active_` is less than their number.
        """
        check_is_fitted(self)
        return self._mapped(lambda model, rows: model.responsibilities(rows), len(self.coefs_), X, y)

    def assign(self, X: Any, y: Any) -> NDArray[np.int32]:
        """Return the most probable component of each row, given its y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        return self._mapped(best_of, None, X, y, dtype=np.int32)

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the log-likelihood of all rows, Σ_n w_n log p(y_n given x_n) over all components, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights w; None is 1 for each.

        Returns
        -------
        log_likelihood : float
        """
        return self._likelihood(X, y, sample_weight)[0]

    def bic(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian information criterion −2 log L + k log N; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the row twice, also in N; None is 1 for each.

        Returns
        -------
        bic : float
        """
        total, weight, k = self._likelihood(X, y, sample_weight)
        return float(-2 * total + k * np.log(weight))

    def aic(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the Akaike information criterion −2 log L + 2 k; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the row twice; None is 1 for each.

        Returns
        -------
        aic : float
        """
        total, _, k = self._likelihood(X, y, sample_weight)
        return float(-2 * total + 2 * k)

    def sample(self, X: Any, *, random_state: Any = None) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Draw y for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        random_state : int, RandomState, Generator or None, default=None
            None is the `random_state` of the estimator.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        components : ndarray of shape (n_samples,), int32
            The component that each value was drawn from.
        """
        means, weights = self.predict_components(X), self.predict_weights(X)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        drawn = (np.cumsum(weights, axis=1) <= rng.uniform(size=(len(means), 1))).sum(axis=1)
        components = np.minimum(drawn, means.shape[1] - 1).astype(np.int32)
        mean = means[np.arange(len(means)), components]
        if self.family_ == "poisson":
            return rng.poisson(mean).astype(np.float64), components
        return mean + np.sqrt(self.variances_[components]) * rng.standard_normal(len(mean)), components

    def _mapped(
        self, function: Callable[..., NDArray], width: int | None, X: Any, *y: Any, dtype: Any = np.float64
    ) -> Any:
        """Return the result, (n,) or (n, width), of a function of the fitted model and of rows (x, y, w)."""
        check_is_fitted(self)
        with computing(self.n_threads):
            return self._opened(X, *y).map(partial(function, self._parameters()), width, dtype)

    def _likelihood(self, X: Any, y: Any, sample_weight: Any) -> tuple[float, float, int]:
        """Return the log-likelihood of all rows [nats], their total weight, and the number of free parameters."""
        check_is_fitted(self)
        with computing(self.n_threads):
            model: Any = self._parameters()
            total, weight = self._opened(X, y, sample_weight=sample_weight).each(em.LogLikelihood(model))
            return float(total), float(weight), model.n_parameters


def _checked_y(y: Any, n: int, family: str) -> NDArray[np.float64]:
    """Return y (n,) as float64; raise TypeError or ValueError unless it has n valid numbers."""
    if y is None:
        raise ValueError("RegressionMixture requires y to be passed, but the target y is None.")
    with naming("y"):
        values: NDArray[np.float64] = column_or_1d(array_of(y, "y", np.float64), warn=True)
    if len(values) != n:
        raise ValueError(f"y must have one value for each of the {n} rows of X, got {len(values)}.")
    wrong = ~np.isfinite(values) | ((values < 0) & (family == "poisson"))
    if wrong.any():
        i = int(wrong.argmax())
        kind = "NaN" if np.isnan(values[i]) else str(values[i])
        least = ", not negative for family='poisson'" if family == "poisson" else ""
        raise ValueError(f"y must have finite numbers{least}, no NaN or infinity, got {kind} in row {i}.")
    check_largest(float(np.abs(values).max()), values.dtype, 1, "y")
    return values


def _partition(data: Data, C: int, D: int, family: str, key: Key) -> NDArray[np.int32]:
    """Return the component of each row (N,) with which the start of number `key.run` begins.

    data: rows (x, y, w) with columns x of variance 1    D: number of columns of x
    """
    rng, kind = key.random_state(Purpose.START), _STARTS[key.run % len(_STARTS)]
    whole = data.whole()
    assert whole is not None
    Z, weight = whole[0].dense(), whole[1]
    x, y = Z[:, :D], np.log(Z[:, D] + 0.5) if family == "poisson" else Z[:, D]
    heavy = np.arange(len(Z)) if weight is None else np.flatnonzero(weight)
    if kind == "random":
        labels = np.zeros(len(Z), dtype=np.int32)
        labels[heavy] = rng.randint(C, size=len(heavy))
        return labels
    if kind == "k-means":
        rows = local(np.column_stack([x, _scaled(y[:, np.newaxis], weight)[0]]), weight)
        k_means_start(rows, C, key, _KMEANS_ITERATIONS)
        nearest: Any = rows.labels()
        return nearest
    ones = np.column_stack([x, np.ones(len(x))])
    residuals = np.empty((C, len(Z)))
    for c in range(C):
        some = rng.choice(heavy, min(D + 2, len(heavy)), replace=False)
        residuals[c] = np.abs(y - ones @ np.linalg.lstsq(ones[some], y[some], rcond=None)[0])
    return residuals.argmin(axis=0).astype(np.int32)
