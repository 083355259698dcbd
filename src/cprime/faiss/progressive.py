"""Initialization of k-means by fits (steps) in an increasing number of dimensions.

A step uses the first coordinates of the vectors, those of greatest variance (`Coordinates.principal`). Its centroids,
with 0 in the added coordinates, initialize the next step, as in FAISS's `ProgressiveDimClustering`.
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
    """Return the number of fits (steps), including the last one, in all dimensions; 1 is plain k-means."""
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
    """Return the number of dimensions of each step: ⌊d^(i/s)⌋ in step i of s = `steps`.

    Powers are computed in double precision, as in FAISS, so 32^(3/5), exactly 8, is rounded down to 7. The last number
    is d, and numbers may repeat.
    """
    return [int(d ** (step / steps)) for step in range(1, steps + 1)]


def start_of_all(
    cp: Any,
    X: Vectors,
    weights: NDArray | None,
    n_threads: int | None,
    fit: Callable[[Vectors, Floats | None], KMeans],
) -> Floats:
    """Run all steps but the last one, and return initial centroids (k, d) for the last step, in all d dimensions.

    fit: function of vectors (n, m) and initial centroids (k, m), None in the first step, that returns a fitted `KMeans`
    """
    d, steps = int(X.shape[1]), steps_of(cp)
    columns = Coordinates(np.zeros(d), np.eye(d))
    coordinates = Coordinates.principal(X, weights, n_threads) if cp.apply_pca else columns
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
