"""All points in one array in memory (or memory-mapped): a single chunk, whose threads are the kernels'."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime.kernels.native import Floats
from cprime.statistics import Statistics, merge


@dataclass
class Chunk:
    """Points and what is remembered of each between iterations.

    X (n, D)    sample_weight (n,) float64 or None    kept (n, H) int32: K(n), nearest first
    distances (n, H): squared
    """

    X: Floats
    sample_weight: NDArray[np.float64] | None
    kept: NDArray[np.int32] | None = None
    distances: Floats | None = None

    def weighted_sum(self, values: NDArray) -> float:
        """Σ_n w_n values_n in float64."""
        if self.sample_weight is None:
            return float(values.sum(dtype=np.float64))
        return float(self.sample_weight @ values)

    @property
    def weight(self) -> float:
        return float(len(self.X)) if self.sample_weight is None else float(self.sample_weight.sum())


class InMemory:
    """One chunk. `map` is the verb that every execution has."""

    def __init__(self, X: Floats, sample_weight: NDArray[np.float64] | None = None):
        self.chunks = [Chunk(X, sample_weight)]

    def map(self, e_step: Callable[[Chunk], Statistics]) -> Statistics:
        """The merged statistics of `e_step` over all chunks, in their order."""
        return merge(map(e_step, self.chunks))

    def forget(self) -> None:
        """Drops what is remembered of the points, as before a new start."""
        for chunk in self.chunks:
            chunk.kept = chunk.distances = None

    def winners(self) -> NDArray[np.int32] | None:
        """The nearest kept component of every point, as the last E-step found it: (N,); None where nothing is kept."""
        (chunk,) = self.chunks
        return None if chunk.kept is None else chunk.kept[:, 0].copy()

    def farthest(self, n: int) -> tuple[Floats, NDArray[np.float64], NDArray[np.int32]]:
        """The n points of positive weight farthest from their winner, farther than 0; by (distance, row).

        Returns rows (≤ n, D), weights and winners.
        """
        (chunk,) = self.chunks
        assert chunk.kept is not None
        assert chunk.distances is not None
        distances = chunk.distances[:, 0]
        if chunk.sample_weight is not None:
            distances = np.where(chunk.sample_weight > 0, distances, 0)
        bar = np.partition(distances, -n)[-n] if n < len(distances) else distances.min()
        places = np.flatnonzero((distances >= bar) & (distances > 0))
        places = places[np.argsort(-distances[places], kind="stable")][:n]
        weights = np.ones(len(places)) if chunk.sample_weight is None else chunk.sample_weight[places]
        return chunk.X[places], weights, chunk.kept[places, 0]
