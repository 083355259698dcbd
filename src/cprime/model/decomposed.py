"""Gaussian mixtures whose covariances have some parts in common: families of Celeux & Govaert (1995).

Σ_c = λ_c D_c A_c D_cᵀ, with volume λ_c = |Σ_c|^(1/D), shape A_c (diagonal, of determinant 1) and orientation D_c
(orthogonal). mclust's names of families have a letter for each of the three, in this order: E if it is equal for all
components, V if it is variable, I if it is that of the identity matrix. Other families have files of their own: EII is
`tied_spherical`, VII `spherical`, VVI `diag`, EEE `tied` and VVV `full`.

Let p_c be the share of the points in component c, and S_c their second moments about its mean. An M-step minimizes
Σ_c p_c (log |Σ_c| + tr Σ_c⁻¹ S_c). The steps for volumes and shapes are functions of S_c, for matrices and for
diagonals alike. With orientations of their own (EEV, VEV) they apply to the eigenvalues of S_c, and with a common
orientation D (EVE, VVE) to the diagonals of Dᵀ S_c D.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.kernels import Floats
from cprime.model.base import n_weights, register
from cprime.model.conditional import Conditional
from cprime.model.covariance import DataScale, inverses, of_empty, pooled, positive, repaired
from cprime.model.interface import Weights
from cprime.model.own_covariance import Diag, FullCovariance, OwnCovariance

# Limits of M-steps without closed form: number of iterations, and the relative change of volumes that ends them. They
# are coarse, because the next M-step continues from the result.
_MOST_VOLUMES, _VOLUME_CHANGE = 50, 1e-4
# Number of orientations that an M-step compares, and the decrease of its objective [nats per point] that ends it.
_MOST_TURNS, _TURN_GAIN = 12, 1e-6
_GOLDEN = (5**0.5 - 1) / 2
_ROUNDING = 4 * np.finfo(np.float64).eps  # eigenvalues up to this share of the largest one are 0
_NEAR = 1e-8  # share of the mean second moment in matrices whose eigenvectors may not be unique


class Decomposed(OwnCovariance):
    """Mixture with equal volumes, shapes or orientations; each subclass also is one of `Diag` or `FullCovariance`.

    M-steps without closed form start from the present covariances, and never decrease F. Then `settles` is False.
    """

    letters: ClassVar[str]  # mclust's name of the family

    @property
    def n_parameters(self) -> int:
        C, D = self.n_components, self.n_features
        volumes, shapes, orientations = ({"E": 1, "V": C, "I": 0}[letter] for letter in self.letters)
        n = volumes + shapes * (D - 1) + orientations * (D * (D - 1) // 2)
        return self.centers.size + n + n_weights(self.weights)

    @property
    def unconstrained(self) -> Any:
        """Mixture of the family "diag" or "full" with the same parameters."""
        family = FullCovariance if self.full else Diag
        return family(self.centers, self.covariances, self.reg_covar, self.weights)

    @property
    def volumes(self) -> NDArray[np.float64]:
        """Volumes |Σ_c|^(1/D) of the components (C,) [data unit²]."""
        return np.exp(-2 / self.n_features * self.factors[1])

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        second = of_empty(shares, second if self.full else np.maximum(second, 0))
        diagonals = np.einsum("cii->ci", second) if self.full else second
        diagonals += self.reg_covar
        return self._fitted(shares, second, scale)

    def _fitted(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        """Return the covariances of this family that are best for `second` moments; the same shape.

        shares (C,): share of the points in each component    scale: scale of the data, to repair singular covariances
        """
        fit = _FITS[self.letters[:2]]
        if self.letters[1] == "V":  # Shapes of singular covariances are not defined.
            second = _repaired(second, self.centers.dtype, scale)
        if self.letters in ("EVE", "VVE"):
            axes, variances = _common_axes(self, shares, second, scale)
        elif self.letters in ("EEV", "VEV"):
            axes = _eigenvectors(second, pooled(shares, second))
            resolution = np.einsum("cij,ci->cj", np.square(axes), scale.resolution)
            along = (axes * (second @ axes)).sum(axis=1)
            along[along <= _ROUNDING * along.max(axis=1, keepdims=True)] = 0
            variances = fit(self, shares, along, scale._replace(resolution=resolution))
        else:
            return fit(self, shares, second, scale)
        roots = axes * np.sqrt(variances)[:, np.newaxis]
        return roots @ roots.transpose(0, 2, 1)

    def _projected(self, shares: NDArray[np.float64] | None, covariances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return covariances of this family that are near to the given ones: those of an M-step from their Gaussians.

        shares (C,): weights of the components, None for 1/C each
        """
        shares = np.full(self.n_components, 1 / self.n_components) if shares is None else shares
        scale = DataScale(float(np.abs(covariances).max()), np.zeros(self.centers.shape))
        return self._fitted(shares, covariances, scale)

    def _covariances_along(self, before: Self, share: float) -> NDArray[np.float64]:
        return self._projected(self.weights, self.unconstrained._covariances_along(before, share))

    def marginal(self, columns: NDArray[np.intp]) -> Any:
        """Return the marginal mixture of some columns: of this family if all of its members keep it, else free."""
        return super().marginal(columns) if self._keeps_columns else self.unconstrained.marginal(columns)

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        found: Conditional = (
            super().conditional(columns) if self._keeps_columns else self.unconstrained.conditional(columns)
        )
        return found

    @property
    def _keeps_columns(self) -> bool:
        """True if marginals and conditionals are of this family, whose covariances are λ_c times a common matrix."""
        return self.letters[1] == "E" and self.letters[2] != "V"

    def as_sklearn(self) -> dict[str, Any]:
        return OwnCovariance.attributes(self)

    @classmethod
    def starting(cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None) -> Self:
        model = super().starting(centers, weights, reg_covar, precisions)
        if precisions is None:
            return model
        return replace(model, covariances=model._projected(weights, model.covariances))


