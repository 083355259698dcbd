"""All points in one array in memory (or memory-mapped): a single chunk, whose threads are the kernels'."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.model import Spread
from cprime.search import Chunk
from cprime.statistics import Statistics, merge


class InMemory:
    """One chunk. `map` is the verb that every execution has."""

    def __init__(self, X: Floats, sample_weight: NDArray[np.float64] | None = None):
        self.chunks = [Chunk(X, sample_weight)]

    def map(self, e_step: Callable[[Chunk], Statistics]) -> Statistics:
        """The merged statistics of `e_step` over all chunks, in their order."""
        return merge(map(e_step, self.chunks))

    @property
    def n_points(self) -> int:
        """N."""
        return sum(len(chunk.X) for chunk in self.chunks)

    def begin(self, labels: NDArray[np.int32] | None = None) -> None:
        """Forgets what is remembered of the points, as before a new start; labels (N,): where each one begins."""
        (chunk,) = self.chunks
        chunk.kept = None if labels is None else labels[:, np.newaxis]
        chunk.distances = chunk.sums = None

    def spread(self) -> Spread:
        """The spread of all points about their weighted mean."""
        (chunk,) = self.chunks
        weights = np.ones(len(chunk.X)) if chunk.sample_weight is None else chunk.sample_weight
        group = np.zeros((len(chunk.X), 1), dtype=np.int32)
        counts, sums = kernels.accumulate(chunk.X, group, None, chunk.sample_weight, n_components=1)
        mean = sums[0] / counts[0]
        step = max(1, 2**17 // chunk.X.shape[1])
        squares = 0.0
        for begin in range(0, len(chunk.X), step):
            block = np.square(chunk.X[begin : begin + step] - mean).sum(axis=1)
            squares += float((weights[begin : begin + step] * block).sum())
        return Spread(mean, squares)

    def winners(self) -> NDArray[np.int32] | None:
        """The nearest kept component of every point, as the last E-step found it: (N,); None where nothing is kept."""
        (chunk,) = self.chunks
        return None if chunk.kept is None else chunk.kept[:, 0].copy()

    def found(self) -> Chunk | None:
        """A record of what the last E-step found for every point; None where nothing is kept."""
        (chunk,) = self.chunks
        return None if chunk.kept is None else replace(chunk, sums=None)

    def members(self, n_components: int) -> NDArray[np.int64]:
        """How many points of positive weight each component wins: (C,)."""
        (chunk,) = self.chunks
        assert chunk.kept is not None
        winners = chunk.kept[:, 0]
        if chunk.sample_weight is not None:
            winners = winners[chunk.sample_weight > 0]
        return np.bincount(winners, minlength=n_components)

    def farthest(self, n: int) -> tuple[NDArray[np.intp], Floats, NDArray[np.float64], NDArray[np.int32], Floats]:
        """The n points of positive weight farthest from their winner, farther than 0 and not all that it wins.

        Returns their positions (≤ n,), rows, weights, winners and squared distances, by (distance, position).
        """
        (chunk,) = self.chunks
        assert chunk.kept is not None
        assert chunk.distances is not None
        alone = self.members(int(chunk.kept[:, 0].max()) + 1)[chunk.kept[:, 0]] == 1
        distances = np.where(alone, 0, chunk.distances[:, 0])
        if chunk.sample_weight is not None:
            distances = np.where(chunk.sample_weight > 0, distances, 0)
        bar = np.partition(distances, -n)[-n] if n < len(distances) else distances.min()
        places = np.flatnonzero((distances >= bar) & (distances > 0))
        places = places[np.argsort(-distances[places], kind="stable")][:n]
        weights = np.ones(len(places)) if chunk.sample_weight is None else chunk.sample_weight[places]
        return places, chunk.X[places], weights, chunk.kept[places, 0], chunk.distances[places, 0]

    def assign(self, place: int, component: int) -> None:
        """Puts one point into a component, onto its centre."""
        (chunk,) = self.chunks
        assert chunk.kept is not None
        assert chunk.distances is not None
        chunk.kept[place, 0] = component
        chunk.distances[place, 0] = 0
        chunk.sums = None
