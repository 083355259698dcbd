"""Drawing of data in a plane: choice of two directions, and drawing of points, centers and covariances."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import NDArray
from scipy.spatial import Voronoi

from cprime.estimators.columns import resolve_columns
from cprime.estimators.fitted import centers_of, feature_names, model_of
from cprime.estimators.opening import preparation_of
from cprime.model import FAMILIES
from cprime.plots.style import GREY, MANY
from cprime.sources import array_of

_SAME_SCALE = 3  # The axes have the same scale if the ratio of their ranges is at most this number.
# Distance of four auxiliary points that bound the outer Voronoi cells, divided by the range of the centers.
_FAR = 1000.0
_CORNERS = 73  # Number of vertices of the polygon that is drawn as an ellipse.


@dataclass(frozen=True)
class Projection:
    """Projection of rows, in the units of an estimator's parameters, on a plane.

    origin (D,) [units of the rows]    names: axis label of each direction
    directions (2, D): orthogonal; their lengths convert the units of the rows to those of the plane
    """

    origin: NDArray[np.float64]
    directions: NDArray[np.float64]
    names: tuple[str, str]

    @property
    def unit(self) -> NDArray[np.float64]:
        """Return the length in each direction of the plane, (2,), that is one unit of the rows."""
        return np.linalg.norm(self.directions, axis=1)

    def points(self, X: NDArray) -> NDArray[np.float64]:
        """Return the rows X (n, D) projected on the plane: (n, 2)."""
        return (X - self.origin) @ self.directions.T

    def covariances(self, estimator: Any) -> NDArray[np.float64] | None:
        """Return the covariances of the components in the plane (C, 2, 2); None if there are none."""
        C = len(centers_of(estimator))
        P = self.directions
        if hasattr(estimator, "covariance_type_"):
            return model_of(estimator).covariances_along(P)
        if not hasattr(estimator, "covariances_"):
            if not hasattr(estimator, "variance_"):
                return None
            return np.broadcast_to(estimator.variance_ * (P @ P.T), (C, 2, 2))
        means, given = centers_of(estimator), {"covariances_": estimator.covariances_}
        return FAMILIES[estimator.covariance_type].from_attributes(given, means, None).covariances_along(P)


def project(projection: Any, X: NDArray, estimator: Any) -> Projection:
    """Return the `Projection` that the argument `projection` specifies.

    projection: indices or names of two features; "principal", the two directions in which X varies most; or "auto", the
    two features of two-dimensional data, else "principal"
    X (n, D): rows after the preparation by the estimator. A plane of two features has the units before the scaling, one
    of principal directions has those after it.
    """
    D = X.shape[1]
    if D < 2:
        raise ValueError(f"X must have at least 2 features to be shown in a plane, got {D}.")
    if isinstance(projection, str):
        if projection not in ("auto", "principal"):
            raise ValueError(
                f"projection must be one of ['auto', 'principal'] or the indices of two features, got {projection!r}."
            )
        if projection == "principal" or D > 2:
            return _principal(X)
        projection = (0, 1)
    if np.iterable(projection) and any(isinstance(column, str) for column in projection):
        projection = resolve_columns(projection, D, getattr(estimator, "feature_names_in_", None))
    pair = array_of(projection, "projection")
    if pair.shape != (2,) or pair.dtype.kind not in "iu" or pair[0] == pair[1] or not ((pair >= 0) & (pair < D)).all():
        raise ValueError(f"projection must have the indices of two of {D} features, got {projection!r}.")
    names = feature_names(estimator)
    preparation = preparation_of(estimator)
    scale = preparation.restored_spread(np.ones(D))
    origin = -preparation.restored(np.zeros(D)) / scale
    return Projection(origin, scale * np.eye(D)[pair], (names[pair[0]], names[pair[1]]))


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


def draw_points(axes: Axes, points: NDArray, colors: Any, size: float | None = None) -> None:
    """Draw points (n, 2), smaller if there are many. In files of vector graphics they are pixels (rasterized)."""
    if size is None:
        size = float(np.clip(900 / max(len(points), 1), 0.6, 9))
    axes.scatter(points[:, 0], points[:, 1], s=size, c=colors, linewidths=0, alpha=0.6, rasterized=True)


def draw_centers(axes: Axes, centers: NDArray, colors: NDArray, share: float = 1.0) -> None:
    """Draw centers (C, 2) on top of the figure: as crosses with a white edge, or as dots if there are many.

    share: area of the markers relative to the usual area, for small panels
    """
    few = len(centers) <= MANY
    size = share * (45 if few else float(np.clip(900 / len(centers), 2, 14)))
    axes.scatter(
        centers[:, 0], centers[:, 1], s=size, c=colors, marker="X" if few else "o", edgecolors="white",
        linewidths=1.0 if few else 0.2, zorder=4,
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
