"""Tests of the number of components by the likelihood ratio, whose distribution the parametric bootstrap finds."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from cprime._utils.messages import warn
from cprime._utils.random import Key, Purpose, seed_of
from cprime._utils.threads import resolve_threads
from cprime.callbacks.bar import counted
from cprime.estimators import KMeans
from cprime.estimators.constraints import refuse_labels
from cprime.estimators.fitted import with_all_categories
from cprime.estimators.validation import check_common, check_integer, check_real
from cprime.selection.bootstrap import count_points
from cprime.selection.results import Mixture, frame_of, text_of
from cprime.selection.sweep import WeightedData, _best_fit, _check_estimator, weighted_data


@dataclass(frozen=True, eq=False)
class LikelihoodRatioTest:
    """Tests of C against C + 1 components, one for each C; returned by `likelihood_ratio_test`. The repr is a table.

    Attributes
    ----------
    n_components : ndarray of int, shape (n_tests,)
        C of each test, increasing by 1.
    statistic : ndarray of float, shape (n_tests,)
        Twice the difference of the log-likelihoods of the fits with C + 1 and with C components, in nats.
    p_value : ndarray of float, shape (n_tests,)
        (1 + number of statistics of generated data that are at least that of the data) / (1 + n_resamples).
    replicates : ndarray of float, shape (n_tests, n_resamples)
        Statistics of data that were generated from the fit with C components.
    n_negative : ndarray of int, shape (n_tests,)
        Number of statistics that would have been negative, because the fit with C + 1 components ended in a worse
        optimum; they are set to 0, the statistic of a mixture in which one component is listed twice.
    alpha : float
        Significance level.

    References
    ----------
    McLachlan (1987), *On bootstrapping the likelihood ratio test statistic for the number of components in a normal
    mixture*.

    Examples
    --------
    >>> from cprime import GaussianMixture
    >>> from cprime.datasets import old_faithful
    >>> from cprime.selection import likelihood_ratio_test
    >>> found = likelihood_ratio_test(GaussianMixture(), old_faithful().data, 1, n_resamples=19, random_state=0)
    >>> found.p_value.tolist(), found.n_components_
    ([0.05], 2)
    """

    n_components: NDArray[np.int64]
    statistic: NDArray[np.float64]
    p_value: NDArray[np.float64]
    replicates: NDArray[np.float64]
    n_negative: NDArray[np.int64]
    alpha: float

    @property
    def n_components_(self) -> int:
        """Return the least C that is not rejected; if all are rejected, the largest C that was tested plus 1."""
        accepted = np.flatnonzero(self.p_value > self.alpha)
        return int(self.n_components[accepted[0]] if len(accepted) else self.n_components[-1] + 1)

    def _columns(self) -> dict[str, Any]:
        return {
            "n_components": self.n_components,
            "against": self.n_components + 1,
            "statistic": self.statistic,
            "p_value": self.p_value,
            "median": np.median(self.replicates, axis=1),
            "n_negative": self.n_negative,
        }

    def __repr__(self) -> str:
        n, alpha = self.replicates.shape[1], self.alpha
        title = f"Likelihood ratio tests, {n:,} resamples each; n_components at alpha={alpha:g}: {self.n_components_}"
        return "\n".join([title, *text_of(self._columns())])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with a row for each test.

        Parameters
        ----------
        library : {"pandas", "polars"}, default="pandas"

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            Columns n_components, against (C + 1), statistic, p_value, median (of `replicates`) and n_negative.
        """
        return frame_of(self._columns(), library)


