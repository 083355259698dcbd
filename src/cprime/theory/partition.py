"""Partitions F defined by densities: Pr[F(x) = b] of hard and posterior assignment [Kearns et al., sections 2, 3, 6].

The soft assignment of EM is not a partition; its responsibilities are the probabilities of posterior assignment.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp

from cprime.theory.mixtures import Floats

ASSIGNMENTS = ("hard", "posterior")
WEIGHTS = ("equal", "free")
_VALUES = 2**22  # maximum number of values in memory for a block of rows


def blocks(n_rows: int, n_values: int) -> Iterator[slice]:
    """Yield slices that divide the rows into blocks; a block with n_values numbers per row takes little memory."""
    step = max(1, _VALUES // n_values)
    for begin in range(0, n_rows, step):
        yield slice(begin, begin + step)


def log_posterior(log_scores: Floats) -> Floats:
    """Return the log posteriors log(α_b P_b(x) / Σ_c α_c P_c(x)) of components b, from log α_b P_b(x): both (n, C)."""
    return log_scores - logsumexp(log_scores, axis=1, keepdims=True)


def log_partition(log_scores: Floats, assignment: str) -> Floats:
    """Return log probabilities of assignment to each component, (n, C), from log α_b P_b(x); 0 or −∞ if "hard"."""
    if assignment == "posterior":
        return log_posterior(log_scores)
    result = np.full(log_scores.shape, -np.inf)
    result[np.arange(len(result)), log_scores.argmax(axis=1)] = 0.0
    return result
