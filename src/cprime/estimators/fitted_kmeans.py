"""Methods of a fitted k-means: exact and approximate prediction, distances, and export to scikit-learn."""

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.validation import check_is_fitted

from cprime._utils.threads import resolve_threads
from cprime.em.hard import LabeledSums
from cprime.estimators.approximate import approximate_search, certify, near_best
from cprime.estimators.gaps import impute
from cprime.estimators.nearest_center import (
    NearestCenter,
    cosine_distances,
    euclidean_distances,
    nearest_labels,
    nearest_with_distances,
)
from cprime.estimators.updating import updated
from cprime.kernels import Rows, as_rows, computing
from cprime.model import Model, TiedSpherical
from cprime.model.base import means_of
from cprime.model.tied_spherical import variance_floor
from cprime.model.unit import UnitCenters, unit_rows

_COPIED = ("labels_", "inertia_", "n_iter_", "n_features_in_", "feature_names_in_")


class FittedKMeans(NearestCenter):
    """Mixin with the methods of a fitted k-means, for the Euclidean and the cosine metric."""

    metric: str
    n_clusters: int
    max_iter: int
    tol: float
    random_state: Any
    variance_: float

    certify = certify
    impute = impute

    def _model(self, centers: NDArray, variance: float, floor: float) -> TiedSpherical:
        return (UnitCenters if self.metric == "cosine" else TiedSpherical)(centers, variance, floor)

    def _means_of(self, found: LabeledSums, centers: NDArray) -> NDArray:
        """Return the means of the points of each cluster as centers (C, D); an empty cluster keeps its center.

        If the metric is "cosine", the means are scaled to length 1.
        found: total weight and sum of the points of each cluster    centers (C, D): the present centers
        """
        means = means_of(found.counts, found.sums, centers).astype(centers.dtype)
        return unit_rows(as_rows(means), "cluster_centers_").dense() if self.metric == "cosine" else means

    def _parameters(self) -> TiedSpherical:
        return self._model(self.cluster_centers_, self.variance_, variance_floor(self.cluster_centers_))

    def _dtype(self) -> np.dtype:
        return self.cluster_centers_.dtype

    def _scale(self, model: Model) -> None:
        return None

    def update(self, X: Any, n_clusters: int | None = None, sample_weight: Any = None) -> Self:
        """Continue the fit on changed data, for example with some rows replaced; ids of clusters keep their meaning.

        The fit starts from the fitted centers and takes steps of Lloyd's algorithm. If J per point is then more than
        1 % above that of the former fit, jumps of centers follow, unless `exchange` is False.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
            The data as they are now, with the columns of the fit.
        n_clusters : int or None, default=None
            New number of clusters; None keeps the present one. Additional clusters start at distant points (D²
            sampling). If there are fewer, centers are joined by Ward's criterion, and the heaviest one keeps its id.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the points; None is 1 for each.

        Returns
        -------
        self : the estimator
            Fitted attributes are those of the new data. `origin_` has the former id of each cluster, or −1 for a new
            cluster. A cluster continues a former one if they share more than half of the points of either; the log
            names clusters that are new and clusters that ended. `history_` and `lower_bounds_` continue. After an error
            the estimator is unchanged. No checkpoint is written.

        Raises
        ------
        ValueError
            If X has other columns than the training data, or fewer points than clusters.
        """
        self.__dict__ = updated(self, X, n_clusters, sample_weight)
        return self

    def predict(self, X: Any, approximate: bool = False, *, out: Any = None) -> NDArray[np.int32]:
        """Return the index of the nearest center of each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        approximate : bool, default=False
            False searches all centers. True searches only cells near each row, if there are more than 4,096 centers; a
            cell is a group of about √C centers that are near each other. `certify` measures the quality.
        out : ndarray, str or path-like, default=None
            Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
            file, which is written completely or not at all and returned as a memory map.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        data = self._opened(X)
        with computing(self.n_threads):
            job: Callable[[Rows], NDArray[np.int32]] = partial(nearest_labels, self.cluster_centers_)
            if approximate:
                model = self._parameters()
                job = partial(near_best, model, approximate_search(self, model))
            return data.map(job, None, np.int32, out)

    def nearest(self, X: Any, *, out: Any = None) -> tuple[NDArray[np.int32], NDArray]:
        """Return the index of the nearest center of each row and its distance.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        out : tuple of two, default=None
            Destinations of labels and distances, each like `out` of `predict`.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
            The same as those of `predict`.
        distances : ndarray of shape (n_samples,), float64
            Euclidean distances in data units; 1 − cos if metric is "cosine".
        """
        data = self._opened(X)
        with computing(self.n_threads):
            job = partial(nearest_with_distances, self.cluster_centers_, self.metric)
            return data.map(job, None, (np.int32, np.float64), out)

    def transform(self, X: Any, *, out: Any = None) -> NDArray:
        """Return the distance of each row to each center: Euclidean, or 1 − cos if metric is "cosine".

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        out : ndarray, str or path-like, default=None
            Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
            file, which is written completely or not at all and returned as a memory map.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In data units (cosine distances: 0 … 2), in the dtype of the data. This is a dense N×C array.
        """
        data = self._opened(X)
        with computing(self.n_threads):
            distances = euclidean_distances if self.metric == "euclidean" else cosine_distances
            job = partial(distances, self.cluster_centers_)
            return data.map(job, len(self.cluster_centers_), data.dtype, out)

    def _searched_by(self) -> tuple[str, ...]:
        return ("cluster_centers_",)

    def to_sklearn(self) -> BaseEstimator:
        """Return a fitted scikit-learn `KMeans` with the same centers, for tools that require one (ONNX converters).

        Returns
        -------
        k_means : sklearn.cluster.KMeans or sklearn.pipeline.Pipeline
            For metric="cosine", a pipeline of a `Normalizer`, which scales rows to length 1, and a `KMeans`.
            Predictions are exact: they compare rows with all centers.
        """
        check_is_fitted(self)
        centers = np.ascontiguousarray(self.cluster_centers_).copy()
        k_means = SklearnKMeans(
            len(centers), n_init=1, max_iter=self.max_iter, tol=self.tol, random_state=self.random_state
        )
        k_means.cluster_centers_, k_means._n_features_out = centers, len(centers)
        k_means._n_threads = resolve_threads(None)
        for name in _COPIED:
            if hasattr(self, name):
                setattr(k_means, name, getattr(self, name))
        if self.metric == "euclidean":
            return k_means
        scaled = Normalizer()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(k_means, name):
                setattr(scaled, name, getattr(k_means, name))
        vars(k_means).pop("feature_names_in_", None)  # The Normalizer returns arrays without column names.
        return make_pipeline(scaled, k_means)
