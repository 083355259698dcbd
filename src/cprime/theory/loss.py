"""Partition loss E[−log P_F(x)(x)] and its terms: eq. (1), (8), (12), (13), (14), (22) of Kearns, Mansour & Ng."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from cprime._utils.random import check_random_state
from cprime.estimators.opening import preparation_of
from cprime.estimators.validation import check_choice, check_integer
from cprime.theory.expectation import (
    Quadrature,
    Sample,
    check_n_features,
    expectation,
    log_density_by_neighbors,
)
from cprime.theory.mixtures import Floats, MixtureDensity, as_mixture, as_rows_of, log_mixture_density, log_weights
from cprime.theory.partition import ASSIGNMENTS, WEIGHTS, log_partition, nats_per

_SCALARS = ("loss", "modeling", "partition_entropy", "assignment_entropy", "entropy", "weighted_loss")
_DERIVED = ("information_gain", "conditional_entropy")


@dataclass(frozen=True)
class PartitionLoss:
    """Expected partition loss (−log density of the assigned component) and its terms, per point, in `unit`.

    P_b is the density of component b, F(x) the component to which x is assigned, Q the sampling density, and Q_b its
    part with F(x) = b. Equation numbers are those of Kearns, Mansour & Ng.

    Attributes
    ----------
    loss : float
        E_Q[−log P_F(x)(x)], eq. (1).
    modeling : float
        Σ_b w_b KL(Q_b‖P_b), the modeling terms of (8) and (13).
    terms : ndarray of shape (n_components,)
        w_b KL(Q_b‖P_b), whose sum is `modeling`.
    cross_entropies : ndarray of shape (n_components,)
        E_{Q_b}[−log P_b(x)], the loss within the part of each component, eq. (5); NaN if the part is empty.
    shares : ndarray of shape (n_components,)
        w_b = Pr[F(x) = b].
    partition_entropy : float
        H(w).
    assignment_entropy : float
        H(F(x)|x), 0 for a hard partition.
    entropy : float
        H(Q), a differential entropy.
    weighted_loss : float
        E_Q[−log α_F(x) P_F(x)(x)], eq. (14) and (18): the loss minus Σ_b w_b log α_b.
    unit : {"bits", "nats"}
    intervals : dict
        A 95 % interval (low, high) of each quantity by name, with arrays for `terms` and `shares`. The intervals are
        those of means of independent points and include the error of the shares to first order. Empty after quadrature.

    Examples
    --------
    >>> from cprime.theory import Gaussians, partition_loss
    >>> Q = Gaussians.spherical([-2, 2], [1.5, 1.5])
    >>> found = partition_loss(Q, Q)
    >>> found.shares.round(3).tolist(), round(found.partition_entropy, 3)
    ([0.5, 0.5], 1.0)
    """

    loss: float
    modeling: float
    terms: Floats
    cross_entropies: Floats
    shares: Floats
    partition_entropy: float
    assignment_entropy: float
    entropy: float
    weighted_loss: float
    unit: str
    intervals: Mapping[str, tuple[Any, Any]]

    @property
    def kl(self) -> Floats:
        """Return KL(Q_b‖P_b), (n_components,), for each component's density P_b and its part Q_b; NaN if empty."""
        return np.divide(self.terms, self.shares, out=np.full_like(self.terms, np.nan), where=self.shares > 0)

    @property
    def part_entropies(self) -> Floats:
        """Return the entropies H(Q_b), (n_components,), of the parts Q_b of Q [Kearns et al., eq. 7]; NaN if empty."""
        return self.cross_entropies - self.kl

    @property
    def information_gain(self) -> float:
        """Return the information gain H(w) − H(F(x)|x) of a partition F with shares w [Kearns et al., eq. 12].

        It is the entropy of Q minus the mean entropy within the parts of F.
        """
        return self.partition_entropy - self.assignment_entropy

    @property
    def conditional_entropy(self) -> float:
        """Return the mean entropy of Q within the parts of a partition F with shares w [Kearns et al., eq. 12].

        It is H(Q) − (H(w) − H(F(x)|x)).
        """
        return self.entropy - self.information_gain

    def __str__(self) -> str:
        lines = [
            ("loss E[−log P_F(x)]", self.loss, "loss"),
            ("= Σ w KL(Q_b‖P_b)", self.modeling, "modeling"),
            ("+ H(Q|F)", self.conditional_entropy, "conditional_entropy"),
            ("    H(Q)", self.entropy, "entropy"),
            ("    − H(w)", self.partition_entropy, "partition_entropy"),
            ("    + H(F|x)", self.assignment_entropy, "assignment_entropy"),
            ("weighted loss", self.weighted_loss, "weighted_loss"),
        ]
        text = [f"{title:<22}{value:10.4f} {self.unit}{self._shown(name)}" for title, value, name in lines]
        parts = ", ".join(f"{w:.3f} · {kl:.4f}" for w, kl in zip(self.shares, self.kl, strict=True))
        return "\n".join([*text, f"w_b · KL_b             {parts}"])

    def _shown(self, name: str) -> str:
        if name not in self.intervals:
            return ""
        low, high = self.intervals[name]
        return f"  [{low:.4f}, {high:.4f}]"


