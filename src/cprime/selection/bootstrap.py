"""Standard errors, bias and intervals of all parameters by the bootstrap and the jackknife: refits to resamples.

A resample is a weight of each row, so rows are not copied. Refits start from the fitted parameters.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaincinv
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from cprime._utils.messages import warn
from cprime._utils.random import Key, Purpose, seed_of
from cprime._utils.threads import resolve_threads
from cprime.callbacks.bar import counted
from cprime.estimators.constraints import refuse_labels
from cprime.estimators.fitted import centers_of, data_for, model_of
from cprime.estimators.opening import as_training_data
from cprime.estimators.updating import continue_from
from cprime.estimators.validation import check_choice, check_integer
from cprime.kernels import computing
from cprime.selection.parameters import (
    ParameterErrors,
    Parameters,
    check_level,
    parameters_of,
    shared_parameters,
)
from cprime.selection.results import ACCEPTED, Mixture
from cprime.selection.sweep import WeightedData, weighted_data
from cprime.sources import Source

KINDS = ("nonparametric", "parametric", "weighted", "jackknife")
_RESAMPLES = 200  # default number of resamples
# Refits of mixtures have converged if an iteration changes the log-likelihood of all data by less than the first number
# [nats], a small share of what a refit gains (about half the number of parameters), or that per point by the second.
_LEAST_GAIN, _LEAST_TOL = 1e-5, 1e-10
_MAX_ITER = 1000  # least value of `max_iter` of refits
# Least variance in comparisons of components, as a share of the mean variance of the column.
_LEAST_VARIANCE = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(ParameterErrors):
    """Standard errors, bias and intervals of all parameters of a fit, from refits; returned by `bootstrap`.

    The repr is a table. The resamples of components are matched with those of the fit.

    Attributes
    ----------
    estimates : dict of str to ndarray
        Parameters of the fit by the names of their attributes, in float64. The fit was continued to the tolerance of
        the refits, so the numbers may differ slightly from the attributes of the estimator.
    standard_errors : dict of str to ndarray
        Standard deviation over the resamples. For the jackknife √((g − 1)/g Σ_j (θ_j − θ̄)²), where θ_j is the estimate
        without group j of g groups of points.
    replicates : dict of str to ndarray of shape (n_used, ...)
        Parameters of each refit that is used.
    kind : str
    n_failed : int
        Number of resamples that are left out of all results, because the refit was impossible or degenerate: a
        component was empty, or had collapsed onto a few points although none of the fit has.
    n_unconverged : int
        Number of refits that ended at `max_iter`; they are used.

    References
    ----------
    Efron & Tibshirani (1993), *An introduction to the bootstrap*. O'Hagan, Murphy, Scrucca & Gormley (2019),
    *Investigation of parameter uncertainty in clustering using a Gaussian mixture model via jackknife, bootstrap and
    weighted likelihood bootstrap*.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.selection import bootstrap
    >>> X = birch(2, random_state=0).data
    >>> found = bootstrap(KMeans(4, random_state=0).fit(X), X, n_resamples=20, random_state=0)
    >>> found.standard_errors["cluster_centers_"].shape, found.n_failed
    ((4, 2), 0)
    """

    replicates: Parameters
    kind: str
    n_failed: int
    n_unconverged: int

    @property
    def bias(self) -> Parameters:
        """Return the estimated bias of each parameter: the mean over the resamples minus the estimate.

        For the jackknife, it is this difference times g − 1 for g groups.
        """
        return {
            name: self._factor * (found.mean(axis=0) - self.estimates[name]) for name, found in self.replicates.items()
        }

    @property
    def _factor(self) -> int:
        return len(next(iter(self.replicates.values()))) - 1 if self.kind == "jackknife" else 1

    @property
    def center_covariances(self) -> NDArray[np.float64]:
        """Return the covariance of the estimate of each center or mean, (n_components, n_features, n_features)."""
        name = next(name for name in ("cluster_centers_", "means_", "rates_") if name in self.replicates)
        centered = self.replicates[name] - self.replicates[name].mean(axis=0)
        R = len(centered)
        share = (R - 1) / R if self.kind == "jackknife" else 1 / (R - 1)
        return share * np.einsum("rci,rcj->cij", centered, centered)

    def interval(self, level: float = 0.95, method: str | None = None) -> Parameters:
        """Return intervals of all parameters.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which an interval contains the parameter, between 0 and 1.
        method : {"percentile", "normal"} or None, default=None
            "percentile" takes quantiles of the resamples, "normal" the estimate ± a multiple of its standard error.
            None is "normal" for the jackknife, which has no percentiles, and otherwise "percentile".

        Returns
        -------
        intervals : dict of str to ndarray of shape (2, ...)
            Lower and upper limits of each parameter.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, or percentiles of a jackknife are requested.
        """
        if method is None:
            method = "normal" if self.kind == "jackknife" else "percentile"
        if check_choice(method, "method", ("percentile", "normal")) == "normal":
            return super().interval(level)
        if self.kind == "jackknife":
            raise ValueError("method must be 'normal' for a jackknife, which has no percentiles, got 'percentile'.")
        tail = (1 - check_level(level)) / 2
        return {name: np.quantile(found, [tail, 1 - tail], axis=0) for name, found in self.replicates.items()}

    def _arrays(self) -> dict[str, Any]:
        found = super()._arrays()
        return {name: found.pop(name) for name in ("estimate", "standard_error")} | {"bias": self.bias} | found

    def _title(self) -> str:
        used = len(next(iter(self.replicates.values())))
        more = [f"{n:,} {what}" for n, what in ((self.n_failed, "failed"), (self.n_unconverged, "not converged")) if n]
        return f"Bootstrap ({', '.join([self.kind, f'{used:,} resamples', *more])}); intervals of 95 %"


def bootstrap(
    estimator: Mixture,
    X: Any,
    n_resamples: int | None = None,
    *,
    kind: str = "nonparametric",
    sample_weight: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    verbose: int = 0,
) -> Bootstrap:
    """Estimate standard errors, bias and intervals of all parameters of a fit, from refits to resamples of the data.

    A refit starts from the fitted parameters, so it stays near the same optimum. It is continued until the parameters
    are precise compared with their standard errors: k-means until no point is reassigned, a mixture until an iteration
    changes the log-likelihood of all data by less than 10⁻⁵ nats. The components of a refit are matched with those of
    the fit by the least sum of Bhattacharyya distances of Gaussians with their means and variances.

    The refits run one after the other, each with all threads. Results are bit-identical for any number of threads.

    Parameters
    ----------
    estimator : fitted KMeans, GaussianMixture, StudentTMixture, PoissonMixture or CategoricalMixture
        It is not changed.
    X : array-like, source, or sparse array if the estimator accepts one, of shape (n_samples, n_features)
        The data of the fit.
    n_resamples : int or None, default=None
        Number of resamples; None is 200, which is enough for standard errors. Percentile intervals need about 1,000.
        For the jackknife, it is the number of random groups of points, and None is one group for each point.
    kind : {"nonparametric", "parametric", "weighted", "jackknife"}, default="nonparametric"
        "nonparametric" draws points with replacement: a resample is a whole number of copies of each row. "parametric"
        draws new points from the fitted mixture, in memory. "weighted" gives the points random weights from a Dirichlet
        distribution, so that no point has weight 0 and few components become empty. "jackknife" leaves out one group of
        points at a time.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights with which the estimator was fitted. A weight of 2 is equivalent to the point occurring twice, so the
        weights sum to the number of points that they represent. For the jackknife, weights are whole numbers.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of the resamples.
    n_threads : int or None, default=None
    verbose : int, default=0
        1 shows a progress bar, or a line a minute if no bar can be drawn.

    Returns
    -------
    bootstrap : Bootstrap

    Raises
    ------
    TypeError
        If the estimator is not one of the listed classes.
    ValueError
        If an argument is out of its range or not supported, or all refits fail.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> from cprime.selection import bootstrap
    >>> X = np.random.default_rng(0).normal(0.0, 2.0, size=(400, 1))
    >>> found = bootstrap(GaussianMixture().fit(X), X, kind="weighted", random_state=0)
    >>> found.standard_errors["means_"].round(1).tolist()  # 2/√400 = 0.1
    [[0.1]]
    """
    if not isinstance(estimator, Mixture):
        raise TypeError(f"estimator must be {ACCEPTED}, got {type(estimator).__name__}.")
    check_is_fitted(estimator)
    refuse_labels(estimator, "bootstrap")
    check_choice(kind, "kind", KINDS)
    resolve_threads(n_threads)
    if n_resamples is not None:
        check_integer(n_resamples, "n_resamples", 2)
    opened = data_for(estimator, X, sample_weight)
    data = weighted_data(as_training_data(estimator, X), sample_weight)
    key = Key(seed_of(random_state))
    if kind == "parametric" and not hasattr(estimator, "sample"):
        raise ValueError(f"kind='parametric' needs a mixture, which has a density, got {type(estimator).__name__}.")
    if kind == "parametric" and opened.has_missing:
        raise ValueError("kind='parametric' needs complete rows, because the mixture draws no missing values.")
    drawn = resamples(estimator, data, kind, n_resamples, key)
    fit = refit(estimator, data, key, n_threads)
    shared = shared_parameters(fit)
    found: list[Parameters] = []
    n_unconverged, failures = 0, []
    for r, draw in enumerate(counted(drawn, "bootstrap", verbose)):
        try:
            again = refit(fit, draw(), Key(key.seed, r + 1), n_threads)
            _check_sound(again, fit)
        except ValueError as error:
            failures.append(str(error))
            continue
        order = matched(fit, again)
        n_unconverged += not again.converged_
        found.append({name: v if name in shared else v[order] for name, v in parameters_of(again).items()})
    if len(found) < 2:
        raise ValueError(f"X must allow at least 2 refits, but {len(failures)} of {len(drawn)} failed: {failures[-1]}")
    if failures or n_unconverged:
        first = f"; the first failure: {failures[0]}" if failures else ""
        warn(
            f"{len(failures)} of {len(drawn)} resamples failed and are left out, and {n_unconverged} refits did not "
            f"converge{first}",
            ConvergenceWarning,
        )
    replicates = {name: np.stack([each[name] for each in found]) for name in found[0]}
    deviations = {name: values.std(axis=0, ddof=1) for name, values in replicates.items()}
    scale = (len(found) - 1) / np.sqrt(len(found)) if kind == "jackknife" else 1.0
    errors = {name: scale * deviation for name, deviation in deviations.items()}
    return Bootstrap(parameters_of(fit), errors, replicates, kind, len(failures), n_unconverged)


def count_points(data: WeightedData) -> int:
    """Return the number of points that the weights represent; raise ValueError if it is below 2 or extreme."""
    if not 1.5 < data.weight < 2**53:
        raise ValueError(f"sample_weight must sum to the number of points, 2 to 2⁵³, got the sum {data.weight}.")
    return round(data.weight)


def resamples(
    estimator: Any, data: WeightedData, kind: str, n_resamples: int | None, key: Key
) -> list[Callable[[], WeightedData]]:
    """Return functions without arguments, each of which returns the data of one resample."""
    source = isinstance(data.X, Source)
    weights = data.X.weights(0, len(data.X)) if source else data.weights
    n_rows, W = data.n_rows, data.weight
    ends = None if weights is None else np.cumsum(weights)
    n = count_points(data)

    def counts_of(places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how many of the places in [0, W) fall on each row, whose length is its weight: (N,)."""
        rows = places.astype(np.int64) if ends is None else np.searchsorted(ends, places, side="right")
        return np.bincount(np.minimum(rows, n_rows - 1), minlength=n_rows).astype(np.float64)

    def reweighted(w: NDArray[np.float64]) -> WeightedData:
        return WeightedData(data.X.with_weights(w), None) if source else WeightedData(data.X, w)

    def nonparametric(r: int) -> WeightedData:
        return reweighted(counts_of(key._replace(run=r).uniform(Purpose.RESAMPLES, 0, n) * W) * (W / n))

    def weighted(r: int) -> WeightedData:
        is_used = slice(None) if weights is None else weights > 0
        u = key._replace(run=r).uniform(
            Purpose.RESAMPLES, 0, n_rows if weights is None else int(np.count_nonzero(weights))
        )
        w = np.zeros(n_rows)
        w[is_used] = -np.log1p(-u) if weights is None else gammaincinv(weights[is_used], u)
        return reweighted(w * (W / w.sum()))

    def parametric(r: int) -> WeightedData:
        rows = estimator.sample(n, random_state=key._replace(run=r).random_state(Purpose.RESAMPLES))[0]
        return WeightedData(as_training_data(estimator, rows), None)

    if kind != "jackknife":
        draw = {"nonparametric": nonparametric, "weighted": weighted, "parametric": parametric}[kind]
        return [partial(draw, r) for r in range(_RESAMPLES if n_resamples is None else n_resamples)]
    if weights is not None and (weights % 1).any():
        raise ValueError("sample_weight must have whole numbers for a jackknife, which leaves out points.")
    g = n if n_resamples is None else n_resamples  # number of groups
    if g > n:
        raise ValueError(f"n_resamples must be at most {n}, the number of points, for a jackknife, got {g}.")
    order = key.generator(Purpose.RESAMPLES).permutation(n)
    full = np.ones(n_rows) if weights is None else weights

    def without_group(j: int) -> WeightedData:
        return reweighted(full - counts_of(order[j::g] + np.float64(0.5)))

    return [partial(without_group, j) for j in range(g)]


