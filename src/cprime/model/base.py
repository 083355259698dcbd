"""What a family of mixtures is, and what families share: weights, and the exact E-step of Gaussians.

A further family is one more file here, a frozen dataclass of its parameters with the members of `Model`, that is
`register`ed under a name. `Family` gives what follows from the rest, slowly; kernels of its own make it fast. What is
above asks for these members only.
"""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from cprime._storable import is_storable, storable
from cprime.block import Block, Kept
from cprime.components import Components
from cprime.kernels import Floats, Responses, Rows, posterior
from cprime.model.conditional import Conditional
from cprime.model.covariance import scaled_along
from cprime.model.weights import Weights

logger = logging.getLogger("cprime")

_BLOCK = 2**20  # numbers of a table at a time


class Shares(NamedTuple):
    """What points give to components: q_nc of those in ids (n, H), None for all to the only one.

    cost: Σ_n w_n Σ_c q_nc cost_nc, None where costs are not known    costs (n, H): these, None likewise
    """

    ids: NDArray[np.int32]
    responsibilities: NDArray[np.float64] | None
    cost: float | None
    costs: Floats | None = None


class Expected(NamedTuple):
    """What an exact E-step finds: moments, Σ w_n log Σ_c p(c, x_n) less log_scale, and −Σ w_n r_nc log r_nc [nats].

    error: as `Model.error_of` has it, of all components
    """

    moments: Any
    log_sum: float
    entropy: float
    error: float = math.nan


