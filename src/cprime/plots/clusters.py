"""Display of points, centers and covariances in a plane."""

from typing import Any, Self

import numpy as np
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from cprime._utils.style import frame
from cprime.estimators import KMeans
from cprime.estimators.fitted import centers_of
from cprime.plots.fitted import accepting, impute_missing, prepared
from cprime.plots.plane import (
    draw_boundaries,
    draw_centers,
    draw_ellipses,
    draw_points,
    project,
    proportion,
    scale_axes,
)
from cprime.plots.style import COLUMN, TEXT, cluster_colors, panels

_NUMBERED = 12


class ClustersDisplay:
    """Points in the colors of their clusters, the centers, and ellipses of the covariances.

    Ellipses are drawn at Mahalanobis distances 1 and 2 from a center; in the plane these contain 39 % and 86 % of a
    component. Up to six clusters have a color each; if there are more, neighboring clusters differ in color. Points of
    more than two dimensions are projected on a plane by a matrix P (2, D), and a covariance Σ becomes P Σ Pᵀ. Both axes
    have the same scale if the ranges of the points differ by at most a factor of 3.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
    labels : ndarray of shape (n_samples,)
        Cluster of each point.
    centers : ndarray of shape (n_clusters, 2)
    covariances : ndarray of shape (n_clusters, 2, 2) or None, default=None
        In data unit².
    names : tuple of two str, default=("", "")
        Names of the axes.
    divided : bool, default=False
        Whether to draw the cluster boundaries, at which two centers are equally near; for k-means in two dimensions.
    unit : array-like of shape (2,), default=(1.0, 1.0)
        Lengths along the axes that count as equal in distances, for the boundaries: the scales of features that the fit
        has scaled.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    StepsDisplay : The iterations of the fit.

    References
    ----------
    Bishop, *Pattern Recognition and Machine Learning*, figure 9.8, for the form.

    Examples
    --------
    >>> from cprime import GaussianMixture
    >>> from cprime.datasets import old_faithful
    >>> from cprime.plots import ClustersDisplay
    >>> X = old_faithful().data
    >>> display = ClustersDisplay.from_estimator(GaussianMixture(2, random_state=0).fit(X), X)
    >>> display.covariances.shape
    (2, 2, 2)
    """

    def __init__(
        self,
        points: NDArray,
        labels: NDArray,
        centers: NDArray,
        covariances: NDArray | None = None,
        names: tuple[str, str] = ("", ""),
        divided: bool = False,
        unit: ArrayLike = (1.0, 1.0),
    ) -> None:
        self.points = points
        self.labels = labels
        self.centers = centers
        self.covariances = covariances
        self.names = names
        self.divided = divided
        self.unit: NDArray[np.float64] = np.asarray(unit, dtype=np.float64)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        projection: Any = "auto",
        ellipses: bool | None = None,
        ax: Any = None,
        **kw: Any,
    ) -> Self:
        """Show a fitted estimator on data.

        Parameters
        ----------
        estimator : fitted estimator
            It must have `cluster_centers_` or `means_`, and predict. Covariances, if any, must have scikit-learn's
            shapes.
        X : array-like of shape (n_samples, n_features)
            Points to show; all are drawn. Missing values are drawn at their conditional means (`impute`).
        projection : {"auto", "principal"}, two ints or two str, default="auto"
            "principal" is the plane in which X varies most; the axis labels contain the fractions of the variance;
            two ints are features, two str are names of features.
            "auto" uses the two features of two-dimensional data, else "principal".
        ellipses : bool or None, default=None
            Whether to show covariances; None shows them for mixtures only. Those of k-means are σ² I with σ² = J/(DN).
        ax : matplotlib Axes or None, default=None
            Axes to draw on; None makes a figure.
        **kw : dict
            Arguments of `plot`.

        Returns
        -------
        display : ClustersDisplay

        Raises
        ------
        ValueError
            If X does not have the estimator's number of features, or has only one.
        """
        centers = centers_of(estimator)
        rows, (fitted, X) = X, prepared(estimator, X)
        shown = impute_missing(X, fitted)
        plane = project(projection, shown, estimator)
        wanted = hasattr(estimator, "covariance_type") if ellipses is None else ellipses
        covariances = plane.covariances(fitted) if wanted else None
        is_raw = hasattr(estimator, "categories_")  # X has zeros and ones, but the estimator takes categories.
        labels = np.asarray(accepting(estimator, rows).predict(rows) if is_raw else fitted.predict(X))
        divided = isinstance(estimator, KMeans) and X.shape[1] == 2 and len(centers) > 1
        points, places = plane.points(shown), plane.points(centers)
        return cls(points, labels, places, covariances, plane.names, divided, plane.unit).plot(ax, **kw)

    def plot(self, ax: Any = None, *, deviations: Any = None, numbers: bool | None = None) -> Self:
        """Draw the points, centers and ellipses.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
        deviations : sequence of float or None, default=None
            Radii of the ellipses in standard deviations; None is 1 and 2, or only 2 for more than 30 components.
        numbers : bool or None, default=None
            Whether to write the cluster indices at the centers; None writes them for up to 12 clusters.

        Returns
        -------
        display : ClustersDisplay
        """
        self.figure_, (self.ax_,) = panels(
            ax, 1, 1, COLUMN * float(np.clip(proportion(self.points) or 0.8, 0.6, 0.9)) + 0.25
        )
        colors = cluster_colors(self.centers)
        draw_points(self.ax_, self.points, colors[self.labels])
        if self.divided:
            draw_boundaries(self.ax_, self.centers, self.unit)
        if self.covariances is not None:
            draw_ellipses(self.ax_, self.centers, self.covariances, colors * 0.8, deviations)
        draw_centers(self.ax_, self.centers, colors * 0.6)
        if numbers or (numbers is None and len(self.centers) <= _NUMBERED):
            for c, place in enumerate(self.centers):
                text = self.ax_.annotate(
                    str(c), place, xytext=(5, 4), textcoords="offset points", fontsize=TEXT, fontweight="bold", zorder=5
                )
                text.set_path_effects([withStroke(linewidth=2, foreground="white")])
        scale_axes(self.ax_, self.points, "datalim")
        frame(self.ax_, "", *self.names)
        return self
