"""Fits for every number of components of a range, from new initializations and from the previous fit."""

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from cprime._utils.arguments import check_integers, naming
from cprime._utils.messages import warn
from cprime._utils.random import check_random_state
from cprime.estimators import GaussianMixture, StudentTMixture
from cprime.estimators.categories import has_categories
from cprime.estimators.constraints import refuse_labels
from cprime.estimators.covariances import MCLUST_FAMILIES, Factors, check_family, family_of
from cprime.estimators.discrete import DiscreteMixture
from cprime.estimators.fitted import centers_of, data_for, model_of, size_of, start_from, with_all_categories
from cprime.estimators.nearest_center import Inertia
from cprime.estimators.validation import check_choice, check_common, check_integer, check_real, check_weights
from cprime.seeding import is_given
from cprime.seeding.extension import extended, rows_in_memory
from cprime.selection.bisection import exchanged
from cprime.selection.criteria import aic, bic, icl
from cprime.selection.families import fits_of_families, judged_model
from cprime.selection.results import ACCEPTED, LOWER_IS_BETTER, Mixture, Sweep
from cprime.sources import Source, is_source_like, open_data
from cprime.sources.foreign import plain

_STARTS = (  # arguments with initial values, whose shapes allow only one number of components
    *("init", "init_params", "weights_init", "means_init", "precisions_init"),
    *("rates_init", "probabilities_init"),
)
# A mixture of a sweep has converged if an iteration changes the log-likelihood of all data by less than the first
# number [nats], because criteria of several C may differ by little more; or that per point by less than the second one.
_LEAST_GAIN, _LEAST_TOL = 1e-3, 1e-7
# Least value of `max_iter` for the mixtures of a sweep, which need more iterations for this tolerance.
_MAX_ITER = 1000
CRITERIA = ("bic", "icl", "aic", "free_energy_bic")
_logger = logging.getLogger(__name__)


class WeightedData(NamedTuple):
    """Rows as passed by the user, with weights (n,) float64 or None. A source as `X` has its own weights."""

    X: Any
    weights: NDArray[np.float64] | None

    @property
    def weight(self) -> float:
        """Return the sum of the weights, which is the number of rows if there are no weights."""
        if isinstance(self.X, Source):
            weights = self.X.weights(0, len(self.X))
            return float(len(self.X) if weights is None else weights.sum())
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @property
    def n_rows(self) -> int:
        with naming("X"):
            return int(_num_samples(self.X))

    def part(self, rows: NDArray) -> "WeightedData":
        if isinstance(self.X, Source):
            return WeightedData(self.X.subset(rows), None)
        return WeightedData(_safe_indexing(self.X, rows), None if self.weights is None else self.weights[rows])


def weighted_data(X: Any, sample_weight: Any) -> WeightedData:
    """Return data of any type that fits accept, and weights (n,) or None, after checks of the weights."""
    X = X if has_categories(X) else plain(X, narrow=True)
    if is_source_like(X):
        source = open_data(X)
        return WeightedData(source if sample_weight is None else source.with_weights(sample_weight), None)
    X = X.tocsr() if issparse(X) else X
    return WeightedData(X, check_weights(sample_weight, X))


