"""Parameters of a mixture as its estimator takes and gives them, in scikit-learn's shapes; and where a fit starts."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime._range import check_largest
from cprime.estimators.validation import check_real
from cprime.execution import Data
from cprime.kernels import extent, products
from cprime.model import FAMILIES, Model, TiedSpherical
from cprime.model.covariance import inverses, repaired
from cprime.model.tied_spherical import variance_floor
from cprime.seeding.given import copied


def covariance_shape(covariance_type: str, C: int, D: int) -> tuple[int, ...]:
    """The shape of `covariances_`, `precisions_` and `precisions_init`."""
    return {"tied_spherical": (), "spherical": (C,), "diag": (C, D), "tied": (D, D), "full": (C, D, D)}[covariance_type]


def check_means_init(means_init: Any, data: Data, C: int) -> NDArray:
    """`means_init` in the dtype of the data; finite, of shape (C, D)."""
    means = copied(means_init, data, "means_init", ensure_2d=False)
    if means.shape != (C, data.n_features):
        raise ValueError(f"means_init must have shape {(C, data.n_features)}, got {means.shape}.")
    check_largest(extent(means)[0], data.dtype, data.n_features, "means_init")
    return means


def check_weights_init(weights_init: Any, weights: str, C: int) -> NDArray[np.float64] | None:
    """`weights_init` as an array, or None; not negative, of sum 1, and equal where weights are."""
    if weights_init is None:
        return None
    given = np.asarray(weights_init, dtype=np.float64)
    if weights == "equal" and (given.shape != (C,) or not np.allclose(given, 1 / C)):
        raise ValueError(
            f"weights_init must be n_components={C} times 1/n_components where weights='equal', got {weights_init!r}."
        )
    if given.shape != (C,) or not (given >= 0).all() or not np.isclose(given.sum(), 1.0):
        raise ValueError(
            f"weights_init must be n_components={C} numbers that are not negative and sum to 1, got {weights_init!r}."
        )
    return given


def check_precisions_init(precisions_init: Any, covariance_type: str, C: int, D: int) -> NDArray[np.float64] | None:
    """The covariances that `precisions_init` means, or None."""
    if precisions_init is None:
        return None
    if covariance_type == "tied_spherical":
        value = precisions_init.item() if isinstance(precisions_init, np.ndarray | np.generic) else precisions_init
        return np.array(1 / check_real(value, "precisions_init", np.nextafter(0, 1)), dtype=np.float64)
    precisions = np.asarray(precisions_init, dtype=np.float64)
    shape = covariance_shape(covariance_type, C, D)
    if precisions.shape != shape:
        raise ValueError(
            f"precisions_init must have shape {shape} for covariance_type={covariance_type!r}, got {precisions.shape}."
        )
    if not np.isfinite(precisions).all():
        raise ValueError("precisions_init must be finite, got entries that are not.")
    if covariance_type in ("spherical", "diag"):
        if not (precisions > 0).all():
            raise ValueError("precisions_init must be > 0, got entries that are not.")
        return 1 / precisions
    if not np.allclose(precisions, np.swapaxes(precisions, -1, -2)) or np.linalg.eigvalsh(precisions).min() <= 0:
        raise ValueError("precisions_init must be symmetric and positive definite, got matrices that are not.")
    return np.linalg.inv(precisions).astype(np.float64, copy=False)


def make(
    covariance_type: str, centers: NDArray, covariances: Any, reg_covar: float, weights: NDArray[np.float64] | None
) -> Model:
    """The model of given parameters."""
    if covariance_type == "tied_spherical":
        return TiedSpherical(centers, float(covariances), max(reg_covar, variance_floor(centers)), weights)
    return FAMILIES[covariance_type](centers, np.asarray(covariances, dtype=np.float64), reg_covar, weights)


def precisions(covariance_type: str, covariances: Any) -> tuple[Any, Any]:
    """precisions_ and precisions_cholesky_ in scikit-learn's shapes: P upper triangular with P Pᵀ = Σ⁻¹."""
    if covariance_type in ("tied", "full"):
        stacked = covariances if covariance_type == "full" else covariances[np.newaxis]
        cholesky = inverses(repaired(stacked)[1]).transpose(0, 2, 1).copy()
        whole = cholesky @ cholesky.transpose(0, 2, 1)
        return (whole, cholesky) if covariance_type == "full" else (whole[0], cholesky[0])
    return 1 / covariances, 1 / np.sqrt(covariances)


