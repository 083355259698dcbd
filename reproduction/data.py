"""Data of the papers that are not part of the package: files in the folder in the environment variable CPRIME_DATA."""

import os
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cprime.datasets import read_kdd, read_song
from reproduction.base import Missing

_FILES = {"KDD": "kddcup04_protein.npz", "MSD": "msd_sample.npz"}
# The published text files of KDD (KDD Cup 2004) and of SONG (UCI repository), which are read first, and their readers.
_TEXTS = {"KDD": ("bio_train.dat", read_kdd), "MSD": ("YearPredictionMSD.txt", read_song)}


def _folder() -> Path:
    return Path(os.environ.get("CPRIME_DATA", "../shared/data"))


def has_song() -> bool:
    """Return whether the folder has the file of SONG in full size, from the UCI repository."""
    return (_folder() / _TEXTS["MSD"][0]).is_file()


@cache
def load(name: str) -> NDArray[np.float32]:
    """Return the rows of "KDD" (145,751 × 74) or "MSD", read only once.

    "KDD" is read from bio_train.dat, the file of the KDD Cup 2004, if the folder has it, else from an .npz file. "MSD"
    is SONG (515,345 × 90) if the folder has the file YearPredictionMSD.txt, else a sample of it (130,290 × 90).

    Raises
    ------
    Missing
        If the file does not exist.
    """
    file, read = _TEXTS[name]
    if (_folder() / file).is_file():
        return np.ascontiguousarray(read(_folder() / file).data)
    path = _folder() / _FILES[name]
    if not path.is_file():
        raise Missing(f"{name} needs the file {path} or {file}, which do not exist (CPRIME_DATA names another folder)")
    with np.load(path, allow_pickle=False) as arrays:
        return np.ascontiguousarray(arrays["X"], dtype=np.float32)