def sweep(
    estimator: Mixture,
    X: Any,
    n_components_range: Iterable[int],
    *,
    covariance_type: str | Sequence[str | Factors] | None = None,
    sample_weight: Any = None,
    holdout: float | None = 0.2,
    criteria: Sequence[str] = CRITERIA,
    n_init: int | None = None,
    random_state: Any = None,
) -> Sweep:
    """Fit an estimator for every number of components of a range, and compute criteria to choose among the fits.

    For each C, in increasing order, the fit with the highest free energy is selected among `n_init` new initializations
    and the fit of the previous C with new centers at distant points (D² sampling). It is then improved: the best pair
    to merge is merged and the best component to split is split, as long as the free energy rises. So one bad local
    optimum does not decide the result.

    Mixtures are fitted to a smaller `tol` than that of the estimator: 0.001/W, but at least 10⁻⁷ nats per point, for
    data of weight W, with a `max_iter` of at least 1000, because the criteria of two numbers may differ by little.

    For data read from files, new centers, merges and splits are found among 2¹⁷ random rows; the fits use all rows.

    With several covariance types, all types have the same starting partitions for each number of components. The fit of
    a type is the best of those that start from these partitions, from the fit of the previous C with new centers or a
    component split, from the fit of the next C with two components merged, and from the partitions of the other types
    with the same C. This is repeated once. Short runs from all of them select the runs to continue. Fits with a
    component of fewer than 10 D points and a variance of at most 100 `reg_covar` are taken only if there is no other. A
    `UserWarning` says if the best number is at the border of the range.

    With `holdout`, the fits are made without the held-out points and evaluated on these points. One further fit to all
    data then starts from the parameters of the best fit. All results except `held_out` refer to this further fit. With
    several covariance types, the fits to all data have their own starts, so no result but `held_out` depends on
    `holdout`; the fits without the held-out points have 3 new initializations if `n_init` is None.

    Parameters
    ----------
    estimator : KMeans, or a mixture of any class
        Estimator to fit; it is cloned and not changed. Its `n_components` or `n_clusters`, `n_init` and `random_state`
        are set here; an `n_active` above C means C. For k-means the likelihood is that of the isotropic mixture,
        as in its method `bounds`.
    X : array-like, source, or sparse array (k-means alone), of shape (n_samples, n_features)
    n_components_range : iterable of int
        Numbers of components to try, in any order.
    covariance_type : "all", sequence of covariance types or None, default=None
        Covariance types of a `GaussianMixture` or `StudentTMixture` to compare, by any of their names. "all" is
        those of mclust, by its names, that the class has. None is the type of the estimator.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 is equivalent to the point occurring twice, also in the criteria; None is 1 for each.
    holdout : float or None, default=0.2
        Fraction of the points, drawn at random, on which `held_out` is computed. None skips this, which is faster.
    criteria : sequence of {"bic", "icl", "aic", "free_energy_bic"}, default all
        Criteria to compute. The free energy is known from the fit; the others need an exact pass over all components.
    n_init : int or None, default=None
        Number of new initializations for each C. None is 3, or 12 for several covariance types, which share them.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers for the initializations and for the choice of held-out points.

    Returns
    -------
    sweep : Sweep

    Raises
    ------
    TypeError
        If the estimator is not one of the listed classes.
    ValueError
        If an argument is out of its range, or the estimator has explicit start values, which fit only one C.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> sweep(KMeans(), birch(2, random_state=0).data, range(1, 9), random_state=0).best_n_components()
    4

    Covariance type and number of components together, as mclust chooses them:

    >>> from cprime import GaussianMixture
    >>> from cprime.datasets import old_faithful
    >>> X = old_faithful().data
    >>> found = sweep(GaussianMixture(), X, range(2, 5), covariance_type=["EEE", "VVI"], holdout=None, random_state=0)
    >>> found.best_covariance_type(), found.best_n_components(), round(found.bic.min())
    ('EEE', 3, 2314)
    """
    _check_estimator(estimator)
    check_common(estimator)
    numbers = check_integers(n_components_range, "n_components_range", 1)
    if not np.iterable(criteria):
        raise TypeError(f"criteria must be a sequence of names, got {criteria!r}.")
    for criterion in criteria:
        check_choice(criterion, "criteria", CRITERIA)
    if n_init is not None:
        check_integer(n_init, "n_init", 1)
    families = None if covariance_type is None else _families(estimator, covariance_type)
    rng, data = check_random_state(random_state), weighted_data(X, sample_weight)
    estimator = with_all_categories(estimator, data.X)
    if numbers[-1] > data.n_rows:
        raise ValueError(f"n_components_range must be at most n_samples={data.n_rows}, got {numbers[-1]}.")
    seed = 0 if families is None else int(rng.randint(2**31))
    seen, held_out = divided(data, holdout, rng)
    templates = [estimator] if families is None else [_with(estimator, each) for each in families]
    rows: list[dict[str, Any]] = []
    every, without = [
        [] if families is None or part is None else fits_of_families(_run, templates, part, numbers, n, n_turns, seed)
        for part, n, n_turns in ((data, n_init or 12, 2), (None if held_out is None else seen, n_init or 3, 1))
    ]
    best: Mixture | None = None
    for k, C in enumerate(numbers):
        began = time.perf_counter()
        if families is None:
            best = _best_fit(estimator, seen, C, best, n_init or 3, rng)
            fits = judged = [best]
            if held_out is not None:
                fits = [_run(estimator, data, C, rng, _everything(best))]
        else:
            fits, judged = every[k].fits, (without or every)[k].fits
            began -= sum(each[k].seconds for each in (every, without) if each)
        for fit, judge in zip(fits, judged, strict=True):
            row = {"held_out": np.nan if held_out is None else judge.bounds(*held_out).log_likelihood}
            row |= _measured(fit, data, criteria)
            if families is not None and judged_model(fit).n_collapsed:
                row |= dict.fromkeys(LOWER_IS_BETTER, np.nan)
            rows.append({"n_components": C, **row, "seconds": (time.perf_counter() - began) / len(fits)})
            _logger.info("C = %d: F %.6g, BIC with F %.6g", C, row["free_energy"], row["free_energy_bic"])
    rows = [row for i in range(len(templates)) for row in rows[i :: len(templates)]]
    estimators = tuple(row.pop("estimators") for row in rows)
    weight = rows[0]["weight"]
    found = Sweep(
        **{name: np.array([row[name] for row in rows]) for name in rows[0] if name != "weight"},
        weight=weight,
        estimators=estimators,
        covariance_type=None if families is None else np.repeat([str(each) for each in families], len(numbers)),
    )
    if families is not None:
        _warn_of_border(found)
    return found


