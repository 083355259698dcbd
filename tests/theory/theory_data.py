"""Formulas of Lücke & Forster in plain NumPy and float64, test data, and E-steps with given active sets."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from cprime import em
from cprime._utils.random import Key
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import as_rows, computing
from cprime.model import TiedSpherical
from cprime.search import Full, Lookup, SearchStats
from fits import squared_distances

DTYPES = (np.float32, np.float64)


def resolution(dtype, D, *values):
    """Return the rounding error of a bound F [nats] whose terms (squared distances over σ²) have these values."""
    return 8 * float(np.finfo(dtype).eps) * np.sqrt(D) * (D + 1 + sum(abs(np.asarray(v, dtype=float)) for v in values))


def log_joint(X, centers, variance):
    """Return log p(c, x_n | Θ) of the mixture with weights 1/C and variance σ², (n, C)."""
    C, D = centers.shape
    return -np.log(C) - D / 2 * np.log(2 * np.pi * variance) - squared_distances(X, centers) / (2 * variance)


def responsibilities(X, centers, variance):
    """Return r_nc = p(c | x_n, Θ), (n, C)."""
    joint = log_joint(X, centers, variance)
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def nearest_sets(X, centers, n_active):
    """Return K(n): the indices (n, H) of the n_active nearest components, nearest first."""
    return np.argsort(squared_distances(X, centers), axis=1, kind="stable")[:, :n_active]


def truncated_posterior(X, centers, variance, kept):
    """Return q_nc of eq. (4) and (5) of Lücke & Forster, (n, C): zero outside K(n)."""
    joint = log_joint(X, centers, variance)
    inside = np.take_along_axis(joint, kept, axis=1)
    q = np.zeros_like(joint)
    np.put_along_axis(q, kept, np.exp(inside - logsumexp(inside, axis=1, keepdims=True)), axis=1)
    return q


def free_energy(X, centers, variance, kept, weight=None):
    """Return F(K, Θ) of eq. (7) of Lücke & Forster, per unit of weight [nats]."""
    inside = np.take_along_axis(log_joint(X, centers, variance), kept, axis=1)
    return np.average(logsumexp(inside, axis=1), weights=weight)


def log_likelihood(X, centers, variance, weight=None):
    """Return L(Θ) of eq. (3) of Lücke & Forster, per unit of weight [nats]."""
    return np.average(logsumexp(log_joint(X, centers, variance), axis=1), weights=weight)


def maximise(X, q, weight):
    """Compute the M-step, eq. (6), with q in place of r; return centers and variance. Each component needs points."""
    X = np.asarray(X, dtype=np.float64)
    held = weight[:, np.newaxis] * q
    centers = held.T @ X / held.sum(axis=0)[:, np.newaxis]
    variance = (held * squared_distances(X, centers)).sum() / (X.shape[1] * weight.sum())
    return centers, variance


def k_means_c_prime(X, centers, variance, n_active, n_iter, weight=None):
    """Run n_iter iterations of Algorithm 3; return centers, variance, and F of each E-step. n_active = C is Algorithm
    2.
    """
    weight = np.ones(len(X)) if weight is None else weight
    bounds = []
    for _ in range(n_iter):
        kept = nearest_sets(X, centers, n_active)
        bounds.append(free_energy(X, centers, variance, kept, weight))
        centers, variance = maximise(X, truncated_posterior(X, centers, variance, kept), weight)
    return centers, variance, bounds


@dataclass
class GivenActiveSets:
    """Search step that returns given active sets, whatever the distances."""

    ids: np.ndarray

    def __call__(self, block, points, kept, components, n_kept):
        distances = np.take_along_axis(squared_distances(points.given(), components.centers), self.ids, axis=1)
        order = np.argsort(distances, axis=1, kind="stable")
        ids = np.take_along_axis(self.ids, order, axis=1).astype(np.int32)
        found = ActiveSet(ids, np.take_along_axis(distances, order, axis=1).astype(points.dtype))
        return Lookup(found, ids.size, SearchStats(block.n_weighted))


def model_of(centers, variance):
    """Return parameters Θ without a lower limit of the variance."""
    return TiedSpherical(np.asarray(centers), float(variance), 0.0)


def e_step(X, model, n_active, weight=None, look=None, before=None):
    """Run a soft E-step in one thread, by default with full search; return active sets and sufficient statistics."""
    key = Key(0)
    look = look or Full().look(None, model.components(), key)
    step = em.EM(em.MixtureSettings(1, 0.0, n_active)).propose(model, model.components(), look, key)
    with computing(1):
        return step(Block(as_rows(X), weight), before)


def bound_of(X, model, n_active, kept=None, weight=None):
    """Return F of the library's E-step for given active sets (n, n_active), by default the nearest components."""
    if kept is None:
        _, totals = e_step(X, model, n_active, weight)
    else:  # sets of any size, including all components
        _, totals = em.EStep(model, GivenActiveSets(np.asarray(kept)), n_active, em.soft_assignment)(
            Block(as_rows(X), weight), None
        )
    return em.free_energy(model, totals.tally)
