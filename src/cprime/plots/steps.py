"""Display of the E-steps and M-steps of a fit, one panel for each step."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime._utils.style import PURPLE, frame
from cprime.estimators.fitted import centers_of
from cprime.estimators.validation import check_integer
from cprime.plots.fitted import FromStart, check_fitted, impute_missing, path, prepared, standing, with_full_search
from cprime.plots.plane import Projection, draw_centers, draw_ellipses, draw_points, project, proportion, scale_axes
from cprime.plots.style import COLUMN, GREY, cluster_colors, panel_grid

_COLUMNS = 3
_CYCLES = 4


class ProjectedGaussians(NamedTuple):
    """Parameters of a model, projected on a plane: centers (C, 2), and covariances (C, 2, 2) or None."""

    centers: NDArray[np.float64]
    covariances: NDArray[np.float64] | None


class Cycle(NamedTuple):
    """One iteration of a fit: an E-step and the following M-step.

    number: iteration, from 1    before, after: the parameters before the E-step and after the M-step, in the plane
    responsibilities (n, C): result of the E-step
    """

    number: int
    before: ProjectedGaussians
    responsibilities: NDArray[np.float64]
    after: ProjectedGaussians


class StepsDisplay:
    """Panels that show the initial parameters and then, alternately, E-steps and M-steps.

    In the panel of an E-step, the color of a point is the mean of the component colors, weighted by its
    responsibilities. The panel of an M-step shows the new centers and, for mixtures, covariances. For k-means with two
    clusters in two dimensions, E-steps also show the line between the clusters.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
    cycles : list of Cycle
        The iterations to show; the start is `before` of the first one.
    names : tuple of two str, default=("", "")
        Names of the axes.
    divide : bool, default=False
        Whether to draw the line between two centers.
    unit : array-like of shape (2,), default=(1.0, 1.0)
        Lengths along the axes that count as equal in distances, for this line: the scales of features that the fit has
        scaled.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each panel: the start, and two for each cycle.
    figure_ : matplotlib Figure

    References
    ----------
    Bishop, *Pattern Recognition and Machine Learning*, figures 9.1 (k-means) and 9.8 (EM).

    Examples
    --------
    >>> from sklearn.preprocessing import scale
    >>> from cprime import KMeans
    >>> from cprime.datasets import old_faithful
    >>> from cprime.plots import StepsDisplay
    >>> X = scale(old_faithful().data)
    >>> km = KMeans(2, init=[[-2, 1], [1, -1]], tol=0).fit(X)
    >>> [cycle.number for cycle in StepsDisplay.from_estimator(km, X).cycles]
    [1, 2, 3, 4]
    """

    def __init__(
        self,
        points: NDArray,
        cycles: list[Cycle],
        names: tuple[str, str] = ("", ""),
        divide: bool = False,
        unit: ArrayLike = (1.0, 1.0),
    ) -> None:
        self.points = points
        self.cycles = cycles
        self.names = names
        self.divide = divide
        self.unit: NDArray[np.float64] = np.asarray(unit, dtype=np.float64)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        cycles: Sequence[int] | None = None,
        sample_weight: Any = None,
        projection: Any = "auto",
        ax: Any = None,
        **kw: Any,
    ) -> Self:
        """Fit a clone with full search and show its steps.

        Parameters
        ----------
        estimator : KMeans, GaussianMixture or StudentTMixture
            A fitted estimator; the clone repeats its iterations if random_state is an int or the start is given.
        X : array-like of shape (n_samples, n_features)
        cycles : sequence of int or None, default=None
            Iterations to show, from 1. None shows all if there are at most four, else the first, the last and two
            between.
        sample_weight : array-like of shape (n_samples,) or None, default=None
        projection : {"auto", "principal"} or two ints, default="auto"
            As in `ClustersDisplay`.
        ax : array-like of matplotlib Axes or None, default=None
            Axes to draw on, one for each panel; None makes a figure.
        **kw : dict
            Arguments of `plot`.

        Returns
        -------
        display : StepsDisplay

        Raises
        ------
        ValueError
            If `cycles` contains iterations that the fit does not have.
        """
        check_fitted(estimator)
        fitted, X = prepared(estimator, X)
        refit, models, _ = path(with_full_search(fitted, FromStart()), X, sample_weight)
        points = impute_missing(X, fitted)
        plane = project(projection, points, estimator)
        shown = _shown(len(models) - 1) if cycles is None else sorted(cycles)
        for number in shown:
            check_integer(number, "cycles", 1)
        if not shown or shown[-1] >= len(models):
            raise ValueError(f"cycles must be among the {len(models) - 1} iterations of the fit, got {cycles!r}.")
        made = []
        for number in shown:
            before = standing(refit, models[number - 1], X, sample_weight)
            after = standing(refit, models[number], X, sample_weight)
            made.append(Cycle(number, _placed(before, plane), _responsibilities(before, X), _placed(after, plane)))
        divide = not hasattr(estimator, "predict_proba") and X.shape[1] == 2
        return cls(plane.points(points), made, plane.names, divide, plane.unit).plot(ax, **kw)

    def plot(self, ax: Any = None, *, deviations: Any = None) -> Self:
        """Draw a panel for the start and for each step.

        Parameters
        ----------
        ax : array-like of matplotlib Axes or None, default=None
            There must be 2 · cycles + 1 Axes.
        deviations : sequence of float or None, default=None
            Radii of the ellipses in standard deviations; None is 1 and 2, or only 2 for more than 30 components.

        Returns
        -------
        display : StepsDisplay
        """
        count = 1 + 2 * len(self.cycles)
        row_height = (COLUMN - 0.5) / _COLUMNS * (proportion(self._places()) or 0.9) + 0.25
        self.figure_, self.axes_ = panel_grid(ax, count, _COLUMNS, row_height, 0.4)
        if ax is None:
            self.figure_.supxlabel(self.names[0], fontsize=9)
            self.figure_.supylabel(self.names[1], fontsize=9)
        colors = cluster_colors(self.cycles[0].before.centers)
        self._panel(self.axes_[0], "start", None, self.cycles[0].before, colors, deviations)
        for i, cycle in enumerate(self.cycles):
            for k, (name, at) in enumerate((("E", cycle.before), ("M", cycle.after))):
                axes = self.axes_[1 + 2 * i + k]
                self._panel(axes, f"{name}-step {cycle.number}", cycle.responsibilities, at, colors, deviations)
                if self.divide and name == "E" and len(at.centers) == 2:
                    middle, (x, y) = at.centers.mean(axis=0), (at.centers[1] - at.centers[0]) / self.unit
                    axes.axline(middle, middle + np.array([-y, x]) * self.unit, color=PURPLE, linewidth=1)
        return self

    def _panel(
        self, axes: Any, title: str, given: NDArray | None, at: ProjectedGaussians, colors: NDArray, deviations: Any
    ) -> None:
        draw_points(axes, self.points, GREY if given is None else np.clip(given @ colors, 0, 1))
        if at.covariances is not None:
            draw_ellipses(axes, at.centers, at.covariances, colors * 0.8, deviations)
        draw_centers(axes, at.centers, colors * 0.6, share=0.75)
        frame(axes, "")
        axes.set_title(title, fontsize=8, loc="left", pad=3)
        places = self._places()
        low, high = places.min(axis=0), places.max(axis=0)
        margin = 0.08 * (high - low)
        axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
        axes.set_ylim(low[1] - margin[1], high[1] + margin[1])
        scale_axes(axes, places, "box")

    def _places(self) -> NDArray:
        """Return the positions (m, 2) of all points and of all centers in all steps; they determine the axis limits."""
        centers = [at.centers for cycle in self.cycles for at in (cycle.before, cycle.after)]
        return np.vstack([self.points, *centers])


def _placed(view: Any, plane: Projection) -> ProjectedGaussians:
    covariances = plane.covariances(view) if hasattr(view, "predict_proba") else None
    return ProjectedGaussians(plane.points(centers_of(view)), covariances)


def _responsibilities(view: Any, X: NDArray) -> NDArray[np.float64]:
    if hasattr(view, "predict_proba"):
        return view.predict_proba(X)
    return np.eye(len(view.cluster_centers_))[view.predict(X)]


def _shown(n_iter: int) -> list[int]:
    """Return at most four of the iterations 1 … n_iter to show, more closely spaced at the beginning."""
    if n_iter <= _CYCLES:
        return list(range(1, n_iter + 1))
    return sorted({round(place) for place in np.geomspace(1, n_iter, _CYCLES)})
