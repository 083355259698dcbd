"""Choice of the number of components by the information-modeling trade-off of Kearns, Mansour & Ng, eq. (8), (13)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cprime._utils.messages import require
from cprime._utils.random import check_random_state
from cprime._utils.style import BLACK, BLUE, GREY, VERMILION, frame, name_curves, name_line
from cprime.estimators.validation import check_choice, check_integer
from cprime.selection.results import Mixture, Sweep, frame_of, text_of
from cprime.selection.sweep import divided, sweep, weighted_data
from cprime.theory.loss import log_alpha_of, loss_columns, sample_of
from cprime.theory.mixtures import as_mixture
from cprime.theory.partition import ASSIGNMENTS, WEIGHTS, log_partition, nats_per

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVES = {"information_gain": ("gain", BLUE), "modeling": ("modeling", VERMILION), "loss": ("loss", BLACK)}
_AXES = ("n_components", "information_gain")


@dataclass(frozen=True, eq=False)
class InformationCurve:
    """Terms of the partition loss for each number of components; returned by `information_curve`.

    P_b is the density of component b, F(x) the component to which x is assigned, w_b the share of the rows that are
    assigned to b, Q the density of the rows, Q_b that of the rows assigned to b, and H an entropy. The repr is a table.

    Attributes
    ----------
    n_components : ndarray of int, shape (n_fits,)
        C of each fit, increasing.
    modeling : ndarray of float, shape (n_fits,)
        Modeling terms Σ_b w_b KL(Q_b‖P_b) per row, in `unit`; they contain the bias of `entropy`.
    information_gain : ndarray of float, shape (n_fits,)
        H(w) − H(F(x)|x) per row.
    loss : ndarray of float, shape (n_fits,)
        E[−log P_F(x)(x)] per row: `modeling` + `entropy` − `information_gain`.
    excess : ndarray of float, shape (n_fits,)
        `modeling` minus its least value. Estimates of `entropy` cancel in it.
    entropy : float
        H(Q), estimated from distances to neighbors. It is biased if there are few rows or many columns.
    intervals : dict of str to ndarray of shape (2, n_fits)
        Lower and upper limits of 95 % intervals of `modeling`, `information_gain`, `loss` and `excess`. They treat rows
        as independent of the fits; those of `excess` compare two fits on the same rows.
    unit : {"bits", "nats"}

    References
    ----------
    Kearns, Mansour & Ng, *An information-theoretic analysis of hard and soft assignment methods for clustering*.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.selection import information_curve
    >>> curve = information_curve(KMeans(), birch(2, random_state=0).data, range(1, 8), random_state=0)
    >>> curve.best_n_components(), curve.information_gain[:4].round(1).tolist()
    (4, [0.0, 1.0, 1.5, 2.0])
    """

    n_components: NDArray[np.int64]
    modeling: NDArray[np.float64]
    information_gain: NDArray[np.float64]
    loss: NDArray[np.float64]
    excess: NDArray[np.float64]
    entropy: float
    intervals: Mapping[str, NDArray[np.float64]]
    unit: str

    def best_n_components(self) -> int:
        """Return the least number of components whose modeling terms are not above the least ones beyond the interval.

        These are the numbers for which the interval of `excess` contains 0.
        """
        return int(self.n_components[self.intervals["excess"][0] <= 0].min())

    def _columns(self) -> dict[str, NDArray]:
        names = ("n_components", "modeling", "information_gain", "loss", "excess")
        low, high = self.intervals["excess"]
        return {name: getattr(self, name) for name in names} | {"excess_lower": low, "excess_upper": high}

    def __repr__(self) -> str:
        title = (
            f"Information curve [{self.unit} per row], entropy {self.entropy:.4g}; "
            f"best n_components: {self.best_n_components():,}"
        )
        return "\n".join([title, *text_of(self._columns())])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with a row for each number of components: the columns of the repr.

        Parameters
        ----------
        library : {"pandas", "polars"}, default="pandas"

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        return frame_of(self._columns(), library)

    def plot(self, x: str = "n_components", *, ax: "Axes | None" = None) -> "Axes":
        """Draw the terms over the number of components, or the modeling terms over the information gain.

        Parameters
        ----------
        x : {"n_components", "information_gain"}, default="n_components"
            "n_components" draws modeling terms, information gain and loss with bands of their intervals.
            "information_gain" draws a point for each C. The loss is equal along each dotted line, and less to the
            right of it.
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
        check_choice(x, "x", _AXES)
        pyplot = require("matplotlib.pyplot", "plot")
        from matplotlib.ticker import MaxNLocator

        if ax is None:
            ax = pyplot.subplots(figsize=(5.2, 3.4), layout="constrained")[1]
        assert ax is not None
        C, best = self.n_components, self.best_n_components()
        if x == "n_components":
            frame(ax, "", "components C", f"{self.unit} per row")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            for name, (_, color) in _CURVES.items():
                ax.plot(C, getattr(self, name), color=color, linewidth=1.3, marker="o", markersize=2.5)
                ax.fill_between(C, *self.intervals[name], color=color, alpha=0.15, linewidth=0)
            name_line(ax, best, f"best: {best}")
            named = [(title, float(getattr(self, name)[-1]), color) for name, (title, color) in _CURVES.items()]
            name_curves(ax, named, x=float(C[-1]))
            return ax
        gain, modeling = self.information_gain, self.modeling
        frame(ax, f"best: {best}", f"gain H(w) − H(F|x) [{self.unit}]", f"modeling Σ w KL [{self.unit}]")
        ax.plot(gain, modeling, color=GREY, linewidth=0.8)
        ax.plot(gain, modeling, "o", color=BLUE, markersize=4)
        i = int(np.flatnonzero(best == C)[0])
        ax.plot(gain[i], modeling[i], "o", color=VERMILION, markersize=9, markeredgecolor="white")
        for each, side in ((0, "left"), (-1, "right")):
            place = (float(gain[each]), float(modeling[each]))
            ax.annotate(f"C = {C[each]:,}", place, (0, 6), textcoords="offset points", ha=side, fontsize=8)
        ax.margins(0.12, 0.15)
        ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())  # fixed, because the lines of equal loss are unbounded
        for offset in np.quantile(modeling - gain, [0.1, 0.5, 0.9]):
            ax.axline((0, offset), slope=1, color=GREY, linewidth=0.7, linestyle=":")
        return ax


