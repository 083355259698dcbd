"""Partitions F defined by densities: Pr[F(x) = b] of hard and posterior assignment [Kearns et al., sections 2, 3, 6].

The soft assignment of EM is not a partition; its responsibilities are the probabilities of posterior assignment.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp

from cprime.estimators.validation import check_choice
from cprime.theory.mixtures import Floats

ASSIGNMENTS = ("hard", "posterior")
WEIGHTS = ("equal", "free")
UNITS = ("bits", "nats")
_VALUES = 2**22  # maximum number of values in memory for a block of rows


def blocks(n_rows: int, n_values: int) -> Iterator[slice]:
    """Yield slices of rows, one after the other; each is so small that n_values numbers per row take little memory."""
    step = max(1, _VALUES // n_values)
    for begin in range(0, n_rows, step):
        yield slice(begin, begin + step)


def nats_per(unit: str) -> float:
    """Return the number of nats in the unit of the argument `unit`, "bits" or "nats"; ValueError for other names."""
    return float(np.log(2)) if check_choice(unit, "unit", UNITS) == "bits" else 1.0


def log_posterior(log_scores: Floats) -> Floats:
    """Return log(α_b P_b(x) / Σ_c α_c P_c(x)), the log posterior of each component b for each point x: (n, C).

    log_scores (n, C): log α_b P_b(x) for weights α_b and densities P_b
    """
    return log_scores - logsumexp(log_scores, axis=1, keepdims=True)


def log_partition(log_scores: Floats, assignment: str) -> Floats:
    """Return the logarithm of the probability that each point is assigned to each component: (n, C).

    log_scores (n, C): log α_b P_b(x) for weights α_b and densities P_b
    assignment: "posterior", or "hard" for 0 in the best component and −∞ in all others
    """
    if assignment == "posterior":
        return log_posterior(log_scores)
    result = np.full(log_scores.shape, -np.inf)
    result[np.arange(len(result)), log_scores.argmax(axis=1)] = 0.0
    return result
