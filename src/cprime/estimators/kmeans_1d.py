"""k-means in one dimension, for which the global optimum can be computed."""

from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from cprime._utils.declared import Array, Centers, Ids, NonNegative, Presence
from cprime._utils.messages import warn_if_few
from cprime._utils.threads import limited
from cprime.estimators.opening import validated
from cprime.estimators.savable import SavableEstimator
from cprime.estimators.validation import check_integer, check_weights
from cprime.estimators.watching import restore_on_error
from cprime.kernels import cut_line
from cprime.persistence import model_files

LARGEST_RATIO = 2.0**64


@model_files.register
class KMeans1D(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SavableEstimator):
    """k-means in one dimension: the global minimum of J, computed without any initialization.

    On a line, the clusters of an optimum are runs (intervals) of the sorted data, so J = Σ_n w_n min_c (x_n − μ_c)² can
    be minimized over all divisions of the data into runs. The least J of k runs is a convex function of k. For a given
    penalty per run, one pass over the sorted data finds the runs that minimize J + penalty · k. A few passes find the
    penalty that leads to C runs. The result is that of dynamic programming, but without its table of C·N entries:
    memory is about 130 bytes per distinct value. J is minimal up to rounding errors, which include the rounding of
    `cluster_centers_` to their dtype.

    Parameters
    ----------
    n_clusters : int, default=8
    n_threads : int or None, default=None
        Threads to use; more than two do not help. None is every processor that the process may use. Results do not
        depend on it.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, 1)
        In ascending order, in the dtype of the data. If the data have fewer distinct values (of positive weight) than
        n_clusters, the centers are these values, and the last one is repeated.
    boundaries_ : ndarray of shape (n_clusters - 1,), float64
        Midpoints of neighboring centers, in data units: cluster c contains the values above boundaries_[c − 1] and up
        to boundaries_[c]. The boundary before a repeated center is infinite, because its cluster is empty.
    labels_ : ndarray of shape (n_samples,), int32
        The cluster of each training point.
    inertia_ : float
    n_features_in_ : int
        Always 1.
    feature_names_in_ : ndarray of str
        Present if the column of the data has a name.

    See Also
    --------
    KMeans : any number of dimensions, and a local optimum.

    References
    ----------
    Aggarwal, Schieber & Tokuyama, "Finding a minimum-weight k-link path in graphs with the concave Monge property and
    applications", Discrete & Computational Geometry 12 (1994): the penalty per run.
    Wu, "Optimal quantization by matrix searching", Journal of Algorithms 12 (1991): the dynamic program.

    Examples
    --------
    >>> from cprime import KMeans1D
    >>> km = KMeans1D(2).fit([[1.0], [2.0], [3.0], [10.0], [14.0]])
    >>> km.cluster_centers_.ravel()
    array([ 2., 12.])
    >>> km.boundaries_
    array([7.])
    >>> km.inertia_
    10.0
    """

    cluster_centers_: Centers
    boundaries_: Annotated[
        NDArray[np.float64],
        Array("C-1", "float64", may_be_infinite=True),
        lambda value, sizes: (value[1:] >= value[:-1]).all(),
    ]
    labels_: Annotated[Ids, Presence.OPTIONAL]
    inertia_: NonNegative

    def __init__(self, n_clusters: int = 8, *, n_threads: int | None = None) -> None:
        self.n_clusters = n_clusters
        self.n_threads = n_threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @restore_on_error
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the centers of least J.

        Parameters
        ----------
        X : array-like of shape (n_samples, 1)
            Finite numbers. Types of up to 16 bits and float32 become float32, wider ones float64.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the point twice; None is 1 for each. Points of weight 0 are labeled, but do
            not change the centers. Positive weights may be at most 2^64 times the smallest of them.

        Returns
        -------
        self : KMeans1D

        Raises
        ------
        ValueError
            If X has more than one column, an argument is out of its range, or there are fewer points than clusters.

        Warns
        -----
        ConvergenceWarning
            If the data have fewer distinct values than n_clusters.
        """
        C = check_integer(self.n_clusters, "n_clusters", 1)
        X = self._validated(X, reset=True)
        if len(X) < C:
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={C}.")
        weights = check_weights(sample_weight, X)
        if weights is not None:
            _check_ratio(weights)
        values, masses = _distinct(X[:, 0], weights)
        n_found = min(C, len(values))
        starts = cut_line(values, masses, n_found, n_threads=self.n_threads)
        warn_if_few(n_found, C)
        centers = _means(values, masses, starts)
        centers = np.append(centers, np.repeat(centers[-1:], C - n_found)).astype(X.dtype)
        self.cluster_centers_ = centers[:, np.newaxis]
        halves = centers.astype(np.float64) / 2
        self.boundaries_ = np.where(np.arange(1, C) < n_found, halves[:-1] + halves[1:], np.inf)
        self.labels_ = self._labels(X)
        self.inertia_ = self._error(X, self.labels_, weights)
        return self

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[0]

    def _dtype(self) -> np.dtype:
        return self.cluster_centers_.dtype

    def _validated(self, X: Any, reset: bool) -> NDArray:
        """Return X as a checked array (n, 1) of float32 or float64. reset: whether X is training data"""
        with limited(self.n_threads):
            return self._column(validated(self, X, reset).dense())

    def _column(self, X: NDArray) -> NDArray:
        if X.shape[1] != 1:
            raise ValueError(f"X must have one column for k-means in one dimension, got {X.shape[1]}.")
        return X

    def _labels(self, X: NDArray) -> NDArray[np.int32]:
        return np.searchsorted(self.boundaries_, X[:, 0]).astype(np.int32)

    def _error(self, X: NDArray, labels: NDArray[np.int32], weights: NDArray | None) -> float:
        distances = X[:, 0].astype(np.float64) - self.cluster_centers_[labels, 0]
        distances *= distances
        return float(distances.sum() if weights is None else distances @ weights)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the index of the nearest center of each number; halfway between two centers, that of the lower center.

        Parameters
        ----------
        X : array-like of shape (n_samples, 1)

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        return self._labels(self._validated(X, reset=False))

    def transform(self, X: Any) -> NDArray:
        """Return the distance of each number to each center.

        Parameters
        ----------
        X : array-like of shape (n_samples, 1)

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In data units, in the dtype of the data. This is a dense N×C array.
        """
        return np.abs(self._validated(X, reset=False) - self.cluster_centers_[:, 0])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return −J: minus the weighted sum of squared distances to the nearest center, in data unit².

        Parameters
        ----------
        X : array-like of shape (n_samples, 1)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        X = self._validated(X, reset=False)
        return -self._error(X, self._labels(X), check_weights(sample_weight, X))


def _check_ratio(weights: NDArray[np.float64]) -> None:
    """Raise ValueError if weights differ so much that sums in double-double precision would lose the smallest one."""
    positive = weights[weights > 0]
    least, most = positive.min(), positive.max()
    if most > LARGEST_RATIO * least:
        raise ValueError(
            f"sample_weight must be at most {LARGEST_RATIO:.3g} times its least positive entry, got entries from "
            f"{least:.3g} to {most:.3g}; a weight of 0 leaves a point out."
        )


def _distinct(x: NDArray, weights: NDArray | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the distinct values of positive weight in ascending order, and the total weight of each.

    Both are float64 arrays (n,), where n is the number of distinct values.
    """
    if weights is None:
        values, counts = np.unique(x, return_counts=True)
        return values.astype(np.float64), counts.astype(np.float64)
    x, weights = x[weights > 0], weights[weights > 0]
    order = np.argsort(x, kind="stable")
    x, weights = x[order], weights[order]
    first = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    return x[first].astype(np.float64), np.add.reduceat(weights, first)


def _means(values: NDArray, masses: NDArray, starts: NDArray) -> NDArray[np.float64]:
    """Return the weighted mean of each of C runs (intervals) of the sorted `values`: (C,).

    masses: total weight of each value    starts (C,): index of the first value of each run
    Means are computed relative to the first value of a run, for precision.
    """
    sizes = np.diff(np.append(starts, len(values)))
    first = values[starts]
    shares = masses / np.repeat(np.add.reduceat(masses, starts), sizes)
    return first + np.add.reduceat(shares * (values - np.repeat(first, sizes)), starts)
