"""Display of points, centers, covariances and densities in a plane or on a line."""

from typing import Any, Self

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from cprime import selection
from cprime._utils.style import frame
from cprime.estimators import KMeans
from cprime.estimators.fitted import centers_of
from cprime.estimators.validation import check_flag
from cprime.plots.fitted import accepting, impute_missing, prepared
from cprime.plots.plane import (
    draw_boundaries,
    draw_centers,
    draw_contours,
    draw_curves,
    draw_ellipses,
    draw_histogram,
    draw_points,
    project,
    proportion,
    scale_axes,
    write_numbers,
)
from cprime.plots.style import COLUMN, cluster_colors, panels
from cprime.theory.mixtures import MixtureDensity

_NUMBERED = 12
_REACH = 2.4477  # Mahalanobis distance within which 95 % of a normal distribution in a plane are


class ClustersDisplay:
    """Points in the colors of their clusters, the centers, and ellipses of the covariances or contours of the density.

    In a plane, each point is a dot and each center a cross. Ellipses are drawn at Mahalanobis distances 1 and 2 from a
    center; in the plane these contain 39 % and 86 % of a Gaussian component. Contours are lines of equal density of the
    whole mixture; they contain 50, 90 and 99 % of the points. Both axes have the units of the data, and the same scale
    if the ranges of the points differ by at most a factor of 3. Points of more than two dimensions are projected on a
    plane by a matrix P (2, D), and a covariance Σ becomes P Σ Pᵀ.

    On a line (data of one feature, or one chosen feature), a histogram of area 1 has a color for each cluster. For
    mixtures, a black curve is the density, and a curve in the color of a component its part of the density. Centers are
    crosses on the axis.

    Up to six clusters have a color each; if there are more, neighboring clusters differ in color. Numbers are the
    indices of clusters; lines connect them to their centers.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2) or (n_samples, 1)
    labels : ndarray of shape (n_samples,)
        Cluster of each point.
    centers : ndarray of shape (n_clusters, 2) or (n_clusters, 1)
    covariances : ndarray of shape (n_clusters, 2, 2) or None, default=None
        Of the ellipses, in data unit².
    names : tuple of two str, default=("", "")
        Names of the axes.
    divided : bool, default=False
        Whether to draw the cluster boundaries, at which two centers are equally near; for k-means in two dimensions.
    unit : array-like of shape (2,), default=(1.0, 1.0)
        Lengths along the axes that count as equal in distances, for the boundaries: the scales of features that the fit
        has scaled.
    density : cprime.theory.Gaussians or a similar object, or None, default=None
        Mixture with as many features as `points`, whose density is drawn as contours or curves.
    center_covariances : ndarray of shape (n_clusters, 2, 2) or None, default=None
        Covariances of the estimates of the centers, in data unit². Black ellipses contain 95 % of such normal
        distributions.

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
        density: MixtureDensity | None = None,
        center_covariances: NDArray | None = None,
    ) -> None:
        self.points = points
        self.labels = labels
        self.centers = centers
        self.covariances = covariances
        self.names = names
        self.divided = divided
        self.unit: NDArray[np.float64] = np.asarray(unit, dtype=np.float64)
        self.density = density
        self.center_covariances = center_covariances

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        projection: Any = "auto",
        ellipses: bool | None = None,
        density: bool | None = None,
        standard_errors: bool = False,
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
        projection : {"auto", "principal"}, one or two ints, or one or two str in a list, default="auto"
            "principal" is the plane in which X varies most; the axis labels contain the fractions of the variance;
            ints are features, str are names of features. One feature is a line.
            "auto" uses the features of data of one or two dimensions, else "principal".
        ellipses : bool or None, default=None
            Whether to show covariances in a plane; None shows them for mixtures without contours. Those of k-means are
            σ² I with σ² = J/(DN).
        density : bool or None, default=None
            Whether to show the density of the mixture. None shows it for mixtures on a line only. k-means is a mixture
            with equal weights and the variance σ².
        standard_errors : bool, default=False
            Whether to show in a plane, around each center of a fit to X, the ellipse that contains the center that fits
            to more and more points approach, with a probability of 95 %: see `selection.standard_errors`.
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
            If X does not have the estimator's number of features, or if density=True and the estimator has no density,
            or standard_errors=True without a plane, or for a fit that has no theory of standard errors.
        """
        centers = centers_of(estimator)
        rows, (fitted, X) = X, prepared(estimator, X)
        shown = impute_missing(X, fitted)
        plane = project(projection, shown, estimator, least=1)
        is_mixture, is_line = hasattr(estimator, "covariance_type"), len(plane.directions) == 1
        shape = plane.density(fitted) if density or (density is None and is_mixture and is_line) else None
        if density and shape is None:
            raise ValueError(f"density=True needs Gaussian or t components, which {estimator!r} has not.")
        wanted = not is_line and (is_mixture and shape is None if ellipses is None else ellipses)
        covariances = plane.covariances(fitted) if wanted else None
        is_raw = hasattr(estimator, "categories_")  # X has zeros and ones, but the estimator takes categories.
        labels = np.asarray(accepting(estimator, rows).predict(rows) if is_raw else fitted.predict(X))
        divided = isinstance(estimator, KMeans) and X.shape[1] == 2 and len(centers) > 1 and not is_line
        points, places, errors = plane.points(shown), plane.points(centers), None
        if check_flag(standard_errors, "standard_errors"):
            if is_line:
                raise ValueError("standard_errors=True needs a projection on two features, got one.")
            P = plane.directions
            errors = P @ selection.standard_errors(fitted, X).center_covariances @ P.T
        return cls(points, labels, places, covariances, plane.names, divided, plane.unit, shape, errors).plot(ax, **kw)

    def plot(self, ax: Any = None, *, deviations: Any = None, numbers: bool | None = None) -> Self:
        """Draw the points, centers and ellipses, or the histogram, centers and densities.

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
        is_line = self.points.shape[1] == 1
        height = 0.6 if is_line else float(np.clip(proportion(self.points) or 0.8, 0.6, 0.9))
        self.figure_, (self.ax_,) = panels(ax, 1, 1, COLUMN * height + 0.25)
        centers, colors = self.centers, cluster_colors(self.centers)
        if is_line:
            draw_histogram(self.ax_, self.points[:, 0], self.labels, colors)
            if self.density is not None:
                draw_curves(self.ax_, self.density, colors * 0.8)
            centers = np.column_stack([centers, np.zeros(len(centers))])
        else:
            draw_points(self.ax_, self.points, colors[self.labels])
        if self.divided:
            draw_boundaries(self.ax_, centers, self.unit)
        if self.covariances is not None:
            draw_ellipses(self.ax_, centers, self.covariances, colors * 0.8, deviations)
        if self.center_covariances is not None:
            draw_ellipses(self.ax_, centers, self.center_covariances, np.zeros_like(colors), (_REACH,), zorder=5)
        draw_centers(self.ax_, centers, colors * 0.6, clip_on=not is_line)
        if is_line:
            self.ax_.set_ylim(bottom=0)
        else:
            scale_axes(self.ax_, self.points, "datalim")
            if self.density is not None:
                draw_contours(self.ax_, self.density, self.points)
        if numbers or (numbers is None and len(centers) <= _NUMBERED):
            write_numbers(self.ax_, centers)
        frame(self.ax_, "", *self.names)
        self.ax_.xaxis.set_major_locator(MaxNLocator(5))
        return self
