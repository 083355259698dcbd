"""Components of directions: p(x given c) = C_D(κ_c) exp(κ_c μ_c·x) of rows x of length 1 (von Mises–Fisher).

Banerjee, Dhillon, Ghosh & Sra (2005). The mean length A_D(κ) = I_{D/2}(κ) / I_{D/2−1}(κ) of the mean of rows and the
normalizer C_D(κ) contain modified Bessel functions I. Let s = √(ν² + κ²) with ν = D/2 − 1. If s is small, they are
computed from the hypergeometric function 0F1, otherwise from the uniform asymptotic expansion of I_ν (DLMF 10.41).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray
from scipy.special import gammaln, hyp0f1, logsumexp

from cprime._utils.declared import Array
from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.kernels import Dense, Floats, Rows, SparseRows
from cprime.model.base import n_weights, new_weights
from cprime.model.interface import Weights
from cprime.model.linear import Linear, LinearCosts, LinearMoments
from cprime.model.unit import directions

Doubles = NDArray[np.float64]

_LARGEST = 1e8  # largest κ: that of angles of 1e-4 between rows and mean direction
_ASYMPTOTIC = 30.0  # least s for which the asymptotic expansion is used; its error is below 1e-13 then
_N_TERMS = 12
_N_STEPS = 50  # maximum number of steps of Newton's method; 3 to 6 are usual


@storable("model.VonMisesFisher")
@dataclass(frozen=True)
class VonMisesFisher(Linear):
    """Mixture of von Mises–Fisher distributions. Rows have length 1.

    centers (C, D): mean directions μ, of length 1    concentrations (C,): κ
    estimated: whether M-steps estimate κ    shared: whether all components have the same κ
    """

    concentrations: Doubles = field(default_factory=lambda: np.empty(0))
    estimated: bool = True
    shared: bool = False

    covariance_type: ClassVar[str] = "von_mises_fisher"
    attribute_names: ClassVar[tuple[str, ...]] = ("concentrations_",)
    declared: ClassVar[Mapping[str, Any]] = {"concentrations_": Array("C", least=0)}
    options: ClassVar[tuple[str, ...]] = ("concentration",)

    @property
    def n_parameters(self) -> int:
        C, D = self.centers.shape
        return C * (D - 1) + (0 if not self.estimated else 1 if self.shared else C) + n_weights(self.weights)

    @property
    def natural(self) -> tuple[Doubles, Doubles]:
        # Single-precision centers are scaled again, because κ multiplies the rounding of their lengths.
        centers = self.centers.astype(np.float64)
        units = centers / np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), np.finfo(float).tiny)
        return self.concentrations[:, np.newaxis] * units, -log_normalizer(self.concentrations, self.n_features)

    @cached
    def _components(self) -> LinearCosts:
        found: LinearCosts = super()._components
        return replace(found, centers=mean_length(self.concentrations, self.n_features)[:, np.newaxis] * self.centers)

    def density_limit(self, X: Rows) -> float:
        return float(logsumexp(self.concentrations - 0.5 * self._components.offsets))

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        return X.as_type(np.float64) if isinstance(X, SparseRows) else super().embed(X)

    def maximise(self, moments: LinearMoments, prior: None = None) -> Self:
        centers, lengths = directions(moments.counts, moments.sums, self.centers)
        weights = new_weights(self.weights, moments.counts)
        new = replace(self, centers=centers.astype(self.centers.dtype), weights=weights)
        if not self.estimated:
            return new
        if self.shared:
            mean = np.full(len(lengths), lengths.sum() / moments.counts.sum())
            return replace(new, concentrations=concentration_of(mean, self.n_features))
        there = moments.counts > 0
        mean = np.divide(lengths, moments.counts, out=np.zeros(len(lengths)), where=there)
        return replace(
            new, concentrations=np.where(there, concentration_of(mean, self.n_features), self.concentrations)
        )

    def hold_centers(self, moments: LinearMoments, prior: None = None) -> tuple[LinearMoments, None]:
        along = np.maximum((moments.sums * self.centers).sum(axis=1), 0)
        return replace(moments, sums=along[:, np.newaxis] * self.centers), None

    def pseudo_moments(self, shares: Doubles) -> tuple[LinearMoments, None]:
        return LinearMoments(shares, shares[:, np.newaxis] * self._components.centers), None

    @property
    def variances(self) -> Doubles:
        across, along = self._spread
        return across[:, np.newaxis] + along[:, np.newaxis] * np.square(self.centers.astype(np.float64))

    def covariances_along(self, directions: Doubles) -> Doubles:
        across, along = self._spread
        means = self.centers @ directions.T
        found: Doubles = across[:, np.newaxis, np.newaxis] * (directions @ directions.T)
        return found + along[:, np.newaxis, np.newaxis] * means[:, :, np.newaxis] * means[:, np.newaxis]

    @property
    def _spread(self) -> tuple[Doubles, Doubles]:
        """Return a and b, (C,) each, of the covariances a I + b μμᵀ of the components."""
        D, mean = self.n_features, mean_length(self.concentrations, self.n_features)
        across = np.divide(mean, self.concentrations, out=np.full(len(mean), 1 / D), where=self.concentrations > 0)
        return across, 1 - D * across - np.square(mean)

    def drawn(self, labels: NDArray, normal: Doubles) -> Doubles:
        """Return rows drawn from components `labels` (n,) by rejection (Ulrich 1984; Wood 1994).

        normal (n, D): standard normal numbers, from which the directions across μ are made. The cosines with μ come
        from a generator that these numbers seed, because rejection needs more of them.
        """
        rng = np.random.default_rng(np.ascontiguousarray(normal).view(np.uint64).reshape(-1)[: 4 * len(normal)])
        means = self.centers.astype(np.float64)[labels]
        off = _cosine_gaps(self.concentrations[labels], self.n_features, rng)[:, np.newaxis]
        across = normal - (normal * means).sum(axis=1, keepdims=True) * means
        across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), np.finfo(float).tiny)
        return (1 - off) * means + np.sqrt(off * (2 - off)) * across

    def attributes(self) -> dict[str, Any]:
        return {"concentrations_": self.concentrations.astype(self.centers.dtype)}

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        return cls(centers, weights, np.asarray(attributes["concentrations_"], dtype=np.float64))

    @classmethod
    def starting(
        cls,
        centers: Floats,
        weights: Weights,
        reg_covar: float,
        precisions: Any = None,
        concentration: float | str = "estimate",
    ) -> Self:
        estimated, (C, D) = isinstance(concentration, str), centers.shape
        first = np.full(C, float(D) if estimated else float(concentration))
        units = Dense(np.ascontiguousarray(centers)).normalized()[0].dense()
        return cls(units, weights, first, estimated, concentration == "shared")


VON_MISES_FISHER = {"von_mises_fisher": VonMisesFisher}


@cache
def _expansions() -> tuple[list[Polynomial], list[Polynomial]]:
    """Return polynomials u_k and w_k of p² with p = ν/s, coefficients of s^−k and s^−(k+1) in expansions of I_ν.

    With U = Σ_k u_k s^−k and W = Σ_k w_k s^−(k+1), I_ν is e^s (κ/(ν + s))^ν U / √(2πs), and the derivative of log I_ν
    by κ is (s + κ² W / (s U)) / κ. DLMF 10.41.9 to 10.41.11; their U_k(p) is p^k u_k(p²).
    """
    p, terms = Polynomial([0, 1]), [Polynomial([1])]
    for _ in range(_N_TERMS - 1):
        last = terms[-1]
        terms.append(0.5 * p**2 * (1 - p**2) * last.deriv() + ((1 - 5 * p**2) * last).integ() / 8)
    more = [-(0.5 * p * each + p**2 * each.deriv()) for each in terms]
    u, w = ([Polynomial(each.coef[k + i :: 2]) for k, each in enumerate(found)] for i, found in ((0, terms), (1, more)))
    return u, w


def _series(kappa: Doubles, order: float) -> tuple[Doubles, Doubles, Doubles]:
    """Return s, and the sums U and W of the expansions of I_ν(κ) of order ν, (n,) each."""
    s = np.hypot(order, kappa)
    u, w = ([each(np.square(order / s)) for each in found] for found in _expansions())
    sums = [sum(each / s ** (k + i) for k, each in enumerate(found)) for i, found in ((0, u), (1, w))]
    return s, np.asarray(sums[0]), np.asarray(sums[1])


def log_normalizer(kappa: Doubles, D: int) -> Doubles:
    """Return log C_D(κ) of densities on the sphere in D dimensions: (n,).

    kappa (n,): concentrations κ
    """
    order, kappa = D / 2 - 1, np.asarray(kappa, dtype=np.float64)
    area = np.log(2) + D / 2 * np.log(np.pi) - gammaln(D / 2)  # of the sphere: 1 / C_D(0)
    large = np.hypot(order, kappa) >= _ASYMPTOTIC
    small, out = ~large, np.empty(len(kappa))
    out[small] = -area - np.log(hyp0f1(D / 2, np.square(kappa[small]) / 4))
    s, U, _ = _series(kappa[large], order)
    out[large] = order * np.log(order + s) - s - np.log(U) + 0.5 * np.log(2 * np.pi * s) - D / 2 * np.log(2 * np.pi)
    return out


def mean_length(kappa: Doubles, D: int) -> Doubles:
    """Return A_D(κ), the length of the mean of rows with the concentrations κ (n,): (n,)."""
    order, kappa = D / 2 - 1, np.asarray(kappa, dtype=np.float64)
    large = np.hypot(order, kappa) >= _ASYMPTOTIC
    small, out = ~large, np.empty(len(kappa))
    z = np.square(kappa[small]) / 4
    out[small] = kappa[small] / D * hyp0f1(D / 2 + 1, z) / hyp0f1(D / 2, z)
    s, U, W = _series(kappa[large], order)
    out[large] = kappa[large] / (s + order) + kappa[large] / s * W / U
    return out


def concentration_of(mean: Doubles, D: int) -> Doubles:
    """Return the concentrations κ with A_D(κ) = mean (n,), at most 1e8, by Newton's method: (n,).

    It starts at the approximation of Banerjee et al., R (D − R²) / (1 − R²) for the mean length R.
    """
    mean = np.clip(mean, 0, 1 - np.finfo(float).eps)
    kappa = np.minimum(mean * (D - np.square(mean)) / (1 - np.square(mean)), _LARGEST)
    for _ in range(_N_STEPS):
        A = mean_length(kappa, D)
        share = np.divide(A, kappa, out=np.full(len(A), 1 / D), where=kappa > 0)
        # The difference in the derivative cancels for large κ, where it is nearly (D − 1) / 2κ².
        slope = np.where(kappa > 1e4 * D, (D - 1) / (2 * np.square(np.maximum(kappa, 1))), 1 - A * A - (D - 1) * share)
        step = (mean - A) / np.maximum(slope, np.finfo(float).tiny)
        new = np.clip(kappa + step, kappa / 2, np.minimum(2 * kappa + 1e-300, _LARGEST))
        close = np.abs(new - kappa) <= 1e-12 * kappa
        kappa = new
        if close.all():
            break
    return kappa


def _cosine_gaps(kappa: Doubles, D: int, rng: np.random.Generator) -> Doubles:
    """Draw 1 − cos of the angle between a row and its mean direction: (n,).    kappa (n,): concentrations"""
    if D == 1:
        return 2.0 * (rng.random(len(kappa)) * (1 + np.exp(-2 * kappa)) > 1)
    m = D - 1
    b = m / (2 * kappa + np.hypot(2 * kappa, m))
    out, left = np.empty(len(kappa)), np.arange(len(kappa))
    while len(left):
        k, r = kappa[left], b[left]
        z, uniform = rng.beta(m / 2, m / 2, len(left)), rng.random(len(left))
        gap = 2 * r * z / (1 - (1 - r) * z)
        x = (1 - r) / (1 + r)
        level = k * (1 - gap - x) + m * (np.log1p(-x * (1 - gap)) - np.log(4 * r / np.square(1 + r)))
        taken = level >= np.log(uniform)
        out[left[taken]] = gap[taken]
        left = left[~taken]
    return out
