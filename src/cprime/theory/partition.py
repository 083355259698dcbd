"""Partitions F that densities define: Pr[F(x) = b] of hard and posterior assignment [Kearns et al., sections 2, 3, 6].

The soft assignment of EM is no partition; its shares are the probabilities of the posterior one.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cprime.theory.mixtures import Floats

ASSIGNMENTS = ("hard", "posterior")
WEIGHTS = ("equal", "free")


def winners(log_scores: Floats) -> NDArray[np.intp]:
    """Winner takes all (n,): the largest of (n, C) log α_b P_b(x), the first of equal ones."""
    return log_scores.argmax(axis=1)


def log_posterior(log_scores: Floats) -> Floats:
    """log R_b(x) = log α_b P_b / Σ_c α_c P_c, (n, C)."""
    return log_scores - logsumexp(log_scores, axis=1, keepdims=True)


def log_partition(log_scores: Floats, assignment: str) -> Floats:
    """log Pr[F(x_n) = b], (n, C): 0 or −∞ where the assignment is "hard"."""
    if assignment == "posterior":
        return log_posterior(log_scores)
    result = np.full(log_scores.shape, -np.inf)
    result[np.arange(len(result)), winners(log_scores)] = 0.0
    return result
