"""Generated clusters of different sizes and spreads, in any number of dimensions, for benchmarks."""

import math

import numpy as np
from sklearn.utils import Bunch

from cprime._utils.arguments import check_integer, check_positive
from cprime._utils.random import check_random_state

_SPACING = 4 * math.sqrt(2)
_SIZES, _SPREADS = 0.7, 0.3  # Standard deviations of the logarithms of cluster sizes and of cluster spreads.
_BLOCK = 1 << 20  # Number of random numbers that are drawn at a time.


def clusters(
    n_samples: int = 1_000_000,
    n_clusters: int = 10_000,
    n_features: int = 16,
    side: float | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> Bunch:
    """Generate spherical Gaussians of different sizes and spreads around centers drawn uniformly from a cube.

    The number of points in a cluster (at least one) and its spread (standard deviation) are log-normal: they vary by
    the factors exp(±0.7) and exp(±0.3) about their medians. Points are in random order. Memory beyond the returned
    arrays is a few megabytes and a few numbers per cluster.

    Parameters
    ----------
    n_samples : int, default=1_000_000
        Number of points N, at least `n_clusters`.
    n_clusters : int, default=10_000
        Number of clusters C.
    n_features : int, default=16
        Number of dimensions D.
    side : float or None, default=None
        Side of the cube, in median standard deviations of a cluster. None is ``4 * sqrt(2) * n_clusters ** (1 /
        n_features)``, which gives clusters the same density as in `birch`, in each dimension.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    data : Bunch
        ``data`` (n_samples, n_features) float32, the points; ``target`` (n_samples,) int32, the cluster of each point;
        ``centers`` (n_clusters, n_features) float32; ``spreads`` (n_clusters,) float32, the standard deviations.

    Raises
    ------
    ValueError
        If a count is not positive, there are fewer points than clusters, or `side` is not a positive number.

    Examples
    --------
    >>> from cprime.datasets import clusters
    >>> clusters(1000, 50, 8, random_state=0).data.shape
    (1000, 8)
    """
    n_samples, n_features = check_integer(n_samples, "n_samples", 1), check_integer(n_features, "n_features", 1)
    n_clusters = check_integer(n_clusters, "n_clusters", 1)
    if n_samples < n_clusters:
        raise ValueError(f"n_samples must be at least n_clusters={n_clusters}, got {n_samples!r}")
    side = _SPACING * n_clusters ** (1 / n_features) if side is None else check_positive(side, "side")
    rng = np.random.Generator(np.random.PCG64(check_random_state(random_state).randint(2**32, dtype=np.uint32)))
    centers = rng.random((n_clusters, n_features), dtype=np.float32)
    centers *= np.float32(side)
    spreads = np.exp(_SPREADS * rng.standard_normal(n_clusters, dtype=np.float32))
    sizes = np.exp(_SIZES * rng.standard_normal(n_clusters))
    counts = 1 + rng.multinomial(n_samples - n_clusters, sizes / sizes.sum())
    target = np.repeat(np.arange(n_clusters, dtype=np.int32), counts)
    rng.shuffle(target)
    data = np.empty((n_samples, n_features), dtype=np.float32)
    step = max(1, _BLOCK // n_features)
    for start in range(0, n_samples, step):
        block, owners = data[start : start + step], target[start : start + step]
        rng.standard_normal(out=block, dtype=np.float32)
        block *= spreads[owners, np.newaxis]
        block += centers[owners]
    return Bunch(data=data, target=target, centers=centers, spreads=spreads)
