"""Generated clusters in the plane: unit Gaussians on a grid ("BIRCH") or at random positions."""

import math

import numpy as np
from sklearn.utils import Bunch

from cprime._utils.arguments import check_integer, check_positive
from cprime._utils.random import check_random_state

_SPACING = 4 * math.sqrt(2)


def birch(
    n_side: int = 5,
    n_per_cluster: int = 100,
    spacing: float = _SPACING,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> Bunch:
    """Generate unit Gaussians on a square grid in the plane, with equal numbers of points.

    Parameters
    ----------
    n_side : int, default=5
        Number of clusters along one side; there are ``n_side ** 2`` clusters.
    n_per_cluster : int, default=100
        Points drawn from each.
    spacing : float, default=4*sqrt(2)
        Distance between neighboring centers, in standard deviations of a cluster.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    data : Bunch
        ``data`` (n_side**2 * n_per_cluster, 2) float64, the points, cluster after cluster;
        ``target`` (n_samples,) int64, the cluster each was drawn from; ``centers`` (n_side**2, 2) float64.

    Raises
    ------
    ValueError
        If a count is not positive, or `spacing` is not a positive number.

    References
    ----------
    T. Zhang, R. Ramakrishnan, M. Livny: BIRCH: A new data clustering algorithm and its applications. Data
    Mining and Knowledge Discovery 1(2), 1997. The default settings are those of D. Forster, J. Lücke: Can clustering
    scale sublinearly with its clusters? AISTATS 2018, section 4.

    Examples
    --------
    >>> from cprime.datasets import birch
    >>> birch(n_side=45, random_state=0).data.shape
    (202500, 2)
    """
    check_integer(n_side, "n_side", 1)
    spacing = check_positive(spacing, "spacing")
    steps = spacing * np.arange(n_side)
    centers = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    return _unit_gaussians(centers, n_per_cluster, check_random_state(random_state))


def birch_random(
    n_clusters: int = 25,
    n_per_cluster: int = 100,
    side: float | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> Bunch:
    """Generate unit Gaussians in the plane around centers drawn uniformly from a square, so that many overlap.

    Parameters
    ----------
    n_clusters : int, default=25
        Number of clusters.
    n_per_cluster : int, default=100
        Points drawn from each.
    side : float or None, default=None
        Side of the square, in standard deviations of a cluster. None is ``4 * sqrt(2) * sqrt(n_clusters)``, which gives
        clusters the same density as in `birch`.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    data : Bunch
        ``data`` (n_clusters * n_per_cluster, 2) float64, the points, cluster after cluster;
        ``target`` (n_samples,) int64, the cluster each was drawn from; ``centers`` (n_clusters, 2) float64.

    Raises
    ------
    ValueError
        If a count is not positive, or `side` is not a positive number.

    References
    ----------
    J. Lücke, D. Forster: k-means as a variational EM approximation of Gaussian mixture models. Pattern
    Recognition Letters 125, 2019, section 5.

    Examples
    --------
    >>> from cprime.datasets import birch_random
    >>> birch_random(25, random_state=0).data.shape
    (2500, 2)
    """
    check_integer(n_clusters, "n_clusters", 1)
    side = _SPACING * math.sqrt(n_clusters) if side is None else check_positive(side, "side")
    rng = check_random_state(random_state)
    return _unit_gaussians(rng.uniform(0, side, size=(n_clusters, 2)), n_per_cluster, rng)


def _unit_gaussians(centers: np.ndarray, n_per_cluster: int, rng: np.random.RandomState) -> Bunch:
    """Return points drawn from unit Gaussians, `n_per_cluster` for each of the centers (C, D), in their order."""
    check_integer(n_per_cluster, "n_per_cluster", 1)
    target = np.repeat(np.arange(len(centers)), n_per_cluster)
    data = centers[target] + rng.standard_normal((len(target), centers.shape[1]))
    return Bunch(data=data, target=target, centers=centers)
