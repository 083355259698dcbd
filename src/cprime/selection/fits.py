"""Uniform access to attributes and arguments that k-means and mixtures have under different names."""

from typing import Any

from numpy.typing import NDArray

from cprime.estimators import CategoricalMixture, GaussianMixture, KMeans, PoissonMixture, StudentTMixture

ACCEPTED = "a KMeans, GaussianMixture, StudentTMixture, PoissonMixture or CategoricalMixture"
Mixture = KMeans | GaussianMixture | StudentTMixture | PoissonMixture | CategoricalMixture


def centers_of(fit: Mixture) -> NDArray:
    """Return the centers or means of a fit, (C, D) in data units."""
    return fit.cluster_centers_ if isinstance(fit, KMeans) else fit.means_


def start_from(estimator: Mixture, centers: NDArray) -> dict[str, Any]:
    """Return a dict with the keyword argument that makes an estimator start from these centers."""
    return {"init" if isinstance(estimator, KMeans) else "means_init": centers}


def size_of(estimator: Mixture, n_components: int) -> dict[str, Any]:
    """Return keyword arguments that set the number of components; an `n_active` above this number is lowered."""
    if isinstance(estimator, KMeans):
        return {"n_clusters": n_components}
    n_active = estimator.n_active
    fewer = isinstance(n_active, int) and n_active >= n_components
    return {"n_components": n_components} | ({"n_active": n_components, "search": "auto"} if fewer else {})
