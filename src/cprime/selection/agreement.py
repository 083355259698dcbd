"""Agreement of two partitions of the same points, for example of clusters and known classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils.validation import check_is_fitted, column_or_1d

from cprime._utils.arguments import naming
from cprime.selection.results import frame_of, text_of
from cprime.sources import unmasked

_MOST_COLUMNS = 12  # largest number of clusters that the text of a table shows


@dataclass(frozen=True, eq=False)
class ClassificationTable:
    """Numbers of points by two partitions, such as classes and clusters; returned by `classification_table`.

    The repr is the table, whose columns are in the order of the rows that they match.

    Attributes
    ----------
    classes, clusters : ndarray of shape (n_classes,), (n_clusters,)
        Labels of the rows and of the columns. A cluster that matches no class is at the end.
    counts : ndarray of int, shape (n_classes, n_clusters)
        Number of points of each class in each cluster.
    matched : ndarray of int, shape (n_pairs, 2)
        Row and column of each matched pair. Each class has at most one cluster, and each cluster at most one class, so
        that as many points as possible are in matched pairs.
    error_rate : float
        Share of the points that are in no matched pair.
    adjusted_rand : float
        Adjusted Rand index: 1 for equal partitions, 0 on average for independent ones.

    References
    ----------
    H. W. Kuhn, *The Hungarian method for the assignment problem*, 1955. L. Hubert, P. Arabie, *Comparing partitions*,
    1985.

    Examples
    --------
    >>> from cprime.selection import classification_table
    >>> table = classification_table(["a", "a", "b", "b", "b"], [1, 1, 0, 0, 1])
    >>> table
    Classification of 5 points: error rate 0.2, adjusted Rand index 0.167
    class  1  0
        a  2  0
        b  1  2
    >>> table.clusters.tolist()
    [1, 0]
    """

    classes: NDArray
    clusters: NDArray
    counts: NDArray[np.int64]
    matched: NDArray[np.int64]
    adjusted_rand: float

    @property
    def error_rate(self) -> float:
        """Return the share of the points that are in no matched pair."""
        return 1 - float(self.counts[tuple(self.matched.T)].sum() / self.counts.sum())

    def _columns(self, n: int | None = None) -> dict[str, NDArray]:
        return {str(cluster): self.counts[:, i] for i, cluster in enumerate(self.clusters[:n])}

    def __repr__(self) -> str:
        title = f"error rate {self.error_rate:.3g}, adjusted Rand index {self.adjusted_rand:.3g}"
        left_out = len(self.clusters) - _MOST_COLUMNS
        more = f" ({left_out} more clusters are not shown)" if left_out > 0 else ""
        columns = text_of({"class": [str(name) for name in self.classes]} | self._columns(_MOST_COLUMNS))
        return "\n".join([f"Classification of {self.counts.sum():,} points: {title}{more}", *columns])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with a row for each class and a column for each cluster, named by its label.

        Parameters
        ----------
        library : {"pandas", "polars"}, default="pandas"

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        return frame_of({"class": self.classes} | self._columns(), library)


def classification_table(classes: Any, clusters: Any) -> ClassificationTable:
    """Count the points by two partitions, such as known classes and clusters, and match the two.

    Parameters
    ----------
    classes, clusters : array-like of shape (n_samples,) or fitted estimator
        Labels of the same points, of any type that NumPy sorts; those of an estimator are its `labels_`.

    Returns
    -------
    table : ClassificationTable
        Counts, the best matching of clusters to classes, its error rate, and the adjusted Rand index.

    Raises
    ------
    ValueError
        If there are no labels, or the two numbers of labels differ.

    Examples
    --------
    >>> from cprime import GaussianMixture
    >>> from cprime.selection import classification_table
    >>> from sklearn.datasets import load_iris
    >>> iris = load_iris()
    >>> gm = GaussianMixture(3, random_state=0).fit(iris.data)
    >>> classification_table(iris.target_names[iris.target], gm)
    Classification of 150 points: error rate 0.0333, adjusted Rand index 0.904
         class   0   1   2
        setosa  50   0   0
    versicolor   0  45   5
     virginica   0   0  50
    """
    ranks, (rows, columns) = _ranks(_labels(classes, "classes"), _labels(clusters, "clusters"), ("classes", "clusters"))
    counts = contingency_matrix(*ranks)
    first, second = linear_sum_assignment(counts, maximize=True)
    order = np.concatenate([second, np.setdiff1d(np.arange(len(columns)), second)])
    pairs = np.column_stack([first, np.arange(len(second))])
    return ClassificationTable(rows, columns[order], counts[:, order], pairs, float(adjusted_rand_score(*ranks)))


def _labels(values: Any, name: str) -> Any:
    """Return the labels of a fitted estimator; other values are unchanged.    name: that of the argument, for errors"""
    if not isinstance(values, BaseEstimator):
        return values
    check_is_fitted(values)
    if not hasattr(values, "labels_"):
        raise ValueError(f"{name} must be labels, or an estimator with labels_, got {values!r}.")
    return values.labels_


def _ranks(first: Any, second: Any, names: tuple[str, str]) -> tuple[list[NDArray], list[NDArray]]:
    """Return the ranks (n,) of the labels of each of two partitions, and the sorted distinct labels of each.

    first, second (n,): labels of any type that can be sorted    names: those of the two arguments, for errors
    """
    distinct, ranks = [], []
    for values, name in zip((first, second), names, strict=True):
        with naming(name):
            found = np.unique(column_or_1d(unmasked(values, name)), return_inverse=True)
        distinct.append(found[0])
        ranks.append(found[1])
    n = [len(each) for each in ranks]
    if n[0] != n[1] or not n[0]:
        raise ValueError(f"{names[1]} must have one entry for each of {names[0]}, got {n[1]} and {n[0]}.")
    return ranks, distinct


def purity(labels_true: ArrayLike, labels: ArrayLike) -> float:
    """Compute the share of points whose class is the most common one within their cluster.

    Parameters
    ----------
    labels_true, labels : array-like of shape (n_samples,)
        Class and cluster of each point, of any type that NumPy sorts.

    Returns
    -------
    purity : float
        From 1/N to 1. It is 1 for clusters of single points too, so compare only equal numbers of clusters.

    References
    ----------
    Manning, Raghavan & Schütze, *Introduction to Information Retrieval*, eq. (16.1).

    Examples
    --------
    >>> from cprime.selection import purity
    >>> purity(["a", "a", "b", "b"], [0, 0, 0, 1])
    0.75
    """
    counts = contingency_matrix(*_ranks(labels_true, labels, ("labels_true", "labels"))[0])
    return float(counts.max(axis=0).sum() / counts.sum())
