"""Denoising: the posterior mean of points observed with Gaussian noise, under a mixture."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime.estimators import GaussianMixture
from cprime.estimators.validation import check_at_most, check_positive
from cprime.kernels import as_rows, posterior
from cprime.model import FAMILIES
from cprime.theory.mixtures import Gaussians, as_rows_of, densities_of


def posterior_mean(
    mixture: GaussianMixture | Gaussians, Y: ArrayLike, variance: float, n_active: int | None = None
) -> NDArray[np.float64]:
    """Return the estimate E[x | y] of each noise-free point x with least squared error, from its noisy value y.

    If y = x + Gaussian noise of variance s² in every feature, the density of y is a mixture of N(μ_c, Σ_c + s² I). With
    the truncated posterior q_c of y on the set K(y) of the C′ most probable components,

        E[x | y] = Σ_{c∈K(y)} q_c (μ_c + Σ_c (Σ_c + s² I)⁻¹ (y − μ_c)).

    Parameters
    ----------
    mixture : KMeans, GaussianMixture or Gaussians
        Density of the points without noise; an estimator must be fitted.
    Y : array-like of shape (n_samples, n_features)
        Points with noise.
    variance : float
        s², positive, in data unit².
    n_active : int or None, default=None
        C′; None uses the value of the estimator, or all components of `Gaussians`.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float64

    Raises
    ------
    TypeError
        If the mixture is of another type, because the formula holds only for Gaussian components.
    ValueError
        If the variance is not positive, or Y has another number of features.

    References
    ----------
    Zoran & Weiss, *From learning models of natural image patches to whole image restoration*, for one component.

    Examples
    --------
    >>> from cprime.theory import Gaussians, posterior_mean
    >>> X = Gaussians([[-5.0], [5.0]], [[[1.0]], [[1.0]]])
    >>> posterior_mean(X, [[-4.0], [7.0]], 1.0).round(3).tolist()
    [[-4.5], [6.0]]
    """
    variance = check_positive(variance, "variance")
    gaussians = densities_of(mixture)
    if not isinstance(gaussians, Gaussians):
        raise TypeError(
            f"mixture must be a KMeans, GaussianMixture or Gaussians, got {mixture!r}: the mean has this form for "
            "Gaussian components alone."
        )
    points = as_rows_of(mixture, Y, "Y", order="C")
    if points.shape[1] != gaussians.n_features:
        raise ValueError(f"Y must have shape (n_samples, {gaussians.n_features}), got {points.shape}.")
    means, noisy = gaussians.means, gaussians.covariances + variance * np.eye(gaussians.n_features)
    gains = np.linalg.solve(noisy, gaussians.covariances)  # transpose of Σ (Σ + s² I)⁻¹; the two factors commute
    model = FAMILIES["full"](means, noisy, 0.0, gaussians.weights)
    C = gaussians.n_components
    if n_active is None:
        n_active = getattr(mixture, "n_active_", C)
    check_at_most(n_active, "n_active", C, "n_components")
    kept, costs = model.components().best(model.embed(as_rows(points)), n_active)
    shares = posterior(costs, model.scale).responsibilities
    found = np.zeros_like(points)
    for c, (mean, gain) in enumerate(zip(means, gains, strict=True)):
        rows, places = np.nonzero(kept == c)
        found[rows] += shares[rows, places, np.newaxis] * (mean + (points[rows] - mean) @ gain)
    return found
