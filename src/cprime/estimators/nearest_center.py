"""Mixin of estimators whose labels are nearest centers, and methods of a fitted k-means that have no other users."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.preprocessing import Normalizer
from sklearn.utils.validation import check_is_fitted

from cprime._utils.declared import Centers, Count, Ids, NonNegative, Presence
from cprime._utils.messages import require
from cprime._utils.threads import resolve_threads
from cprime.estimators.fitted import as_pipeline
from cprime.estimators.opening import preparation_of
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Floats, GaussianParameters, Rows, as_rows, computing
from cprime.model.unit import unit_rows

# Fitted attributes that are copied to a k-means of scikit-learn, which has the same names.
_COPIED = ("labels_", "inertia_", "n_iter_")


@dataclass(frozen=True)
class Inertia:
    """Job of a pass over the data: it computes J, the weighted sum of squared distances of points to nearest centers.

    centers (C, D): centers to which distances are computed
    """

    centers: Floats

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, float]:
        return None, block.weighted_sum(nearest_of(self.centers, block.X)[1])


def nearest_of(centers: Floats, X: Rows) -> tuple[NDArray[np.int32], Floats]:
    """Return the index of each row's nearest center and its squared distance, (n,) each.

    Columns in which the row has a missing value do not count in the distance.
    """
    if X.observed is None:
        kept, squared = X.nearest(centers)
        return kept[:, 0], squared[:, 0]
    labels = X.nearest(GaussianParameters(centers, np.ones_like(centers), np.zeros(len(centers), centers.dtype)))[0][
        :, 0
    ]
    return labels, X.own_distances(centers, labels)


def nearest_labels(centers: Floats, X: Rows) -> NDArray[np.int32]:
    """Return the index of the nearest center of each row: (n,)."""
    return nearest_of(centers, X)[0]


def nearest_with_distances(centers: Floats, metric: str, X: Rows) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the index of the nearest center of each row, and the distance to it: (n,) each.

    metric: "euclidean", or "cosine" (the distance is 1 − cos) if rows and centers have length 1
    """
    labels, squared = nearest_of(centers, X)
    return labels, distances_from(squared, metric)


def distances_from(squared: Floats, metric: str) -> NDArray[np.float64]:
    """Return the distances of the metric that belong to squared Euclidean distances, in the same shape, in float64.

    They are Euclidean distances if the metric is "euclidean". Otherwise they are 1 − cos, half the squared distance,
    because rows and centers then have length 1.
    """
    distances = squared.astype(np.float64)
    return np.sqrt(distances, out=distances) if metric == "euclidean" else distances / 2


def euclidean_distances(centers: Floats, X: Rows) -> Floats:
    """Return the Euclidean distance of each row to each center: (n, C)."""
    squared = X.distances(centers)
    return np.sqrt(squared, out=squared).T


def cosine_distances(centers: Floats, X: Rows) -> Floats:
    """Return the cosine distance 1 − cos between each row and each center, all of length 1: (n, C)."""
    squared = X.distances(centers)
    return np.multiply(squared, 0.5, out=squared).T


class NearestCenter(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin):
    """Mixin with the methods `predict`, `transform` and `score`, computed from distances to `cluster_centers_`.

    The estimator's method `_opened` converts the argument X to `Data`.

    Parameters
    ----------
    n_init : int
        Number of starts; the result of least J is returned. Given centers are used for one start only.
    max_iter : int
        Maximum number of iterations of one start.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        In the dtype of the data.
    labels_ : ndarray of shape (n_samples,), int32
        The nearest center of each training point.
    """

    _opened: Any
    _takes_sparse: ClassVar[bool] = False
    n_threads: int | None
    cluster_centers_: Centers
    labels_: Annotated[Ids, Presence.OPTIONAL]
    inertia_: NonNegative
    n_iter_: Annotated[Count, Presence.RECORD]
    converged_: Annotated[bool, Presence.RECORD]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _dtype(self) -> np.dtype:
        dtype: np.dtype = self.cluster_centers_.dtype
        return dtype

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the index of the nearest center of each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        with computing(self.n_threads):
            data = self._opened(X)
            return data.map(partial(nearest_labels, self.cluster_centers_), None, np.int32)

    def transform(self, X: Any) -> NDArray:
        """Return the Euclidean distance of each row to each center.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In data units, in the dtype of the data. This is a dense N×C array.
        """
        with computing(self.n_threads):
            data = self._opened(X)
            return data.map(partial(euclidean_distances, self.cluster_centers_), len(self.cluster_centers_), data.dtype)

    def to_faiss(self) -> Any:
        """Return a FAISS index of the centers: it finds the nearest centers of vectors.

        The index can also be the coarse quantizer of an inverted file. Positions in it are the labels of clusters.

        Returns
        -------
        index : faiss.IndexFlatL2, or faiss.IndexFlatIP of centers of length 1 if the metric is "cosine"
            In float32.

        Raises
        ------
        ValueError
            If the metric is neither Euclidean nor cosine, or the fit scaled its data.
        ImportError
            If FAISS is missing.
        """
        check_is_fitted(self)
        metric = getattr(self, "metric", "euclidean")
        if not isinstance(metric, str) or metric not in ("euclidean", "sqeuclidean", "cosine"):
            raise ValueError(f"to_faiss needs metric='euclidean' or 'cosine', got {metric!r}.")
        if preparation_of(self).scale is not None:
            raise ValueError(
                f"to_faiss needs a {type(self).__name__} of rows that were not scaled: an index cannot scale its "
                "queries. Fit it to rows that you have scaled, and scale the queries too."
            )
        faiss = require("faiss", "to_faiss")
        with computing(self.n_threads):
            centers = np.ascontiguousarray(self.cluster_centers_, dtype=np.float32)
            if metric == "cosine":
                centers = unit_rows(as_rows(centers), "cluster_centers_").dense()
        index = (faiss.IndexFlatIP if metric == "cosine" else faiss.IndexFlatL2)(centers.shape[1])
        index.add(centers)
        return index

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return −J: minus the weighted sum of squared distances to the nearest center, in data unit².

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        with computing(self.n_threads):
            data = self._opened(X, sample_weight)
            return -data.each(Inertia(self.cluster_centers_))


def nearest(self: Any, X: Any, *, out: Any = None) -> tuple[NDArray[np.int32], NDArray]:
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
    with computing(self.n_threads):
        data = self._opened(X)
        job = partial(nearest_with_distances, self.cluster_centers_, self.metric)
        return data.map(job, None, (np.int32, np.float64), out)


def transform(self: Any, X: Any, *, out: Any = None) -> NDArray:
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
    with computing(self.n_threads):
        data = self._opened(X)
        distances = euclidean_distances if self.metric == "euclidean" else cosine_distances
        job = partial(distances, self.cluster_centers_)
        found: NDArray = data.map(job, len(self.cluster_centers_), data.dtype, out)
        return found


def to_sklearn(self: Any) -> BaseEstimator:
    """Return a fitted scikit-learn `KMeans` with the same centers, for tools that require one (ONNX converters).

    Returns
    -------
    k_means : sklearn.cluster.KMeans or sklearn.pipeline.Pipeline
        For metric="cosine", a pipeline of a `Normalizer`, which scales rows to length 1, and a `KMeans`. If the fit
        filled or scaled its data, the pipeline begins with a `SimpleImputer` or a `StandardScaler` with its values.
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
    return as_pipeline(self, *([] if self.metric == "euclidean" else [Normalizer()]), k_means)
