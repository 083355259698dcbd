"""Display of the E-steps and M-steps of a fit, one panel for each step."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from cprime._utils.style import GREY, PURPLE, frame
from cprime.estimators.fitted import centers_of
from cprime.estimators.validation import check_choice, check_integer, check_positive
from cprime.plots.fitted import FromStart, check_fitted, impute_missing, path, prepared, standing, with_full_search
from cprime.plots.plane import Projection, draw_centers, draw_ellipses, draw_points, project, proportion, scale_axes
from cprime.plots.style import COLUMN, cluster_colors, panel_grid, panels

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


class StepsAnimation(FuncAnimation):
    """Animation that is saved by Pillow, which can write GIF files, unless another writer is given."""

    def save(self, filename: Any, writer: Any = "pillow", *args: Any, **options: Any) -> None:
        """Write the animation to a file; arguments are those of `matplotlib.animation.Animation.save`."""
        super().save(filename, writer, *args, **options)


class StepsDisplay:
    """Panels that show the initial parameters and then, alternately, E-steps and M-steps.

    Points are dots and centers are crosses; both axes have the units of the data. In the panel of an E-step, the color
    of a point is the mean of the component colors, weighted by its responsibilities. The panel of an M-step shows the
    new centers and, for mixtures, ellipses of the covariances at Mahalanobis distances 1 and 2. For k-means with two
    clusters in two dimensions, E-steps also show the line between the clusters. `animate` shows the same panels one
    after the other.

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
    >>> display = StepsDisplay.from_estimator(km, X)
    >>> [cycle.number for cycle in display.cycles]
    [1, 2, 3, 4]
    >>> display.animate().save("steps.gif")  # doctest: +SKIP
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
        cycles: Sequence[int] | str | None = None,
        sample_weight: Any = None,
        projection: Any = "auto",
        ax: Any = None,
        **kw: Any,
    ) -> Self:
        """Fit a clone with full search and show its steps.

        Parameters
        ----------
        estimator : KMeans, GaussianMixture, StudentTMixture or SoftKMeans
            A fitted estimator; the clone repeats its iterations if random_state is an int or the start is given.
        X : array-like of shape (n_samples, n_features)
        cycles : sequence of int, "all" or None, default=None
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
        n_iter = len(models) - 1
        if isinstance(cycles, str):
            check_choice(cycles, "cycles", ("all",))
            cycles = range(1, n_iter + 1)
        shown = _shown(n_iter) if cycles is None else sorted(cycles)
        for number in shown:
            check_integer(number, "cycles", 1)
        if not shown or shown[-1] > n_iter:
            raise ValueError(f"cycles must be among the {n_iter} iterations of the fit, got {cycles!r}.")
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
        row_height = (COLUMN - 0.5) / _COLUMNS * (proportion(self._places()) or 0.9) + 0.25
        self.figure_, self.axes_ = panel_grid(ax, self._n_panels, _COLUMNS, row_height, 0.4)
        if ax is None:
            self.figure_.supxlabel(self.names[0], fontsize=9)
            self.figure_.supylabel(self.names[1], fontsize=9)
        for number, axes in enumerate(self.axes_):
            self._draw(axes, number, deviations, share=0.5)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(3))
                axis.set_major_formatter(FuncFormatter(_short))
        return self

    def animate(self, ax: Any = None, *, deviations: Any = None, seconds: float = 0.8) -> StepsAnimation:
        """Return an animation of the panels, one after the other; its method `save` writes a GIF file.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on, whose content is replaced; None makes a figure.
        deviations : sequence of float or None, default=None
            As in `plot`.
        seconds : float, default=0.8
            Time for which a step is shown.

        Returns
        -------
        animation : matplotlib.animation.FuncAnimation
            It has a frame for the start and two for each cycle: an E-step and an M-step. `animation.save("steps.gif")`
            needs Pillow; with another writer, it writes films.

        Raises
        ------
        ValueError
            If `seconds` is not positive.
        """
        interval = 1000 * check_positive(seconds, "seconds")
        height = COLUMN * float(np.clip(proportion(self._places()) or 0.8, 0.6, 0.9)) + 0.25
        figure, (axes,) = panels(ax, 1, 1, height)

        def draw(number: int) -> list[Any]:
            axes.clear()
            self._draw(axes, number, deviations)
            axes.set_xlabel(self.names[0], fontsize=9)
            axes.set_ylabel(self.names[1], fontsize=9)
            return axes.get_children()

        return StepsAnimation(figure, draw, frames=self._n_panels, interval=interval)

    @property
    def _n_panels(self) -> int:
        return 1 + 2 * len(self.cycles)

    def _draw(self, axes: Any, number: int, deviations: Any, share: float = 1.0) -> None:
        """Draw a step on axes. number: 0 for the start, then E-steps and M-steps alternate

        share: area of dots and crosses relative to the usual area, for small panels
        """
        cycle = self.cycles[max(number - 1, 0) // 2]
        is_e_step, is_m_step = number % 2 == 1, number > 0 and number % 2 == 0
        at = cycle.after if is_m_step else cycle.before
        colors = cluster_colors(self.cycles[0].before.centers)
        mixed = np.clip(cycle.responsibilities @ colors, 0, 1) if number else GREY
        draw_points(axes, self.points, mixed, share)
        if at.covariances is not None:
            draw_ellipses(axes, at.centers, at.covariances, colors * 0.8, deviations)
        draw_centers(axes, at.centers, colors * 0.6, share=share)
        if self.divide and is_e_step and len(at.centers) == 2:
            middle, (x, y) = at.centers.mean(axis=0), (at.centers[1] - at.centers[0]) / self.unit
            axes.axline(middle, middle + np.array([-y, x]) * self.unit, color=PURPLE, linewidth=1)
        frame(axes)
        name = f"{'E' if is_e_step else 'M'}-step {cycle.number}" if number else "start"
        axes.set_title(name, fontsize=8, loc="left", pad=3)
        places = self._places()
        low, high = places.min(axis=0), places.max(axis=0)
        margin = 0.08 * (high - low)
        for x, set_limits in enumerate((axes.set_xlim, axes.set_ylim)):
            set_limits(low[x] - margin[x], high[x] + margin[x])
        scale_axes(axes, places, "box")

    def _places(self) -> NDArray:
        """Return the places (m, 2) that determine the axis limits: points, and centers and ellipses of all steps.

        Places of ellipses, which are very large in some starts, are at most a third of the points' range outside.
        """
        shown = [at for cycle in self.cycles for at in (cycle.before, cycle.after)]
        places = np.vstack([self.points, *(at.centers for at in shown)])
        low, high = places.min(axis=0), places.max(axis=0)
        reach = [
            (at.centers, 2 * np.sqrt(np.diagonal(at.covariances, 0, 1, 2)))
            for at in shown
            if at.covariances is not None
        ]
        ends = [center + sign * radius for center, radius in reach for sign in (-1, 1)]
        return np.vstack([places, *(np.clip(each, low - (high - low) / 3, high + (high - low) / 3) for each in ends)])


def _short(value: float, position: Any) -> str:
    """Return the label of a tick of a small panel: thousands from 10,000 on, such as 20k."""
    return (f"{value / 1000:g}k" if abs(value) >= 10_000 else f"{value:g}").replace("-", "−")


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
