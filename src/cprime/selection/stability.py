"""Stability: how well fits to disjoint halves of the data agree, for each number of clusters."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from cprime._utils.arguments import check_integers, naming
from cprime._utils.messages import require
from cprime._utils.random import check_random_state
from cprime._utils.style import BLUE, frame
from cprime.estimators.categories import has_categories
from cprime.estimators.fitted import size_of, with_all_categories
from cprime.estimators.validation import check_integer
from cprime.selection.results import ACCEPTED, Mixture, frame_of, text_of
from cprime.sources import array_of
from cprime.sources.foreign import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Stability:
    """Agreement of fits to disjoint halves of the data, for each number of clusters; returned by `stability`.

    Attributes
    ----------
    n_clusters : ndarray of int, shape (n_fits,)
        Numbers of clusters, increasing.
    agreement : ndarray of float, shape (n_fits, n_resamples)
        Adjusted Rand index between the labels of all points by two fits: 1 for equal partitions, 0 on average for
        independent ones.
    mean, standard_error : ndarray of float, shape (n_fits,)
        Mean of `agreement` over the resamples, and its standard error.

    References
    ----------
    von Luxburg (2010), *Clustering stability: an overview*. Lange, Roth, Braun & Buhmann (2004), *Stability-based
    validation of clustering solutions*.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.selection import stability
    >>> found = stability(KMeans(), birch(2, random_state=0).data, range(2, 7), random_state=0)
    >>> found.best_n_clusters()
    4
    """

    n_clusters: NDArray[np.int64]
    agreement: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Return the agreement for each number of clusters, averaged over the resamples: (n_fits,)."""
        return self.agreement.mean(axis=1)

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Return the standard error of `mean` for each number of clusters, (n_fits,); NaN if there is one resample."""
        n = self.agreement.shape[1]
        return self.agreement.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(self.agreement), np.nan)

    def best_n_clusters(self) -> int:
        """Return the largest number of clusters whose mean agreement is within one standard error of the greatest.

        The largest number is chosen, because a fit of few clusters is often perfectly stable although there are more
        clusters, for example if the clusters form two distant groups.
        """
        best = int(self.mean.argmax())
        enough = self.mean >= self.mean[best] - np.nan_to_num(self.standard_error[best])
        return int(self.n_clusters[enough].max())

    def _columns(self) -> dict[str, NDArray]:
        return {"n_clusters": self.n_clusters, "agreement": self.mean, "standard_error": self.standard_error}

    def __repr__(self) -> str:
        title = f"Stability over {self.agreement.shape[1]} resamples; best n_clusters: {self.best_n_clusters():,}"
        return "\n".join([title, *text_of(self._columns())])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with a row for each number of clusters: n_clusters, agreement, standard_error.

        Parameters
        ----------
        library : {"pandas", "polars"}, default="pandas"

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        return frame_of(self._columns(), library)

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the mean agreement over the number of clusters, with bars of two standard errors.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None makes a figure.

        Returns
        -------
        ax : matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        pyplot = require("matplotlib.pyplot", "plot")
        from matplotlib.ticker import MaxNLocator

        if ax is None:
            ax = pyplot.subplots(figsize=(5.2, 3.4), layout="constrained")[1]
        assert ax is not None
        frame(ax, x="clusters C", y="adjusted Rand index")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        errors = 2 * np.nan_to_num(self.standard_error)
        ax.errorbar(self.n_clusters, self.mean, yerr=errors, color=BLUE, linewidth=1.3, marker="o", markersize=3)
        best = self.best_n_clusters()
        ax.plot(best, self.mean[self.n_clusters == best], color=BLUE, marker="o", markersize=8, markeredgecolor="white")
        ax.set_title(f"best: {best}", loc="left", fontsize=9)
        return ax


def stability(
    estimator: Mixture,
    X: Any,
    n_clusters: int | Iterable[int],
    *,
    n_resamples: int = 20,
    random_state: Any = None,
) -> Stability:
    """Measure how well fits to disjoint halves of the data agree about all points, for each number of clusters.

    For each resample the rows are divided at random into two halves, the same ones for every number of clusters. The
    estimator is fitted to each half, and the adjusted Rand index compares what the two fits predict for all rows. A
    number of clusters that the data do not support makes the fits depend on the half, so they agree less.

    Parameters
    ----------
    estimator : KMeans, or a mixture of any class
        Template; its number of clusters and `random_state` are replaced.
    X : array-like or sparse array (k-means only) of shape (n_samples, n_features)
    n_clusters : int or iterable of int
        Numbers of clusters to compare, each at least 2, because one cluster is always stable.
    n_resamples : int, default=20
        Number of random divisions.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers for divisions and initializations.

    Returns
    -------
    stability : Stability

    Raises
    ------
    TypeError
        If the estimator is not one of the listed classes.
    ValueError
        If a number of clusters is below 2 or above half the number of rows, or n_resamples is below 1.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.selection import stability
    >>> found = stability(KMeans(), birch(2, random_state=0).data, [3, 4, 5], random_state=0)
    >>> round(float(found.mean.max()), 2)
    0.99
    """
    if not isinstance(estimator, Mixture):
        raise TypeError(f"estimator must be {ACCEPTED}, got {type(estimator).__name__}.")
    numbers = check_integers([n_clusters] if isinstance(n_clusters, Integral) else n_clusters, "n_clusters", 2)
    check_integer(n_resamples, "n_resamples", 1)
    X = X.tocsr() if issparse(X) else X if has_categories(X) else plain(X, narrow=True)
    X = array_of(X, "X") if isinstance(X, list | tuple | str) else X
    with naming("X"):
        N = _num_samples(X)
    if numbers[-1] > N // 2:
        raise ValueError(f"n_clusters must be at most {N // 2}, half the number of rows, got {numbers[-1]}.")
    template = with_all_categories(estimator, X)
    rng = check_random_state(random_state)
    agreement = np.empty((len(numbers), n_resamples))
    for r in range(n_resamples):
        order = rng.permutation(N)
        halves = [_safe_indexing(X, np.sort(part)) for part in (order[: N // 2], order[N // 2 :])]
        seed = int(rng.randint(2**31))
        for i, C in enumerate(numbers):
            fits = [clone(template).set_params(**size_of(template, C), random_state=seed).fit(half) for half in halves]
            agreement[i, r] = adjusted_rand_score(*(fit.predict(X) for fit in fits))
    return Stability(np.array(numbers), agreement)
