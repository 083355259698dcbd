"""What mixtures share whose components are compared by squared distances: those of embedded points and centers.

Free weights are one more coordinate, in which all points are 0: what it adds to a squared distance is log π_c over the
scale, less the least of these.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._values import cached
from cprime.components import Centers
from cprime.kernels import Gaussians, Rows
from cprime.model.base import Gaussian
from cprime.model.weights import log_weights

_PIECE = 2**22  # numbers of rows that are embedded together


def rows_of_piece(n_features: int) -> int:
    """How many rows are embedded together where those of a pass are of no use to the next."""
    return max(1, _PIECE // n_features)


class _Places(Gaussian):
    """What a subclass says of where centers are."""

    scale: Any
    log_scale: Any
    embedded_centers: Any  # among the embedded points, (C, D')


class Embedded(_Places):
    """Base of the models; a subclass says how points and centers are embedded."""

    steady: ClassVar[bool] = True  # whether points are embedded alike whatever the parameters

    @cached
    def _handicap(self) -> NDArray[np.float64] | None:
        """The further coordinate of every center (C,); None where weights are equal."""
        if self.weights is None:
            return None
        logs = log_weights(self.weights, self.centers)
        return np.sqrt((logs.max() - logs) / -self.scale)

    @property
    def _gaussians(self) -> Gaussians:
        factors = np.full_like(self.embedded_centers, np.sqrt(-2 * self.scale))
        return Gaussians(self.embedded_centers, factors, np.zeros(self.n_components))

    def components(self) -> Centers:
        return self._components

    @cached
    def _components(self) -> Centers:
        return Centers(self.embedded_centers, self.steady)

    def log_likelihood(self, X: Rows) -> NDArray[np.float64]:
        return self.log_scale + self.embed(X).respond(self._gaussians, moments=False).log_sum

    def responsibilities(self, X: Rows) -> NDArray[np.float64]:
        return self.embed(X).responsibilities(self._gaussians)
