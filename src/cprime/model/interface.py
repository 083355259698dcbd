"""Interface of model families: arguments and results of E-steps, and the members that a family must have.

`base.py` has base classes that derive some of these members from others.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Floats, Rows
from cprime.model.conditional import Conditional
from cprime.neighbors.components import Components

Weights = NDArray[np.float64] | None  # π (C,), or None for 1/C each


class Responsibilities(NamedTuple):
    """Responsibilities of the H components in the active set of each point.

    ids (n, H): components    responsibilities (n, H): q_nc, None if H = 1 and all are 1
    costs (n, H): cost_nc of point n under component c, where log p(c, x_n) = constant + scale · cost_nc, scale < 0
    cost: Σ_n w_n Σ_c q_nc cost_nc with sample weights w_n. `cost` and `costs` are None if costs are unknown.
    """

    ids: NDArray[np.int32]
    responsibilities: NDArray[np.float64] | None
    cost: float | None
    costs: Floats | None = None


class Expected(NamedTuple):
    """Result of an exact E-step: moments (sufficient statistics), and sums over points n of weight w_n.

    log_sum: Σ_n w_n (log Σ_c p(c, x_n) − log_scale) [nats], where log_scale is a constant left out of all log densities
    entropy: −Σ w_n r_nc log r_nc [nats], with responsibilities r_nc
    error: J = Σ_n w_n ‖x_n − μ‖² with the mean μ of each point's best component [data unit²]
    """

    moments: Any
    log_sum: float
    entropy: float
    error: float = math.nan


class Model(Protocol):
    """Parameters Θ of a mixture. They are immutable; an M-step returns new ones.

    log p(c, x) = log_scale + scale · cost with constants log_scale and scale < 0. `components` computes costs of points
    that `embed` has transformed. Each family has its own type of moments (sufficient statistics). Moments can be added;
    they have a method `scaled` and an attribute `counts` (C,) = Σ w_n q_nc (sample weights w, responsibilities q).
    """

    # Name of the model family, such as "full" or "diag".
    covariance_type: ClassVar[str]
    # Whether the family has an exact E-step of its own, `expect_all`.
    exact: ClassVar[bool]
    # Whether parameters can be extrapolated (momentum).
    accelerates: ClassVar[bool]
    # Whether, for rows without missing values, a second M-step with the same responsibilities has no effect.
    settles: ClassVar[bool]
    # Whether M-steps of many components reuse the memory of the moments.
    in_place: ClassVar[bool]
    # Whether the result of a fit is independent of the units of columns.
    scale_free: ClassVar[bool]
    # Whether the cost of a component for a point takes D² multiplications instead of D.
    full: ClassVar[bool]
    # Whether, for equal weights, `with_variance` computes the first σ² from costs.
    finds_variance: ClassVar[bool]
    # Whether F is often so flat that momentum="auto" is True also for few components.
    is_flat: ClassVar[bool]
    # Initializations of successive starts of init_params="auto".
    starts: ClassVar[tuple[str, ...]]
    # Whether they may instead be partitions of rows whose columns were scaled to equal variance.
    has_diverse_starts: ClassVar[bool]
    # Keys of the dictionary that `attributes` returns.
    attribute_names: ClassVar[tuple[str, ...]]
    # Argument `covariance_type` of the scikit-learn mixture for these parameters.
    sklearn_type: ClassVar[str]
    # Names of the options that only this family has; the method `starting` gets their values.
    options: ClassVar[tuple[str, ...]]

    @property
    def centers(self) -> Floats:
        """Centers μ_c (C, D) [data units]."""
        ...

    @property
    def weights(self) -> Weights:
        """Weights π_c (C,), None for 1/C each."""
        ...

    @property
    def n_components(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        ...

    @property
    def n_normals(self) -> int:
        """Number of standard normal numbers that `noise` needs to draw one point."""
        ...

    @property
    def scale(self) -> float:
        """Negative factor `scale` in log p(c, x) = log_scale + scale · cost, where log_scale is a constant."""
        ...

    @property
    def log_scale(self) -> float:
        """Part of log p(c, x) that is the same for every component and point [nats]."""
        ...

    @property
    def log_prior(self) -> float:
        """Term that F has in addition to the sum over points [nats], 0 for estimates by maximum likelihood.

        It is log p(Θ) for estimates with a prior, or −KL(q(Θ) ‖ p(Θ)) for variational posteriors q(Θ).
        """
        ...

    @property
    def least_variances(self) -> NDArray[np.float64] | None:
        """Least variance of a coordinate of each component, given its other coordinates: (C,) [data unit²]; None if the
        components share one covariance.
        """
        ...

    @property
    def n_singular(self) -> int:
        """Number of components with a singular covariance, which was repaired (see `are_singular`)."""
        ...

    @property
    def n_collapsed(self) -> int:
        """Number of collapsed components: their points are equal or in a plane, so a variance is only `reg_covar`."""
        ...

    def density_limit(self, X: Rows) -> float | NDArray[np.float64]:
        """Return an upper bound of log Σ_c p(c, x) over all x with the same missing values as each row of X [nats].

        The result has shape (n,), or is one number for all rows; inf if no bound is known.
        """
        ...

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        """Transform X into the space in which costs are computed (for example, whiten it).

        before: the result of the last call for the same X, whose memory may be reused
        """
        ...

    def components(self) -> Components:
        """Return the components (centers or Gaussians), in the space into which `embed` transforms points."""
        ...

    def summarise(self, block: Block, shares: Responsibilities) -> Any:
        """Return the moments (sufficient statistics) of a block of rows, from the responsibilities `shares`."""
        ...

    def error_of(self, block: Block, kept: ActiveSet) -> float:
        """Return J = Σ_n w_n ‖x_n − μ‖² with weights w_n and the mean μ of each point's best component.

        kept: active sets, best component first. Return NaN if the family does not compare points by squared distances.
        """
        ...

    def expect_all(self, block: Block) -> Expected:
        """Return the result of an exact E-step of a block over all components; only for families that are `exact`."""
        ...

    @property
    def prior(self) -> Any:
        """Job (function of a chunk) for sums that M-steps need in addition to moments; None if they need none."""
        ...

    def maximise(self, moments: Any, prior: Any = None) -> Self:
        """Return the parameters after an M-step, which overwrites `moments` and may reuse their memory.

        prior: result of the job `prior` for all points, or None if the family has no such job
        """
        ...

    def hold_centers(self, moments: Any, prior: Any = None) -> tuple[Any, Any]:
        """Return the arguments of an M-step that computes covariances about the present centers, not about new ones.

        They are the moments and prior of the given points together with their mirror images about their centers, scaled
        to the same weight. Families whose other parameters do not depend on the centers return the arguments unchanged.
        moments: of given labels or responsibilities, summed in the first pass of a fit, before covariances are known
        """
        ...

    def extrapolated(self, before: Self, share: float) -> Self:
        """Return the model extrapolated for momentum: its parameters plus a share < 1 of their change since `before`.

        Means are extrapolated linearly; weights and variances by their logarithms; matrices by `covariances_along`.
        The result does not depend on the order of columns.
        """
        ...

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[Any, Any]:
        """Return moments, and the argument `prior`, from which an M-step computes the parameters of this model.

        Stepwise EM averages them with the moments of a batch.
        shares (C,): counts of the moments, with sum 1
        """
        ...

    def log_likelihood(self, X: Rows) -> NDArray[np.float64]:
        """Return log Σ_c p(c, x) of every row over all components [nats]: (n,)."""
        ...

    def responsibilities(self, X: Rows) -> NDArray[np.float64]:
        """Return the responsibilities p(c | x) of all components for every row: (n, C)."""
        ...

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return x − μ (n, D) of points x drawn from components `labels`, made of normal numbers (n, n_normals)."""
        ...

    def drawn(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points drawn from components `labels` (n,), made of standard normal numbers (n, n_normals)."""
        ...

    def attributes(self) -> dict[str, Any]:
        """Return a dict of the fitted attributes that describe the covariances (for example, `covariances_`), in the
        dtype of the centers and in scikit-learn's shapes.
        """
        ...

    def as_sklearn(self) -> dict[str, Any]:
        """Return a dict of this model's parameters as attributes of scikit-learn's mixture of type `sklearn_type`."""
        ...

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        """Return a model with these centers, weights and fitted `attributes`, some of which may be missing."""
        ...

    @classmethod
    def attribute_types(cls) -> dict[str, Any]:
        """Return the types of the attributes with these names, by name: the values that a fit can produce."""
        ...

    @classmethod
    def shape(cls, C: int, D: int) -> tuple[int, ...] | None:
        """Return the shape of `covariances_` and precisions of C components and D columns; None if there are none."""
        ...

    @classmethod
    def starting(cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None) -> Self:
        """Return a starting model with these centers, with precisions given by users (or None), and with the
        family's own arguments of the estimator, if any.

        Raises ValueError that names `precisions_init` if the precisions are not valid.
        """
        ...

    def with_missing(self) -> "Model":
        """Return a model with the same components for rows with missing values.

        Raises ValueError if the family has no marginal densities.
        """
        ...

    def imputed(self, X: Rows, ids: NDArray[np.int32], q: NDArray[np.float64], normal: Any = None) -> NDArray:
        """Return rows (n, D) with missing values replaced by expected values Σ_c q_c E[x | x_o, c], or by random ones.

        ids, q (n, H): components of each row, and their responsibilities    x_o: observed values of a row
        normal (n, D): standard normal numbers; if given, missing values are drawn from the only component (H = 1)
        """
        ...

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the Mahalanobis distance of each row's observed values to its component in `labels` (n,): (n,)."""
        ...

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the covariances P Σ_c Pᵀ (C, k, k) of all components along k directions P (k, D) [data unit²]."""
        ...

    @property
    def variances(self) -> NDArray[np.float64]:
        """Variances of every component and column: (C, D) [data unit²]."""
        ...

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        """Return the marginal mixture of the columns with these indices, in this order."""
        ...

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        """Return the conditional distributions of the other columns, in ascending order, given the known `columns`."""
        ...
