"""`Noisy`, rows with known errors of measurement, as a value of the argument X of Gaussian mixtures."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.sources import array_of

_ROUNDING = 1e-6  # largest accepted difference of a covariance matrix from a symmetric one without negative eigenvalues


@dataclass(frozen=True, eq=False)
class Noisy:
    """Rows that were measured with known Gaussian errors: an argument X of the methods of `GaussianMixture`.

    A fit estimates the density without the errors (extreme deconvolution): the covariance of row n under component c
    is Σ_c + S_n. Methods of the fitted mixture take plain rows, which have no errors, or other `Noisy` rows; `impute`
    returns the expected values without errors. Rows are in memory.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    covariance : array-like of shape (n_samples, n_features), (n_features,) or (n_samples, n_features, n_features)
        S_n [data unit²]: variances of the errors of each row, or of all rows, or a covariance matrix for each row.

    References
    ----------
    Bovy, Hogg & Roweis (2011), *Extreme deconvolution: inferring complete distribution functions from noisy,
    heterogeneous and incomplete observations*, Annals of Applied Statistics 5.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture, Noisy
    >>> rng = np.random.default_rng(0)
    >>> true = rng.normal(size=(10_000, 1))
    >>> errors = rng.uniform(0, 3, size=true.shape)
    >>> X = Noisy(true + errors * rng.normal(size=true.shape), errors**2)
    >>> gm = GaussianMixture(1, tol=1e-6).fit(X)
    >>> gm.covariances_.round(1)
    array([[[1.]]])
    >>> bool(np.square(gm.impute(X) - true).mean() < 0.5 * np.square(X.X - true).mean())
    True
    """

    X: Any
    covariance: Any


def checked_errors(noisy: Noisy, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return the errors as variances (n, D) or matrices (n, D, D), for rows of the shape (n, D).

    Raises ValueError if they have another shape, or are no covariances.
    """
    given, (n, D) = array_of(noisy.covariance, "covariance", np.float64), shape
    if given.shape not in ((n, D), (D,), (n, D, D)):
        raise ValueError(f"covariance must have shape {(n, D)}, {(D,)} or {(n, D, D)}, got {given.shape}.")
    least = given if given.ndim < 3 else np.linalg.eigvalsh(given)
    if not np.isfinite(given).all() or least.min() < -_ROUNDING * np.abs(given).max():
        raise ValueError(f"covariance must have no negative or infinite variances, got {least.min()}.")
    if given.ndim == 3 and not np.allclose(given, given.transpose(0, 2, 1), _ROUNDING, _ROUNDING * given.max()):
        raise ValueError("covariance must have symmetric matrices.")
    return np.maximum(np.broadcast_to(given, shape), 0) if given.ndim < 3 else given
