"""Data sets by name or from a file. Real data are read from the folder in the environment variable CPRIME_DATA."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_iris

from cprime import datasets, open_data

FOLDER = Path(os.environ.get("CPRIME_DATA", "../shared/data"))


class MissingData(Exception):
    """The data set of this name is not on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Data:
    """X (N, D) float32, its name, and the default number of clusters."""

    name: str
    X: NDArray[np.float32]
    n_clusters: int | None

    def clusters(self, asked: int | None) -> int:
        C = asked or self.n_clusters
        if C is None:
            raise ValueError(f"-C is needed with {self.name}: the number of clusters")
        if not 1 <= C <= len(self.X):
            raise ValueError(f"-C must be between 1 and the {len(self.X)} points of {self.name}, got {C}")
        return C


class Source(NamedTuple):
    """Loader of a data set, its description, and a suitable number of clusters."""

    load: Callable[[], NDArray]
    description: str
    n_clusters: int


def _file(name: str) -> Callable[[], NDArray]:
    def load() -> NDArray:
        path = FOLDER / name
        if not path.exists():
            raise MissingData(f"{path} does not exist (CPRIME_DATA names the folder of the data)")
        return np.load(path)["X"]

    return load


def _patches() -> NDArray:
    try:
        return datasets.patches().data
    except ImportError as error:
        raise MissingData(str(error)) from error


def _standardized(load: Callable[[], NDArray]) -> Callable[[], NDArray]:
    """Return a loader that scales every column to mean 0 and variance 1."""

    def scaled() -> NDArray:
        X = load().astype(np.float64)
        X -= X.mean(axis=0)
        spread = X.std(axis=0)
        return np.divide(X, spread, out=X, where=spread > 0)

    return scaled


def _principal(load: Callable[[], NDArray], n: int) -> Callable[[], NDArray]:
    """Return a loader of the coordinates along the n leading principal components."""

    def projected() -> NDArray:
        X = load()
        _, directions = np.linalg.eigh(np.cov(X, rowvar=False))
        return X @ directions[:, ::-1][:, :n]

    return projected


def _noise(n_features: int, power: float) -> Callable[[], NDArray]:
    """Return a loader of 150,000 normal points; coordinate i has standard deviation i^−power."""

    def drawn() -> NDArray:
        scale = np.arange(1, n_features + 1) ** -power
        return np.random.default_rng(0).standard_normal((150_000, n_features)) * scale

    return drawn


SOURCES = {
    "kdd": Source(_file("kddcup04_protein.npz"), "KDD-Cup 2004, protein homology, 145,751 × 74", 2000),
    "msd": Source(_file("msd_sample.npz"), "a sample of YearPredictionMSD, 130,290 × 90", 2000),
    "msd-standard": Source(_standardized(_file("msd_sample.npz")), "the same, standardized", 500),
    "kdd-20": Source(
        _principal(_standardized(_file("kddcup04_protein.npz")), 20),
        "KDD-Cup 2004, standardized, its 20 leading principal components, 145,751 × 20",
        200,
    ),
    "sift": Source(_file("sift_300k.npz"), "SIFT descriptors of photographs, 300,000 × 128", 4096),
    "patches": Source(_patches, "8 × 8 patches of scikit-learn's two photographs, 531,720 × 64", 4096),
    "birch": Source(
        lambda: datasets.birch(n_side=45, random_state=0).data, "2025 Gaussians on a grid, 202,500 × 2", 2025
    ),
    "clusters": Source(
        lambda: datasets.clusters(1_000_000, 10_000, 16, random_state=0).data,
        "10,000 generated clusters of unlike sizes, 1,000,000 × 16",
        10_000,
    ),
    "clusters-small": Source(
        lambda: datasets.clusters(100_000, 1000, 16, random_state=0).data,
        "1000 generated clusters of unlike sizes, 100,000 × 16",
        1000,
    ),
    "noise": Source(_noise(32, 0.0), "no clusters: white noise, 150,000 × 32", 2000),
    "noise-falling": Source(_noise(64, 0.5), "no clusters: noise, N(0, 1/i) in coordinate i, 150,000 × 64", 2000),
    "iris": Source(lambda: load_iris().data, "Fisher's iris, 150 × 4", 3),
}


def load(name: str) -> Data:
    """Return data by name, or from a file or folder that `open_data` opens.

    Raises MissingData if the data of a known name are missing, ValueError or OSError for unreadable files.
    """
    if name in SOURCES:
        source = SOURCES[name]
        return Data(name, np.ascontiguousarray(source.load(), dtype=np.float32), source.n_clusters)
    path = Path(name)
    if not path.suffix and not path.is_dir():
        raise ValueError(f"--data must be a file or one of {', '.join(SOURCES)}, got {name!r}")
    source = open_data(path).as_type(np.float32)
    X = source.read(0, source.n_rows)
    source.check_finite(X, 0)
    return Data(path.name, np.ascontiguousarray(X), None)


def random_start(X: NDArray, n_clusters: int, seed: int) -> NDArray:
    """Return distinct random rows as initial centers for every peer that accepts them, at least in single precision."""
    rows = X[np.random.default_rng(seed).choice(len(X), n_clusters, replace=False)]
    return rows.astype(np.result_type(X, np.float32), copy=False)
