"""All points in one array in memory (or memory-mapped): a single chunk, whose threads are the kernels'."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.model import Scatter
from cprime.search import Chunk
from cprime.statistics import Statistics, merge


class InMemory:
    """One chunk. `map` is the verb that every execution has.

    The points may be regrouped for a while (`regroup`): positions, winners and kept sets are then those of the new
    order, and only `labels` speaks of the order in which the points came.
    """

    def __init__(self, X: Floats, sample_weight: NDArray[np.float64] | None = None, n_threads: int | None = None):
        self._given = Chunk(X, sample_weight)
        self._order: NDArray[np.int64] | None = None
        self.chunks = [self._given]
        self.n_threads = n_threads
        self._scatters: dict[str, Scatter] = {}

    def map(self, e_step: Callable[[Chunk], Statistics]) -> Statistics:
        """The merged statistics of `e_step` over all chunks, in their order."""
        return merge(map(e_step, self.chunks))

    @property
    def n_points(self) -> int:
        """N."""
        return sum(len(chunk.X) for chunk in self.chunks)

    def begin(self, labels: NDArray[np.int32] | None = None) -> None:
        """Forgets what is remembered of the points, and their regrouping; labels (N,): where each one begins."""
        self._order = None
        self.chunks = [replace(self._given, kept=None if labels is None else labels[:, np.newaxis])]

    def regroup(self, n_components: int) -> None:
        """Copies the points so that those of one winner lie together: each E-step then reads memory in order."""
        (chunk,) = self.chunks
        assert chunk.kept is not None
        order = kernels.grouped_order(chunk.kept[:, 0], n_components, n_threads=self.n_threads)
        X = kernels.gather(self._given.X, order, n_threads=self.n_threads)
        weight = self._given.sample_weight
        self.chunks = [Chunk(X, None if weight is None else weight[order], chunk.kept[order])]
        self._order = order

    def winners(self) -> NDArray[np.int32] | None:
        """The nearest kept component of every point, as the last E-step found it: (N,); None where nothing is kept."""
        (chunk,) = self.chunks
        return None if chunk.kept is None else chunk.kept[:, 0]

    def rewind(self, winners: NDArray[np.int32]) -> None:
        """Puts every point back where `winners` said that it was."""
        (chunk,) = self.chunks
        chunk.kept = winners[:, np.newaxis].copy()
        chunk.distances = chunk.sums = None

    def labels(self) -> NDArray[np.int32] | None:
        """The winners in the order in which the points came."""
        winners = self.winners()
        if winners is None or self._order is None:
            return None if winners is None else winners.copy()
        labels = np.empty_like(winners)
        labels[self._order] = winners
        return labels

    def scatter(self, shape: str | None) -> Scatter | None:
        """The scatter of all points about their weighted mean: its "trace", the "matrix", or None if that is asked."""
        if shape is None:
            return None
        if shape not in self._scatters:
            self._scatters[shape] = self._scatter(shape)
        return self._scatters[shape]

    def _scatter(self, shape: str) -> Scatter:
        X, weight = self._given.X, self._given.sample_weight
        group = np.zeros((len(X), 1), dtype=np.int32)
        counts, sums = kernels.accumulate(X, group, None, weight, n_components=1, n_threads=self.n_threads)
        # about the mean as X's dtype has it, corrected for what that has lost
        mean = sums / counts[:, np.newaxis]
        near, full = mean.astype(X.dtype), shape == "matrix"
        _, _, second = kernels.moments(X, near, group, None, weight, full=full, n_threads=self.n_threads)
        lost = (mean - near)[0]
        if full:
            return Scatter(mean[0], second[0] - counts[0] * np.outer(lost, lost), counts[0])
        return Scatter(mean[0], float(second.sum() - counts[0] * np.square(lost).sum()), counts[0])

    def found(self) -> Chunk | None:
        """A record of what the last E-step found for every point; None where nothing is kept."""
        (chunk,) = self.chunks
        return None if chunk.kept is None else replace(chunk, sums=None, remembered=None)

    def members(self, n_components: int) -> NDArray[np.int64]:
        """How many points of positive weight each component wins: (C,)."""
        (chunk,) = self.chunks
        assert chunk.kept is not None
        winners = chunk.kept[:, 0]
        if chunk.sample_weight is not None:
            winners = winners[chunk.sample_weight > 0]
        return np.bincount(winners, minlength=n_components)

    def farthest(
        self, n: int, beyond: float
    ) -> tuple[NDArray[np.intp], Floats, NDArray[np.float64], NDArray[np.int32], Floats]:
        """The n points of positive weight farthest from their winner, squares above `beyond`, and not all it wins.

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
        places = np.flatnonzero((distances >= bar) & (distances > beyond))
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
