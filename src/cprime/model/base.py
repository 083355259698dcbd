"""Base classes of model families (types of mixture models), and common parts of E-steps and M-steps.

To add a family, add a file with a frozen dataclass of its parameters that has the members of the protocol `Model`
(interface.py), and apply the decorator `register`. The base class `Family` derives some members from the others. These
are slow; a family with kernels of its own overrides them. Other packages use only the members of `Model`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Annotated, Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cprime._utils.declared import Array, Positive
from cprime._utils.storable import is_storable, storable
from cprime._utils.values import cached, replace
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Floats, GaussianParameters, Responses, Rows, posterior
from cprime.model.covariance import n_collapsed, scaled_along, within
from cprime.model.interface import Expected, Weights
from cprime.neighbors.components import Centers

FAMILIES: dict[str, Any] = {}  # class of each model family, by `covariance_type`
F = TypeVar("F", bound=type)
_PIECE = 2**22  # maximum number of values (rows × columns) that are embedded at a time, to limit memory


def register(cls: F) -> F:
    """Class decorator: add a model family to FAMILIES under its `covariance_type`, and return the class unchanged.

    A class that has no name in stored files yet gets one, made of module and class name.
    """
    if not is_storable(cls):
        storable(f"{cls.__module__}.{cls.__qualname__}")(cls)
    FAMILIES[cls.covariance_type] = cls  # type: ignore[attr-defined]
    return cls


def _undefined(what: str) -> Any:
    """Return a method that raises TypeError, for a member of `Model` that a subclass must define if it is used."""

    def method(family: Any, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{type(family).__name__} must {what}.")

    return method


def _are_covariances(value: NDArray, sizes: Any) -> bool:
    return bool((value.diagonal(0, -2, -1) >= 0).all() and np.allclose(value, value.swapaxes(-2, -1)))


def _are_factors(value: NDArray, sizes: Any) -> bool:
    return bool((value.diagonal(0, -2, -1) > 0).all() and (np.triu(value) == value).all())


def _covariance_types(axes: str) -> dict[str, Any]:
    """Return the types of covariances, precisions and their Cholesky factors with the given axes, such as "C D D"."""
    if not axes:
        return dict.fromkeys(("covariances_", "precisions_", "precisions_cholesky_"), Positive)
    precisions, matrices = Array(axes), axes.endswith("D D")
    return {
        "covariances_": Annotated[Any, precisions, _are_covariances] if matrices else Array(axes, least=0),
        "precisions_": precisions,
        "precisions_cholesky_": Annotated[Any, precisions, _are_factors] if matrices else Array(axes, above=0),
    }


class Family:
    """Base class of model families: defaults for members of the protocol `Model`, and members derived from others."""

    covariance_type: ClassVar[str]
    exact: ClassVar[bool] = False
    accelerates: ClassVar[bool] = False
    settles: ClassVar[bool] = True
    in_place: ClassVar[bool] = False
    scale_free: ClassVar[bool] = False
    # Axes of `covariances_` in letters, such as "CDD": C for components, D for columns. None: there are no covariances.
    axes: ClassVar[str | None] = None
    full: ClassVar[bool] = False
    finds_variance: ClassVar[bool] = False
    is_flat: ClassVar[bool] = False
    starts: ClassVar[tuple[str, ...]] = ("kmeans", "auto", "random")
    has_diverse_starts: ClassVar[bool] = True
    attribute_names: ClassVar[tuple[str, ...]] = ("covariances_", "precisions_", "precisions_cholesky_")
    # Types of the fitted attributes that do not follow from `axes`, by name; see `_utils/declared.py`.
    declared: ClassVar[Mapping[str, Any]] = {}
    sklearn_type: ClassVar[str] = ""
    options: ClassVar[tuple[str, ...]] = ()
    prior: ClassVar[Any] = None
    centers: Floats
    weights: Weights
    reg_covar: float = 0.0
    scale: Any = -0.5
    log_scale: Any = 0.0
    log_prior: Any = 0.0
    least_variances: Any = None
    n_singular: Any = 0
    noise: Any = _undefined("define `noise` or `drawn`")
    imputed: Any = _undefined("say what missing numbers may be")
    components: Any = _undefined("say what its components are")
    marginal: Any = _undefined("say what its marginals are")
    conditional: Any = _undefined("say what its conditionals are")

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters without cached values, for pickling."""
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
    def n_collapsed(self) -> int:
        least = self.least_variances
        return 0 if least is None else n_collapsed(least, self.reg_covar)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: centers, covariances, and C − 1 weights if these are free."""
        D, shape = self.n_features, self.shape(*self.centers.shape)
        n = 0 if shape is None else math.prod(shape)
        if (self.axes or "").endswith("DD"):  # symmetric matrices
            n = n // D * (D + 1) // 2
        return self.centers.size + n + n_weights(self.weights)

    @classmethod
    def attribute_types(cls) -> dict[str, Any]:
        known = {} if cls.axes is None else _covariance_types(" ".join(cls.axes))
        known |= cls.declared
        return {name: known.get(name, Any) for name in cls.attribute_names}

    @classmethod
    def shape(cls, C: int, D: int) -> tuple[int, ...] | None:
        return None if cls.axes is None else tuple(map({"C": C, "D": D}.__getitem__, cls.axes))

    def as_sklearn(self) -> dict[str, Any]:
        raise TypeError(f"scikit-learn has no mixtures of {self.covariance_type!r} components.")

    def density_limit(self, X: Rows) -> float | NDArray[np.float64]:
        return math.inf

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        return X

    def error_of(self, block: Block, kept: ActiveSet) -> float:
        return math.nan

    def drawn(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        drawn: NDArray = self.centers[labels] + self.noise(labels, normal).astype(self.centers.dtype)
        return drawn

    def hold_centers(self, moments: Any, prior: Any = None) -> tuple[Any, Any]:
        return moments, prior

    def with_missing(self) -> Any:
        raise ValueError(f"missing='marginal' needs components with marginals, which {self.covariance_type!r} has not.")

    def log_likelihood(self, X: Rows) -> NDArray[np.float64]:
        return self.log_scale + posterior(self._costs(X)[1], self.scale).log_sum

    def responsibilities(self, X: Rows) -> NDArray[np.float64]:
        ids, costs = self._costs(X)
        out = np.empty(costs.shape)
        np.put_along_axis(out, ids.astype(np.intp), posterior(costs, self.scale).responsibilities, axis=1)
        return out

    def _costs(self, X: Rows) -> tuple[NDArray[np.int32], Floats]:
        found: tuple[NDArray[np.int32], Floats] = self.components().best(self.embed(X), self.n_components)
        return found


class Gaussian(Family):
    """Base class of Gaussian families, with members that these families share.

    `extrapolated` and `attributes` are for families with a field `covariances`; others define their own.
    """

    exact = True
    accelerates = True
    covariances: Any
    _covariances_along: Any  # method (model before, share) that returns the extrapolated covariances
    _precisions: Any  # method that returns a dict of the fitted attributes precisions_ and precisions_cholesky_
    variances: Any
    _offsets: Any  # costs −2 log p(c, μ_c) at the means: log |2πΣ_c| − 2 log π_c (C,), for covariances Σ and weights π

    @cached
    def _log_weights(self) -> NDArray[np.float64]:
        """Logarithm (C,) of the factors of the component densities in p(c, x): log π_c."""
        return log_weights(self.weights, self.centers)

    @property
    def log_scale(self) -> float:
        """Part of log p(c, x) that is the same for all components and points: −½ times the least offset [nats].

        An offset is the cost −2 log p(c, μ_c) at the mean. This part is left out of costs, because it may be large
        compared with differences of costs.
        """
        return -0.5 * float(self._offsets.min())

    def density_limit(self, X: Rows) -> float | NDArray[np.float64]:
        """Return log Σ_c π_c p(μ_c | c), for rows with missing values as the bound of a marginal density.

        A missing column d divides the determinant of the covariance by at most its variance Σ_dd, so it adds at most
        ½ log 2πΣ_dd to the logarithm of the density.
        """
        peak = float(logsumexp(-0.5 * self._offsets))
        return peak if X.observed is None else peak + (~X.observed) @ self._missing_limits

    @cached
    def _missing_limits(self) -> NDArray[np.float64]:
        """Greatest increase (D,) of the log-density at a mean if a column is missing: ½ log 2π max_c Σ_c,dd."""
        limits: NDArray[np.float64] = 0.5 * np.log(2 * math.pi * self.variances.max(axis=0))
        return limits

    def extrapolated(self, before: Self, share: float) -> Self:
        covariances = self._covariances_along(before, share)
        return replace(self, covariances=covariances, **self._means_extrapolated(before, share))

    def hold_centers(self, moments: Any, prior: Any = None) -> tuple[Any, Any]:
        return replace(moments, sums=moments.counts[:, np.newaxis] * self.centers), None

    def attributes(self) -> dict[str, Any]:
        found = {"covariances_": self.covariances, **self._precisions()}
        return {name: within(value, self.centers.dtype) for name, value in found.items()}

    def _moved(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return x − μ for each row x (n, D), where μ is the mean of the row's component in `labels` (n,).

        Missing values of x are replaced by expected values under this component.
        """
        rows = X.dense()
        if X.observed is not None:
            rows = self.imputed(X, labels[:, np.newaxis], np.ones((len(labels), 1)))
        return np.subtract(rows, self.centers[labels], dtype=np.float64)

    def _new_means(self, moments: Any) -> NDArray[np.float64]:
        """Return the new means (C, D) of an M-step."""
        return means_of(moments.counts, moments.sums, self.centers)

    def _new_weights(self, counts: NDArray[np.float64]) -> dict[str, Any]:
        """Return a dict of the new parameters that depend only on the weights `counts` (C,) of the components."""
        return {"weights": new_weights(self.weights, counts)}

    def _places(self, columns: NDArray[np.intp]) -> Floats:
        """Return the centers restricted to the k columns with these indices: (C, k)."""
        return np.ascontiguousarray(self.centers[:, columns])

    def _means_extrapolated(self, before: Self, share: float) -> dict[str, Any]:
        """Return a dict of centers and weights, extrapolated by `share` times their change since the model `before`."""
        centers = centers_beyond(self.centers, before.centers, share)
        if self.weights is None or before.weights is None:
            return {"centers": centers}
        weights = scaled_along(self.weights, before.weights, share)
        return {"centers": centers, "weights": weights / weights.sum()}


