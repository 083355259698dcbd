"""Data sets by name. Files are looked for in the folder named by CPRIME_DATA (default ../shared/data)."""

import os
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cprime import datasets

FOLDER = Path(os.environ.get("CPRIME_DATA", "../shared/data"))
FILES = {"kdd": "kddcup04_protein.npz", "msd": "msd_sample.npz", "sift": "sift_300k.npz"}


@cache
def load(name: str) -> NDArray[np.float32] | None:
    """The data set as float32 rows, or None where its file is missing."""
    if name == "patches":
        return datasets.patches().data
    path = FOLDER / FILES[name]
    return np.ascontiguousarray(np.load(path)["X"], dtype=np.float32) if path.exists() else None


def random_start(X: NDArray, n_clusters: int, seed: int = 0) -> NDArray:
    """Distinct random rows, the start that every competitor is given."""
    return X[np.random.default_rng(seed).choice(len(X), n_clusters, replace=False)].copy()
