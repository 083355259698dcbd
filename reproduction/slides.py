"""The lecture slides' algorithms in NumPy, as written there: k-means, EM of a general mixture, k-means on a line.

Plain sums in float64 for comparison with the library, without using it.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

Floats = NDArray[np.float64]


class Parameters(NamedTuple):
    """Weights π (K,), means μ (K, D) [data units], covariances Σ (K, D, D) [data unit²]."""

    weights: Floats
    means: Floats
    covariances: Floats


class Cycles(NamedTuple):
    """A run of EM.

    parameters (T + 1): initial ones, and those after the M-step of each cycle
    responsibilities (T, n, K): γ, after the E-step of each cycle
    bounds (T, 2): the lower bound of the log-likelihood after the E- and the M-step of each cycle [nats]
    """

    parameters: list[Parameters]
    responsibilities: Floats
    bounds: Floats


def one_hot(labels: NDArray[np.integer], K: int) -> Floats:
    """Return z (n, K): 1 for the cluster that a point is assigned to, else 0."""
    return np.eye(K)[labels]


def squared_distances(X: Floats, centers: Floats) -> Floats:
    """Return ‖x_n − u_k‖², (n, K)."""
    return np.square(X[:, np.newaxis] - centers).sum(axis=2)


def cost(X: Floats, centers: Floats, z: Floats) -> float:
    """Return J = Σ_n Σ_k z_kn ‖x_n − u_k‖²."""
    return float((z * squared_distances(X, centers)).sum())


def gradient(X: Floats, centers: Floats, z: Floats) -> Floats:
    """Return ∇J = −2 Σ_n z_kn (x_n − u_k), (K, D)."""
    return -2 * np.einsum("nk,nkd->kd", z, X[:, np.newaxis] - centers)


def center_update(X: Floats, z: Floats) -> Floats:
    """Return u_k = Σ_n z_kn x_n / Σ_n z_kn, (K, D)."""
    return z.T @ X / z.sum(axis=0)[:, np.newaxis]


def log_joint(X: Floats, at: Parameters) -> Floats:
    """Return log π_k + log N(x_n | μ_k, Σ_k), (n, K)."""
    apart = X[:, np.newaxis] - at.means
    squares = np.einsum("nki,kij,nkj->nk", apart, np.linalg.inv(at.covariances), apart)
    log_determinants = np.linalg.slogdet(at.covariances)[1]
    return np.log(at.weights) - (X.shape[1] * math.log(2 * math.pi) + log_determinants + squares) / 2


def e_step(X: Floats, at: Parameters) -> Floats:
    """Return γ_nk = π_k N(x_n | μ_k, Σ_k) / Σ_j π_j N(x_n | μ_j, Σ_j), (n, K)."""
    joint = log_joint(X, at)
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def m_step(X: Floats, gamma: Floats) -> Parameters:
    """Return weights, means and covariances of the points, weighted by γ (n, K)."""
    counts = gamma.sum(axis=0)
    means = gamma.T @ X / counts[:, np.newaxis]
    apart = X[:, np.newaxis] - means
    covariances = np.einsum("nk,nki,nkj->kij", gamma, apart, apart) / counts[:, np.newaxis, np.newaxis]
    return Parameters(counts / len(X), means, covariances)


def log_likelihood(X: Floats, at: Parameters) -> float:
    """Return L = Σ_n log Σ_k π_k N(x_n | μ_k, Σ_k) [nats]."""
    return float(logsumexp(log_joint(X, at), axis=1).sum())


def lower_bound(X: Floats, q: Floats, at: Parameters) -> float:
    """Return Σ_n Σ_k q_nk (log N(x_n | μ_k, Σ_k) + log π_k − log q_nk) for any distributions q (n, K) [nats]."""
    return float((q * log_joint(X, at)).sum() - xlogy(q, q).sum())


def expectation_maximisation(X: Floats, start: Parameters, n_cycles: int) -> Cycles:
    """Run n_cycles E- and M-steps from given parameters; return parameters, responsibilities and bounds."""
    parameters, responsibilities, bounds = [start], [], []
    for _ in range(n_cycles):
        before = parameters[-1]
        gamma = e_step(X, before)
        after = m_step(X, gamma)
        parameters.append(after)
        responsibilities.append(gamma)
        bounds.append([lower_bound(X, gamma, before), lower_bound(X, gamma, after)])
    return Cycles(parameters, np.array(responsibilities), np.array(bounds))


def line_optimum(x: Floats, K: int) -> float:
    """Return the least J of at most K clusters of numbers x (n,), by dynamic programming over sorted numbers in O(K
    n²).

    Clusters are intervals: the best k of the first j numbers are the best k − 1 of the first i, and one of the rest.
    """
    x = np.sort(x - x.mean())
    sums, squares = (np.concatenate([[0.0], np.cumsum(values)]) for values in (x, x**2))
    places = np.arange(len(x) + 1)
    sizes = places - places[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        runs = squares - squares[:, np.newaxis] - np.square(sums - sums[:, np.newaxis]) / sizes
    runs = np.where(sizes > 0, np.maximum(runs, 0.0), np.where(sizes == 0, 0.0, np.inf))
    best = runs[0]
    for _ in range(K - 1):
        best = (best[:, np.newaxis] + runs).min(axis=0)
    return float(best[-1])
