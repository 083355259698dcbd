"""Moments and M-steps of factor analyzers x = μ + Λz + noise, and the same for rows with missing values.

Loadings Λ are found by regression of x on E[z | x]. First loadings are principal axes of the covariance, which is
estimated from moments along random directions.

Let o be the observed and m the missing columns of a row x, Λ the loadings, Ψ the diagonal noise covariance (diagonal ψ)
and Σ = ΛΛᵀ + Ψ the covariance of a component, M_o = I + Λ_oᵀΨ_o⁻¹Λ_o, and b = Λ_oᵀΨ_o⁻¹(x_o − μ_o). Given x_o, the
factors z have the mean M_o⁻¹b and the covariance M_o⁻¹. With this mean as z, the squared distance under Σ_oo is
Σ_o (x − μ − Λz)²/ψ + ‖z‖², without cancellation, and log |Σ_oo| is log |M_o| + Σ_o log ψ. Missing values are
μ_m + Λ_m z + noise (Ghahramani & Hinton 1996). Matrices are H × H for H factors, one for each row and component.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime._utils.values import replace
from cprime.execution.statistics import Sums
from cprime.kernels import Floats
from cprime.kernels.marginals import root_of

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LOG_2PI = math.log(2 * math.pi)
_NUMBERS = 2**20  # maximum number of matrix entries that are computed at a time, to limit memory
# For the first loadings of H factors, moments along H + this number of random directions; fewer are less accurate.
_MORE = 4
# Least share of noise in the variance of a coordinate when loadings are first computed, so that noise is not 0.
_LEAST_NOISE = 0.01
_ROUNDED = 16 * np.finfo(np.float64).eps
# This number is added to the variances of factors z, so that the regression for a single point is not singular.
_RIDGE = 1e-12
# Weight that components without points get in place of 0, to prevent division by 0.
_LEAST_WEIGHT = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class FactorMoments(Sums):
    """Moments of factor analyzers: sums over points x_n, weighted by sample weight times responsibility, w_n q_nc.

    Let y = x − μ_c and z = W_c y. If loadings are known, z are the expected factors given x. Otherwise z is the
    projection of y on H random directions, the rows of W_c. All fields are weighted sums; none is divided by a weight.
    counts (C,): sum of the weights    sums, squares (C, D): sums of y and of y²    cross (C, D, H): sum of y zᵀ
    means (C, H): sum of z    second (C, H, H): sum of z zᵀ, without the covariance of the factors given x
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]
    cross: NDArray[np.float64]
    means: NDArray[np.float64]
    second: NDArray[np.float64]

    def select(self, piece: slice) -> Self:
        """Return the moments of a slice of components."""
        first = self.counts[piece], self.sums[piece], self.squares[piece]
        return type(self)(*first, self.cross[piece], self.means[piece], self.second[piece])

    @classmethod
    def none(cls, C: int, H: int, D: int) -> Self:
        """Return the moments of C components in D dimensions without points: zeros.

        H: number of directions along which moments are taken, which may differ from the number of factors
        """
        sums, squares, cross, means = (np.zeros(shape) for shape in ((C, D), (C, D), (C, D, H), (C, H)))
        return cls(np.zeros(C), sums, squares, cross, means, np.zeros((C, H, H)))

    def accumulate(
        self,
        cross: NDArray[np.float64],
        y: NDArray[np.float64],
        q: NDArray[np.float64],
        along: NDArray[np.float64],
        roots: NDArray[np.float64],
    ) -> None:
        """Add the moments of rows about one origin to these, in place; sums of y zᵀ are added to `cross` (D, C·H).

        y (n, D): rows minus the origin    q (n, C): weighted responsibilities
        z: expected factors of row n under component c, given as z = along[n, c] @ roots[c].T from along (n, C, H) and
        roots (C, H, H)
        """
        n, C, H = along.shape
        weighted = np.empty((n, C, H))
        for c in range(C):
            z = along[:, c] @ roots[c].T
            np.multiply(z, q[:, c, np.newaxis], out=weighted[:, c])
            self.second[c] += z.T @ weighted[:, c]
        cross += y.T @ weighted.reshape(n, C * H)
        self.counts[...] += q.sum(axis=0)
        self.sums[...] += q.T @ y
        self.squares[...] += q.T @ np.square(y)
        self.means[...] += weighted.sum(axis=0)

    def about(self, places: NDArray[np.float64], cross: NDArray[np.float64]) -> Self:
        """Return moments about the means `places` (C, D), from these moments about one origin.

        places are relative to the origin    cross (D, C·H): sums of y zᵀ, for points y minus origin and their factors z
        """
        C, H = self.means.shape
        counts = self.counts[:, np.newaxis]
        moved = (
            cross.reshape(places.shape[1], C, H).transpose(1, 0, 2)
            - places[:, :, np.newaxis] * self.means[:, np.newaxis]
        )
        squares = self.squares - 2 * places * self.sums + counts * np.square(places)
        return replace(self, sums=self.sums - counts * places, squares=np.maximum(squares, 0), cross=moved)

    def buffer(self, H: int, dtype: np.dtype) -> tuple[NDArray[np.float64], Floats, NDArray[np.float64]]:
        """Return arrays to which an M-step writes means (C, D), loadings (C, D, H) of H factors, and noise (C, D).

        Means and noise are float64, loadings of the given dtype. Where shape and dtype are the same, the memory of the
        moments is reused.
        """
        C, D = self.sums.shape
        cross = self.cross.transpose(0, 2, 1)
        reused = cross.flags.c_contiguous and cross.flags.writeable and cross.shape[1] == H and dtype == np.float64
        loadings = cross if reused else np.empty((C, H, D), dtype)
        return self.sums, loadings.transpose(0, 2, 1), self.squares


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


class MissingMoments(NamedTuple):
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


def missing_moments(X: Floats, observed: Mask, of: Component, share: Doubles) -> MissingMoments:
    """Return the sums for the M-step of a factor analyzer x = μ + Λz + noise over rows x with missing values.

    With y = x − μ and factors z, these are the weighted sums of the expectations of y, y², y zᵀ, z and z zᵀ, given the
    observed values of each row. A missing value in column d of y is Λ_d z + noise, with row d of the loadings Λ.
    observed (n, D): mask of the values that are not missing
    of: mean μ, loadings and noise variances of the analyzer    share (n,): weights of the rows
    """
    D, H = of.loadings.shape
    found = MissingMoments(np.zeros(D), np.zeros(D), np.zeros((D, H)), np.zeros(H), np.zeros((H, H)))
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


def add_missing_moments(
    found: FactorMoments, c: int, X: Floats, observed: Mask, share: Doubles, of: Component, root: Doubles
) -> None:
    """Set the moments of component c, in place in `found`, from rows with missing values.

    They include the covariance of the factors z. The M-step adds that of a complete row, L⁻ᵀL⁻¹, for every row, so it
    is subtracted first.
    X (n, D)    observed (n, D): mask of the values that are not missing    share (n,): weights of the rows
    of: parameters of the component    root (H, H): L⁻ᵀ
    """
    moments = missing_moments(X, observed, of, share)
    found.sums[c], found.squares[c], found.cross[c], found.means[c] = moments[:4]
    found.second[c] = moments.second - share.sum() * root @ root.T


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
