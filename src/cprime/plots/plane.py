"""Drawing of data in a plane or on a line: choice of directions; points, centers, covariances, densities, numbers."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray
from scipy.spatial import Voronoi

from cprime._utils.style import BLACK, GREY, LEADER, points_to_pixels, shift
from cprime.estimators.columns import resolve_columns
from cprime.estimators.fitted import centers_of, feature_names, model_of
from cprime.estimators.opening import preparation_of
from cprime.model import FAMILIES
from cprime.model.base import Gaussian
from cprime.plots.style import MANY, TEXT
from cprime.sources import array_of
from cprime.theory.mixtures import Gaussians, MixtureDensity, StudentTs, log_mixture_density, log_weights

_SAME_SCALE = 3  # The axes have the same scale if the ratio of their ranges is at most this number.
# Distance of four auxiliary points that bound the outer Voronoi cells, divided by the range of the centers.
_FAR = 1000.0
_CORNERS = 73  # Number of vertices of the polygon that is drawn as an ellipse.
_GRID = 200  # Number of places along each axis at which a density is computed.
_INSIDE = (0.5, 0.9, 0.99)  # Shares of the points that contour lines contain.
# Distances of a number from its center that are tried, in points, and the number of directions for each distance.
_DISTANCES, _DIRECTIONS = (9, 14, 20, 28, 38, 50, 64, 80), 16


@dataclass(frozen=True)
class Projection:
    """Projection of rows, in the units of an estimator's parameters, on a plane or a line, of k = 2 or 1 dimensions.

    origin (D,) [units of the rows]    names: labels of the two axes; that of a density is the second one of a line
    directions (k, D): orthogonal; their lengths convert the units of the rows to those of the plane
    """

    origin: NDArray[np.float64]
    directions: NDArray[np.float64]
    names: tuple[str, str]

    @property
    def unit(self) -> NDArray[np.float64]:
        """Return the length in each direction of the plane, (k,), that is one unit of the rows."""
        return np.linalg.norm(self.directions, axis=1)

    def points(self, X: NDArray) -> NDArray[np.float64]:
        """Return the rows X (n, D) projected on the plane: (n, k)."""
        return (X - self.origin) @ self.directions.T

    def covariances(self, estimator: Any) -> NDArray[np.float64] | None:
        """Return the covariances of the components in the plane (C, k, k); None if there are none."""
        C, P = len(centers_of(estimator)), self.directions
        if hasattr(estimator, "covariance_type_"):
            return model_of(estimator).covariances_along(P)
        if not hasattr(estimator, "covariances_"):
            if not hasattr(estimator, "variance_"):
                return None
            return np.broadcast_to(estimator.variance_ * (P @ P.T), (C, len(P), len(P)))
        means, given = centers_of(estimator), {"covariances_": estimator.covariances_}
        return FAMILIES[estimator.covariance_type].from_attributes(given, means, None).covariances_along(P)

    def density(self, estimator: Any) -> MixtureDensity | None:
        """Return the density of projected rows under a mixture; None if its components are not Gaussians or t."""
        covariances = self.covariances(estimator)
        ours = hasattr(estimator, "covariance_type_")
        if covariances is None or (ours and not isinstance(model_of(estimator), Gaussian)):
            return None
        places = self.points(centers_of(estimator))
        weights: Any = getattr(estimator, "weights_", None)
        gaussians = Gaussians(places, covariances, weights)
        return StudentTs(gaussians, estimator.dof_) if hasattr(estimator, "dof_") else gaussians


def project(projection: Any, X: NDArray, estimator: Any, least: int = 2) -> Projection:
    """Return the `Projection` that the argument `projection` specifies.

    projection: indices or names of two features, or of one; "principal", the two directions in which X varies most; or
    "auto", the features of data of one or two dimensions, else "principal"
    X (n, D): rows after the preparation by the estimator. Features have the units before the scaling, principal
    directions have those after it.
    least: 2 for a plane, 1 for a plane or a line
    """
    D = X.shape[1]
    if least > D:
        raise ValueError(f"X must have at least {least} features to be shown in a plane, got {D}.")
    wanted = "two features" if least == 2 else "one or two features"
    if isinstance(projection, str):
        if projection not in ("auto", "principal"):
            raise ValueError(
                f"projection must be one of ['auto', 'principal'] or the indices of {wanted}, got {projection!r}."
            )
        if D > 2 or (D == 2 and projection == "principal"):
            return _principal(X)
        projection = range(D)
    if np.iterable(projection) and any(isinstance(column, str) for column in projection):
        projection = resolve_columns(projection, D, getattr(estimator, "feature_names_in_", None))
    chosen = np.atleast_1d(array_of(projection, "projection"))
    k = chosen.size
    if (
        not (chosen.ndim == 1 and least <= k <= 2 and chosen.dtype.kind in "iu" and len(set(chosen.tolist())) == k)
        or not ((chosen >= 0) & (chosen < D)).all()
    ):
        raise ValueError(f"projection must have the indices of {wanted} of {D}, got {projection!r}.")
    names = [*(feature_names(estimator)[column] for column in chosen), "density"]
    preparation = preparation_of(estimator)
    scale = preparation.restored_spread(np.ones(D))
    origin = -preparation.restored(np.zeros(D)) / scale
    return Projection(origin, scale * np.eye(D)[chosen], (names[0], names[1]))


def _principal(X: NDArray) -> Projection:
    origin = X.mean(axis=0, dtype=np.float64)
    variances, vectors = np.linalg.eigh(np.cov(X, rowvar=False, dtype=np.float64))
    directions = vectors[:, [-1, -2]].T
    directions *= np.sign(np.take_along_axis(directions, np.abs(directions).argmax(axis=1, keepdims=True), axis=1))
    shares = variances[[-1, -2]] / max(variances.sum(), np.finfo(np.float64).tiny)
    first, second = (f"principal direction {i} ({100 * share:.0f} %)" for i, share in enumerate(shares, 1))
    return Projection(origin, directions, (first, second))


def proportion(places: NDArray) -> float | None:
    """Return height / width of the rectangle that contains points (n, 2).

    Return None if the ratio is above 3 or below 1/3, so that axes of equal scale would waste space.
    """
    width, height = np.ptp(places, axis=0)
    return float(height / width) if 0 < max(width, height) <= _SAME_SCALE * min(width, height) else None


def scale_axes(axes: Axes, places: NDArray, adjustable: Literal["box", "datalim"]) -> None:
    """Set the same scale on both axes, unless the ranges of the points `places` (n, 2) differ by over a factor of 3.

    adjustable: what matplotlib changes for this, the size of the panel ("box") or the limits of the axes ("datalim")
    """
    if proportion(places) is not None:
        axes.set_aspect("equal", adjustable=adjustable)


def draw_points(axes: Axes, points: NDArray, colors: Any, share: float = 1.0) -> None:
    """Draw points (n, 2), smaller if there are many. In files of vector graphics they are pixels (rasterized).

    share: area of the dots relative to the usual area, for small panels
    """
    size = share * float(np.clip(6000 / max(len(points), 1), 1.5, 12))
    axes.scatter(points[:, 0], points[:, 1], s=size, c=colors, linewidths=0, alpha=0.7, rasterized=True)


def draw_histogram(axes: Axes, x: NDArray, labels: NDArray, colors: NDArray) -> None:
    """Draw a histogram of numbers x (n,) with area 1, whose bars are divided among the clusters: colors (C, 3)."""
    edges = np.histogram_bin_edges(x, int(np.clip(2 * len(x) ** (1 / 3), 10, 100)))
    parts = [x[labels == c] for c in range(len(colors))]
    axes.hist(parts, edges.tolist(), density=True, stacked=True, histtype="stepfilled", color=list(colors), alpha=0.4)


def draw_curves(axes: Axes, density: MixtureDensity, colors: NDArray) -> None:
    """Draw a density on a line in black, and the part of each component in its color if there are not many."""
    x = np.linspace(*_widened(axes.get_xlim(), 0.1), 5 * _GRID)[:, np.newaxis]
    parts = np.exp(density.log_densities(x) + log_weights(density.weights))
    if 1 < len(colors) <= MANY:
        for part, color in zip(parts.T, colors, strict=True):
            axes.plot(x, part, color=color, linewidth=1.2)
    axes.plot(x, parts.sum(axis=1), color=BLACK, linewidth=1.4)


def _widened(limits: tuple[float, float], share: float) -> tuple[float, float]:
    """Return the limits of an interval that is longer by a share of its length at both ends."""
    low, high = limits
    return low - share * (high - low), high + share * (high - low)


def draw_contours(axes: Axes, density: MixtureDensity, points: NDArray) -> None:
    """Draw the contour lines of a density in the plane that contain 50, 90 and 99 % of the points (n, 2)."""
    x, y = (np.linspace(*_widened(limits, 0.5), 2 * _GRID) for limits in (axes.get_xlim(), axes.get_ylim()))
    rows = (np.column_stack([x, np.full(len(x), height)]) for height in y)
    heights = np.array([log_mixture_density(density, row) for row in rows])
    levels = np.unique(np.quantile(log_mixture_density(density, points), 1 - np.array(_INSIDE)))
    before = axes.dataLim.frozen()
    lines = axes.contour(x, y, heights, levels, colors=BLACK, linestyles="solid", linewidths=0.9, zorder=3)
    axes.dataLim.set(before)  # matplotlib has added the whole grid
    axes.update_datalim(np.vstack([path.vertices for path in lines.get_paths() if len(path)]))
    axes.autoscale_view()


def write_numbers(axes: Axes, centers: NDArray) -> None:
    """Write its index at each of the centers (C, 2), connected to it by a line, so that no two numbers overlap."""
    names = [str(c) for c in range(len(centers))]

    def places() -> NDArray:
        scale = points_to_pixels(axes, 1)
        given = axes.transData.transform(centers) / scale
        box: Any = tuple(np.divide(axes.bbox.extents, scale))
        return scale * _places_of_numbers(tuple(map(tuple, given)), tuple(map(len, names)), box)

    for c, (name, center) in enumerate(zip(names, centers, strict=True)):
        text = axes.annotate(
            name, tuple(center), xytext=(0, 0), textcoords=lambda _, c=c: shift(*places()[c]), ha="center",
            va="center_baseline", fontsize=TEXT, fontweight="bold", zorder=5, arrowprops={**LEADER, "color": GREY},
        )  # fmt: skip
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])


@lru_cache(maxsize=8)
def _places_of_numbers(
    centers: tuple[tuple[float, float], ...], lengths: tuple[int, ...], box: tuple[float, float, float, float]
) -> NDArray[np.float64]:
    """Return places (C, 2) of numbers near centers, all in points, such that the numbers do not overlap.

    lengths: number of digits of each    box: left, lower, right and upper limit of the places
    Each number has the nearest of a few places that is free and in the box. If no place is free, it has the first one.
    """
    angles = 2 * np.pi * (np.arange(_DIRECTIONS) / _DIRECTIONS + 0.125)
    offsets = np.concatenate([r * np.column_stack([np.cos(angles), np.sin(angles)]) for r in _DISTANCES])
    sizes = np.column_stack([TEXT * 0.75 * np.array(lengths) + 1, np.full(len(lengths), TEXT + 2.0)])
    found, marks = np.empty((len(centers), 2)), np.array(centers)
    for c, center in enumerate(centers):
        tried = np.add(center, offsets)
        is_inside = ((tried - sizes[c] / 2 >= box[:2]) & (tried + sizes[c] / 2 <= box[2:])).all(axis=1)
        apart = np.abs(tried[:, np.newaxis] - found[:c]) >= (sizes[c] + sizes[:c]) / 2
        beside = np.abs(tried[:, np.newaxis] - marks) >= sizes[c] / 2 + 2
        is_free = is_inside & apart.any(axis=2).all(axis=1)
        is_best = is_free & beside.any(axis=2).all(axis=1)
        found[c] = tried[(is_best if is_best.any() else is_free).argmax()]
    return found


def draw_centers(axes: Axes, centers: NDArray, colors: NDArray, share: float = 1.0, **options: Any) -> None:
    """Draw centers (C, 2) on top of the figure: as crosses with a white edge, or as dots if there are many.

    share: area of the markers relative to the usual area, for small panels
    options: further arguments of matplotlib's scatter
    """
    few = len(centers) <= MANY
    size = share * (45 if few else float(np.clip(900 / len(centers), 2, 14)))
    axes.scatter(
        centers[:, 0], centers[:, 1], s=size, c=colors, marker="X" if few else "o", edgecolors="white",
        linewidths=1.0 if few else 0.2, zorder=4, **options,
    )  # fmt: skip


def draw_boundaries(axes: Axes, centers: NDArray, unit: NDArray) -> None:
    """Draw faint boundaries of the regions nearest to each of the centers (C, 2), without a change of axis limits.

    unit (2,): lengths along the axes that count as equal in distances
    """
    centers = centers / unit
    middle, span = centers.mean(axis=0), max(float(np.ptp(centers, axis=0).max()), np.finfo(np.float64).tiny)
    far = middle + _FAR * span * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    diagram = Voronoi(np.vstack([centers, far]))
    ridges = [
        diagram.vertices[ends] * unit
        for ends, pair in zip(diagram.ridge_vertices, diagram.ridge_points, strict=True)
        if min(ends) >= 0 and max(pair) < len(centers)
    ]
    lines = LineCollection(ridges, colors=GREY, linewidths=0.4, alpha=0.6, zorder=2)
    axes.add_collection(lines, autolim=False)


def draw_ellipses(
    axes: Axes, centers: NDArray, covariances: NDArray, colors: NDArray, deviations: Any, **options: Any
) -> None:
    """Draw ellipses around centers (C, 2) for covariances (C, 2, 2).

    deviations: radii in standard deviations; None is 1 and 2, or 2 with thin lines for more than 30 components
    options: further arguments of matplotlib's LineCollection
    """
    many = len(centers) > MANY
    if deviations is None:
        deviations = (2,) if many else (1, 2)
    variances, vectors = np.linalg.eigh(covariances)
    angles = np.linspace(0, 2 * np.pi, _CORNERS)
    around = np.sqrt(np.maximum(variances, 0))[:, :, np.newaxis] * np.stack([np.cos(angles), np.sin(angles)])
    rims = (vectors @ around).transpose(0, 2, 1)
    outlines = np.concatenate([centers[:, np.newaxis] + r * rims for r in deviations])
    look: dict[str, Any] = {
        "colors": np.tile(colors, (len(deviations), 1)),
        "linewidths": 0.6 if many else 1.3,
        "zorder": 3,
    }
    axes.add_collection(LineCollection(list(outlines), **(look | options)))
