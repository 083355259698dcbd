"""What mixtures share whose components are compared by squared distances: those of embedded points and centers.

Free weights are one more coordinate, in which all points are 0: what it adds to a squared distance is log π_c over the
scale, less the least of these.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.block import Block, Kept
from cprime.kernels.native import Floats
from cprime.model.base import Means, Weights, log_weights
from cprime.model.components import Centers


class Embedded(Means):
    """Base of the models; a subclass says how points and centers are embedded."""

    weights: Weights
    _steady: ClassVar[bool] = True  # whether points are embedded alike whatever the parameters

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

    def embed(self, X: Floats, before: Floats | None = None) -> Floats:
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

    def components(self) -> Centers:
        return Centers(self._embedded, self._steady)

    def sums(
        self, block: Block, kept: NDArray, q: NDArray | None, cost: float
    ) -> tuple[NDArray, NDArray, NDArray | float]:
        counts, sums = kernels.accumulate(block.X, kept, q, block.sample_weight, n_components=self.n_components)
        if self._handicap is not None:
            cost -= float((counts * np.square(self._handicap)).sum())
        return counts, sums, cost

    def quantization_error(self, block: Block, kept: Kept) -> float:
        if not self._steady or kept.costs is None:  # costs are of other points
            return super().quantization_error(block, kept)
        J = block.weighted_sum(kept.costs[:, 0])
        if self._handicap is not None:
            J -= block.weighted_sum(np.square(self._embedded[:, -1], dtype=np.float64)[kept.winners])
        return max(J, 0.0)

    def log_likelihood(self, X: Floats) -> NDArray[np.float64]:
        points = self.embed(X)
        return self.log_scale + kernels.respond(points, self._gaussians, moments=False).log_sum

    def responsibilities(self, X: Floats) -> NDArray[np.float64]:
        points = self.embed(X)
        return kernels.responsibilities(points, self._gaussians)
