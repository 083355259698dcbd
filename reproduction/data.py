"""Data of the papers that are not part of the package: files in the folder in the environment variable CPRIME_DATA."""

import os
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reproduction.base import Missing

_FILES = {"KDD": "kddcup04_protein.npz", "MSD": "msd_sample.npz"}


@cache
def load(name: str) -> NDArray[np.float32]:
    """Return the rows of "KDD" (145,751 × 74) or "MSD" (a sample of SONG, 130,290 × 90), read only once.

    Raises
    ------
    Missing
        If the file does not exist.
    """
    path = Path(os.environ.get("CPRIME_DATA", "../shared/data")) / _FILES[name]
    if not path.is_file():
        raise Missing(f"{name} needs the file {path}, which does not exist (CPRIME_DATA names another folder)")
    with np.load(path, allow_pickle=False) as arrays:
        return np.ascontiguousarray(arrays["X"], dtype=np.float32)
