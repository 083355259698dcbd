"""Program that runs one fit with a checkpoint; tests start it as a process and kill it.

Arguments: the folder of the checkpoint and the number of the fit. Each fit is slow enough to be killed at any point.
"""

import sys
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from cprime import GaussianMixture, KMeans, open_data
from cprime.persistence import checkpoints

PAUSE = 0.01  # seconds after every iteration


def data() -> np.ndarray:
    rng = np.random.default_rng(0)
    places = 3.0 * rng.standard_normal((40, 5))
    return places[rng.integers(40, size=6000)] + rng.standard_normal((6000, 5))


def fits(checkpoint: Any = None) -> list[tuple[Any, Any]]:
    """Return pairs of an estimator and its data."""
    X, common = data(), {"random_state": 1, "checkpoint": checkpoint, "n_threads": 1}
    chunks = open_data(X, chunk_rows=1000)
    return [
        (KMeans(40, search="graph", tol=0, max_iter=30, init="two-level", n_init=2, **common), X),
        (KMeans(40, search="bounded", tol=0, max_iter=40, init="two-level", **common), chunks),
        (GaussianMixture(12, covariance_type="full", n_active=3, tol=1e-9, max_iter=20, **common), X),
    ]


def main(folder: Path, number: int) -> None:
    checkpoints._SHARE = 0.5
    estimator, given = fits(folder)[number]
    estimator.set_params(callbacks=lambda row: sleep(PAUSE))
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    estimator.fit(given)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