def partition_loss(
    model: Any,
    Q: Any,
    *,
    assignment: str = "hard",
    weights: str = "equal",
    unit: str = "bits",
    n_samples: int = 100_000,
    n_neighbors: int = 5,
    random_state: Any = None,
) -> PartitionLoss:
    """Compute the expected partition loss of densities P_b and its decomposition, eq. (8), (13), (22) of Kearns et al.

        E[−log P_F(x)(x)] = Σ_b w_b KL(Q_b‖P_b) + H(Q) − (H(w) − H(F|x)),    Q_b = Q conditioned on F(x) = b

    F(x) is the component to which x is assigned, w_b the probability that F(x) = b, H an entropy.

    Parameters
    ----------
    model : Gaussians, Univariate, KMeans, GaussianMixture or StudentTMixture
        The densities P_b and their weights α_b; an estimator must be fitted.
    Q : Gaussians, Univariate or array-like of shape (n_samples, n_features)
        The sampling density, integrated by quadrature in one dimension and by random draws in more; or data, for which
        log Q is estimated from the distances to neighbors (Kozachenko & Leonenko). That estimate affects `entropy`,
        `terms`, `modeling` and `conditional_entropy`. It is biased if there are few points or many dimensions, and the
        intervals do not include this bias.
    assignment : {"hard", "posterior"}, default="hard"
        "hard" assigns a point to its best component, "posterior" to a component drawn from the posterior.
    weights : {"equal", "free"}, default="equal"
        Whether points are assigned by P_b(x), or by α_b P_b(x) as in weighted K-means.
    unit : {"bits", "nats"}, default="bits"
        Logarithms of base 2, as in the source, or natural ones.
    n_samples : int, default=100_000
        Number of draws from a known Q in more than one dimension.
    n_neighbors : int, default=5
        Number of neighbors k in the entropy estimate from data.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    result : PartitionLoss

    Raises
    ------
    ValueError
        If an argument is out of its range, dimensions differ, or all rows of the data are equal, so that they have no
        density.

    References
    ----------
    Kearns, Mansour & Ng, *An information-theoretic analysis of hard and soft assignment methods for clustering*.

    Examples
    --------
    >>> from cprime.theory import Gaussians, partition_loss
    >>> Q = Gaussians.spherical([-2, 2], [1.5, 1.5])
    >>> found = partition_loss(Q, Q)
    >>> round(found.loss, 3), round(found.modeling, 3), round(found.information_gain, 3)
    (2.469, 0.155, 1.0)
    """
    check_choice(assignment, "assignment", ASSIGNMENTS)
    check_choice(weights, "weights", WEIGHTS)
    scale = 1 / nats_per(unit)
    mixture = as_mixture(model, "model")
    log_alpha = log_alpha_of(mixture, weights)

    log_densities = _of_the_last(mixture.log_densities)

    def scored(X: Floats) -> Floats:
        return log_densities(X) + log_alpha

    over_Q = _expectation(model, Q, mixture, scored, n_samples, n_neighbors, random_state)
    shares = over_Q(lambda X, _: np.exp(log_partition(scored(X), assignment)))
    found = over_Q(lambda X, log_q: loss_columns(log_densities(X), log_q, log_alpha, assignment, shares.values))
    values, terms, crossed = _separated(found.values * scale, len(shares.values))
    named = dict(zip(_SCALARS + _DERIVED, values.tolist(), strict=True))
    intervals: dict[str, tuple[Any, Any]] = {}
    if isinstance(over_Q, Sample):
        limits, term_limits, _ = _separated((found.intervals * scale).T, len(shares.values))
        intervals = {name: tuple(pair) for name, pair in zip(named, limits.tolist(), strict=True)}
        intervals |= {"terms": tuple(term_limits.T), "shares": tuple(shares.intervals)}
    scalars = {name: named[name] for name in _SCALARS}
    crossed = np.divide(crossed, shares.values, out=np.full_like(crossed, np.nan), where=shares.values > 0)
    return PartitionLoss(
        terms=terms, cross_entropies=crossed, shares=shares.values, unit=unit, intervals=intervals, **scalars
    )


