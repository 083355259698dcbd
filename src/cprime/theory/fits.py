"""Fits by the methods of Kearns, Mansour & Ng: K-means with arbitrary Gaussians, EM, and posterior assignment.

This is short NumPy code for readers; `cprime.GaussianMixture` is the fast form. For hard and soft assignment, this file
alternates assignment and refit. The gradient descent for posterior assignment is in `posterior.py`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cprime._utils.number_types import check_largest
from cprime.estimators.validation import check_choice, check_integer, check_real, check_weights
from cprime.sources.checked import checked
from cprime.theory.mixtures import Floats, Gaussians, log_weights
from cprime.theory.partition import WEIGHTS, blocks, log_posterior
from cprime.theory.posterior import SHAPES, CovarianceShape, descend, take_steps


@dataclass(frozen=True)
class AssignmentFit:
    """Result of `fit_assignment`.

    Attributes
    ----------
    components : Gaussians
        The components at the end.
    path : list of Gaussians
        The start, and the components after each iteration.
    losses : list of float
        The minimized objective on the data, before each iteration and at the end, in nats per point: the partition loss
        (1) for hard assignment with equal weights, the posterior loss (45) for posterior assignment, the weighted loss
        (14) for hard assignment with free weights (all of Kearns, Mansour & Ng), and −log-likelihood for soft
        assignment.
    n_iter : int
        Number of iterations that changed something; for posterior assignment, iterations of the optimizer.
    converged : bool
        Whether the fit converged within `max_iter` iterations.

    Examples
    --------
    >>> from cprime.theory import Gaussians, fit_assignment
    >>> Q = Gaussians.spherical([-2, 2], [1.5, 1.5])
    >>> fit = fit_assignment(Q.sample(1000, random_state=0), Q)
    >>> len(fit.path) == fit.n_iter + 1, fit.losses[-1] < fit.losses[0]
    (True, True)
    """

    components: Gaussians
    path: list[Gaussians]
    losses: list[float]
    n_iter: int
    converged: bool


def fit_assignment(
    X: Any,
    start: Gaussians,
    *,
    assignment: str = "hard",
    weights: str = "equal",
    covariance_type: str = "full",
    method: str = "l-bfgs",
    step: float = 0.05,
    max_iter: int = 1000,
    tol: float = 1e-9,
    reg_covar: float = 1e-6,
    sample_weight: Any = None,
) -> AssignmentFit:
    """Fit Gaussians, each with its own covariance, by hard, soft or posterior assignment, from given parameters.

    `cprime.GaussianMixture` with ``assignment="hard"`` or "soft" is the fast form of the first two. Its "sampled" is
    another algorithm, stochastic EM. Sections and equations are those of Kearns, Mansour & Ng.

    P_b is the Gaussian density of component b, α_b its weight.

    - "hard", weights "equal": unweighted K-means (section 2). Each point is assigned to the component with the largest
      P_b(x), and each P_b is refit by maximum likelihood on its own points, until no point is reassigned.
    - "hard", weights "free": weighted K-means (section 3). The same with α_b P_b(x), and α_b the fraction of points.
    - "soft": EM, with equal or free weights.
    - "posterior", weights "equal": descent on the posterior loss (45) by SciPy's L-BFGS-B with its exact gradient, or
      by the steps of fixed size of the source.
    - "posterior", weights "free": the same with α_b P_b(x) in place of P_b(x), so the loss (14) of this partition.

    The argument `assignment` of every mixture of the library has hard and soft assignment of other families.

    Arrays of N×C numbers are computed in blocks of rows, so memory is O(C D² + N D).

    In hard assignment, a component without points has no maximum likelihood fit. Its covariance and weight stay
    unchanged. Its mean is set to the point at which its score is closest to the score of the best component.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    start : Gaussians
        Components and weights to start from.
    assignment : {"hard", "soft", "posterior"}, default="hard"
    weights : {"equal", "free"}, default="equal"
        "equal": all α_b are 1/C. "free": the α_b begin as those of the start and are refit.
    covariance_type : {"full", "spherical"}, default="full"
        Covariance of each component: its own matrix, or its own σ_b² I.
    method : {"l-bfgs", "gradient"}, default="l-bfgs"
        How posterior assignment descends: "gradient" takes steps of fixed size along the derivatives by means and
        standard deviations, as section 6 of the source does; it needs equal weights and covariance_type="spherical".
    step : float, default=0.05
        Size of the steps of method="gradient", in data unit² per bit.
    max_iter : int, default=1000
    tol : float, default=1e-9
        "soft" has converged once its loss falls by less than this, in nats per point; "posterior" once no derivative
        exceeds the square root of `tol`. These derivatives are with respect to the means, in units of a standard
        deviation, and to the log standard deviations. With method="gradient" it has converged once no derivative by a
        mean or a standard deviation exceeds `tol` itself, in bits per data unit; the source has 0.03.
    reg_covar : float, default=1e-6
        Lower bound of the eigenvalues of a covariance, in data unit².
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts the point twice; None is 1 for each. A point of weight 0 has no effect.

    Returns
    -------
    fit : AssignmentFit

    Raises
    ------
    ValueError
        If an argument is out of its range, or does not go with others.

    Examples
    --------
    >>> from cprime.theory import Gaussians, fit_assignment
    >>> Q = Gaussians.spherical([-2, 2], [1.5, 1.5])
    >>> fit = fit_assignment(Q.sample(10_000, random_state=0), Q)
    >>> fit.converged, bool(abs(fit.components.means[0, 0]) > 2.05)
    (True, True)
    """
    check_choice(assignment, "assignment", ("hard", "soft", "posterior"))
    check_choice(weights, "weights", WEIGHTS)
    check_choice(covariance_type, "covariance_type", tuple(SHAPES))
    check_choice(method, "method", ("l-bfgs", "gradient"))
    check_real(step, "step", 0.0)
    check_integer(max_iter, "max_iter", 1)
    check_real(tol, "tol", 0.0)
    check_real(reg_covar, "reg_covar", 0.0)
    X = checked(X, dtype=np.float64)
    check_largest(float(np.abs(X).max()), X.dtype, X.shape[1], "X")
    given = check_weights(sample_weight, X)
    X, given = (X, np.ones(len(X))) if given is None else (X[given > 0], given[given > 0])
    if not isinstance(start, Gaussians):
        raise TypeError(f"start must be Gaussians, got {start!r}: only their refit by maximum likelihood is known.")
    if X.shape[1] != start.n_features:
        raise ValueError(f"X has {X.shape[1]} features, but start has {start.n_features}.")
    if len(X) < start.n_components:
        raise ValueError(f"n_samples={len(X)} should be >= {start.n_components} components.")
    if weights == "equal":
        start = start.with_equal_weights()
    shape = SHAPES[covariance_type](X.shape[1])
    if method == "gradient" and (assignment, weights, covariance_type) != ("posterior", "equal", "spherical"):
        raise ValueError(
            "method='gradient' needs assignment='posterior', weights='equal' and covariance_type='spherical', got "
            f"{assignment!r}, {weights!r} and {covariance_type!r}."
        )
    if assignment == "posterior":
        if method == "gradient":
            path, losses, converged = take_steps(X, given, start, step, max_iter, tol, reg_covar)
        else:
            path, losses, converged = descend(X, given, start, weights == "free", shape, max_iter, tol, reg_covar)
        return AssignmentFit(path[-1], path, losses, len(path) - 1, converged)
    return _alternate(X, given, start, assignment == "hard", weights, shape, max_iter, tol, reg_covar)


@dataclass
class _Statistics:
    """Sums over the points for a refit, with weights w, responsibilities p and the present means μ.

    loss: mean loss per point [nats]    counts (C,): Σ w p
    first (C, D): Σ w p (x − μ)    second (C, D, D): Σ w p (x − μ)(x − μ)ᵀ
    n_moved: number of points whose best component has changed
    """

    loss: float
    counts: Floats
    first: Floats
    second: Floats
    n_moved: int


def _alternate(
    X: Floats,
    sample_weight: Floats,
    start: Gaussians,
    hard: bool,
    weights: str,
    shape: CovarianceShape,
    max_iter: int,
    tol: float,
    reg_covar: float,
) -> AssignmentFit:
    """Return an `AssignmentFit`, found by alternating assignment of the points and refit of the Gaussians.

    The fit ends if no label changes (hard assignment), if the loss falls by less than tol (soft), or after max_iter.
    """
    path: list[Gaussians] = [start]
    losses: list[float] = []
    labels = np.full(len(X), -1, dtype=np.intp)
    while True:
        sums = _summed(X, sample_weight, path[-1], hard, weights, labels)
        losses.append(sums.loss)
        small = len(losses) > 1 and losses[-2] - losses[-1] < tol
        converged = sums.n_moved == 0 if hard else small
        if converged or len(path) > max_iter:
            return AssignmentFit(path[-1], path, losses, len(path) - 1, converged)
        path.append(_refit(X, sums, path[-1], weights, shape, reg_covar))


def _summed(
    X: Floats, sample_weight: Floats, components: Gaussians, hard: bool, weights: str, labels: NDArray[np.intp]
) -> _Statistics:
    """Assign points to components and return the sums for a refit; the new labels are written to `labels` (N,)."""
    C, D = components.means.shape
    log_alpha = log_weights(components.weights)
    sums = _Statistics(0.0, np.zeros(C), np.zeros((C, D)), np.zeros((C, D, D)), 0)
    for rows in blocks(len(X), C * D):
        log_p, w = components.log_densities(X[rows]), sample_weight[rows]
        scores = log_p + log_alpha
        if hard:
            best = scores.argmax(axis=1)
            own = log_p if weights == "equal" else scores
            sums.loss -= float(w @ np.take_along_axis(own, best[:, np.newaxis], axis=1)[:, 0])
            sums.n_moved += int(np.count_nonzero(labels[rows] != best))
            labels[rows], shares = best, np.eye(C)[best]
        else:
            sums.loss -= float(w @ logsumexp(scores, axis=1))
            shares = np.exp(log_posterior(scores))
        shares *= w[:, np.newaxis]
        sums.counts += shares.sum(axis=0)
        for b in range(C):
            centered = X[rows] - components.means[b]
            sums.first[b] += shares[:, b] @ centered
            sums.second[b] += (shares[:, b, np.newaxis] * centered).T @ centered
    sums.loss /= float(sample_weight.sum())
    return sums


def _refit(
    X: Floats, sums: _Statistics, before: Gaussians, weights: str, shape: CovarianceShape, reg_covar: float
) -> Gaussians:
    """Return the Gaussians of maximum likelihood for the `sums` over the points.

    Mixing weights are also refit if they are "free".
    The mean of each component without points is set to a point, a different one for each: the point at which the score
    log α_b P_b(x) of the component is closest to the best score.
    """
    counts = sums.counts
    means, covariances = before.means.copy(), before.covariances.copy()
    for b in np.flatnonzero(counts):
        shift = sums.first[b] / counts[b]
        means[b] = before.means[b] + shift
        covariance = shape.restricted(sums.second[b] / counts[b] - np.outer(shift, shift))
        values, vectors = np.linalg.eigh(covariance)
        covariances[b] = (vectors * np.maximum(values, max(reg_covar, np.finfo(float).tiny))) @ vectors.T
    empty = np.flatnonzero(counts == 0)
    means[empty] = X[_nearest_by_score(X, before, empty)]
    if weights == "equal":
        return Gaussians(means, covariances, before.weights)
    shares = np.where(counts > 0, counts / counts.sum(), before.weights)
    return Gaussians(means, covariances, shares / shares.sum())


def _nearest_by_score(X: Floats, components: Gaussians, empty: NDArray[np.intp]) -> list[int]:
    """Return the index of a point for each component b in `empty` (without points); no index occurs twice.

    At this point the score log α_b P_b(x) of component b is nearest to the best score of all components.
    """
    least, numbers = np.empty((0, len(empty))), np.empty((0, len(empty)), dtype=np.intp)
    for rows in blocks(len(X), len(components.means) * components.n_features) if len(empty) else ():
        scores = components.log_densities(X[rows]) + log_weights(components.weights)
        gaps = np.concatenate([least, scores.max(axis=1, keepdims=True) - scores[:, empty]])
        own = np.broadcast_to(np.arange(rows.start, rows.start + len(scores))[:, np.newaxis], (len(scores), len(empty)))
        order = np.argsort(gaps, axis=0, kind="stable")[: len(empty)]
        least = np.take_along_axis(gaps, order, axis=0)
        numbers = np.take_along_axis(np.concatenate([numbers, own]), order, axis=0)
    chosen: list[int] = []
    for column in numbers.T.tolist():
        chosen.append(next(n for n in column if n not in chosen))
    return chosen
