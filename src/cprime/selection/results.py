"""Result of a sweep (fits and criteria for every number of components), and conversion of results to tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.messages import require
from cprime.estimators import KMeans
from cprime.estimators.mixture import Mixture as AnyMixture
from cprime.estimators.validation import check_choice, check_real
from cprime.selection.criteria import elbow

ACCEPTED = "a KMeans or a mixture, such as a GaussianMixture"
Mixture = KMeans | AnyMixture

LOWER_IS_BETTER = {"bic": True, "icl": True, "aic": True, "free_energy_bic": True, "held_out": False}
_COLUMNS = (
    "covariance_type",
    "n_components",
    "bic",
    "icl",
    "aic",
    "free_energy_bic",
    "held_out",
    "log_likelihood",
    "free_energy",
    "inertia",
    "n_parameters",
    "seconds",
    "converged",
)
_NOT_SHOWN = {"log_likelihood", "free_energy", "n_parameters"}  # omitted in the repr, so that a row fits into a line


@dataclass(frozen=True, eq=False)
class Sweep:
    """Fits for a range of numbers of components, with criteria to compare them; returned by `sweep`.

    Every array has shape (n_fits,); a criterion that was not requested is NaN. The repr is a table. If several
    covariance types were swept, fits of one type follow each other, and the repr is a matrix of types and numbers with
    the values of one criterion. Criteria of a fit in which components have collapsed onto a few points are then NaN,
    because its likelihood is unbounded.

    Attributes
    ----------
    n_components : ndarray of int
        C of each fit, increasing for each covariance type.
    bic, aic : ndarray of float
        BIC and AIC with the exact log-likelihood of all data; lower is better.
    icl : ndarray of float
        Integrated completed likelihood: BIC plus twice the entropy of the posteriors [nats], so it prefers clusters
        that do not overlap (Biernacki, Celeux & Govaert 2000). Lower is better. That of k-means is its BIC.
    free_energy_bic : ndarray of float
        BIC with the free energy F in place of the log-likelihood; lower is better.
    held_out : ndarray of float
        Mean log-likelihood of held-out points under a fit of the other points, in nats; higher is better.
    log_likelihood, free_energy : ndarray of float
        L, eq. (3), and F ≤ L, eq. (7), of the fit of all data, per point (or unit of weight), in nats.
    inertia : ndarray of float
        J, the weighted sum of squared distances to the nearest center or mean, in data unit².
    n_parameters : ndarray of int
        Number of free parameters.
    weight : float
        W, the number of points or the sum of their weights.
    seconds : ndarray of float
        Elapsed time for each C.
    converged : ndarray of bool
    estimators : tuple of KMeans, GaussianMixture or StudentTMixture
        Fitted to all data.
    covariance_type : ndarray of str or None
        Name of the covariance type of each fit; None if `sweep` was called without several types.

    References
    ----------
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*, section 6, eq. (19), (20).

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.selection import sweep
    >>> found = sweep(KMeans(), birch(2, random_state=0).data, range(1, 7), random_state=0)
    >>> found.n_components.tolist(), int(found.n_components[found.bic.argmin()])
    ([1, 2, 3, 4, 5, 6], 4)
    """

    n_components: NDArray[np.int64]
    bic: NDArray[np.float64]
    icl: NDArray[np.float64]
    aic: NDArray[np.float64]
    free_energy_bic: NDArray[np.float64]
    held_out: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    free_energy: NDArray[np.float64]
    inertia: NDArray[np.float64]
    n_parameters: NDArray[np.int64]
    weight: float
    seconds: NDArray[np.float64]
    converged: NDArray[np.bool_]
    estimators: tuple[Mixture, ...]
    covariance_type: NDArray[np.str_] | None = None

    def __repr__(self) -> str:
        if self.covariance_type is not None:
            return self._text_of_families()
        columns = {name: values for name, values in self._columns().items() if name not in _NOT_SHOWN}
        shown = {name: values for name, values in columns.items() if not np.isnan(values).all()}
        best = ", ".join(f"{self.best_n_components(name):,} by {name}" for name in LOWER_IS_BETTER if name in shown)
        title = (
            f"Sweep of {len(self.estimators)} fits of {type(self.estimators[0]).__name__}; best n_components: {best}"
        )
        return "\n".join([title, *text_of(shown)])

    def _columns(self) -> dict[str, NDArray]:
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return {name: values for name, values in columns.items() if values is not None}

    @property
    def main_criterion(self) -> str:
        """Return the name of the first criterion that was computed, in the order of `best_n_components`."""
        return next((name for name in LOWER_IS_BETTER if not np.isnan(getattr(self, name)).all()), "bic")

    @property
    def families(self) -> list[str]:
        """Return the names of the swept covariance types, in their order; an empty list if there is one."""
        return [] if self.covariance_type is None else list(dict.fromkeys(self.covariance_type.tolist()))

    def matrix(self, criterion: str) -> NDArray[np.float64]:
        """Return a criterion by covariance type and number of components: (n_families, n_numbers).

        Rows are in the order of `families`; there is one if `covariance_type` is None.
        """
        check_choice(criterion, "criterion", tuple(LOWER_IS_BETTER))
        return getattr(self, criterion).reshape(max(1, len(self.families)), -1)

    def _text_of_families(self) -> str:
        name = self.main_criterion
        numbers, rows = self.n_components[: self.matrix(name).shape[1]], self.matrix(name)
        ranked, values = self._ranked(name), getattr(self, name)
        found = [f"{self.covariance_type[i]}, {self.n_components[i]:,} components" for i in ranked[:2]]  # type: ignore[index]
        sense = "lower" if LOWER_IS_BETTER[name] else "higher"
        lines = [
            f"Sweep of {len(self.families)} covariance types by {name}, {sense} is better",
            f"best: {found[0]}: {values[ranked[0]]:,.6g}",
        ]
        if len(found) > 1:
            lines.append(
                f"next: {found[1]}: {values[ranked[1]]:,.6g}, worse by {abs(values[ranked[1]] - values[ranked[0]]):.3g}"
            )
        if np.isnan(values).any():
            lines.append("nan: components have collapsed onto a few points")
        return "\n".join(
            [*lines, *text_of({"": self.families} | {f"{C:,}": rows[:, i] for i, C in enumerate(numbers)})]
        )

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with a row for each fit.

        Parameters
        ----------
        library : {"pandas", "polars"}, default="pandas"

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            Frame of n_fits rows; its columns are the attributes of shape (n_fits,), without `estimators` and `weight`.

        Raises
        ------
        ImportError
            If the library is missing.

        Examples
        --------
        >>> from cprime import KMeans
        >>> from cprime.datasets import birch
        >>> from cprime.selection import sweep
        >>> found = sweep(KMeans(), birch(2, random_state=0).data, range(3, 6), random_state=0)
        >>> found.to_frame()[["n_components", "converged"]]
           n_components  converged
        0             3       True
        1             4       True
        2             5       True
        """
        return frame_of(self._columns(), library)

    def best_n_components(self, criterion: str = "bic") -> int:
        """Return the number of components that is best by a criterion.

        Parameters
        ----------
        criterion : {"bic", "icl", "aic", "free_energy_bic", "held_out"}, default="bic"

        Returns
        -------
        n_components : int

        Raises
        ------
        ValueError
            If the criterion is unknown, or the sweep has not computed it.
        """
        return int(self.n_components[self._best(criterion)])

    def best(self, criterion: str = "bic") -> Mixture:
        """Return the fitted estimator that is best by a criterion of `best_n_components`."""
        return self.estimators[self._best(criterion)]

    def best_covariance_type(self, criterion: str = "bic") -> str:
        """Return the name of the covariance type that is best by a criterion of `best_n_components`.

        Raises
        ------
        ValueError
            If `sweep` was called without several covariance types.
        """
        if self.covariance_type is None:
            raise ValueError("best_covariance_type needs a sweep with the argument covariance_type, got None.")
        return str(self.covariance_type[self._best(criterion)])

    def _best(self, criterion: str) -> int:
        return int(self._ranked(criterion)[0])

    def _ranked(self, criterion: str) -> NDArray[np.intp]:
        """Return the indices of the fits for which a criterion was computed, the best first."""
        check_choice(criterion, "criterion", tuple(LOWER_IS_BETTER))
        values = getattr(self, criterion)
        if np.isnan(values).all():
            raise ValueError(f"criterion={criterion!r} was not computed: ask `sweep` for it.")
        order = np.argsort(values if LOWER_IS_BETTER[criterion] else -values, kind="stable")
        return order[: np.count_nonzero(~np.isnan(values))]

    def elbow(self, alpha: float = 0.01) -> int | None:
        """Return the number of components at which the curve of J has its elbow, or None if it has none.

        J is the sum of squared distances, C the number of components. Without clusters, log J over log C falls along a
        line or bends downwards. The C at which the slope increases most is an elbow if two conditions hold: the slope
        is at least halved there, and this change is an outlier among all changes of slope (without the least one).

        Parameters
        ----------
        alpha : float, default=0.01
            Significance level, between 0 and 1: the probability of such an outlier if the changes of slope are
            Gaussian.

        Returns
        -------
        n_components : int or None
            None also if the range has fewer than seven values, too few for the test.

        References
        ----------
        P. L. Zador: Asymptotic quantization error of continuous signals. IEEE Trans. Information Theory 28, 1982.
        C. A. Sugar, G. M. James: Finding the number of clusters in a dataset. JASA 98, 2003. F. E. Grubbs: Sample
        criteria for testing outlying observations. Annals of Mathematical Statistics 21, 1950.
        """
        if not 0 < check_real(alpha, "alpha", 0.0) < 1:
            raise ValueError(f"alpha must be between 0 and 1, got {alpha}.")
        if len(self.families) > 1:
            raise ValueError(f"elbow needs a sweep of one covariance type, got {len(self.families)} types.")
        return elbow(self.n_components, self.inertia, alpha)


_MOST_ROWS = 20  # largest number of rows that a text table shows


def frame_of(columns: Mapping[str, Any], library: str) -> Any:
    """Return a data frame of `columns`, arrays of equal length by name. library: pandas or polars"""
    check_choice(library, "library", ("pandas", "polars"))
    return require(library, "to_frame").DataFrame(dict(columns))


def text_of(columns: Mapping[str, Any]) -> list[str]:
    """Return the lines of a text table: the column names, then the rows, or the first and last ten of over 20 rows.

    columns: arrays of equal length by name
    """
    n_rows = len(next(iter(columns.values())))
    half = _MOST_ROWS // 2
    rows = range(n_rows) if n_rows <= _MOST_ROWS else [*range(half), None, *range(n_rows - half, n_rows)]
    cells = [[name, *("…" if i is None else _cell(values[i]) for i in rows)] for name, values in columns.items()]
    widths = [max(map(len, column)) for column in cells]
    return ["  ".join(map(str.rjust, line, widths)) for line in zip(*cells, strict=True)]


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:,.6g}"
