"""Deterministic annealing (Rose): soft k-means at increasing stiffness, from one center to a k-means solution."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from cprime._utils.messages import require
from cprime._utils.number_types import check_largest
from cprime._utils.random import check_random_state
from cprime._utils.style import COLORS, frame, name_line
from cprime.estimators import KMeans, SoftKMeans
from cprime.estimators.validation import check_integer, check_real
from cprime.sources.checked import checked
from cprime.sources.foreign import array_of
from cprime.theory.mixtures import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_DISTINCT = 0.05  # least distance of two distinct centers, in units of σ = (2β)^(−1/2)
_FIRST, _RATIO, _LAST = 0.67, 1.1, 10.0  # a path begins at 0.67 β_c, grows by a factor of 1.1, and ends at 10 DN/2J


@dataclass(frozen=True, eq=False)
class SoftKMeansPath:
    """Soft k-means at increasing stiffness; returned by `soft_kmeans_path`.

    Attributes
    ----------
    stiffness : ndarray of shape (n_steps,)
        β of each fit, increasing, in 1/data unit².
    centers : ndarray of shape (n_steps, n_clusters, n_features)
    lower_bound : ndarray of shape (n_steps,)
        F per point [nats]. Values of different β are those of different densities.
    inertia : ndarray of shape (n_steps,)
        J, the sum of squared distances to the nearest center.
    n_distinct : ndarray of int, shape (n_steps,)
        Number of groups of centers. Centers closer than 0.05 σ are in one group, with σ² = 1/2β.
    critical_stiffness : float
        β_c = 1/2λ, where λ is the largest variance of the data along any direction. Below it, all centers are equal.
    mean, direction : ndarray of shape (n_features,)
        Mean of the data, and the unit vector of their largest variance.
    k_means : KMeans
        Textbook k-means, started from the last centers.

    Examples
    --------
    >>> from cprime.datasets import birch
    >>> from cprime.theory import soft_kmeans_path
    >>> path = soft_kmeans_path(birch(2, random_state=0).data, 4, random_state=0)
    >>> int(path.n_distinct[0]), int(path.n_distinct[-1]), bool(path.stiffness[0] < path.critical_stiffness)
    (1, 4, True)
    """

    stiffness: Floats
    centers: Floats
    lower_bound: Floats
    inertia: Floats
    n_distinct: "NDArray[np.int64]"
    critical_stiffness: float
    mean: Floats
    direction: Floats
    k_means: KMeans

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the positions of the centers along the first principal direction over the stiffness.

        A line splits where centers separate (bifurcation). Centers that differ only in other directions have one line.

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
        if ax is None:
            ax = pyplot.subplots(figsize=(5.2, 3.4), layout="constrained")[1]
        assert ax is not None
        positions = (self.centers - self.mean) @ self.direction
        frame(ax, f"{self.n_distinct[-1]:,} distinct centers", "stiffness β", "first principal direction")
        ax.set_xscale("log")
        for c, line in enumerate(positions[:, positions[-1].argsort()].T):
            ax.plot(self.stiffness, line, color=COLORS[c % len(COLORS)], linewidth=1.0)
        name_line(ax, self.critical_stiffness, "critical β")
        return ax


def soft_kmeans_path(
    X: Any,
    n_clusters: int,
    *,
    stiffness: Any = None,
    perturbation: float = 0.01,
    max_iter: int = 1000,
    tol: float = 1e-7,
    random_state: Any = None,
) -> SoftKMeansPath:
    """Fit soft k-means at increasing stiffness, each time from the last centers plus noise: deterministic annealing.

    At a low stiffness β all centers are at the mean of the data. At β_c = 1/2λ, where λ is the largest variance along
    any direction, they separate along this direction. Every group of equal centers separates again at a higher β. At
    high β the fit is a k-means solution. It depends on no initial centers, only on the noise, which decides how many
    centers each group has after a separation. All components have the same weight, so this number remains wrong if a
    group has more centers than clusters. Therefore the k-means solution for many clusters is a local optimum.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    n_clusters : int
    stiffness : array-like of shape (n_steps,) or None, default=None
        Increasing β, in 1/data unit². None starts at 0.67 β_c and multiplies β by 1.1 as long as it is at most ten
        times DN/2J, the stiffness of a variance σ² = J/DN.
    perturbation : float, default=0.01
        Root mean square length of the normal vectors that are added to the centers before a fit, in units of
        σ = (2β)^(−1/2).
    max_iter : int, default=1000
    tol : float, default=1e-7
        As in `SoftKMeans`, for each fit. A greater value shows separations at a higher β than the exact one.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random perturbations.

    Returns
    -------
    path : SoftKMeansPath

    Raises
    ------
    ValueError
        If an argument is out of its range, all rows are equal, or there are fewer rows than clusters.

    References
    ----------
    K. Rose: Deterministic annealing for clustering, compression, classification, regression, and related optimization
    problems. Proceedings of the IEEE 86, 1998.

    Examples
    --------
    For two points at ±1, β_c is 1/2, and the centers ±m are at m = tanh(2βm).

    >>> from cprime.theory import soft_kmeans_path
    >>> path = soft_kmeans_path([[-1.0], [1.0]], 2, stiffness=[0.4, 0.6, 1.0], random_state=0)
    >>> abs(path.centers[:, 0, 0]).round(2).tolist(), path.n_distinct.tolist()
    ([0.0, 0.66, 0.96], [1, 2, 2])
    """
    check_integer(n_clusters, "n_clusters", 1)
    check_real(perturbation, "perturbation", 0.0)
    rng = check_random_state(random_state)
    X = checked(X, "X", dtype=np.float64)
    check_largest(float(np.abs(X).max()), X.dtype, X.shape[1], "X")
    if n_clusters > len(X):
        raise ValueError(f"n_clusters must be at most n_samples={len(X)}, got {n_clusters}.")
    mean = X.mean(axis=0)
    _, scales, axes = np.linalg.svd(X - mean, full_matrices=False)
    if not scales[0] > 0:
        raise ValueError(f"X has {len(X)} equal rows: their variance is 0.")
    critical = len(X) / (2 * float(scales[0]) ** 2)
    given = None if stiffness is None else _checked_stiffness(stiffness)
    centers = np.tile(mean, (n_clusters, 1))
    fits: list[SoftKMeans] = []
    for beta in _stiffnesses(critical, fits, X.size) if given is None else given:
        length = perturbation / np.sqrt(2 * beta * X.shape[1])
        start = centers + length * rng.standard_normal(centers.shape)
        fit = SoftKMeans(n_clusters, stiffness=float(beta), init=start, search="full", tol=tol, max_iter=max_iter).fit(
            X
        )
        centers = fit.cluster_centers_
        fits.append(fit)
    sigma = [np.sqrt(fit.variance_) for fit in fits]
    near = [cdist(f.cluster_centers_, f.cluster_centers_) < _DISTINCT * s for f, s in zip(fits, sigma, strict=True)]
    return SoftKMeansPath(
        stiffness=np.array([fit.stiffness_ for fit in fits]),
        centers=np.array([fit.cluster_centers_ for fit in fits]),
        lower_bound=np.array([fit.lower_bound_ for fit in fits]),
        inertia=np.array([fit.inertia_ for fit in fits]),
        n_distinct=np.array([connected_components(each)[0] for each in near]),
        critical_stiffness=critical,
        mean=mean,
        direction=axes[0],
        k_means=KMeans(n_clusters, init=centers, jumps=False, tol=0).fit(X),
    )


def _checked_stiffness(stiffness: Any) -> Floats:
    """Return the argument as an array of float64; raise ValueError unless it has increasing positive numbers."""
    found = array_of(stiffness, "stiffness", np.float64)
    if found.ndim != 1 or not found.size or not np.isfinite(found).all() or not (np.diff(found, prepend=0) > 0).all():
        raise ValueError(f"stiffness must be increasing positive numbers, got {stiffness!r}.")
    return found


def _stiffnesses(critical: float, fits: list[SoftKMeans], n_numbers: int) -> Iterator[float]:
    """Yield the values β of a path from 0.67 β_c to 10 DN/2J, where J is that of the last fit, or until J is about 0.

    critical: β_c    fits: the fits to the β that were yielded before    n_numbers: DN
    """
    beta = _FIRST * critical
    yield beta
    while fits[-1].inertia_ > 1e-12 * fits[0].inertia_:
        beta *= _RATIO
        if beta > _LAST * n_numbers / (2 * fits[-1].inertia_):
            return
        yield beta
