"""Tree of joined components, which can be cut at any number of clusters.

`drop` finds the first join that removes clearly less entropy than the joins before it. Components of one cluster
overlap throughout, so the removed entropy changes little from join to join: about as a power of n, the number of
clusters. Distinct clusters overlap only in their tails, so the first join of two distinct clusters removes much less
entropy, smaller by a factor. The test of a join computes how far the log of its removed entropy lies below the minimum
so far, divided by the change of log n. This slope is compared with the mean of the absolute slopes of the m joins
before. If the slopes were exponentially distributed, one slope would exceed r times that mean with probability
(1 + r/m)^−m, and at least one of the slopes of a tree of C − 1 joins with at most C times that probability.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.em.joins import cluster_of
from cprime.estimators.validation import check_integer, check_real
from cprime.selection.criteria import elbow
from cprime.selection.results import frame_of, text_of

LEAST_SLOPES = 5


@dataclass(frozen=True, eq=False)
class MergeTree:
    """Tree of the pairwise joins of components to clusters, returned by `merge`. The repr is a table of the joins.

    Attributes
    ----------
    criterion : {"entropy", "ward"}
        The criterion by which pairs were chosen.
    children : ndarray of shape (n_components − 1, 2), int64
        The two clusters of each join, the smaller index first: an index below n_components is a component, n_components
        + i is the result of join i.
    changes : ndarray of shape (n_components − 1,)
        Decrease of the entropy of the assignment [nats], or increase of J [data unit²], by each join.
    weights : ndarray of shape (n_components,)
        Weight of each component: its number of points, or the sum of the points' weights times responsibilities.
    entropy : float or None
        Entropy of the assignment to the components, −Σ_n w_n Σ_c t_nc log t_nc [nats]; None for "ward".
    n_active : int or None
        Number of components per row that count in the entropy; None for "ward".
    components : ndarray of shape (n_samples,), int32, or None
        The component of each row; None if `merge` was called without X and the fit has no labels.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.selection import merge
    >>> X = birch(3, random_state=0).data  # 900 points around 9 centers
    >>> tree = merge(KMeans(40, random_state=0).fit(X))
    >>> tree.cut(9).shape, len(set(tree.labels(9).tolist()))
    ((40,), 9)
    """

    criterion: str
    children: NDArray[np.int64]
    changes: NDArray[np.float64]
    weights: NDArray[np.float64]
    entropy: float | None = None
    n_active: int | None = None
    components: Any = None

    def __repr__(self) -> str:
        title = f"MergeTree of {self.n_components:,} components by criterion {self.criterion!r}; a row for each join"
        return "\n".join([title, *text_of(self._columns())])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with a row for each join, in their order.

        Parameters
        ----------
        library : {"pandas", "polars"}, default="pandas"

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            Frame of n_components − 1 rows. Columns: `n_clusters`, the number of clusters after the join; `first` and
            `second`, as in `children`; `n_joined`, the number of components of the new cluster; `weight` of the new
            cluster; `change`, as in `changes`; and the total `entropy` [nats] or `increase` of J [data unit²] after the
            join.

        Raises
        ------
        ImportError
            If the library is missing.

        Examples
        --------
        >>> from cprime import KMeans
        >>> from cprime.selection import merge
        >>> tree = merge(KMeans(3, random_state=0).fit([[0.0], [1.0], [8.0], [9.0], [20.0]]))
        >>> tree.to_frame()[["n_clusters", "n_joined", "weight", "increase"]]
           n_clusters  n_joined  weight  increase
        0           2         2     4.0      64.0
        1           1         3     5.0     256.2
        """
        return frame_of(self._columns(), library)

    def _columns(self) -> dict[str, NDArray]:
        """Return the columns of the table of joins by name: arrays (n_components − 1,), one value for each join."""
        C = self.n_components
        sizes, weights = np.ones(2 * C - 1, np.int64), np.append(self.weights, np.zeros(C - 1))
        for i, pair in enumerate(self.children, C):
            sizes[i], weights[i] = sizes[pair].sum(), weights[pair].sum()
        rest = {"increase": self.increase_} if self.entropy is None else {"entropy": self.entropy_}
        return {
            "n_clusters": np.arange(C - 1, 0, -1),
            "first": self.children[:, 0],
            "second": self.children[:, 1],
            "n_joined": sizes[C:],
            "weight": weights[C:],
            "change": self.changes,
            **{name: values[::-1][1:] for name, values in rest.items()},
        }

    @property
    def n_components(self) -> int:
        """Return C, the number of components, which are the leaves of the tree."""
        return len(self.children) + 1

    @cached_property
    def entropy_(self) -> NDArray[np.float64]:
        """Return an array (n_components,) with the entropy [nats] of the assignment to n clusters at index n − 1.

        Raises AttributeError if the criterion is "ward".
        """
        if self.entropy is None:
            raise AttributeError(f"a tree of criterion={self.criterion!r} has no entropy_, but increase_")
        rest = self.entropy - np.cumsum(self.changes)
        return np.append(self.entropy, np.maximum(rest, 0.0))[::-1]

    @cached_property
    def increase_(self) -> NDArray[np.float64]:
        """Return an array (n_components,) with the increase of J by the joins from C to n clusters at index n − 1.

        Raises AttributeError if the criterion is "entropy".
        """
        if self.entropy is not None:
            raise AttributeError(f"a tree of criterion={self.criterion!r} has no increase_, but entropy_")
        return np.append(0.0, np.cumsum(self.changes))[::-1]

    def cut(self, n_clusters: int) -> NDArray[np.int64]:
        """Return the cluster of each component if the tree is cut at `n_clusters`.

        Parameters
        ----------
        n_clusters : int
            From 1 to n_components.

        Returns
        -------
        clusters : ndarray of shape (n_components,), int64
            Values from 0 to n_clusters − 1, in the order of the smallest component index of each cluster. Each cluster
            is a union of clusters of any cut with more clusters.

        Raises
        ------
        ValueError
            If n_clusters is out of range.
        """
        n_clusters = check_integer(n_clusters, "n_clusters", 1)
        if n_clusters > self.n_components:
            raise ValueError(f"n_clusters={n_clusters} should be <= n_components={self.n_components}.")
        return cluster_of(self.children, n_clusters)

    def labels(self, n_clusters: int) -> NDArray[np.int64]:
        """Return the cluster of each row of the X passed to `merge` or of the training data, for a cut at `n_clusters`.

        For other rows, labels are ``tree.cut(n)[fitted.predict(X)]`` and probabilities are
        ``fitted.predict_proba(X, sparse=True) @ np.eye(n)[tree.cut(n)]``.

        Parameters
        ----------
        n_clusters : int
            From 1 to n_components.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int64

        Raises
        ------
        ValueError
            If n_clusters is out of range, or the components of the rows are not known.
        """
        clusters = self.cut(n_clusters)
        if self.components is None:
            raise ValueError("The tree knows no rows, as the fit had no labels_: give merge X.")
        return clusters[np.asarray(self.components)]

    def elbow(self, alpha: float = 0.01) -> int | None:
        """Return the number of clusters that the joins suggest, or None if no number stands out.

        For "entropy" it is the number before the first join that removes significantly less entropy than all joins
        before it. The test uses the slope of the log of the removed entropy over log n, for n clusters: it is too steep
        for an exponential distribution whose mean is the mean slope at the joins before. For "ward" it is the elbow of
        `increase_`, found as in `Sweep.elbow`, up to half the number of components.

        Parameters
        ----------
        alpha : float, default=0.01
            Significance level, between 0 and 1.

        Returns
        -------
        n_clusters : int or None
            None also if there are fewer than about seven joins, too few for the test.

        References
        ----------
        See `Sweep.elbow`.
        """
        if not 0 < check_real(alpha, "alpha", 0.0) < 1:
            raise ValueError(f"alpha must be between 0 and 1, got {alpha}.")
        if self.entropy is not None:
            return drop(self.changes, self.entropy, alpha)
        sizes = np.arange(1, self.n_components // 2 + 1)
        return elbow(sizes, self.increase_[: len(sizes)], alpha)

    def to_linkage(self) -> NDArray[np.float64]:
        """Return the tree in SciPy's format, for `scipy.cluster.hierarchy.dendrogram`.

        For "ward", the height of a join is √(2 ΔJ), which is SciPy's own height if all weights are 1. For "entropy" it
        is log(H/ΔH), where H is the entropy of the assignment to components and ΔH its decrease by the join, but never
        below the height of the join before. Each join of clusters that share no point, for which ΔH = 0, is 1 higher
        than the one before.

        Returns
        -------
        Z : ndarray of shape (n_components − 1, 4)
            The two clusters of each join, its height, and its number of components; heights do not decrease.
        """
        counts = np.ones(2 * self.n_components - 1)
        for i, (a, b) in enumerate(self.children):
            counts[self.n_components + i] = counts[a] + counts[b]
        return np.column_stack([self.children, self.heights, counts[self.n_components :]])

    @cached_property
    def heights(self) -> NDArray[np.float64]:
        """Return the heights of the joins in a dendrogram, as in `to_linkage`: (n_components − 1,), non-decreasing."""
        if self.entropy is None:
            return np.maximum.accumulate(np.sqrt(2 * self.changes))
        n_met = int(np.count_nonzero(self.changes > 0))
        # A height is log(H/ΔH) of entropy H and its decrease ΔH by a join. H/ΔH may overflow, so logs are subtracted.
        logs = np.log(self.changes[:n_met])
        met = np.maximum.accumulate(np.maximum(np.log(self.entropy) - logs, 0.0)) if n_met else logs
        return np.append(met, met.max(initial=0.0) + np.arange(1, len(self.changes) - n_met + 1))


def drop(removed: NDArray[np.float64], entropy: float, alpha: float) -> int | None:
    """Return the number of clusters before the first join that removes significantly less entropy than those before.

    Return None if there is no such join at significance level `alpha`. The module's docstring describes the test.
    removed (C − 1,): entropy removed by each join of C components; values below the rounding error of `entropy`, the
    entropy of the components, are replaced by this error
    """
    C = len(removed) + 1
    if not entropy > 0:
        return None
    logs = np.log(np.maximum(removed, np.finfo(np.float64).eps * entropy))
    sizes = np.log(np.arange(C, 1, -1))  # log of the number of clusters before each join
    steps = -np.diff(sizes)
    slopes = np.abs(np.diff(logs)) / steps
    falls = (np.minimum.accumulate(logs)[:-1] - logs[1:]) / steps
    before = np.arange(1, len(slopes))  # number of joins before each tested join; the first join is not tested
    usual = np.cumsum(slopes)[:-1] / before
    limits = usual * before * ((C / alpha) ** (1 / before) - 1)
    found = np.flatnonzero((falls[1:] > limits) & (before >= LEAST_SLOPES))
    return None if not len(found) else int(C - 2 - found[0])
