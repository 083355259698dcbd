"""Detection of the first join that removes clearly less entropy than the joins before it.

Components of one cluster overlap throughout, so the entropy removed changes little from join to join: about as a power
of the number n of clusters. Distinct clusters overlap only in their tails, so the first join across clusters removes
less by a factor. For each join, compute how far the log of the removed entropy lies below the minimum so far, per unit
of log n. Compare this slope with the mean of the absolute slopes of the m joins before. If the slopes were
exponentially distributed, one would exceed r times that mean with probability (1 + r/m)^−m, and any one in a tree of C
− 1 joins with at most C times that probability.
"""

import numpy as np
from numpy.typing import NDArray

LEAST_SLOPES = 5


def drop(removed: NDArray[np.float64], entropy: float, alpha: float) -> int | None:
    """Return the number of clusters before the first join that removes too little entropy at significance `alpha`.

    Return None if there is no such join.
    removed (C − 1,): entropy removed by each join of C components; values below the rounding error of `entropy` are
    raised to it
    """
    C = len(removed) + 1
    if not entropy > 0:
        return None
    logs = np.log(np.maximum(removed, np.finfo(np.float64).eps * entropy))
    sizes = np.log(np.arange(C, 1, -1))  # number of clusters before each join
    steps = -np.diff(sizes)
    slopes = np.abs(np.diff(logs)) / steps
    falls = (np.minimum.accumulate(logs)[:-1] - logs[1:]) / steps
    before = np.arange(1, len(slopes))  # number of joins before each tested join; the first join is not tested
    usual = np.cumsum(slopes)[:-1] / before
    limits = usual * before * ((C / alpha) ** (1 / before) - 1)
    found = np.flatnonzero((falls[1:] > limits) & (before >= LEAST_SLOPES))
    return None if not len(found) else int(C - 2 - found[0])