def part_densities(
    model: Any,
    Q: Any,
    X: Any,
    *,
    assignment: str = "hard",
    weights: str = "equal",
    n_samples: int = 100_000,
    random_state: Any = None,
) -> Floats:
    """Return the densities Q_b(x) = Q(x) Pr[F(x) = b] / w_b of the parts of Q: eq. (4) of Kearns, Mansour & Ng.

    F(x) is the component to which x is assigned, w_b the probability that F(x) = b. So Q = Σ_b w_b Q_b.

    Parameters
    ----------
    model, Q, assignment, weights, n_samples, random_state
        As in `partition_loss`, which computes w_b; Q must be a density.
    X : array-like of shape (n_samples, n_features)
        Points x.

    Returns
    -------
    densities : ndarray of shape (n_samples, n_components)
        Q_b(x_n); NaN in the column of a component to which nothing is assigned.

    Examples
    --------
    >>> from cprime.theory import Gaussians, part_densities
    >>> Q = Gaussians.spherical([-2, 2], [1.5, 1.5])
    >>> part_densities(Q, Q, [[-2.0], [1.0]]).round(2).tolist()
    [[0.27, 0.0], [0.0, 0.25]]
    """
    mixture, known = as_mixture(model, "model"), as_mixture(Q, "Q")
    shares = partition_loss(
        model, Q, assignment=assignment, weights=weights, n_samples=n_samples, random_state=random_state
    ).shares
    X = as_rows_of(model, X)
    check_n_features(mixture, X.shape[1], "X")
    log_f = log_partition(mixture.log_densities(X) + log_alpha_of(mixture, weights), assignment)
    found = np.exp(log_mixture_density(known, X)[:, np.newaxis] + log_f - log_weights(shares))
    return np.where(shares > 0, found, np.nan)


def _separated(values: Floats, C: int) -> list[Floats]:
    """Return three parts of the results for `loss_columns` along the first axis: scalars, terms, cross entropies."""
    return np.split(values, [-2 * C, -C])


def _expectation(
    model: Any, Q: Any, mixture: MixtureDensity, scored: Any, n_samples: int, n_neighbors: int, random_state: Any
) -> Quadrature | Sample:
    """Return the expectation under Q as a callable. mixture: density of `model`; its scaled rows have the neighbors."""
    if not isinstance(Q, MixtureDensity) and not hasattr(Q, "fit"):
        check_integer(n_samples, "n_samples", 2)
        check_random_state(random_state)
        return sample_of(model, Q, mixture, n_neighbors)
    known = as_mixture(Q, "Q")
    return expectation(known, mixture, lambda X: scored(X).argmax(axis=1)[:, np.newaxis], n_samples, random_state)


def sample_of(model: Any, Q: Any, mixture: MixtureDensity, n_neighbors: int, name: str = "Q") -> Sample:
    """Return the rows Q with the log density that is estimated at each row from the distance to a neighbor.

    mixture: density of `model`, in whose scaled rows neighbors are found    name: name of the argument Q, for messages
    """
    check_integer(n_neighbors, "n_neighbors", 1)
    X, preparation = as_rows_of(model, Q, name, ensure_min_samples=2), preparation_of(model)
    check_n_features(mixture, X.shape[1], name)
    log_densities = log_density_by_neighbors(preparation.applied(X), n_neighbors, name)
    return Sample(X, log_densities - preparation.log_volume)


def log_alpha_of(mixture: MixtureDensity, weights: str) -> Floats:
    """Return log α_b (C,) of the weights by which points are assigned: those of the mixture if `weights` is "free"."""
    C = len(mixture.weights)
    return log_weights(mixture.weights if weights == "free" else np.full(C, 1 / C))


def _of_the_last(function: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """Return `function` with a memory of one result: a call with the same array object as the last call returns it.

    A call with any other array, also one with equal entries, computes the result and stores it.
    """
    known: list[tuple[Floats, Floats]] = []

    def found(X: Floats) -> Floats:
        if not known or known[0][0] is not X:
            known[:] = [(X, function(X))]
        return known[0][1]

    return found


def loss_columns(log_p: Floats, log_q: Floats, log_alpha: Floats, assignment: str, shares: Floats) -> Floats:
    """Return columns (n, 8 + 2 C) whose means over the n points are the terms of the partition loss.

    The first eight are the loss, its modeling terms, H(w), H(F|x), H(Q), the weighted loss, the information gain and
    the conditional entropy. The next C are w_b KL(Q_b‖P_b): the share w_b of component b times the divergence of its
    density P_b from its part Q_b of the data; the last C are w_b E_{Q_b}[−log P_b].

    log_p (n, C): log P_b(x)    log_q (n,): log Q(x)    log_alpha (C,): log of the weights α_b    shares (C,): w_b
    The columns of the entropy H(w) and of w_b KL(Q_b‖P_b) also contain the effect of the sampling error of the shares
    w, to first order, so that the confidence intervals of their means include it.
    """
    log_f = log_partition(log_p + log_alpha, assignment)
    f, log_shares = np.exp(log_f), log_weights(shares)
    taken = f > 0
    # If the probability of an assignment is 0, the log ratio is −∞ + ∞ = NaN, and `np.where` selects 1.0 instead.
    with np.errstate(invalid="ignore"):
        ratio = np.where(taken, log_q[:, np.newaxis] + log_f - log_shares - log_p, 1.0)

    def over_F(values: Floats) -> Floats:
        return (f * np.where(taken, values, 0.0)).sum(axis=1)

    partition_entropy = over_F(-log_shares)
    assignment_entropy = -xlogy(f, f).sum(axis=1)
    information = partition_entropy - assignment_entropy
    columns = [over_F(-log_p), over_F(ratio), partition_entropy, assignment_entropy, -log_q]
    columns += [over_F(-log_p - log_alpha), information, -log_q - information]
    return np.column_stack([*columns, f * (ratio - 1) + shares, f * np.where(taken, -log_p, 0.0)])
