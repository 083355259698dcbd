"""What mixtures whose components have covariances of their own share [E; L eq. 28-31]: everything but their shape."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.block import Block
from cprime.kernels.native import Floats
from cprime.model.base import (
    Means,
    Scatter,
    Weights,
    expect_gaussians,
    log_weights,
    means_of,
    n_weights,
    new_weights,
    statistics_of,
)
from cprime.model.components import GaussianCosts
from cprime.statistics import Statistics


@dataclass(frozen=True)
class OwnCovariance(Means):
    """Parameters Θ; a subclass says how covariances follow from second moments and what their factors are.

    centers (C, D) data units, of the data's dtype    covariances: as the subclass has them [data unit²], float64
    reg_covar: what an M-step adds to the variances [data unit²]    weights (C,), None for 1/C each
    """

    centers: Floats
    covariances: NDArray[np.float64]
    reg_covar: float = 0.0
    weights: Weights = None

    scatter_shape = None
    scale = -0.5
    full: ClassVar[bool]

    @property
    def n_parameters(self) -> int:
        """Free parameters: C·D coordinates, the covariances, and C − 1 weights where these are free."""
        return self.centers.size + self._n_covariance_parameters + n_weights(self.weights)

    @property
    def _n_covariance_parameters(self) -> int:
        raise NotImplementedError

    @property
    def _factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A_c, as `kernels.Gaussians` has it, and log |A_c| (C,)."""
        raise NotImplementedError

    def _spread(self) -> NDArray[np.float64]:
        """Covariances as the search wants them: (C, D) or (C, D, D)."""
        raise NotImplementedError

    def _covariances_beyond(self, before: Self, share: float) -> NDArray[np.float64]:
        """Those of `beyond`."""
        raise NotImplementedError

    def _shaped(self, counts: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        """Covariances from mean second moments about the new means, before anything is added."""
        raise NotImplementedError

    @cached_property
    def _offsets(self) -> NDArray[np.float64]:
        """log |2πΣ_c| − 2 log π_c: (C,)."""
        constant = self.n_features * math.log(2 * math.pi)
        return constant - 2 * self._factors[1] - 2 * log_weights(self.weights, self.n_components)

    @property
    def log_scale(self) -> float:
        """What costs leave out: the least of the offsets, which may be large beside their differences [nats]."""
        return -0.5 * float(self._offsets.min())

    @cached_property
    def gaussians(self) -> kernels.Gaussians:
        """Costs −2 log p(c, x), less what all have in common."""
        dtype = self.centers.dtype
        offsets, most = self._offsets - self._offsets.min(), np.finfo(dtype).max
        factors, offsets = (np.clip(values, -most, most).astype(dtype) for values in (self._factors[0], offsets))
        return kernels.Gaussians(self.centers, factors, offsets)

    def embed(self, X: Floats, before: Floats | None = None) -> Floats:
        return X

    def components(self) -> GaussianCosts:
        return GaussianCosts(self.gaussians, self._spread())

    def expect_all(self, block: Block) -> Statistics:
        return expect_gaussians(
            block,
            block.embedded(self.embed),
            self.gaussians,
            self.centers,
            lambda found: (found.first + found.counts[:, np.newaxis] * self.centers, found.second),
        )

    def sums(
        self, block: Block, kept: NDArray, q: NDArray | None, cost: float
    ) -> tuple[NDArray, NDArray, NDArray | float]:
        counts, first, second = kernels.moments(block.X, self.centers, kept, q, block.sample_weight, full=self.full)
        return counts, first + counts[:, np.newaxis] * self.centers, second

    def maximise(self, statistics: Statistics, scatter: Scatter | None = None) -> Self:
        """M-step: μ_c, Σ_c weighted moments, π_c = N_c / N. A component without points keeps its mean.

        `reg_covar` is added to the variances, as scikit-learn does: an iteration then gains at least
        reg_covar/2 Σ_c π_c (tr Σ_c,new⁻¹ − tr Σ_c,old⁻¹) of F, π being the new shares N_c / N, which may be below 0.
        """
        means = means_of(statistics, self.centers)
        shift = means - self.centers
        counts = np.maximum(statistics.counts, np.finfo(np.float64).tiny)
        second = np.asarray(statistics.squares) / counts.reshape(-1, *[1] * (2 if self.full else 1))
        second -= shift[:, :, np.newaxis] * shift[:, np.newaxis] if self.full else np.square(shift)
        return replace(
            self,
            centers=means.astype(self.centers.dtype),
            covariances=self._shaped(statistics.counts, second),
            weights=new_weights(self.weights, statistics),
        )

    def beyond(self, before: Self, share: float) -> Self:
        covariances = self._covariances_beyond(before, share)
        return replace(self, covariances=covariances, **self._means_beyond(before, share))

    def remembered(self, shares: NDArray[np.float64]) -> tuple[Statistics, None]:
        extent = self._spread().copy()
        diagonal = np.einsum("cii->ci", extent) if self.full else extent
        diagonal -= self.reg_covar
        squares = shares.reshape(-1, *[1] * (extent.ndim - 1)) * extent
        return statistics_of(shares, self.centers, squares), None

    def log_likelihood(self, X: Floats) -> NDArray[np.float64]:
        return self.log_scale + kernels.respond(X, self.gaussians, moments=False).log_sum

    def responsibilities(self, X: Floats) -> NDArray[np.float64]:
        return kernels.responsibilities(X, self.gaussians)