def _families(estimator: Mixture, covariance_type: Any) -> tuple[Any, ...]:
    """Return the covariance types that the argument `covariance_type` of `sweep` means for the estimator.

    Raises TypeError if the estimator has no such argument, and ValueError for an unknown type or one given twice.
    """
    if not isinstance(estimator, GaussianMixture | StudentTMixture):
        raise TypeError(
            f"covariance_type needs a GaussianMixture or StudentTMixture as estimator, got {type(estimator).__name__}."
        )
    if isinstance(covariance_type, str) and covariance_type == "all":
        return tuple(each for each in MCLUST_FAMILIES if family_of(each) in estimator._families)
    given = (covariance_type,) if isinstance(covariance_type, str | Factors) else covariance_type
    if not np.iterable(given) or not len(tuple(given)):
        raise ValueError(f"covariance_type must be 'all' or a sequence of types, got {covariance_type!r}.")
    names = [check_family(each, estimator._families) for each in given]
    if len(set(names)) < len(names):
        raise ValueError(f"covariance_type must have each type once, got {covariance_type!r}.")
    return tuple(given)


def _with(estimator: Mixture, covariance_type: Any) -> Mixture:
    return clone(estimator).set_params(covariance_type=covariance_type)


def _warn_of_border(found: Sweep) -> None:
    """Warn if the best number of components is the least (above 1) or the greatest of the sweep, so that others may be
    better.
    """
    name, numbers = found.main_criterion, found.n_components
    if np.isnan(getattr(found, name)).all():
        return
    best = found.best_n_components(name)
    if len(np.unique(numbers)) > 1 and (best == numbers.max() or 1 < best == numbers.min()):
        warn(
            f"The best number of components by {name} is {best}, at the border of n_components_range, which is from "
            f"{numbers.min()} to {numbers.max()}: numbers beyond it may be better.",
            UserWarning,
        )


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, Mixture):
        raise TypeError(f"estimator must be {ACCEPTED}, got {type(estimator).__name__}.")
    refuse_labels(estimator, "sweep")
    for name in _STARTS:
        value = estimator.get_params().get(name)
        if value is not None and not isinstance(value, float | int) and (is_given(value) or isinstance(value, list)):
            raise ValueError(f"{name} must not be given for one number of components in a sweep, got {value!r}.")


