"""NumPy twin of the kernel of k-means in one dimension: dynamic programming over all pairs of places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import arguments as check
from cprime.kernels.arguments import Floats


def cut_line(values: Floats, weights: Floats, n_clusters: int, *, n_threads: int | None = None) -> NDArray[np.int64]:
    """E_k(e) = min_b E_{k−1}(b) + cost(b, e), traced back from E_C(n); O(C n²) time, O(n²) memory."""
    values, weights, n_clusters = check.line(values, weights, n_clusters)
    n = len(values)
    cost = np.full((n, n + 1), np.inf)
    for begin in range(n):
        x, w = values[begin:] - values[begin], weights[begin:]
        mean = np.cumsum(w * x) / np.cumsum(w)
        # A further value adds to the cost what it is away from the mean before times what it is from the mean after.
        cost[begin, begin + 1 :] = np.cumsum(w * (x - np.append(0, mean[:-1])) * (x - mean))
    least = np.append(0, np.full(n, np.inf))
    begins = []
    for _ in range(n_clusters):
        total = least[:n, np.newaxis] + cost
        begins.append(total.argmin(axis=0))
        least = total.min(axis=0)
    starts = [n]
    for begin in reversed(begins):
        starts.append(begin[starts[-1]])
    return np.array(starts[:0:-1], dtype=np.int64)