def likelihood_ratio_test(
    estimator: Mixture,
    X: Any,
    n_components: int = 1,
    *,
    max_components: int | None = None,
    n_resamples: int = 99,
    alpha: float = 0.05,
    n_init: int = 3,
    sample_weight: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    verbose: int = 0,
) -> LikelihoodRatioTest:
    """Test whether a mixture of C components is enough against C + 1, by the parametric bootstrap (McLachlan 1987).

    The statistic is 2(L_{C+1} − L_C), with the log-likelihood L of all data. It has no χ² distribution, because C
    components are on the border of the models with C + 1. So its distribution is that for data that are drawn from the
    fit with C components, and to which both mixtures are fitted in the same way as to the data: from `n_init` new
    initializations, and C + 1 components also from the fit of C with a new center; merges and splits improve the fit as
    in `sweep`.

    Parameters
    ----------
    estimator : GaussianMixture, StudentTMixture, PoissonMixture or CategoricalMixture
        Estimator to fit; it is cloned and not changed. Its mixing weights must be free, because otherwise C components
        are no special case of C + 1. Its `n_components`, `n_init` and `random_state` are set here.
    X : array-like or source, of shape (n_samples, n_features)
    n_components : int, default=1
        C of the first test.
    max_components : int or None, default=None
        None makes one test. A number makes further tests of the next C, until one is not significant or C + 1 is this
        number.
    n_resamples : int, default=99
        Number of generated data sets for each test. The least p-value is 1/(n_resamples + 1).
    alpha : float, default=0.05
        Significance level, between 0 and 1.
    n_init : int, default=3
        Number of new initializations of each fit.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 is equivalent to the point occurring twice, so the weights sum to the number of points.
    random_state : int, RandomState, Generator or None, default=None
    n_threads : int or None, default=None
    verbose : int, default=0
        1 shows a progress bar, or a line a minute if no bar can be drawn.

    Returns
    -------
    test : LikelihoodRatioTest

    Raises
    ------
    TypeError
        If the estimator is not one of the listed classes.
    ValueError
        If an argument is out of its range or not supported.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> from cprime.selection import likelihood_ratio_test
    >>> X = np.random.default_rng(0).standard_normal((100, 1))
    >>> found = likelihood_ratio_test(GaussianMixture(), X, max_components=3, n_resamples=19, random_state=0)
    >>> bool(found.p_value[0] > 0.05), found.n_components_
    (True, 1)
    """
    _check_estimator(estimator)
    if isinstance(estimator, KMeans):
        raise TypeError(f"estimator must be a mixture, from which data can be drawn, got {estimator!r}.")
    check_common(estimator)
    refuse_labels(estimator, "likelihood_ratio_test")
    if estimator.weights != "free":
        raise ValueError(f"likelihood_ratio_test needs weights='free', got weights={estimator.weights!r}.")
    if getattr(estimator, "missing", "error") != "error":
        raise ValueError("likelihood_ratio_test needs missing='error', because generated rows are complete.")
    first = check_integer(n_components, "n_components", 1)
    last = first + 1 if max_components is None else check_integer(max_components, "max_components", first + 1)
    check_integer(n_resamples, "n_resamples", 1)
    check_integer(n_init, "n_init", 1)
    resolve_threads(n_threads)
    if not 0 < check_real(alpha, "alpha", 0.0) < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha}.")
    data = weighted_data(X, sample_weight)
    template = with_all_categories(estimator, data.X).set_params(n_threads=n_threads)
    key, n = Key(seed_of(random_state)), count_points(data)
    if n <= last:
        raise ValueError(f"X must have more than {last} points, the largest number of components, got {n}.")
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fit that is not converged has a smaller statistic
        fit = _best_fit(template, data, first, None, n_init, key.random_state(Purpose.START))
        for C in range(first, last):
            statistic, fit, larger = _ratio(template, data, C, fit, n_init, key._replace(iteration=C))
            found = []
            for r in counted(range(n_resamples), f"{C} against {C + 1} components", verbose):
                drawing = Key(key.seed, r + 1, C)
                drawn = fit.sample(n, random_state=drawing.random_state(Purpose.RESAMPLES))[0]
                found.append(_ratio(template, WeightedData(drawn, None), C, None, n_init, drawing)[0])
            values = np.array([statistic, *found])
            n_negative = int(np.count_nonzero(values < 0))
            values = np.maximum(values, 0.0)
            p = np.mean(values >= values[0])
            rows.append((C, values[0], p, values[1:], n_negative))
            fit = larger
            if p > alpha:
                break
    numbers, statistics, p_values, replicates, negative = map(np.array, zip(*rows, strict=True))
    if negative.any():
        warn(
            f"{negative.sum()} statistics would have been negative, because fits ended in poor optima, and are set "
            "to 0: give a larger n_init.",
            ConvergenceWarning,
        )
    return LikelihoodRatioTest(numbers, statistics, p_values, replicates, negative, float(alpha))


def _ratio(template: Any, data: WeightedData, C: int, fit: Any, n_init: int, key: Key) -> tuple[float, Any, Any]:
    """Return 2(L_{C+1} − L_C) of the data [nats], and the fits of C and of C + 1 components.

    fit: the fit of C components, None to make it    L: log-likelihood of all data
    """
    rng = key.random_state(Purpose.SEEDING)
    fit = _best_fit(template, data, C, None, n_init, rng) if fit is None else fit
    larger = _best_fit(template, data, C + 1, fit, n_init, rng)
    scores = [each.score(data.X, sample_weight=data.weights) for each in (fit, larger)]
    return float(2 * data.weight * (scores[1] - scores[0])), fit, larger
