"""Base class of mixtures whose costs are squared distances between embedded (for example, whitened) points and centers.

Up to a constant, log p(c, x) is log π_c plus `scale` times the squared distance, where scale < 0. If weights π are
free, embedded points and centers have one more coordinate. It is 0 for points; for centers its square is
log (π_c / max π) / scale ≥ 0. So the squared distance, times `scale`, includes log π_c.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.values import cached
from cprime.kernels import GaussianParameters, Rows
from cprime.model.base import Gaussian, log_weights
from cprime.neighbors.components import Centers

_PIECE = 2**22  # maximum number of values (rows × columns) that are embedded at a time


def rows_of_piece(n_features: int) -> int:
    """Return the number of rows to embed at a time, for passes over the data that do not store embedded rows."""
    return max(1, _PIECE // n_features)


class Embedded(Gaussian):
    """Base class of mixtures whose costs are squared distances between embedded points and embedded centers.

    A subclass defines how points (`embed`) and centers are embedded.
    """

    log_scale: Any
    embedded_centers: Any  # (C, D'), where D' is the number of coordinates of embedded points
    steady: ClassVar[bool] = True  # True if embedded points do not change with the parameters of the mixture

    @cached
    def _handicap(self) -> NDArray[np.float64]:
        """Last coordinate (C,) of embedded centers, √(log(π_c / max π) / scale), if weights π are free."""
        logs = log_weights(self.weights, self.centers)
        return np.sqrt((logs.max() - logs) / -self.scale)

    @property
    def _gaussians(self) -> GaussianParameters:
        factors = np.full_like(self.embedded_centers, np.sqrt(-2 * self.scale))
        return GaussianParameters(self.embedded_centers, factors, np.zeros(self.n_components))

    def components(self) -> Centers:
        return Centers(self.embedded_centers, steady=self.steady)

    def log_likelihood(self, X: Rows) -> NDArray[np.float64]:
        return self.log_scale + self.embed(X).respond(self._gaussians, moments=False).log_sum

    def responsibilities(self, X: Rows) -> NDArray[np.float64]:
        return self.embed(X).responsibilities(self._gaussians)