def _repaired(covariances: NDArray[np.float64], dtype: Any, scale: DataScale | None = None) -> NDArray[np.float64]:
    """Return covariances (C, D, D), or their diagonals (C, D), in which singular ones are made positive definite."""
    if covariances.ndim == 2:
        return positive(covariances, dtype, scale)
    return repaired(covariances, dtype, scale)[0]


def _equal(
    model: Decomposed, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
) -> NDArray[np.float64]:
    """Return the covariances of equal volume and shape: the mean of the second moments, for each component."""
    one = _repaired(pooled(shares, second)[np.newaxis], model.centers.dtype, scale.pool(shares))
    return np.repeat(one, model.n_components, axis=0)


def _proportional(
    model: Decomposed, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
) -> NDArray[np.float64]:
    """Return the covariances λ_c B of equal shape and variable volume, where |B| = 1.

    Two steps are repeated: B ∝ Σ_c p_c S_c / λ_c, and λ_c = tr(S_c B⁻¹) / D. A volume is at least that of the data's
    resolution, and components of a smaller one do not count for B.
    """
    D, moments = model.n_features, second.reshape(model.n_components, -1)
    volumes, least = model.volumes, np.zeros(model.n_components)
    for _ in range(_MOST_VOLUMES):
        inside = np.divide(shares, volumes, out=np.zeros_like(volumes), where=volumes > least)
        common, inverse = _of_unit_volume(pooled(inside, second))
        least = scale.resolution @ (np.diagonal(inverse) if inverse.ndim == 2 else inverse) / D
        before, volumes = volumes, np.maximum(moments @ inverse.ravel() / D, least)
        if (np.abs(volumes - before) <= _VOLUME_CHANGE * before).all():
            break
    return _repaired(volumes.reshape(-1, *[1] * common.ndim) * common, model.centers.dtype, scale)


