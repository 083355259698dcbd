"""Where the curve of J over C has an elbow, if anywhere.

Data without clusters have J ∝ C^(−2/d) where C is large (Zador 1982): a straight line of log J over log C, and for few
C a curve that is bent downwards, as the first cuts of a Gaussian or a cube gain least. Clusters bend it upwards, and
sharply, at their number: up to it every center removes distances between clusters, beyond it only within. (Sugar &
James 2003 see the same as a jump of J^(−D/2), which needs the number of dimensions that the clusters fill.)

So each C is given its bend, the change of the slope d log J / d log C there. The largest is an elbow if two things
hold. It is an outlier among the bends: the test of Grubbs (1950), but with the lowest bend left out of mean and spread,
since the steep piece that ends in an elbow begins with a bend downwards, which would mask it. And the slope is at least
halved: a bend that stands out among still smaller ones is none. Poor local optima make all bends noisy: they hide an
elbow rather than make one.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

LEAST_BENDS = 5
_SIMULATED = 20_000  # samples of Gaussian numbers that the critical value is taken from


def elbow(n_components: NDArray, inertia: NDArray[np.float64], alpha: float) -> int | None:
    """The C of the elbow, or None if the curve has none at significance `alpha`; n_components (n,) rises."""
    seen = inertia > 0
    slopes = np.diff(np.log(inertia[seen])) / np.diff(np.log(n_components[seen]))
    bends = np.diff(slopes)
    if len(bends) < LEAST_BENDS:
        return None
    i = int(bends.argmax())
    halved = bends[i] > 0 and slopes[i] <= 2 * slopes[i + 1]
    if not halved or excess(bends) <= critical_value(len(bends), alpha):
        return None
    return int(n_components[seen][i + 1])


def excess(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far the largest of each row (…, n) lies above the mean of the others but the least, in their deviations."""
    ordered = np.sort(values, axis=-1)
    others = ordered[..., 1:-1]
    spread = np.maximum(others.std(axis=-1, ddof=1), np.finfo(np.float64).tiny)
    return (ordered[..., -1] - others.mean(axis=-1)) / spread


@lru_cache
def critical_value(n: int, alpha: float) -> float:
    """What the excess of n Gaussian numbers is above with probability `alpha`, by simulation."""
    return float(np.quantile(excess(np.random.RandomState(0).standard_normal((_SIMULATED, n))), 1 - alpha))
