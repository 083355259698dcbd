"""k-means in an increasing number of dimensions, which initializes the fit in all dimensions.

The first coordinates are those of greatest variance (`Coordinates.principal`). The centroids of a step, with 0 in the
added coordinates, initialize the next step, as in FAISS's `ProgressiveDimClustering`.
"""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import KMeans
from cprime.callbacks import shown
from cprime.faiss.principal import Coordinates
from cprime.faiss.vectors import Vectors
from cprime.kernels import computing
from cprime.seeding import is_given

logger = logging.getLogger("cprime")

Floats = NDArray[np.float32]


def steps_of(cp: Any) -> int:
    """Return the number of fits in increasing dimensions, including the last in all dimensions; 1 is plain k-means."""
    return max(1, int(getattr(cp, "progressive_dim_steps", 1)))


def check_steps(cp: Any, arguments: dict[str, Any]) -> None:
    """Raise ValueError for arguments that k-means in an increasing number of dimensions does not support."""
    for name, given in (("init", is_given(arguments.get("init"))), ("checkpoint", "checkpoint" in arguments)):
        if given and arguments[name] is not None:
            what = "init_centroids, or an array as init," if name == "init" else name
            raise ValueError(
                f"{what} is not served with progressive_dim_steps={steps_of(cp)}, whose steps are fits of their own."
            )


def dimensions(d: int, steps: int) -> list[int]:
    """Return the number of dimensions of each step: powers of d rounded down in double precision, as in FAISS.

    Step i of s = `steps` has ⌊d^(i/s)⌋ dimensions. 32^(3/5), exactly 8, is rounded down to 7, as in FAISS. The last
    number is d, and numbers may repeat.
    """
    return [int(d ** (step / steps)) for step in range(1, steps + 1)]


def start_of_all(
    cp: Any,
    X: Vectors,
    weights: NDArray | None,
    n_threads: int | None,
    fit: Callable[[Vectors, Floats | None], KMeans],
) -> Floats:
    """Run k-means in increasing dimensions, except in all d; return initial centroids (k, d) of the fit in all.

    fit: function that fits k-means to vectors from given centroids, or from None in the first step
    """
    d, steps = int(X.shape[1]), steps_of(cp)
    coordinates = Coordinates.principal(X, weights, n_threads) if cp.apply_pca else Coordinates.stored(d)
    centroids: Floats | None = None
    for step, m in enumerate(dimensions(d, steps)[:-1], 1):
        with shown(int(cp.verbose)):
            logger.info("step %d of %d: k-means in %d of %d dimensions", step, steps, m, d)
        with computing(n_threads):
            part = coordinates.first(X, m)
        if centroids is not None:
            centroids = np.pad(centroids, ((0, 0), (0, m - centroids.shape[1])))
        centroids = fit(part, centroids).cluster_centers_
    assert centroids is not None
    return coordinates.vectors(centroids)
