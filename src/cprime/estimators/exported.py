"""Conversion of fitted estimators to those of other libraries."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from cprime._utils.threads import resolve_threads

_COPIED = ("labels_", "inertia_", "n_iter_", "n_features_in_", "feature_names_in_")


def sklearn_k_means(estimator: Any) -> BaseEstimator:
    """Return a fitted scikit-learn `KMeans` with the same centers; for the cosine metric, a pipeline that scales rows
    to length 1 first.
    """
    centers = np.ascontiguousarray(estimator.cluster_centers_).copy()
    k_means = SklearnKMeans(
        len(centers), n_init=1, max_iter=estimator.max_iter, tol=estimator.tol, random_state=estimator.random_state
    )
    k_means.cluster_centers_, k_means._n_features_out = centers, len(centers)
    k_means._n_threads = resolve_threads(None)
    for name in _COPIED:
        if hasattr(estimator, name):
            setattr(k_means, name, getattr(estimator, name))
    if estimator.metric == "euclidean":
        return k_means
    scaled = Normalizer()
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(k_means, name):
            setattr(scaled, name, getattr(k_means, name))
    vars(k_means).pop("feature_names_in_", None)  # because the Normalizer returns rows without names
    return make_pipeline(scaled, k_means)