class Embedded(Gaussian):
    """Base class of mixtures whose costs are squared distances between embedded (such as whitened) points and centers.

    Up to a constant, log p(c, x) is log π_c plus `scale` times the squared distance, where scale < 0. If weights π are
    free, embedded points and centers have one more coordinate. It is 0 for points; for centers its square is
    log (π_c / max π) / scale ≥ 0. So the squared distance, times `scale`, includes log π_c.
    A subclass defines how points (`embed`) and centers are embedded.
    """

    log_scale: Any
    # Centers in the space of embedded points: (C, D'), where D' is the number of their coordinates.
    embedded_centers: Any
    # True if embedded points do not change with the parameters of the mixture.
    steady: ClassVar[bool] = True

    @cached
    def _handicap(self) -> NDArray[np.float64]:
        """Last coordinate (C,) of embedded centers, √(log(π_c / max π) / scale), if weights π are free."""
        logs = self._log_weights
        return np.sqrt((logs.max() - logs) / -self.scale)

    def density_limit(self, X: Rows) -> float | NDArray[np.float64]:
        return float(self.log_scale + logsumexp(self.scale * self._handicap**2))

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


def rows_of_piece(n_features: int) -> int:
    """Return the number of rows to embed at a time, for passes over the data that do not store embedded rows."""
    return max(1, _PIECE // n_features)


def winner_error(block: Block, centers: Floats, labels: NDArray[np.int32]) -> float:
    """Return the error J = Σ_n w_n ‖x_n − μ_c‖² with weights w_n; c = labels[n] is the best component of point n."""
    return block.weighted_sum(block.X.own_distances(centers, labels))


def expect_gaussians(
    block: Block,
    found: Responses,
    moments: Any,
    error: Callable[[Block, ActiveSet], float],
) -> Expected:
    """Return the result of an exact E-step of a Gaussian family for a block of rows.

    found: result of the kernel of the E-step    moments: moments of the family, computed from `found`
    error: function that computes the sum of squared distances to the best components (`Model.error_of`)
    """
    log_sum, cost = block.weighted_sum(found.log_sum), block.weighted_sum(found.mean)
    J = error(block, ActiveSet(found.labels[:, np.newaxis]))
    return Expected(moments, log_sum, log_sum + 0.5 * cost, J)


def centers_beyond(now: Floats, before: Floats, share: float | NDArray[np.float64]) -> Floats:
    """Return centers `now` (C, D), extrapolated by a share of their change since `before` (C, D).

    share: one number, or one for each center (C, 1)
    """
    centers = np.subtract(now, before)
    centers *= np.asarray(share, dtype=centers.dtype)
    centers += now
    return centers


def means_of(counts: NDArray[np.float64], sums: NDArray[np.float64], centers: Floats) -> NDArray[np.float64]:
    """Return the new means S_c / N_c (C, D) in float64; a component without points has its old one from `centers`.

    counts (C,): N_c = Σ_n w_n q_nc with weights w and responsibilities q; or (C, D), the sums over the points that have
    a value in the column    sums (C, D): S_c = Σ_n w_n q_nc x_n
    """
    counts = counts.reshape(len(counts), -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / counts
    return np.where((counts > 0) & np.isfinite(means), means, centers.astype(np.float64))


def log_weights(weights: Weights, centers: Floats) -> NDArray[np.float64]:
    """Return log π_c (C,), where weights π_c are at least the smallest normal number of the centers' dtype.

    So the logarithm of the weight of a component without points is finite, too, and no later result becomes NaN.
    """
    if weights is None:
        return np.full(len(centers), -np.log(len(centers)))
    return np.log(np.maximum(weights, np.finfo(centers.dtype).tiny))


def new_weights(weights: Weights, counts: NDArray[np.float64]) -> Weights:
    """Return the new weights π_c = N_c / N (C,) of an M-step if weights are free, or None if they are equal.

    counts (C,): weight N_c of the points of each component, with sum N
    """
    return None if weights is None else counts / counts.sum()


def n_weights(weights: Weights) -> int:
    """Return the number of free parameters of the weights: C − 1 if they are free, otherwise 0."""
    return 0 if weights is None else len(weights) - 1