def covariances_of_factors(covariance_type: str, precisions_cholesky: Any) -> NDArray[np.float64]:
    """The covariances, in double, of factors P of precisions: what `precisions` gives as its second."""
    factors = np.asarray(precisions_cholesky, dtype=np.float64)
    if covariance_type not in ("tied", "full"):
        return 1 / np.square(factors)
    stacked = factors if covariance_type == "full" else factors[np.newaxis]
    lower = inverses(np.ascontiguousarray(stacked.transpose(0, 2, 1)))
    whole = lower @ lower.transpose(0, 2, 1)
    return whole if covariance_type == "full" else whole[0]


def mahalanobis(
    covariance_type: str, means: NDArray, precisions_cholesky: Any, X: NDArray, labels: NDArray[np.int32]
) -> NDArray[np.float64]:
    """√((x − μ)ᵀ Σ⁻¹ (x − μ)) of each row of X (n, D) and the component of its label (n,): ‖(x − μ) P‖, Σ⁻¹ = P Pᵀ."""
    factors = np.asarray(precisions_cholesky, dtype=np.float64)
    scaled = np.subtract(X, means[labels], dtype=np.float64)
    if covariance_type == "tied":
        scaled = products(scaled, factors.T)
    elif covariance_type == "full":
        order = np.argsort(labels, kind="stable")
        bounds = np.searchsorted(labels[order], np.arange(len(means) + 1))
        for c in np.flatnonzero(np.diff(bounds)):
            rows = order[bounds[c] : bounds[c + 1]]
            scaled[rows] = products(scaled[rows], factors[c].T)
    else:
        scaled *= factors if covariance_type == "tied_spherical" else factors[labels].reshape(len(labels), -1)
    return np.sqrt(np.einsum("nd,nd->n", scaled, scaled))


def in_double(covariance_type: str, covariances: Any, precisions_cholesky: Any) -> Any:
    """Fitted covariances as they were before single precision took digits of them, which may make them indefinite.

    Their factors have lost less: these stay factors of something positive definite.
    """
    if covariance_type == "tied_spherical" or np.asarray(covariances).dtype != np.float32:
        return covariances
    return covariances_of_factors(covariance_type, precisions_cholesky)


class Given:
    """What is given of the starting parameters; the rest comes from the hard assignment to the starting means."""

    def __init__(
        self,
        covariance_type: str,
        reg_covar: float,
        means: bool,
        weights: NDArray[np.float64] | None,
        covariances: NDArray[np.float64] | None,
        free: bool,
    ):
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.means = means
        self.weights = weights
        self.covariances = covariances
        self.free = free

    def first_model(self, data: Data, start: NDArray, exact: bool) -> Model:
        """The starting parameters.

        Means that are given stay; others, and all covariances and weights not given, are those of the hard assignment
        to the starting means. The papers' model keeps its starting means, and finds σ² by (14) within the fit.
        """
        C, D = start.shape
        reg_covar = self.reg_covar
        if self.covariance_type == "tied_spherical":
            reg_covar = max(reg_covar, variance_floor(start))
            if not self.free:
                given = 1.0 if self.covariances is None else max(float(self.covariances), self.reg_covar)
                return TiedSpherical(start, given, reg_covar)
        weights = None
        if self.free:
            weights = np.full(C, 1 / C)
        covariances = self.covariances
        if covariances is None:
            covariances = np.ones(covariance_shape(self.covariance_type, C, D))
            if self.covariance_type in ("tied", "full"):
                covariances = covariances * np.eye(D)
        model = make(self.covariance_type, start, covariances, reg_covar, weights)
        if self.means and self.covariances is not None and (self.weights is not None or not self.free):
            return make(self.covariance_type, start, covariances, reg_covar, self.weights)
        found: Any = em.hard_start(data, model, exact)
        if self.means:
            found = replace(found, centers=start)
        if self.covariances is not None:
            found = make(self.covariance_type, found.centers, self.covariances, reg_covar, found.weights)
        return found if self.weights is None else replace(found, weights=self.weights)
