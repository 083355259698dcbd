"""Factor analyzers x = μ + Λz + noise and rows with missing values: costs, and expected missing values.

Let o be the observed and m the missing columns of a row x, Λ the loadings, Ψ the diagonal noise covariance (diagonal ψ)
and Σ = ΛΛᵀ + Ψ the covariance of a component, M_o = I + Λ_oᵀΨ_o⁻¹Λ_o, and b = Λ_oᵀΨ_o⁻¹(x_o − μ_o). Given x_o, the
factors z have the mean M_o⁻¹b and the covariance M_o⁻¹. With this mean as z, the squared distance under Σ_oo is
Σ_o (x − μ − Λz)²/ψ + ‖z‖², without cancellation, and log |Σ_oo| is log |M_o| + Σ_o log ψ. Missing values are
μ_m + Λ_m z + noise (Ghahramani & Hinton 1996). Matrices are H × H for H factors, one for each row and component.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Floats
from cprime.kernels.marginals import root_of
from cprime.model.factor_moments import FactorMoments

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LOG_2PI = math.log(2 * math.pi)
_NUMBERS = 2**20  # maximum number of matrix entries that are computed at a time, to limit memory


class Component(NamedTuple):
    """Parameters of one factor analyzer: mean (D,), loadings (D, H) of H factors, noise variances (D,)."""

    mean: Floats
    loadings: Doubles
    noise: Doubles


class FactorPosterior(NamedTuple):
    """Distribution of the factors z of some rows, given their observed values x_o, under one component.

    squares (n,): squared Mahalanobis distances of x_o    logs (n,): log |2πΣ_oo| of the covariances Σ_oo of x_o
    means (n, H), covariances (n, H, H): mean and covariance matrix of z given x_o
    """

    squares: Doubles
    logs: Doubles
    means: Doubles
    covariances: Doubles


def factored(X: Floats, observed: Mask, of: Component) -> Iterator[tuple[slice, Doubles, FactorPosterior]]:
    """Yield, for one block of rows x after another, the distribution of the factors given the observed values.

    Each item is a triple: the slice of the b rows of the block; x − μ (b, D), with 0 for missing values; and a
    `FactorPosterior`, with the means (b, H) and covariance matrices (b, H, H) of the H factors of these rows.
    of: parameters of the component, of mean μ    observed (n, D): mask of the values that are not missing
    """
    D, H = of.loadings.shape
    scaled = of.loadings / of.noise[:, np.newaxis]
    outer = np.einsum("dh,dk->dhk", scaled, of.loadings).reshape(D, H * H)
    step = max(1, _NUMBERS // max(D, H * H))
    for begin in range(0, len(X), step):
        rows = slice(begin, begin + step)
        o = observed[rows].astype(np.float64)
        y = np.subtract(X[rows], of.mean, dtype=np.float64) * o
        inner = (o @ outer).reshape(len(o), H, H) + np.eye(H)
        inverse = np.linalg.inv(root_of(inner, partial(above_one, of.loadings, of.noise, observed[rows])))
        half = np.einsum("nij,nj->ni", inverse, y @ scaled)
        logs = o @ (np.log(of.noise) + _LOG_2PI) - 2 * np.log(np.diagonal(inverse, axis1=1, axis2=2)).sum(axis=1)
        means = np.einsum("nji,nj->ni", inverse, half)
        squares = np.square((y - means @ of.loadings.T) * o) @ (1 / of.noise) + np.square(means).sum(axis=1)
        yield rows, y, FactorPosterior(squares, logs, means, np.matmul(inverse.transpose(0, 2, 1), inverse))


def above_one(loadings: Doubles, noise: Doubles, observed: Mask | None = None) -> Doubles:
    """Return A (n, H + D, H): the unit matrix stacked on W = Ψ^−½ Λ (n, D, H), so that AᵀA = I + WᵀW.

    From A a root of AᵀA can be computed by a QR decomposition, even if rounding makes AᵀA indefinite.
    loadings Λ (n, D, H) and noise variances Ψ (n, D), or (D, H) and (D,) together with
    observed (n, D): mask of observed values; rows of W for missing values are 0
    """
    W = loadings / np.sqrt(noise)[..., np.newaxis]
    if observed is not None:
        W = W * observed[:, :, np.newaxis]
    n, _, H = W.shape
    return np.concatenate([np.broadcast_to(np.eye(H), (n, H, H)), W], axis=1)


class GapMoments(NamedTuple):
    """Moments of a component from rows with missing values: weighted sums over rows of expectations given x_o.

    x_o are the observed values of row x, μ is the mean of the component, y = x − μ, and z are the factors.
    sums, squares (D,): sums of E[y] and of E[y²]    cross (D, H): sum of E[y zᵀ]    means (H,): sum of E[z]
    second (H, H): sum of E[z zᵀ], which includes the covariance of z given x_o
    """

    sums: Doubles
    squares: Doubles
    cross: Doubles
    means: Doubles
    second: Doubles


def gap_moments(X: Floats, observed: Mask, of: Component, share: Doubles) -> GapMoments:
    """Return the sums for the M-step of a factor analyzer x = μ + Λz + noise over rows x with missing values.

    With y = x − μ and factors z, these are the weighted sums of the expectations of y, y², y zᵀ, z and z zᵀ, given the
    observed values of each row. A missing value in column d of y is Λ_d z + noise, with row d of the loadings Λ.
    observed (n, D): mask of the values that are not missing
    of: mean μ, loadings and noise variances of the analyzer    share (n,): weights of the rows
    """
    D, H = of.loadings.shape
    found = GapMoments(np.zeros(D), np.zeros(D), np.zeros((D, H)), np.zeros(H), np.zeros((H, H)))
    for rows, y, part in factored(X, observed, of):
        q, gone = share[rows], (~observed[rows]).astype(np.float64)
        weighted = q[:, np.newaxis] * part.means
        second = q[:, np.newaxis, np.newaxis] * part.covariances
        second += part.means[:, :, np.newaxis] * weighted[:, np.newaxis]
        missing = (gone.T @ second.reshape(len(q), H * H)).reshape(D, H, H)
        cross = np.einsum("dh,dhk->dk", of.loadings, missing)
        found.sums[...] += q @ y + (of.loadings * (gone.T @ weighted)).sum(axis=1)
        found.squares[...] += q @ np.square(y) + (cross * of.loadings).sum(axis=1) + of.noise * (q @ gone)
        found.cross[...] += y.T @ weighted + cross
        found.means[...] += weighted.sum(axis=0)
        found.second[...] += second.sum(axis=0)
    return found


def completed(X: Floats, observed: Mask, of: Component, normal: Doubles | None = None) -> Doubles:
    """Return x − μ (n, D) for rows x and the mean μ of component `of`, with missing values replaced by expectations.

    normal (n, D): standard normal numbers; if given, missing values are drawn at random instead
    """
    out = np.empty(X.shape)
    for rows, y, part in factored(X, observed, of):
        gone = ~observed[rows]
        out[rows] = y + gone * (part.means @ of.loadings.T)
        if normal is not None:
            out[rows] += gone * _drawn(of, part.covariances, normal[rows] * gone, gone)
    return out


def _drawn(of: Component, covariances: Doubles, normal: Doubles, gone: Mask) -> Doubles:
    """Return random deviations (n, D) of each row's missing values from their expectations given the observed ones.

    The covariance of the deviations of a row is Λ_m V Λ_mᵀ + Ψ_m, with the loadings Λ_m and noise variances Ψ_m of the
    missing columns, and the covariance V of the factors given the observed values. So the deviations are computed as
    Ψ^½ (I + WWᵀ)^½ times the standard normal numbers `normal` (n, D), with W = Ψ_m^−½ Λ_m V^½.
    covariances (n, H, H): V of each row    gone (n, D): mask of missing values
    """
    root = np.sqrt(of.noise)
    scaled = (of.loadings / root[:, np.newaxis]) * gone[:, :, np.newaxis]
    return root * times_root(np.matmul(scaled, np.linalg.cholesky(covariances)), normal)


def times_root(W: Doubles, normal: Doubles) -> Doubles:
    """Return (I + WWᵀ)^½ times the vectors `normal` (n, D), for one matrix W (D, H) or one for each vector (n, D, H).

    With the singular value decomposition W = PSQᵀ, the root is I + P(√(1 + S²) − 1)Pᵀ.
    """
    axes, lengths, _ = np.linalg.svd(W, full_matrices=False)
    along = np.einsum("...dh,...d->...h", axes, normal) * (np.sqrt(1 + np.square(lengths)) - 1)
    found: Doubles = normal + np.einsum("...dh,...h->...d", axes, along)
    return found


def add_gap_moments(
    found: FactorMoments, c: int, X: Floats, observed: Mask, share: Doubles, of: Component, root: Doubles
) -> None:
    """Set the moments of component c, in place in `found`, from rows with missing values.

    For every row, the M-step adds the covariance L⁻ᵀL⁻¹ of the factors z given a complete row. It is subtracted here.
    X (n, D)    observed (n, D): mask of the values that are not missing    share (n,): weights of the rows
    of: parameters of the component    root (H, H): L⁻ᵀ
    """
    moments = gap_moments(X, observed, of, share)
    found.sums[c], found.squares[c], found.cross[c], found.means[c] = moments[:4]
    found.second[c] = moments.second - share.sum() * root @ root.T
