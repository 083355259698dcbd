"""What every mixture model offers to the EM loop, and what the models share: weights and the exact E-step.

A further family (factor analysers, Student-t) is one more file here: its parameters as a frozen dataclass with the
members of `Model`, and its name in `FAMILIES`. Everything above asks for these members only.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.block import Block, Kept
from cprime.kernels.native import Floats
from cprime.model.components import Centers, GaussianCosts
from cprime.model.covariance import scaled_beyond
from cprime.statistics import Statistics

logger = logging.getLogger("cprime")

Weights = NDArray[np.float64] | None  # π (C,), or None for 1/C each


@dataclass(frozen=True)
class Scatter:
    """Σ_n w_n (x_n − mean)(x_n − mean)ᵀ of points of some weight (D, D), or its trace [data unit²]; mean (D,)."""

    mean: NDArray[np.float64]
    squares: NDArray[np.float64] | float
    weight: float

    def scaled(self, factor: float) -> Self:
        """That of points whose weights are multiplied by a factor."""
        return replace(self, squares=self.squares * factor, weight=self.weight * factor)

    def __add__(self, other: Self) -> Self:
        weight = self.weight + other.weight
        if weight == 0:
            return self
        shift = other.mean - self.mean
        between = np.outer(shift, shift) if np.ndim(self.squares) else float(shift @ shift)
        squares = self.squares + other.squares + between * (self.weight * other.weight / weight)
        return replace(self, mean=self.mean + shift * (other.weight / weight), squares=squares, weight=weight)


@dataclass(frozen=True)
class ScatterOf:
    """The scatter of all points about their weighted mean, its "trace" or the "matrix": a pass over the data."""

    shape: str

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: Kept | None) -> tuple[None, Scatter]:
        X, weight, full = block.X, block.sample_weight, self.shape == "matrix"
        group = np.zeros((len(X), 1), dtype=np.int32)
        counts, sums = kernels.accumulate(X, group, None, weight, n_components=1)
        # about the mean as X's dtype has it, corrected for what that has lost
        mean = sums / np.maximum(counts, np.finfo(np.float64).tiny)
        near = mean.astype(X.dtype)
        _, _, second = kernels.moments(X, near, group, None, weight, full=full)
        lost = (mean - near)[0]
        if full:
            return None, Scatter(mean[0], second[0] - counts[0] * np.outer(lost, lost), counts[0])
        return None, Scatter(mean[0], float(second.sum() - counts[0] * np.square(lost).sum()), counts[0])


class Model(Protocol):
    """Parameters Θ of a mixture; replaced, never changed.

    log p(c, x) = log_scale + scale · cost, where the cost is what `components` find for `embed`ded points.
    """

    @property
    def centers(self) -> Floats:
        """μ_c (C, D) [data units]."""
        ...

    @property
    def weights(self) -> Weights:
        """π_c (C,), None for 1/C each."""
        ...

    @property
    def covariances(self) -> Any:
        """As scikit-learn has them for the family [data unit²]."""
        ...

    @property
    def n_parameters(self) -> int:
        """Free parameters."""
        ...

    @property
    def scale(self) -> float:
        """What a cost is multiplied by to be a log-probability."""
        ...

    @property
    def log_scale(self) -> float:
        """What is the same for every component and point [nats]."""
        ...

    @property
    def scatter_shape(self) -> str | None:
        """Which total scatter of the data the M-step asks for: "trace", "matrix" or None."""
        ...

    def embed(self, X: Floats, before: Floats | None = None) -> Floats:
        """X as the components are compared with it; `before` is what the last call gave for this X."""
        ...

    def components(self) -> Centers | GaussianCosts:
        """What a search looks at."""
        ...

    def expect_all(self, block: Block) -> Statistics:
        """The exact E-step over all components of embedded points."""
        ...

    def sums(
        self, block: Block, kept: NDArray, q: NDArray | None, cost: float
    ) -> tuple[NDArray, NDArray, NDArray | float]:
        """counts, sums and squares of `Statistics`; cost: Σ w q cost of what is kept."""
        ...

    def quantization_error(self, block: Block, kept: Kept) -> float:
        """J of points with the best of what they keep [data unit²]."""
        ...

    def maximise(self, statistics: Statistics, scatter: Scatter | None = None) -> Self:
        """The M-step."""
        ...

    def beyond(self, before: Self, share: float) -> Self:
        """Further along the step that led here from `before`, by a share of it below 1: what momentum makes of an
        M-step. Means move in data units, weights and variances by their logarithms.
        """
        ...

    def remembered(self, shares: NDArray[np.float64]) -> tuple[Statistics, Scatter | None]:
        """The sums, of weight 1, whose M-step gives these parameters; shares (C,): Σ w q by component, of sum 1."""
        ...

    def log_likelihood(self, X: Floats) -> NDArray[np.float64]:
        """log Σ_c p(c, x) of every row over all components [nats]: (n,)."""
        ...

    def responsibilities(self, X: Floats) -> NDArray[np.float64]:
        """p(c | x) over all components: (n, C)."""
        ...

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        """x − μ of points drawn from components `labels` (n,), made of standard normal numbers (n, D)."""
        ...


class Means:
    """Base of models that have a mean for every component."""

    centers: Floats
    weights: Weights

    def quantization_error(self, block: Block, kept: Kept) -> float:
        if kept.squares is not None:
            return block.weighted_sum(kept.squares)
        return winner_error(block, self.centers, kept.winners.copy())

    def __getstate__(self) -> dict[str, Any]:
        """The parameters, without what has been made of them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @property
    def n_components(self) -> int:
        return self.centers.shape[0]

    @property
    def n_features(self) -> int:
        return self.centers.shape[1]

    def _means_beyond(self, before: Self, share: float) -> dict[str, Any]:
        """Centers and weights of `beyond`, for `replace`."""
        centers = self.centers + self.centers.dtype.type(share) * (self.centers - before.centers)
        if self.weights is None or before.weights is None:
            return {"centers": centers}
        weights = scaled_beyond(self.weights, before.weights, share)
        return {"centers": centers, "weights": weights / weights.sum()}