def _of_unit_volume(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return B = Σ / |Σ|^(1/D) for a covariance Σ (D, D), or for its diagonal (D,), and the inverse B⁻¹."""
    if matrix.ndim == 1:
        variances = positive(matrix, np.float64)
        variances /= np.exp(np.log(variances).mean())
        return variances, 1 / variances
    (found,), lower = repaired(matrix[np.newaxis])
    volume = np.exp(2 * np.log(np.diagonal(lower[0])).mean())
    inverse = inverses(lower)[0]
    return found / volume, volume * inverse.T @ inverse


def _of_equal_volume(
    model: Decomposed, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
) -> NDArray[np.float64]:
    """Return the covariances of equal volume Σ_c p_c |S_c|^(1/D), and of the shapes of the second moments S_c."""
    logs = np.log(second).mean(axis=1) if second.ndim == 2 else np.linalg.slogdet(second)[1] / model.n_features
    factors = shares @ np.exp(logs - logs.max()) * np.exp(logs.max() - logs)
    return second * factors.reshape(-1, *[1] * (second.ndim - 1))


# Steps of an M-step for volumes and shapes, by their letters.
_FITS: dict[str, Any] = {
    "EE": _equal,
    "VE": _proportional,
    "EV": _of_equal_volume,
    "VV": lambda model, shares, second, scale: second,
}


def _common_axes(
    model: Decomposed, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the common orientation D (D, D) of an M-step, and the variances (C, D) along its columns.

    The angle of each plane of two axes is that of the step of Flury & Gautschi for the present variances. All planes
    turn at once, by half of their angles if the objective would rise, so that the step is one of Newton's method where
    the matrices Dᵀ S_c D are almost diagonal.
    """
    fit = _FITS[model.letters[:2]]
    axes, turn, step, best = _present_axes(model, shares, second), np.zeros(second.shape[1:]), 1.0, np.inf
    for _ in range(_MOST_TURNS):
        trial = axes @ _rotation(step * turn)
        moments = trial.T @ (second @ trial)
        spread = fit(model, shares, np.diagonal(moments, axis1=1, axis2=2), scale)
        objective = float(shares @ np.log(spread).sum(axis=1))
        if objective > best:
            step /= 2
            continue
        gain, best, axes, variances = best - objective, objective, trial, spread
        if gain < _TURN_GAIN:
            break
        turn, step = _angles(shares[:, np.newaxis] / variances, moments), 1.0
    return axes, variances


def _angles(weights: NDArray[np.float64], moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the best angle [radians] of each plane of two axes, if only this plane turns: an antisymmetric (D, D).

    weights (C, D): shares of the components, divided by the variances along the axes
    moments (C, D, D): second moments of the components in the coordinates of the axes
    """
    sums = np.einsum("cl,clm->lm", weights, moments)
    squares = weights.T @ np.diagonal(moments, axis1=1, axis2=2)  # [l, m]: of axis m, weighted as axis l
    own = np.diagonal(squares)
    apart = np.maximum(squares + squares.T - own - own[:, np.newaxis], 0)  # only rounding makes it negative
    angles: NDArray[np.float64] = 0.5 * np.arctan2(-2 * (sums - sums.T), apart)
    return angles.T


def _rotation(angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rotation (D, D) by the angles of planes in an antisymmetric matrix: its Cayley transform."""
    unit = np.eye(len(angles))
    return np.asarray(np.linalg.solve(unit - angles / 2, unit + angles / 2), dtype=np.float64)


def _present_axes(model: Decomposed, shares: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the common eigenvectors (D, D) of the present covariances.

    They are those of a sum of the covariances with unequal weights, in which eigenvalues that differ for a component
    hardly coincide. Where they are not unique, the mean of the `second` moments (C, D, D) decides.
    """
    weights = 0.5 + np.modf(_GOLDEN * np.arange(1, model.n_components + 1))[0]
    traces = np.trace(model.covariances, axis1=1, axis2=2)
    return _eigenvectors(pooled(weights / traces, model.covariances), pooled(shares, second))


def _eigenvectors(matrices: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return eigenvectors of matrices (…, D, D). Where they are not unique, a small share of `mean` (D, D) decides.

    So their covariances depend neither on the order of columns nor on a rotation of the data.
    """
    parts = []
    for part in (matrices, mean):
        traces = np.trace(part, axis1=-2, axis2=-1)[..., np.newaxis, np.newaxis]
        parts.append(np.divide(part, traces, out=np.zeros_like(part), where=traces > 0))
    return np.asarray(np.linalg.eigh(parts[0] + _NEAR * parts[1])[1], dtype=np.float64)


@register
@storable("model.TiedDiag")
@dataclass(frozen=True)
class TiedDiag(Decomposed, Diag):
    """Mixture with one diagonal covariance for all components (EEI); covariances (C, D): C copies of its diagonal."""

    covariance_type: ClassVar[str] = "tied_diag"
    letters: ClassVar[str] = "EEI"
    axes: ClassVar[str] = "D"

    def __post_init__(self) -> None:
        if self.covariances.ndim == 1:  # the diagonal as in fitted attributes
            object.__setattr__(self, "covariances", np.tile(self.covariances, (len(self.centers), 1)))

    def attributes(self) -> dict[str, Any]:
        return {name: value[0] for name, value in super().attributes().items()}


@register
@storable("model.VEI")
@dataclass(frozen=True)
class VEI(Decomposed, Diag):
    """Mixture with diagonal covariances of equal shape: Σ_c = λ_c A."""

    covariance_type: ClassVar[str] = "VEI"
    letters: ClassVar[str] = "VEI"
    settles: ClassVar[bool] = False


@register
@storable("model.EVI")
@dataclass(frozen=True)
class EVI(Decomposed, Diag):
    """Mixture with diagonal covariances of equal volume: Σ_c = λ A_c."""

    covariance_type: ClassVar[str] = "EVI"
    letters: ClassVar[str] = "EVI"


@register
@storable("model.VEE")
@dataclass(frozen=True)
class VEE(Decomposed, FullCovariance):
    """Mixture with covariances of equal shape and orientation: Σ_c = λ_c D A Dᵀ."""

    covariance_type: ClassVar[str] = "VEE"
    letters: ClassVar[str] = "VEE"
    settles: ClassVar[bool] = False


@register
@storable("model.EVE")
@dataclass(frozen=True)
class EVE(Decomposed, FullCovariance):
    """Mixture with covariances of equal volume and orientation: Σ_c = λ D A_c Dᵀ."""

    covariance_type: ClassVar[str] = "EVE"
    letters: ClassVar[str] = "EVE"
    settles: ClassVar[bool] = False
    scale_free: ClassVar[bool] = False


@register
@storable("model.VVE")
@dataclass(frozen=True)
class VVE(Decomposed, FullCovariance):
    """Mixture with covariances of equal orientation, common principal components: Σ_c = λ_c D A_c Dᵀ."""

    covariance_type: ClassVar[str] = "VVE"
    letters: ClassVar[str] = "VVE"
    settles: ClassVar[bool] = False
    scale_free: ClassVar[bool] = False


@register
@storable("model.EEV")
@dataclass(frozen=True)
class EEV(Decomposed, FullCovariance):
    """Mixture with covariances of equal volume and shape: Σ_c = λ D_c A D_cᵀ."""

    covariance_type: ClassVar[str] = "EEV"
    letters: ClassVar[str] = "EEV"
    scale_free: ClassVar[bool] = False


@register
@storable("model.VEV")
@dataclass(frozen=True)
class VEV(Decomposed, FullCovariance):
    """Mixture with covariances of equal shape: Σ_c = λ_c D_c A D_cᵀ."""

    covariance_type: ClassVar[str] = "VEV"
    letters: ClassVar[str] = "VEV"
    settles: ClassVar[bool] = False
    scale_free: ClassVar[bool] = False


@register
@storable("model.EVV")
@dataclass(frozen=True)
class EVV(Decomposed, FullCovariance):
    """Mixture with covariances of equal volume: Σ_c = λ D_c A_c D_cᵀ."""

    covariance_type: ClassVar[str] = "EVV"
    letters: ClassVar[str] = "EVV"
