"""What mixtures share whose components are compared by squared distances: those of embedded points and centers.

Free weights are one more coordinate, in which all points are 0: what it adds to a squared distance is log π_c over the
scale, less the least of these.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.model.base import Means, Weights, log_weights
from cprime.search import Centers, Chunk


class Embedded(Means):
    """Base of the models; a subclass says how points and centers are embedded."""

    weights: Weights

    @property
    def scale(self) -> float:
        """What a squared distance is multiplied by to be a log-probability."""
        raise NotImplementedError

    @property
    def log_scale(self) -> float:
        """What is the same for every component and point [nats]."""
        raise NotImplementedError

    @property
    def _embedded(self) -> Floats:
        """The centers among the embedded points."""
        raise NotImplementedError

    def embed(self, X: Floats, before: Floats | None = None, n_threads: int | None = None) -> Floats:
        raise NotImplementedError

    @cached_property
    def _handicap(self) -> NDArray[np.float64] | None:
        """The further coordinate of every center (C,); None where weights are equal."""
        if self.weights is None:
            return None
        logs = log_weights(self.weights, self.n_components)
        return np.sqrt((logs.max() - logs) / -self.scale)

    @property
    def _gaussians(self) -> kernels.Gaussians:
        factors = np.full_like(self._embedded, np.sqrt(-2 * self.scale))
        return kernels.Gaussians(self._embedded, factors, np.zeros(self.n_components))

    def components(self, n_threads: int | None = None) -> Centers:
        return Centers(self._embedded, n_threads)

    def sums(
        self, chunk: Chunk, kept: NDArray, q: NDArray | None, cost: float, n_threads: int | None = None
    ) -> tuple[NDArray, NDArray, NDArray | float]:
        counts, sums = kernels.accumulate(
            chunk.X, kept, q, chunk.sample_weight, n_components=self.n_components, n_threads=n_threads
        )
        if self._handicap is not None:
            cost -= float((counts * np.square(self._handicap)).sum())
        return counts, sums, cost

    def log_likelihood(self, X: Floats, n_threads: int | None = None) -> NDArray[np.float64]:
        points = self.embed(X, n_threads=n_threads)
        return self.log_scale + kernels.respond(points, self._gaussians, moments=False, n_threads=n_threads).log_sum

    def responsibilities(self, X: Floats, n_threads: int | None = None) -> NDArray[np.float64]:
        points = self.embed(X, n_threads=n_threads)
        return kernels.responsibilities(points, self._gaussians, n_threads=n_threads)
