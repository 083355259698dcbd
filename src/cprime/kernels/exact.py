"""Exact E-steps over all components, and posteriors over given components.

These E-steps are those of Algorithm 2 of Lücke & Forster, *k-means as a variational EM approximation of Gaussian
mixture models*.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._utils.threads import resolve_threads
from cprime._utils.values import replace
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats, GaussianParameters
from cprime.kernels.sums import small_units, symmetric


class Posterior(NamedTuple):
    """Result of `posterior` for n rows with H given components each, from their log-probabilities a_nh.

    responsibilities (n, H): q_nh ∝ exp(a_nh)    log_sum (n,): log Σ_h exp(a_nh)
    mean (n,): Σ_h q_nh values_nh for the given values (log-probabilities or squared distances)
    """

    responsibilities: NDArray[np.float64]
    log_sum: NDArray[np.float64]
    mean: NDArray[np.float64]


def posterior(values: Floats, scale: float = 1.0, *, n_threads: int | None = None, kernels: Any = _core) -> Posterior:
    """Return responsibilities q_nh = exp(a_nh) / Σ_h' exp(a_nh') (n, H), where a = scale · values [nats].

    Also return log Σ_h exp(a_nh) (n,) and Σ_h q_nh values_nh (n,). These are eq. (4), (5) and (7) of Lücke & Forster
    2019.
    values (n, H): logarithms of joint probabilities, or squared distances with scale = −1/2σ². Each a is finite or
    −inf, and each row has a finite one.
    """
    values = np.ascontiguousarray(check.matrix(values, "values"))
    if values.shape[1] < 1:
        raise ValueError("values must have at least one column, got 0")
    out = Posterior(np.empty(values.shape), np.empty(len(values)), np.empty(len(values)))
    kernels.posterior(values, scale, *out, resolve_threads(n_threads))
    return out


class Expectation(NamedTuple):
    """Result of `expect_all`, an exact E-step with one variance over all C components.

    Let r be the responsibilities of points x of weight w, and d their distances to centers.
    counts (C,), sums (C, D): Σ w r and Σ w r x for each component
    The other fields are weighted sums over all points. squares: Σ_c r d²    log_sum: log Σ_c exp(−d²/2σ²)
    entropy: −Σ_c r log r    quantization_error: squared distance to the nearest center
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: float
    log_sum: float
    entropy: float
    quantization_error: float


def expect_all(
    X: CoreRows,
    centers: Floats,
    variance: float,
    sample_weight: Floats | None = None,
    *,
    n_threads: int | None = None,
) -> Expectation:
    """Compute an exact E-step with one variance σ² over all C centers, in blocks whose size does not grow with N.

    Returns an `Expectation`. With distances d_nc, weights w_n and responsibilities r_nc ∝ exp(−d²_nc/2σ²), its
    fields are:
    counts = Σ_n w_n r_nc (C,);    sums = Σ_n w_n r_nc x_n (C, D);    squares = Σ_n w_n Σ_c r_nc d²_nc;
    log_sum = Σ_n w_n log Σ_c exp(−d²_nc/2σ²);
    entropy = −Σ_n w_n Σ_c r_nc log r_nc, eq. (20) of Lücke & Forster 2019;
    quantization_error = Σ_n w_n min_c d²_nc, eq. (9.1) of Bishop 2006.
    """
    centers = check.matrix(centers, "centers", X, 1)
    weights, unit = check.scaled_weights(sample_weight, len(X))
    variance = check.variance(variance)
    counts, sums = np.zeros(len(centers)), np.zeros(centers.shape)
    least, excess, log_sum = np.empty((3, len(X)))
    threads = resolve_threads(n_threads)
    X.kernels.expect_all(X.core, centers, variance, weights, counts, sums, least, excess, log_sum, threads)
    J, over, log_sums = (unit * float((v if weights is None else weights * v).sum()) for v in (least, excess, log_sum))
    return Expectation(
        counts=unit * counts,
        sums=unit * sums,
        squares=J + over,
        log_sum=log_sums - J / (2 * variance),
        entropy=log_sums + over / (2 * variance),
        quantization_error=J,
    )


def log_sum_exp(X: CoreRows, centers: Floats, variance: float, *, n_threads: int | None = None) -> NDArray[np.float64]:
    """Return log Σ_c exp(−d²_nc/2σ²) for every row: (n,). d_nc is the distance to center c, and σ² the variance.

    Up to a constant, this is the log-likelihood of each point, eq. (3) and (16) of Lücke & Forster 2019.
    """
    centers, variance = check.matrix(centers, "centers", X, 1), check.variance(variance)
    least, log_sum = np.empty((2, len(X)))
    X.kernels.log_sum_exp(X.core, centers, variance, least, log_sum, resolve_threads(n_threads))
    return log_sum - least / (2 * variance)


