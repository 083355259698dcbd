"""The compiled kernel of k-means in one dimension, with the checks that make it safe to call.

Its slow twin of the same name and signature is in `reference_line.py`.
"""

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import Floats


def cut_line(values: Floats, weights: Floats, n_clusters: int, *, n_threads: int | None = None) -> NDArray[np.int64]:
    """Where the C runs of sorted values begin whose Σ_r Σ_{n∈r} w_n (x_n − mean_r)² is least; the first at 0.

    values (n,) [data unit], rising    weights (n,) > 0    1 ≤ n_clusters ≤ n    ->  starts (C,) int64, rising
    Time O(n log n) for each of some ten prices, 110 bytes a value, whatever C is.
    """
    values, weights, n_clusters = check.line(values, weights, n_clusters)
    starts = np.empty(n_clusters, dtype=np.int64)
    _core.cut_line(values, weights, starts, resolve_threads(n_threads))
    return starts
