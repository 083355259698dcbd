"""Display of the candidate components of a point in partial E-steps."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime._utils.style import BLACK, BLUE, GREEN, GREY, frame
from cprime.estimators.fitted import centers_of, model_of
from cprime.estimators.validation import check_integer
from cprime.kernels import as_rows
from cprime.plots.fitted import check_fitted, prepared_point
from cprime.plots.plane import project
from cprime.plots.style import COLUMN, TEXT, bare, panel_grid

_COLUMNS = 2


class SearchStep(NamedTuple):
    """A partial E-step of one point.

    kept: the active set K before the step    space: the search space, K and the components in the neighbor lists of K
    """

    kept: NDArray[np.intp]
    space: NDArray[np.intp]


class SearchSpaceDisplay:
    """Search space of a point: its active set K, the neighbor lists of K, and all other components.

    The search space is the union of K and the neighbor lists of all components in K. A partial E-step evaluates only
    the components in the search space; the C′ best of these become the next K. The panels show E-steps at fixed
    parameters until K no longer changes.

    The point is a black cross, the centers of K are green dots, those of the rest of the search space blue circles, and
    all others gray dots. Blue lines connect components with those in their lists, dashed lines the point with K. Both
    directions have the same scale, without ticks.

    Parameters
    ----------
    point : array-like of shape (2,)
    centers : array-like of shape (n_components, 2)
    neighbors : ndarray of shape (n_components, G)
        Neighbor list of each component, of at most G component indices, padded with −1.
    looks : list of SearchStep
        The E-step shown in each panel.
    names : tuple of two str, default=("", "")
        Names of the axes.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each E-step.
    figure_ : matplotlib Figure

    References
    ----------
    Forster & Lücke, *Can clustering scale sublinearly with its clusters?*, figures 1 and B.1, Alg. 1 and 2.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.plots import SearchSpaceDisplay
    >>> from cprime.search import Papers
    >>> X = birch(25, random_state=0).data
    >>> km = KMeans(25, search=Papers(n_neighbors=5), random_state=0).fit(X)
    >>> display = SearchSpaceDisplay.from_estimator(km, X[0])
    >>> len(display.looks[0].kept), len(display.looks[0].space)
    (1, 5)
    """

    def __init__(
        self,
        point: ArrayLike,
        centers: ArrayLike,
        neighbors: NDArray,
        looks: list[SearchStep],
        names: tuple[str, str] = ("", ""),
    ) -> None:
        self.point: NDArray[np.float64] = np.asarray(point, dtype=np.float64)
        self.centers: NDArray[np.float64] = np.asarray(centers, dtype=np.float64)
        self.neighbors = neighbors
        self.looks = looks
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        x: ArrayLike,
        *,
        kept: ArrayLike | None = None,
        neighbors: ArrayLike | None = None,
        max_steps: int = 4,
        projection: Any = "auto",
        ax: Any = None,
        **kw: Any,
    ) -> Self:
        """Show the search space of a point.

        Parameters
        ----------
        estimator : KMeans, GaussianMixture, StudentTMixture or SoftKMeans
            An estimator that was fitted with a partial search.
        x : array-like of shape (n_features,)
            The point.
        kept : array-like of int or None, default=None
            Initial K; None is the `n_active_` best of all components, as after a converged search.
        neighbors : array-like of shape (n_components, G) or None, default=None
            Neighbor list of each component; None uses those of the estimator.
        max_steps : int, default=4
            Maximum number of E-steps to show.
        projection : {"auto", "principal"} or two ints, default="auto"
            As in `ClustersDisplay`, for the centers.
        ax : array-like of matplotlib Axes or None, default=None
            Axes to draw on, one for each E-step; None makes a figure.
        **kw : dict
            Arguments of `plot`.

        Returns
        -------
        display : SearchSpaceDisplay

        Raises
        ------
        ValueError
            If there are no lists, or `kept` or `neighbors` contain invalid component indices.
        """
        check_fitted(estimator)
        check_integer(max_steps, "max_steps", 1)
        model = model_of(estimator)
        centers = centers_of(estimator)
        row = np.ascontiguousarray(prepared_point(estimator, x)[1], dtype=model.centers.dtype)
        lists = _lists(estimator, neighbors, len(centers))
        found, ordered = model.components().best(model.embed(as_rows(row)), len(centers))
        costs = np.empty(len(centers))
        costs[found[0]] = ordered[0]
        start = found[0, : estimator.n_active_] if kept is None else _components(kept, len(centers), "kept")
        plane = project(projection, centers, estimator)
        looks = _follow(start.astype(np.intp), lists, costs, max_steps)
        return cls(plane.points(row)[0], plane.points(centers), lists, looks, plane.names).plot(ax, **kw)

    def plot(self, ax: Any = None) -> Self:
        """Draw one panel for each partial E-step.

        Parameters
        ----------
        ax : array-like of matplotlib Axes or None, default=None

        Returns
        -------
        display : SearchSpaceDisplay
        """
        n = len(self.looks)
        self.figure_, self.axes_ = panel_grid(ax, n, min(n, _COLUMNS), COLUMN * (0.95 if n == 1 else 0.5), 0.2)
        for i, (axes, look) in enumerate(zip(self.axes_, self.looks, strict=True)):
            self._panel(axes, look, f"E-step {i + 1}" if n > 1 else "")
        self._key(self.axes_[-1])
        return self

    def _key(self, axes: Any) -> None:
        """Draw a legend of the colors in one line below a panel (`axes`)."""
        place, beside = (0.0, 0.0), "axes fraction"
        for text, color in (("point", BLACK), ("active set", GREEN), ("search space", BLUE), ("others", GREY)):
            options = {"xytext": (6, 0) if beside != "axes fraction" else (0, -2), "textcoords": "offset points"}
            vertical = "top" if beside == "axes fraction" else "bottom"
            beside = axes.annotate(text, place, xycoords=beside, color=color, fontsize=TEXT, va=vertical, **options)
            place = (1.0, 0.0)

    def _panel(self, axes: Any, look: SearchStep, title: str) -> None:
        for c in look.kept:
            for other in self.neighbors[c][self.neighbors[c] >= 0]:
                axes.plot(*self.centers[[c, other]].T, color=BLUE, linewidth=0.9, zorder=1)
            axes.plot(*np.stack([self.point, self.centers[c]]).T, color=BLACK, linewidth=0.9, linestyle="--", zorder=1)
        around = np.setdiff1d(look.space, look.kept)
        others = np.setdiff1d(np.arange(len(self.centers)), look.space)
        size = float(np.clip(2500 / len(self.centers), 5, 40)) / len(self.looks) ** 0.5
        axes.scatter(*self.centers[others].T, s=size * 0.5, color=GREY, linewidths=0, alpha=0.7)
        axes.scatter(*self.centers[around].T, s=size, facecolor="white", edgecolor=BLUE, linewidths=1.3, zorder=2)
        axes.scatter(*self.centers[look.kept].T, s=size * 1.3, color=GREEN, linewidths=0, zorder=3)
        axes.plot(*self.point, "x", color=BLACK, markersize=6, markeredgewidth=1.6, zorder=4)
        frame(axes, title)
        bare(axes)
        axes.spines[:].set_visible(False)
        axes.set_aspect("equal", adjustable="box")


def _lists(estimator: Any, neighbors: ArrayLike | None, C: int) -> NDArray[np.intp]:
    if neighbors is None:
        if estimator.neighbors_ is None:
            raise ValueError(
                "estimator must have been fitted with a partial search, or neighbors be given: "
                f"search={estimator.search!r} kept no lists."
            )
        return estimator.neighbors_.astype(np.intp)
    lists = np.asarray(neighbors)
    if lists.ndim != 2 or len(lists) != C or lists.dtype.kind not in "iu" or lists.min() < -1 or lists.max() >= C:
        raise ValueError(f"neighbors must be of shape ({C}, G) with components from 0 to {C - 1}, got {neighbors!r}.")
    return lists.astype(np.intp)


def _components(kept: ArrayLike, C: int, name: str) -> NDArray[np.intp]:
    values = np.asarray(kept)
    if values.ndim != 1 or not len(values) or values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= C:
        raise ValueError(f"{name} must be components from 0 to {C - 1}, got {kept!r}.")
    return np.unique(values).astype(np.intp)


def _follow(kept: NDArray[np.intp], lists: NDArray[np.intp], costs: NDArray, max_steps: int) -> list[SearchStep]:
    """Return the `SearchStep`s of one point, beginning with the active set `kept`, until this set no longer changes.

    lists (C, G): neighbor lists, padded with −1    costs (C,): cost of each component for the point, lower is better
    """
    looks: list[SearchStep] = []
    while len(looks) < max_steps:
        space = np.union1d(kept, lists[kept])
        space = space[space >= 0]
        looks.append(SearchStep(kept, space))
        best = space[np.argsort(costs[space], kind="stable")[: len(kept)]]
        if set(best) == set(kept):
            break
        kept = best
    return looks
