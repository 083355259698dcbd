"""Initialization by jumps: k-means++ on a sample, improved by jumps of centers on the sample and then on all rows.

A jump merges two clusters and splits another one with the center that becomes free, if this lowers the error, the sum
of squared distances. With few clusters, later iterations cannot repair a bad initialization. On the usual
benchmarks, this initialization ends near the best known optimum, in less time than k-means takes after k-means++. The
sample has 32 rows per cluster (at least 500), one from each of as many segments of the data. If the data have fewer
than twice as many rows, the sample is all rows. More jumps are tried on the sample than on all rows. Numbers of tries
grow with the square of the number of clusters C, because the time of a try falls with it: only rows of the clusters
around a jump are assigned again. The last steps have momentum: they come as near to the optimum as Lloyd's steps in a
third of the iterations.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime.execution import Data, rows_of
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Floats, Rows
from cprime.seeding.kmeans_plusplus import choose_by_kmeans_plusplus

# Jumps of centers are tried on a sample of the rows first. Least number of rows in it: in total, and per cluster.
_LEAST, PER_CLUSTER = 500, 32
# Maximum number of Lloyd's iterations after a jump that is tried.
_ITERATIONS = 30
# The last steps over all rows, and over a sample, end once one of them lowers the error by at most this share.
_TOL, _TOL_OF_SAMPLE = 2e-5, 1e-3
# For C clusters, jumps end after C² / "per" consecutive failures, but at least "least" and at most "most". The first
# numbers are for jumps on the sample of the rows, the second for jumps on all rows.
_OF_SAMPLE, _OF_ALL = {"per": 4, "least": 5, "most": 160}, {"per": 64, "least": 1, "most": 40}


@dataclass(frozen=True)
class Errors:
    """Job that computes the errors Σ_n w_n ‖x_n − μ‖² (m,) of m sets of starting centers, of which the best is used.

    w_n is the weight of row x_n, and μ its nearest center in the set.
    """

    sets: tuple[Floats, ...]

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, NDArray[np.float64]]:
        return None, np.array([block.weighted_sum(block.X.nearest(centers)[1][:, 0]) for centers in self.sets])


def start_by_jumps(data: Data, n_clusters: int, rng: np.random.RandomState) -> Floats:
    """Return starting centers (C, D) by k-means++ and jumps of centers; at least C points must have positive weight."""
    key = Key(int(rng.randint(2**31)))
    sample = _sample(data, n_clusters, key)
    chosen = choose_by_kmeans_plusplus(sample[0], n_clusters, sample[1], rng, 1)
    return improved_by_jumps(data, sample[0][chosen].dense(), key, sample)


_Weighted = tuple[Rows, NDArray[np.float64] | None]


def _sample(data: Data, n_clusters: int, key: Key) -> _Weighted:
    """Return a sample of rows and their weights: one random row of each of n equal segments of the data.

    n is 32 · n_clusters, and at least 500. If the data have fewer than 2n rows, all are returned. Rows of zero weight
    are left out.    key: counter-based random key
    """
    N, n = data.n_weighted, max(_LEAST, PER_CLUSTER * n_clusters)
    if 2 * n > N:
        numbers = np.arange(N)
    else:
        begins = N * np.arange(n + 1) // n
        numbers = begins[:-1] + (key.generator(Purpose.JUMPS).random(n) * np.diff(begins)).astype(np.int64)
    taken = data.take(rows_of(data, numbers))
    return taken.X, taken.sample_weight


def improved_by_jumps(data: Data, centers: Floats, key: Key, sample: _Weighted | None = None) -> Floats:
    """Return new centers (C, D): the given ones, improved by jumps of centers (merge two clusters, split another).

    key: counter-based random key, by which a sample of the data is drawn unless `sample` is given
    """
    if len(centers) < 2:
        return centers
    sample = _sample(data, len(centers), key) if sample is None else sample
    is_all, n_tries = len(sample[0]) == data.n_weighted, _n_tries(len(centers), **_OF_SAMPLE)
    tol = _TOL if is_all else _TOL_OF_SAMPLE
    better, _ = sample[0].jumped(centers, sample[1], n_tries=n_tries, n_iterations=_ITERATIONS, tol=tol)
    if is_all:
        return better
    whole = data.whole()
    # Jumps that lower the error of the sample may not lower that of all rows, so errors of all rows are compared.
    if whole is None:
        errors = data.each(Errors((centers, better)))
        return better if errors[1] < errors[0] else centers
    X, weights = whole
    if weights is not None and data.n_weighted < data.n_points:
        X, weights = X[weights > 0], weights[weights > 0]
    n_tries = _n_tries(len(centers), **_OF_ALL)
    return X.jumped(better, weights, n_tries=n_tries, n_iterations=_ITERATIONS, tol=_TOL)[0]


def _n_tries(n_clusters: int, per: int, least: int, most: int) -> int:
    return min(max(n_clusters**2 // per, least), most)