def refit(estimator: Any, data: WeightedData, key: Key, n_threads: int | None) -> Any:
    """Return a copy of a fitted estimator, fitted to the data from the fitted parameters to a small tolerance."""
    is_k_means = hasattr(estimator, "init")
    if is_k_means:
        given: dict[str, Any] = {"init": centers_of(estimator, None), "jumps": False, "tol": 0.0}
    else:
        given = {"tol": min(estimator.tol, max(_LEAST_GAIN / data.weight, _LEAST_TOL))}
    fit = clone(estimator).set_params(
        n_init=1, checkpoint=None, callbacks=None, verbose=0, n_threads=n_threads,
        max_iter=max(estimator.max_iter, _MAX_ITER),
        random_state=int(key.generator(Purpose.START).integers(2**31)), **given,
    )  # fmt: skip
    if not is_k_means:
        continue_from(fit, estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # The caller counts such fits.
        return fit.fit(data.X, sample_weight=data.weights)


def _check_sound(fit: Any, reference: Any) -> None:
    """Raise ValueError if a component of a fit is empty, or more components have collapsed than in `reference`."""
    n_empty = int(np.count_nonzero(np.asarray(fit.counts_) <= 0))
    if n_empty:
        raise ValueError(f"{n_empty} components of a refit are empty.")
    with computing(fit.n_threads):
        collapsed = model_of(fit).n_collapsed - model_of(reference).n_collapsed
    if collapsed > 0:
        raise ValueError(f"{collapsed} components of a refit have collapsed onto a few points.")


def matched(reference: Any, fit: Any) -> NDArray[np.intp]:
    """Return for each component of the fit `reference` the index of the component of another fit that matches it: (C,).

    The matching has the least sum of Bhattacharyya distances of Gaussians with the components' means and variances.
    """
    with computing(fit.n_threads):
        (m, v), (n, u) = ((centers_of(each), np.asarray(model_of(each).variances)) for each in (reference, fit))
    least = _LEAST_VARIANCE * v.mean(axis=0) + np.finfo(np.float64).tiny
    v, u = v + least, u + least
    costs = np.stack(
        [(np.square(mean - n) / (4 * (var + u)) + np.log((var + u) / (2 * np.sqrt(var * u))) / 2).sum(axis=1)
         for mean, var in zip(m, v, strict=True)]
    )  # fmt: skip
    C = len(costs)
    if (costs.argmin(axis=1) == np.arange(C)).all():
        return np.arange(C)
    return linear_sum_assignment(costs)[1]
