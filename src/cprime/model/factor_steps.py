"""M-steps of factor analyzers: loadings by regression of x on E[z | x], and first loadings from random directions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime.kernels import Floats
from cprime.model.factor_moments import FactorMoments

# Loadings of H factors are first estimated along H + this number of random directions; fewer would be less accurate.
_MORE = 4
# Least share of noise in the variance of a coordinate when loadings are first computed, so that noise is not 0.
_LEAST_NOISE = 0.01
_ROUNDED = 16 * np.finfo(np.float64).eps
# This number is added to the variances of factors z, so that the regression for a single point is not singular.
_RIDGE = 1e-12
# Weight that components without points get in place of 0, to prevent division by 0.
_LEAST_WEIGHT = np.finfo(np.float64).tiny

Doubles = NDArray[np.float64]


class FactorRoots(NamedTuple):
    """Matrix roots and log determinants of C factor analyzers with H factors, computed once for E- and M-steps.

    Loadings are Λ, the noise covariance is Ψ, and Σ = ΛΛᵀ + Ψ.
    roots: L⁻ᵀ (C, H, H), where LLᵀ = I + ΛᵀΨ⁻¹Λ    log_determinants (C,): log |Σ|
    """

    roots: NDArray[np.float64]
    log_determinants: NDArray[np.float64]


def regressed(moments: FactorMoments, roots: Doubles) -> tuple[NDArray, NDArray, NDArray]:
    """Return the regression of x − μ on factors z: shifts of means (C, D), loadings (C, D, H), noise variances (C, D).

    moments: sums over points x of their expected factors E[z | x], and of products of these with each other and with x
    roots (C, H, H): matrices L⁻ᵀ, where L⁻ᵀL⁻¹ is the covariance of z given x
    """
    H, counts = roots.shape[1], np.maximum(moments.counts, _LEAST_WEIGHT)
    rest = np.matmul(roots, roots.transpose(0, 2, 1))  # the covariance of z given x
    outer = np.empty((len(roots), H + 1, H + 1))
    outer[:, :H, :H] = moments.second + counts[:, np.newaxis, np.newaxis] * (rest + _RIDGE * np.eye(H))
    i = np.arange(H)
    # Diagonals are enlarged, because the variance of z may be only a rounding error if z is far from 0.
    outer[:, i, i] *= 1 + _ROUNDED
    outer[:, :H, H] = outer[:, H, :H] = moments.means
    outer[:, H, H] = counts
    scale = counts[:, np.newaxis, np.newaxis]
    inner = np.concatenate([moments.cross.transpose(0, 2, 1), moments.sums[:, np.newaxis]], axis=1)
    inner /= scale
    found = np.linalg.solve(outer / scale, inner)
    left: Doubles = moments.squares / counts[:, np.newaxis] - np.einsum("chd,chd->cd", found, inner)
    return found[:, H], found[:, :H].transpose(0, 2, 1), left


def leading(moments: FactorMoments, random: Doubles, H: int) -> tuple[Doubles, Doubles, Doubles]:
    """Return initial parameters of factor analyzers, from the moments of their points along random directions.

    The result has the differences (C, D) between the points' means and the present means, loadings (C, D, H), and
    variances of the noise (C, D). The covariance S of each component's points is approximated by S ≈ SR (RᵀSR)⁻¹ RᵀS
    (Nyström), where the columns of R are the random directions. The loadings are the H principal axes of this
    approximation, each of a length whose square is the variance along it minus the mean variance of the other axes. The
    noise is the variance of each column that the loadings do not explain.
    random: Rᵀ, the directions as rows    H: number of factors
    """
    D, counts = random.shape[1], np.maximum(moments.counts, _LEAST_WEIGHT)
    shift = moments.sums / counts[:, np.newaxis]
    projections = np.broadcast_to(random, (len(counts), *random.shape))
    along = np.matmul(projections, shift[:, :, np.newaxis])
    seen = moments.cross / counts[:, np.newaxis, np.newaxis] - shift[:, :, np.newaxis] * along.transpose(0, 2, 1)
    core = np.matmul(projections, seen)
    value, vector = np.linalg.eigh((core + core.transpose(0, 2, 1)) / 2)
    least = np.maximum(value[:, -1:] * 1e-12, np.finfo(np.float64).tiny)
    root = np.matmul(seen, vector / np.sqrt(np.maximum(value, least))[:, np.newaxis])
    axes, lengths, _ = np.linalg.svd(root, full_matrices=False)
    total = np.maximum(moments.squares / counts[:, np.newaxis] - np.square(shift), 0)
    extent = np.square(lengths[:, :H])
    left = np.maximum(total.sum(axis=1) - extent.sum(axis=1), 0) / max(1, D - H)
    extent = np.maximum(extent - left[:, np.newaxis], _LEAST_NOISE * extent)
    loadings = axes[:, :, :H] * np.sqrt(extent)[:, np.newaxis]
    largest = np.take_along_axis(loadings, np.abs(loadings).argmax(axis=1)[:, np.newaxis], axis=1)
    loadings = np.where(largest < 0, -loadings, loadings)  # fix signs, which otherwise depend on LAPACK's rounding
    return shift, loadings, np.maximum(total - explained(loadings), _LEAST_NOISE * total)


def random_directions(D: int, H: int, dtype: DTypeLike) -> Doubles:
    """Return random directions (min(H + 4, D), D), along which the first M-step estimates loadings of H factors.

    Four directions more than factors make the estimate more accurate. The seed is fixed, so fits are reproducible. The
    numbers can be represented in the given dtype, in which kernels read them.
    """
    found = np.random.default_rng(0).standard_normal((min(H + _MORE, D), D))
    return found.astype(dtype).astype(np.float64)


def explained(loadings: Floats) -> Doubles:
    """Return the variances Σ_h Λ_dh² of the columns that the factors of loadings Λ (C, D, H) explain: (C, D)."""
    found: Doubles = np.einsum("cdh,cdh->cd", loadings, loadings, dtype=np.float64)
    return found