class Model(Protocol):
    """Parameters Θ of a mixture; replaced, never changed.

    log p(c, x) = log_scale + scale · cost, where the cost is what `components` find for `embed`ded points. M, the type
    of its moments, is the family's own: additive, with `scaled` and `counts` (C,) = Σ w_n q_nc.
    """

    covariance_type: ClassVar[str]  # the family's name
    exact: ClassVar[bool]  # whether it has an exact E-step of its own, `expect_all`
    accelerates: ClassVar[bool]  # whether it can be extrapolated
    settles: ClassVar[bool]  # whether an M-step of the same shares of complete rows gives the same parameters
    in_place: ClassVar[bool]  # whether M-steps of many components are made in the memory of the moments
    scale_free: ClassVar[bool]  # whether the unit of a column makes no difference
    has_matrices: ClassVar[bool]  # whether `covariances_` are matrices
    full: ClassVar[bool]  # whether a cost takes D² products, not D
    finds_variance: ClassVar[bool]  # whether with equal weights a first σ² follows from the costs: `with_variance` (14)
    attribute_names: ClassVar[tuple[str, ...]]  # of what `attributes` gives
    sklearn_type: ClassVar[str]  # the family of scikit-learn's that holds it
    options: ClassVar[tuple[str, ...]]  # arguments of an estimator that are the family's own, for `starting`
    followed_options: ClassVar[tuple[str, ...]]  # those of them that parameters are told by, as attributes

    @property
    def centers(self) -> Floats:
        """μ_c (C, D) [data units]."""
        ...

    @property
    def weights(self) -> Weights:
        """π_c (C,), None for 1/C each."""
        ...

    @property
    def n_components(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_parameters(self) -> int:
        """Free parameters."""
        ...

    @property
    def n_normals(self) -> int:
        """How many standard normal numbers a point is drawn from."""
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
    def least_variances(self) -> NDArray[np.float64] | None:
        """The least variance of each component, the other coordinates being known: (C,) [data unit²]; None where they
        share one.
        """
        ...

    @property
    def n_collapsed(self) -> int:
        """Components on points that lie in a plane, or are equal: what is added to their variances decides."""
        ...

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        """X as the components are compared with it; `before` is what the last call gave for this X."""
        ...

    def components(self) -> Components:
        """What a search looks at."""
        ...

    def summarise(self, block: Block, shares: Shares) -> Any:
        """The moments of what points give to components."""
        ...

    def error_of(self, block: Block, kept: Kept) -> float:
        """J = Σ_n w_n ‖x_n − μ‖² of points and the best of what they keep, best first [data unit²]; NaN where squared
        distances are not what the family compares points by.
        """
        ...

    def expect_all(self, block: Block) -> Expected:
        """The exact E-step over all components, where the family is `exact`."""
        ...

    @property
    def prior(self) -> Any:
        """A job over the data whose part the M-step is given, None where it needs none."""
        ...

    def maximise(self, moments: Any, prior: Any = None) -> Self:
        """The M-step. It uses moments up: parameters may lie in their memory."""
        ...

    def extrapolated(self, before: Self, share: float) -> Self:
        """Further along the step that led here from `before`, by a share of it below 1: what momentum makes of an
        M-step. Means move in data units, weights and variances by their logarithms.
        """
        ...

    def remembered(self, shares: NDArray[np.float64]) -> tuple[Any, Any]:
        """Moments of weight 1, and a prior, whose M-step gives these parameters; shares (C,): of each component."""
        ...

    def log_likelihood(self, X: Rows) -> NDArray[np.float64]:
        """log Σ_c p(c, x) of every row over all components [nats]: (n,)."""
        ...

    def responsibilities(self, X: Rows) -> NDArray[np.float64]:
        """p(c | x) over all components: (n, C)."""
        ...

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        """x − μ of points drawn from components `labels` (n,), made of standard normal numbers (n, n_normals)."""
        ...

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes that hold the covariances or what there is in their place, by name, in the dtype of the
        centers and in scikit-learn's shapes.
        """
        ...

    def as_sklearn(self) -> dict[str, Any]:
        """The attributes of a mixture of scikit-learn's family `sklearn_type`, where that is another one."""
        ...

    @classmethod
    def of(cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0) -> Self:
        """The parameters with these centers and weights that such attributes hold, some of which may be missing."""
        ...

    @classmethod
    def shape(cls, C: int, D: int) -> tuple[int, ...] | None:
        """The shape of `covariances_` and precisions, None where there are none."""
        ...

    @classmethod
    def starting(cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None) -> Self:
        """Parameters with these centers, and with precisions as users give them or any where there are none; and with
        the family's `options`, where it has any.

        ValueError that names `precisions_init` where these are none.
        """
        ...

    def with_gaps(self) -> "Model":
        """The same components, for rows of which numbers may be missing; ValueError where they have no marginals."""
        ...

    def imputed(self, X: Rows, ids: NDArray[np.int32], q: NDArray[np.float64], normal: Any = None) -> NDArray:
        """Rows with Σ_c q_c E[x | x_o, c] in their gaps, of components and shares (n, H); or with a draw of the only
        one by standard normal numbers (n, D).
        """
        ...

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        """How far what is observed of each row is from the component of its label, in standard deviations: (n,)."""
        ...

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """P Σ_c Pᵀ of every component (C, k, k) for directions P (k, D) [data unit²]."""
        ...

    @property
    def variances(self) -> NDArray[np.float64]:
        """Of every component and column: (C, D) [data unit²]."""
        ...

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        """The mixture of some columns, in this order, alone."""
        ...

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        """What components say of the other columns, in their order, once these are known."""
        ...


FAMILIES: dict[str, Any] = {}  # by name
F = TypeVar("F", bound=type)


def register(cls: F) -> F:
    """Add a family to FAMILIES under its `covariance_type`; usable as a decorator.

    Unless it has a name by `storable`, files call it by its module and name.
    """
    if not is_storable(cls):
        storable(f"{cls.__module__}.{cls.__qualname__}")(cls)
    FAMILIES[cls.covariance_type] = cls  # type: ignore[attr-defined]
    return cls


class Family:
    """Base of families: what follows from the other members."""

    covariance_type: ClassVar[str]
    exact: ClassVar[bool] = False
    accelerates: ClassVar[bool] = False
    settles: ClassVar[bool] = True
    in_place: ClassVar[bool] = False
    scale_free: ClassVar[bool] = False
    has_matrices: ClassVar[bool] = False
    full: ClassVar[bool] = False
    finds_variance: ClassVar[bool] = False
    attribute_names: ClassVar[tuple[str, ...]] = ("covariances_", "precisions_", "precisions_cholesky_")
    sklearn_type: ClassVar[str] = ""
    options: ClassVar[tuple[str, ...]] = ()
    followed_options: ClassVar[tuple[str, ...]] = ()
    prior: ClassVar[Any] = None
    centers: Floats
    weights: Weights

    def __getstate__(self) -> dict[str, Any]:
        """The parameters, without what has been made of them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @property
    def n_components(self) -> int:
        return self.centers.shape[0]

    @property
    def n_features(self) -> int:
        return self.centers.shape[1]

    @property
    def n_normals(self) -> int:
        return self.n_features

    @property
    def scale(self) -> float:
        return -0.5

    @property
    def log_scale(self) -> float:
        return 0.0

    @property
    def least_variances(self) -> NDArray[np.float64] | None:
        return None

    @property
    def n_collapsed(self) -> int:
        return 0

    @classmethod
    def shape(cls, C: int, D: int) -> tuple[int, ...] | None:
        return None

    def as_sklearn(self) -> dict[str, Any]:
        raise TypeError(f"scikit-learn has no mixtures of {self.covariance_type!r} components.")

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        return X

    def error_of(self, block: Block, kept: Kept) -> float:
        return math.nan

    def with_gaps(self) -> Any:
        raise ValueError(f"missing='marginal' needs components with marginals, which {self.covariance_type!r} has not.")

    def imputed(self, X: Rows, ids: NDArray[np.int32], q: NDArray[np.float64], normal: Any = None) -> NDArray:
        raise TypeError(f"{type(self).__name__} must say what missing numbers may be.")

    def components(self) -> Components:
        raise TypeError(f"{type(self).__name__} must say what its components are.")

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        raise TypeError(f"{type(self).__name__} must say what its marginals are.")

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        raise TypeError(f"{type(self).__name__} must say what its conditionals are.")

    def log_likelihood(self, X: Rows) -> NDArray[np.float64]:
        return self.log_scale + posterior(self._costs(X)[1], self.scale).log_sum

    def responsibilities(self, X: Rows) -> NDArray[np.float64]:
        ids, costs = self._costs(X)
        out = np.empty(costs.shape)
        np.put_along_axis(out, ids.astype(np.intp), posterior(costs, self.scale).responsibilities, axis=1)
        return out

    def _costs(self, X: Rows) -> tuple[NDArray[np.int32], Floats]:
        return self.components().best(self.embed(X), self.n_components)


class Gaussian(Family):
    """Base of the families of Gaussians."""

    exact = True
    accelerates = True

    def _moved(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        """x − μ of every row and the component of its label, what is missing being what that expects: (n, D)."""
        rows = X.dense()
        if X.observed is not None:
            rows = self.imputed(X, labels[:, np.newaxis], np.ones((len(labels), 1)))
        return np.subtract(rows, self.centers[labels], dtype=np.float64)

    def _places(self, columns: NDArray[np.intp]) -> Floats:
        """The centers in some columns."""
        return np.ascontiguousarray(self.centers[:, columns])

    def _means_extrapolated(self, before: Self, share: float) -> dict[str, Any]:
        """Centers and weights of `extrapolated`, for `replace`."""
        centers = self.centers + self.centers.dtype.type(share) * (self.centers - before.centers)
        if self.weights is None or before.weights is None:
            return {"centers": centers}
        weights = scaled_along(self.weights, before.weights, share)
        return {"centers": centers, "weights": weights / weights.sum()}


def winner_error(block: Block, centers: Floats, labels: NDArray[np.int32]) -> float:
    """J = Σ_n w_n ‖x_n − μ_label(n)‖² [data unit²]."""
    return block.weighted_sum(block.X.own_distances(centers, labels))


def expect_gaussians(
    block: Block,
    found: Responses,
    moments: Callable[[Responses], Any],
    error: Callable[[Block, Kept], float],
) -> Expected:
    """The exact E-step by what `Rows.respond` finds; moments: of that    error: the family's `error_of`."""
    log_sum, cost = block.weighted_sum(found.log_sum), block.weighted_sum(found.mean)
    J = error(block, Kept(found.labels[:, np.newaxis]))
    return Expected(moments(found), log_sum, log_sum + 0.5 * cost, J)


def means_of(counts: NDArray[np.float64], sums: NDArray[np.float64], centers: Floats) -> NDArray[np.float64]:
    """S_c / N_c (C, D) in float64; the old mean where there are no points."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / counts[:, np.newaxis]
    return np.where((counts[:, np.newaxis] > 0) & np.isfinite(means), means, centers.astype(np.float64))
