"""The estimators that selection calls, under one name each for what they have in common."""

from typing import Any

from numpy.typing import NDArray

from cprime.estimators import GaussianMixture, KMeans, StudentTMixture

Mixture = KMeans | GaussianMixture | StudentTMixture


def centers_of(fit: Mixture) -> NDArray:
    """The centers or means that a fit has found, (C, D) data units."""
    return fit.cluster_centers_ if isinstance(fit, KMeans) else fit.means_


def start_from(estimator: Mixture, centers: NDArray) -> dict[str, Any]:
    """The argument that makes an estimator start from these centers."""
    return {"init" if isinstance(estimator, KMeans) else "means_init": centers}


def size_of(estimator: Mixture, n_components: int) -> dict[str, Any]:
    """The arguments for this number of components; where a point would keep more of them, it keeps all."""
    if isinstance(estimator, KMeans):
        return {"n_clusters": n_components}
    n_active = estimator.n_active
    fewer = isinstance(n_active, int) and n_active >= n_components
    return {"n_components": n_components} | ({"n_active": n_components, "search": "auto"} if fewer else {})
