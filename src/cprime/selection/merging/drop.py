"""Where joins no longer remove entropy as those before did, if anywhere.

Components of one cluster overlap throughout, and from join to join what is removed changes little: about as a power of
the number n of clusters. Clusters overlap in their tails alone, and the first join across removes less by a factor. So
each join is asked how far the log of what it removes lies below the least so far, per unit of log n, beside the mean of
the absolute slopes of the m joins before. Were slopes exponential, one would exceed r times that mean with probability
(1 + r/m)^−m, and any of a tree of C − 1 joins with at most C times that.
"""

import numpy as np
from numpy.typing import NDArray

LEAST_SLOPES = 5


def drop(removed: NDArray[np.float64], entropy: float, alpha: float) -> int | None:
    """How many clusters there are before the first join that removes too little at significance `alpha`; None: never.

    removed (C − 1,): by each join, of the entropy of C components; what is below its rounding is as nothing
    """
    C = len(removed) + 1
    if not entropy > 0:
        return None
    logs = np.log(np.maximum(removed, np.finfo(np.float64).eps * entropy))
    sizes = np.log(np.arange(C, 1, -1))  # of clusters before each join
    steps = -np.diff(sizes)
    slopes = np.abs(np.diff(logs)) / steps
    falls = (np.minimum.accumulate(logs)[:-1] - logs[1:]) / steps
    before = np.arange(1, len(slopes))  # slopes before each fall but the first
    usual = np.cumsum(slopes)[:-1] / before
    limits = usual * before * ((C / alpha) ** (1 / before) - 1)
    found = np.flatnonzero((falls[1:] > limits) & (before >= LEAST_SLOPES))
    return None if not len(found) else int(C - 2 - found[0])