def information_curve(
    estimator: Mixture | Sweep,
    X: Any,
    n_components_range: Iterable[int] | None = None,
    *,
    holdout: float | None = 0.5,
    assignment: str = "hard",
    weights: str = "free",
    unit: str = "bits",
    n_neighbors: int = 5,
    random_state: Any = None,
) -> InformationCurve:
    """Compute modeling terms and information gain of the partition loss for every number of components of a range.

        E[−log P_F(x)(x)] = Σ_b w_b KL(Q_b‖P_b) + H(Q) − (H(w) − H(F|x))

    The terms are those of `theory.partition_loss`. The information gain rises whenever a cluster is divided, and a
    further component lowers the least loss. So the loss has no minimum in C, and a rule that compares the rise of the
    gain with that of the modeling terms selects the greatest C. The modeling terms alone have a minimum if the
    densities have the form of the clusters. With too few components, a part Q_b of the data contains several clusters.
    With too many, it is a piece of a cluster. One density is a poor model of either. So the suggested C is the least
    one whose modeling terms exceed the least ones by no more than the 95 % interval of the difference. H(Q) is the same
    for every C, so the bias of its estimate has no effect on the suggestion.

    With hard assignment by α_b P_b, modeling terms + H(Q) are the mean of −log w_F(x) P_F(x)(x), the weighted loss (14)
    with the shares as weights. ICL has a similar value on the fitted rows, and a penalty of parameters instead of
    held-out rows.

    The suggestion is wrong in these cases:

    - Clusters overlap. A hard assignment cuts the tails of the densities, and one component for several clusters can
      have lower modeling terms. For three unit Gaussians at distance 2.5 it suggests one cluster, BIC three.
    - Clusters do not have the form of the densities, such as elongated clusters for k-means. Then more components
      than clusters are better, up to the end of the range. For iris and k-means it suggests 3 to 7 clusters.
    - The evaluated rows are those of the fits, and the densities have many parameters. The modeling terms then fall as
      C grows.
    - There are few rows. Full covariances in 8 dimensions that are fitted to 25 rows for each cluster are so inaccurate
      that the suggestion is too small; 100 rows suffice. For the 75 held-out rows of iris, the suggestion for mixtures
      depends on the division of the rows, between 2 and 4 with `covariance_type="diag"`.

    In many dimensions the values of `modeling` and `entropy` are biased, and for counts they have no meaning. Only
    differences of `modeling` are reliable.

    Parameters
    ----------
    estimator : KMeans, or a mixture with densities that is not Bayesian; or Sweep
        Template for `sweep`. Or a sweep of one covariance type, whose fits are evaluated on all rows of X.
    X : array-like of shape (n_samples, n_features)
        Data. If `estimator` is a sweep, rows that its fits have not used are best.
    n_components_range : iterable of int or None, default=None
        Numbers of components to try; None for a sweep.
    holdout : float or None, default=0.5
        Fraction of the rows, drawn at random, on which the terms are computed; the fits use the other rows. None fits
        and evaluates all rows. Not used for a sweep.
    assignment : {"hard", "posterior"}, default="hard"
        As in `theory.partition_loss`.
    weights : {"free", "equal"}, default="free"
        Whether points are assigned by α_b P_b(x), as in `predict`, or by P_b(x). It is the same for k-means.
    unit : {"bits", "nats"}, default="bits"
    n_neighbors : int, default=5
        Number of neighbors k in the estimate of the entropy H(Q).
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers for the division of the rows and the initializations.

    Returns
    -------
    curve : InformationCurve

    Raises
    ------
    TypeError
        If the estimator has no densities.
    ValueError
        If an argument is out of its range, a sweep has several covariance types, or there are too few rows.

    References
    ----------
    Kearns, Mansour & Ng, *An information-theoretic analysis of hard and soft assignment methods for clustering*,
    eq. (8), (12), (13).

    Examples
    --------
    >>> from cprime import GaussianMixture
    >>> from cprime.datasets import old_faithful
    >>> from cprime.selection import information_curve
    >>> X = old_faithful().data
    >>> information_curve(GaussianMixture(), X, range(1, 7), random_state=0).best_n_components()
    2
    """
    for value, name, choices in ((assignment, "assignment", ASSIGNMENTS), (weights, "weights", WEIGHTS)):
        check_choice(value, name, choices)
    scale = 1 / nats_per(unit)
    check_integer(n_neighbors, "n_neighbors", 1)
    rng = check_random_state(random_state)
    if isinstance(estimator, Sweep):
        if n_components_range is not None:
            raise ValueError(f"n_components_range must be None for a Sweep, got {n_components_range!r}.")
        if len(estimator.families) > 1:
            raise ValueError(f"estimator must be a sweep of one covariance type, got {len(estimator.families)} types.")
        found, rows = estimator, X
    else:
        if n_components_range is None:
            raise ValueError("n_components_range must be given for an estimator, got None.")
        seen, held_out = divided(weighted_data(X, None), holdout, rng)
        found = sweep(estimator, seen.X, n_components_range, criteria=(), holdout=None, random_state=rng)
        rows = seen.X if held_out is None else held_out.X
    mixtures = [as_mixture(fit, "estimator") for fit in found.estimators]
    sample = sample_of(found.estimators[0], rows, mixtures[0], n_neighbors, "X")
    terms = np.empty((len(mixtures), 3, len(sample.X)))
    for i, mixture in enumerate(mixtures):
        log_p, log_alpha = mixture.log_densities(sample.X), log_alpha_of(mixture, weights)
        shares = np.exp(log_partition(log_p + log_alpha, assignment)).mean(axis=0)
        columns = loss_columns(log_p, sample.log_q, log_alpha, assignment, shares)
        terms[i] = scale * columns[:, [0, 1, 6]].T
    modeling = terms[:, 1]
    named = {
        "loss": terms[:, 0],
        "modeling": modeling,
        "information_gain": terms[:, 2],
        "excess": modeling - modeling[modeling.mean(axis=1).argmin()],
    }
    half = {name: ndtri(0.975) * t.std(axis=1, ddof=1) / np.sqrt(t.shape[1]) for name, t in named.items()}
    values = {name: t.mean(axis=1) for name, t in named.items()}
    return InformationCurve(
        np.array(found.n_components),
        **values,
        entropy=float(-scale * sample.log_q.mean()),
        intervals={name: np.stack([values[name] - half[name], values[name] + half[name]]) for name in values},
        unit=unit,
    )
