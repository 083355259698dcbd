"""Overlap of densities: the variation distance of Kearns, Mansour & Ng, eq. (33), and its bounds, eqs. (34) to (40)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime.estimators.validation import check_choice
from cprime.theory.expectation import expectation
from cprime.theory.loss import log_alpha_of, partition_loss
from cprime.theory.mixtures import Floats, as_mixture, log_mixture_density
from cprime.theory.partition import ASSIGNMENTS, WEIGHTS, log_partition


class VariationDistance(NamedTuple):
    """Variation distance ∫ abs(P_i(x) − P_j(x)) dx between every two component densities P_i and P_j.

    Attributes
    ----------
    distance : ndarray of shape (n_components, n_components)
        From 0 (equal densities) to 2 (no overlap).
    lower, upper : ndarray of shape (n_components, n_components)
        A 95 % interval; both equal `distance` after quadrature.

    Examples
    --------
    >>> from cprime.theory import Gaussians, variation_distance
    >>> V = variation_distance(Gaussians.spherical([-2, 2], [1, 1]))
    >>> V.distance.round(2).tolist()
    [[0.0, 1.91], [1.91, 0.0]]
    """

    distance: Floats
    lower: Floats
    upper: Floats


def variation_distance(model: Any, *, n_samples: int = 100_000, random_state: Any = None) -> VariationDistance:
    """Compute V(P_i, P_j) = `∫ abs(P_i(x) − P_j(x)) dx` between all densities P_i, P_j: eq. (33) of Kearns et al.

    Parameters
    ----------
    model : Gaussians, Univariate, KMeans, GaussianMixture or StudentTMixture
        An estimator must be fitted. Weights have no effect.
    n_samples : int, default=100_000
        Number of draws in more than one dimension; quadrature is used in one dimension.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    result : VariationDistance

    Examples
    --------
    >>> from cprime.theory import Gaussians, variation_distance
    >>> P = Gaussians.spherical([-2, 2], [1.5, 1.5])
    >>> round(float(variation_distance(P).distance[0, 1]), 4)
    1.6352
    """
    mixture = as_mixture(model, "model").with_equal_weights()
    C = len(mixture.weights)
    first, second = np.triu_indices(C, 1)
    if C == 1:
        zero = np.zeros((1, 1))
        return VariationDistance(zero, zero, zero)

    def relative_difference(X: Floats, log_q: Floats) -> Floats:
        relative = np.exp(mixture.log_densities(X) - log_q[:, np.newaxis])
        return np.abs(relative[:, first] - relative[:, second])

    def order(X: Floats) -> NDArray[np.intp]:
        """Return component indices (n, C) by ascending density at each row; quadrature is divided where they change."""
        return np.argsort(mixture.log_densities(X), axis=1, kind="stable")

    found = expectation(mixture, mixture, order, n_samples, random_state)(relative_difference)

    def square(values: Floats) -> Floats:
        result = np.zeros((C, C))
        result[first, second] = result[second, first] = values
        return result

    return VariationDistance(square(found.values), *map(square, found.intervals))


class VariationBounds(NamedTuple):
    """Lower bounds of the variation distance V(P_0, P_1) of two densities that fit the parts of a partition F.

    Q is the sampling density, Q_b its part with F(x) = b. Equation numbers are those of Kearns, Mansour & Ng. For C > 2
    components, each number is a matrix of shape (C, C) with the pairs of components, and the w of a pair are the shares
    in the union of its two parts; `shares`, `misfits` and `divergences` have shape (C,).

    Attributes
    ----------
    distance : float or ndarray of shape (C, C)
        V(P_0, P_1), eq. (33), from 0 to 2.
    partition_distance : float or ndarray of shape (C, C)
        V(Q_0, Q_1); 2 if the assignment is hard.
    shares : ndarray of shape (C,)
        w_b = Pr[F(x) = b].
    misfits : ndarray of shape (C,)
        V(Q_b, P_b).
    divergences : ndarray of shape (C,)
        KL(Q_b‖P_b) [bits].
    triangle : float or ndarray of shape (C, C)
        V(Q_0, Q_1) − V(Q_0, P_0) − V(Q_1, P_1), the lower bound of `distance` in eqs. (34) and (35).
    weighted : float or ndarray of shape (C, C)
        V(Q_0, Q_1) − 2 Σ_b w_b V(Q_b, P_b) − 2 (1 − 2 min_b w_b), the lower bound of `distance` in eq. (38).
    pinsker : float or ndarray of shape (C, C)
        V(Q_0, Q_1) − Σ_b √(2 ln 2 KL(Q_b‖P_b)), a lower bound of `triangle` by Pinsker's inequality.
    printed : float or ndarray of shape (C, C)
        V(Q_0, Q_1) − 1/2 − 2 Σ_b w_b KL(Q_b‖P_b) − 2 (1 − 2 min_b w_b), eq. (40). This is not a bound, see Notes.

    Notes
    -----
    Kearns et al. derive eqs. (39) and (40) from V(P, Q) ≤ √KL(P‖Q), which is false: of P = (1/2 + ε, 1/2 − ε) and
    Q = (1/2, 1/2), V = 2ε and √KL = 1.70 ε in bits. Pinsker's inequality is V ≤ √(2 ln 2 KL), with KL in bits. In
    (39) the sign of the term 1/4 also differs from what its derivation gives, −2 Σ_b w_b (KL_b + 1/4).

    Examples
    --------
    >>> from cprime.theory import Gaussians, variation_bounds
    >>> P = Gaussians.spherical([-1, 1], [1, 1])
    >>> found = variation_bounds(P, P)
    >>> found.pinsker <= found.triangle <= found.distance + 1e-9
    True
    """

    distance: Any
    partition_distance: Any
    shares: Floats
    misfits: Floats
    divergences: Floats
    triangle: Any
    weighted: Any
    pinsker: Any
    printed: Any


def variation_bounds(
    model: Any,
    Q: Any,
    *,
    assignment: str = "hard",
    weights: str = "equal",
    n_samples: int = 100_000,
    random_state: Any = None,
) -> VariationBounds:
    """Compute bounds of the variation distance V of densities that fit the parts of a partition well, of each pair.

    See section 5 of Kearns et al.; V(Q_b, P_b) = ∫|Q_b − P_b| for the part Q_b of the data and its density P_b.

    Parameters
    ----------
    model : Gaussians, Univariate, KMeans, GaussianMixture or StudentTMixture
        Two or more densities P_b and their weights; an estimator must be fitted.
    Q : Gaussians, Univariate or fitted estimator
        The sampling density. Data are refused, because V(Q_b, P_b) needs a density.
    assignment : {"hard", "posterior"}, default="hard"
        As in `partition_loss`.
    weights : {"equal", "free"}, default="equal"
        As in `partition_loss`.
    n_samples : int, default=100_000
        Number of draws from Q in more than one dimension; quadrature is used in one dimension.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    result : VariationBounds

    Raises
    ------
    ValueError
        If the model has only one component, an argument is out of its range, or a component gets no part of Q.

    References
    ----------
    Kearns, Mansour & Ng, *An information-theoretic analysis of hard and soft assignment methods for clustering*.

    Examples
    --------
    >>> from cprime.theory import Gaussians, variation_bounds
    >>> Q = Gaussians.spherical([-2, 2], [1.5, 1.5])
    >>> found = variation_bounds(Q, Q)
    >>> round(found.distance, 2), round(found.triangle, 2), round(found.pinsker, 2)
    (1.64, 1.64, 1.07)
    """
    check_choice(assignment, "assignment", ASSIGNMENTS)
    check_choice(weights, "weights", WEIGHTS)
    mixture, known = as_mixture(model, "model"), as_mixture(Q, "Q")
    C = len(mixture.weights)
    if C < 2:
        raise ValueError(f"model must have at least two components, got {C}.")
    options: dict[str, Any] = {"n_samples": n_samples, "random_state": random_state}
    loss = partition_loss(model, Q, assignment=assignment, weights=weights, unit="bits", **options)
    if not loss.shares.all():
        raise ValueError(f"Each component of model must get a part of Q, got the shares {loss.shares.tolist()}.")
    log_alpha = log_alpha_of(mixture, weights)
    log_shares = np.log(loss.shares)
    first, second = np.triu_indices(C, 1)

    def log_ratios(X: Floats, log_q: Floats) -> tuple[Floats, Floats]:
        """Return log Q_b(x)/Q(x) and log P_b(x)/Q(x), (n, C) each: P_b is a density, Q_b a part of Q."""
        log_p = mixture.log_densities(X)
        return log_partition(log_p + log_alpha, assignment) - log_shares, log_p - log_q[:, np.newaxis]

    def overlaps(X: Floats, log_q: Floats) -> Floats:
        """Return values (n, C + C (C − 1)/2) at rows x, whose expectations under Q are overlaps.

        These are ∫ min(Q_b, P_b) dx for each b, and ∫ min(Q_a, Q_b) dx for each pair, where Q_b is a part of Q, P_b a
        density.
        """
        part, own = log_ratios(X, log_q)
        return np.exp(np.hstack([np.minimum(part, own), np.minimum(part[:, first], part[:, second])]))

    def pieces(X: Floats) -> NDArray[np.intp]:
        """Return labels 0 or 1 (n, C + C (C − 1)/2) at rows X: whether Q_b > P_b, and Q_a > Q_b of each pair.

        Quadrature has a breakpoint where a label changes. Q_b is a part of Q, P_b a density.
        """
        part, own = log_ratios(X, log_mixture_density(known, X))
        return np.hstack([part > own, part[:, first] > part[:, second]]).astype(np.intp)

    mean = expectation(known, mixture, pieces, n_samples, random_state)
    misfits, pairs = np.split(2 - 2 * mean(overlaps).values, [C])
    between = np.zeros((C, C))
    between[first, second] = between[second, first] = pairs
    w_a = loss.shares[:, np.newaxis] / np.add.outer(loss.shares, loss.shares)  # share of a in the union of a and b
    w_b = w_a.T
    uneven = 2 * (1 - 2 * np.minimum(w_a, w_b))
    root = np.sqrt(2 * np.log(2) * np.maximum(loss.kl, 0))
    values = {
        "distance": variation_distance(model, **options).distance,
        "partition_distance": between,
        "triangle": between - np.add.outer(misfits, misfits),
        "weighted": between - 2 * (w_a * misfits[:, np.newaxis] + w_b * misfits) - uneven,
        "pinsker": between - np.add.outer(root, root),
        "printed": between - 0.5 - 2 * (w_a * loss.kl[:, np.newaxis] + w_b * loss.kl) - uneven,
    }
    if C == 2:
        values = {name: float(each[0, 1]) for name, each in values.items()}
    return VariationBounds(shares=loss.shares, misfits=misfits, divergences=loss.kl, **values)