def log_weights(weights: Weights, n_components: int) -> NDArray[np.float64]:
    """log π_c (C,); that of a component without points is finite, so that nothing above it turns into NaN."""
    if weights is None:
        return np.full(n_components, -np.log(n_components))
    return np.log(np.maximum(weights, np.finfo(np.float64).tiny))


def new_weights(weights: Weights, statistics: Statistics) -> Weights:
    """π_c = N_c / N where weights are free [E]; equal ones stay."""
    return None if weights is None else statistics.counts / statistics.counts.sum()


def n_weights(weights: Weights) -> int:
    """Free parameters of the weights."""
    return 0 if weights is None else len(weights) - 1


def winner_error(block: Block, centers: Floats, labels: NDArray[np.int32]) -> float:
    """J = Σ_n w_n ‖x_n − μ_label(n)‖² [data unit²]."""
    no_lists = np.empty((len(centers), 0), dtype=np.int32)
    return block.weighted_sum(kernels.reassign(block.X, centers, no_lists, labels)[1])


def expect_gaussians(
    block: Block,
    points: Floats,
    gaussians: kernels.Gaussians,
    centers: Floats,
    sums: Callable[[kernels.Responses], tuple[NDArray, NDArray | float]],
) -> Statistics:
    """The exact E-step by `kernels.respond`; sums: from its moments to the sums and squares of `Statistics`."""
    found = kernels.respond(points, gaussians, block.sample_weight)
    log_sum, cost = block.weighted_sum(found.log_sum), block.weighted_sum(found.mean)
    total, squares = sums(found)
    return Statistics(
        counts=found.counts,
        sums=total,
        weight=block.weight,
        squares=squares,
        log_sum=log_sum,
        entropy=log_sum + 0.5 * cost,
        quantization_error=winner_error(block, centers, found.labels),
    )


def statistics_of(shares: NDArray[np.float64], centers: Floats, squares: NDArray[np.float64] | float) -> Statistics:
    """Sums of weight 1 with these means and squares about them."""
    sums = shares[:, np.newaxis] * centers.astype(np.float64)
    return Statistics(shares, sums, 1.0, squares)


def means_of(statistics: Statistics, centers: Floats) -> NDArray[np.float64]:
    """S_c / N_c (C, D) in float64; the old mean where there are no points."""
    counts = statistics.counts[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = statistics.sums / counts
    return np.where((counts > 0) & np.isfinite(means), means, centers.astype(np.float64))