def divided(
    data: WeightedData, holdout: float | None, rng: np.random.RandomState
) -> tuple[WeightedData, WeightedData | None]:
    """Divide the data at random; return the part to fit, and the held-out part, a fraction `holdout` of the rows.

    If `holdout` is None, the held-out part is None.
    """
    if holdout is None:
        return data, None
    if not 0 < check_real(holdout, "holdout", 0.0) < 1:
        raise ValueError(f"holdout must be between 0 and 1, or None, got {holdout}.")
    n = data.n_rows
    order = rng.permutation(n)
    n_out = min(max(round(holdout * n), 1), n - 1)
    return data.part(np.sort(order[n_out:])), data.part(np.sort(order[:n_out]))


def _best_fit(
    template: Mixture, data: WeightedData, C: int, before: Mixture | None, n_init: int, rng: np.random.RandomState
) -> Mixture:
    """Return the fit of C components with the highest free energy F.

    Fits start from `n_init` new initializations and from the fit `before` with added centers. In the best fit, two
    clusters are merged and another one is split as long as F rises.
    """
    best = _run(template, data, C, rng, {"n_init": n_init})
    if isinstance(best, DiscreteMixture):  # Centers after a merge or split may be invalid parameters of the densities.
        return best
    X, weights, rows = rows_in_memory(data_for(best, data.X, data.weights), rng)
    if before is not None:
        centers = centers_of(before, None)
        more = extended(X, centers, C - len(centers), weights, rng, template.n_threads)
        best = max(best, _run(template, data, C, rng, start_from(template, more)), key=lambda fit: fit.lower_bound_)
    for _ in range(C if C > 2 else 0):
        changed = exchanged(X, centers_of(best, None), weights, best.labels_[rows])
        if changed is None:
            break
        fit = _run(template, data, C, rng, start_from(template, changed))
        if not fit.lower_bound_ > best.lower_bound_:
            break
        best = fit
    return best


def _run(template: Mixture, data: WeightedData, C: int, rng: np.random.RandomState, changes: dict[str, Any]) -> Mixture:
    """Return a copy of the estimator `template` that is fitted to the data with C components.

    changes: arguments for this fit only, such as initial values
    """
    if not hasattr(template, "n_clusters"):
        tol = min(template.tol, max(_LEAST_GAIN / data.weight, _LEAST_TOL))
        changes = {"tol": tol, "max_iter": max(template.max_iter, _MAX_ITER)} | changes
    fit = clone(template).set_params(**size_of(template, C), random_state=int(rng.randint(2**31)), **changes)
    fit.fit(data.X, sample_weight=data.weights)
    return fit.set_params(**{name: getattr(template, name) for name in changes})


def _everything(fit: Mixture) -> dict[str, Any]:
    """Return a dict of constructor arguments with which another fit starts from the fitted parameters of `fit`.

    For mixtures of factor analyzers it has no precisions; the other fit initializes the loadings from the data.
    """
    fitted = {name: getattr(fit, name.removesuffix("init"), None) for name in fit.get_params() if name[-6:] == "s_init"}
    return fitted or start_from(fit, centers_of(fit, None))


def _measured(fit: Mixture, data: WeightedData, criteria: Sequence[str]) -> dict[str, Any]:
    """Return the entries of one fit in a `Sweep`, by name: the criteria and other results."""
    L, H = np.nan, np.nan
    if not set(criteria) <= {"free_energy_bic"}:
        bounds = fit.bounds(data.X, data.weights)
        L, H = bounds.log_likelihood, bounds.entropy
    F, W, n_parameters = float(fit.lower_bound_), data.weight, model_of(fit).n_parameters
    values = {
        "bic": bic(L, W, n_parameters),
        "icl": icl(L, W, n_parameters, H),
        "aic": aic(L, W, n_parameters),
        "free_energy_bic": bic(F, W, n_parameters),
    }
    return {
        **{name: value if name in criteria else np.nan for name, value in values.items()},
        "log_likelihood": L,
        "free_energy": F,
        "inertia": data_for(fit, data.X, data.weights).each(Inertia(centers_of(fit, None))),
        "n_parameters": n_parameters,
        "weight": W,
        "converged": bool(fit.converged_),
        "estimators": fit,
    }