class Responses(NamedTuple):
    """Result of `respond`, an exact E-step over all C components for n rows.

    Let r be the responsibilities, w the sample weights, and u = 1 for Gaussians; for t distributions, u is the factor
    of a point that decreases with its distance from the mean μ_c.
    labels (n,): best components    log_sum (n,): log Σ_c exp(−cost/2)    mean (n,): Σ_c r cost
    counts (C,), first (C, D), second (C, D) or (C, D, D): sums over rows, weighted by w r u, of 1, of x − μ_c, and of
    its squares or products
    shares, logs (C,): Σ w r and Σ w r log u for t distributions; empty for Gaussians
    row_weights (n,): Σ_c w r u for t distributions; empty for Gaussians
    """

    labels: NDArray[np.int32]
    log_sum: NDArray[np.float64]
    mean: NDArray[np.float64]
    counts: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    shares: NDArray[np.float64] = np.empty(0)
    logs: NDArray[np.float64] = np.empty(0)
    row_weights: NDArray[np.float64] = np.empty(0)


def joined(parts: Iterable[Responses]) -> Responses:
    """Return the result of an E-step for all rows, from its results for consecutive ranges of rows.

    Values per row are concatenated, values per component are added.
    """
    found = list(parts)
    if len(found) == 1:
        return found[0]
    per_row = ("labels", "log_sum", "mean", "row_weights")
    return Responses(
        *(
            np.concatenate(parts) if name in per_row else reduce(np.add, parts)
            for name, *parts in zip(Responses._fields, *found, strict=True)
        )
    )


def respond(
    X: CoreRows,
    components: GaussianParameters,
    sample_weight: Floats | None = None,
    *,
    moments: bool = True,
    n_threads: int | None = None,
) -> Responses:
    """Compute an exact E-step of Gaussians or t distributions over all C components, in blocks that do not grow with N.

    Returns a `Responses`. Let r_nc ∝ exp(−cost_nc/2) be the responsibilities, and w_n the sample weights. The result
    has for every row the component of least cost (n,), log Σ_c exp(−cost_nc/2) (n,), and the mean cost
    Σ_c r_nc cost_nc (n,). It has for every component the following sums with weights w_n r_nc: counts (C,),
    first = Σ (x − μ_c) (C, D), and second = Σ (x − μ_c)² (C, D), or Σ (x − μ_c)(x − μ_c)ᵀ (C, D, D) for full
    covariances. If `moments` is false, these sums are empty. For t distributions of ν degrees of freedom, the weights
    of these sums are w_n r_nc u_nc with u = (ν + D)/(ν + δ), where δ is the squared Mahalanobis distance. Further sums
    for t distributions are shares = Σ w_n r_nc (C,) and logs = Σ w_n r_nc log u_nc (C,), and row_weights =
    Σ_c w_n r_nc u_nc (n,), which are empty for Gaussians.
    """
    given = check.gaussians(components, X)
    weights, unit = check.scaled_weights(sample_weight, len(X))
    C, D = given.means.shape
    units = small_units(X, given.means) if moments and given.factors.ndim == 2 else None
    if units is not None:
        X, given = X.times(units), replace(given, means=given.means * units, factors=given.factors / units)
    labels, (log_sum, mean) = np.empty(len(X), dtype=np.int32), np.empty((2, len(X)))
    sums = (np.zeros(C), np.zeros((C, D)), np.zeros(given.factors.shape)) if moments else (None, None, None)
    tails, row_weights = None, None
    if sums[0] is not None and given.dof is not None:
        tails, row_weights = np.zeros((2, C)), np.zeros(len(X))
    parameters, threads = (*given[:4], weights), resolve_threads(n_threads)
    X.kernels.respond(X.core, *parameters, labels, log_sum, mean, *sums, None, tails, row_weights, threads)
    counts, first, second = (np.empty(0), np.empty((0, D)), np.empty((0, D))) if sums[0] is None else sums
    shares, logs = np.empty((2, 0)) if tails is None else tails
    row_weights = np.empty(0) if row_weights is None else row_weights
    for found in (counts, first, second, shares, logs, row_weights):
        found *= unit
    if units is not None:
        first, second = first / units, second / np.square(units, dtype=np.float64)
    return Responses(labels, log_sum, mean, counts, first, symmetric(second), shares, logs, row_weights)


def responsibilities(
    X: CoreRows, components: GaussianParameters, *, n_threads: int | None = None
) -> NDArray[np.float64]:
    """Return responsibilities r_nc ∝ exp(−cost_nc/2) of all C Gaussians or t distributions for every row: (n, C)."""
    given = check.gaussians(components, X)
    labels, (log_sum, mean) = np.empty(len(X), dtype=np.int32), np.empty((2, len(X)))
    out = np.empty((len(X), len(given.means)))
    threads = resolve_threads(n_threads)
    X.kernels.respond(X.core, *given[:4], None, labels, log_sum, mean, None, None, None, out, None, None, threads)
    # Normalize again, because the responsibilities of a row, rounded to float32, do not sum to 1 exactly.
    out /= out.sum(axis=1, keepdims=True)
    return out
