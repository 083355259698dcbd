"""Tree of joined components, which is cut at any number of clusters."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.estimators.validation import check_integer, check_real
from cprime.selection.elbow import elbow
from cprime.selection.merging.drop import drop
from cprime.selection.merging.joins import cluster_of
from cprime.selection.tables import frame_of, text_of


@dataclass(frozen=True, eq=False)
class MergeTree:
    """Components joined to clusters, one pair after the other; made by `merge`. The repr is a table of the joins.

    Attributes
    ----------
    criterion : {"entropy", "ward"}
        What the next pair was chosen by.
    children : ndarray of shape (n_components − 1, 2), int64
        The two clusters of each join, the lesser first: c below n_components is a component, n_components + i what join
        i has made.
    changes : ndarray of shape (n_components − 1,)
        By how much each join lowers the entropy of the assignment [nats], or raises J [data unit²].
    weights : ndarray of shape (n_components,)
        The points, or the sum of weights and shares, of each component.
    entropy : float or None
        Of the assignment to the components, −Σ_n w_n Σ_c t_nc log t_nc [nats]; None for "ward".
    n_active : int or None
        How many components of a row the entropy has seen; None for "ward".
    components : ndarray of shape (n_samples,), int32, or None
        The component of each row; None where neither `merge` was given X nor the fit had labels.

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
            Of n_components − 1 rows. Columns: `n_clusters`, which remain after the join; `first` and `second`, as in
            `children`; `n_joined`, the number of components of the new cluster; `weight` of the new cluster; `change`,
            as in `changes`; and after the join the `entropy` [nats] or the `increase` of J [data unit²].

        Raises
        ------
        ImportError
            If the library is missing: ``pip install cprime[tables]``.

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
        """Return a value for each join by name: arrays (n_components − 1,)."""
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
        """The number of leaves, C."""
        return len(self.children) + 1

    @cached_property
    def entropy_(self) -> NDArray[np.float64]:
        """The entropy [nats] of the assignment to n clusters, at n − 1: (n_components,); AttributeError for "ward"."""
        if self.entropy is None:
            raise AttributeError(f"a tree of criterion={self.criterion!r} has no entropy_, but increase_")
        rest = self.entropy - np.cumsum(self.changes)
        return np.append(self.entropy, np.maximum(rest, 0.0))[::-1]

    @cached_property
    def increase_(self) -> NDArray[np.float64]:
        """By how much J of n centers is above that of all, at n − 1: (n_components,); AttributeError for "entropy"."""
        if self.entropy is not None:
            raise AttributeError(f"a tree of criterion={self.criterion!r} has no increase_, but entropy_")
        return np.append(0.0, np.cumsum(self.changes))[::-1]

    def cut(self, n_clusters: int) -> NDArray[np.int64]:
        """The cluster of each component after the joins that leave so many.

        Parameters
        ----------
        n_clusters : int
            From 1 to n_components.

        Returns
        -------
        clusters : ndarray of shape (n_components,), int64
            From 0 to n_clusters − 1, in the order of the least component of each. Of fewer clusters each is a union of
            clusters of more.

        Raises
        ------
        ValueError
            If there cannot be so many.
        """
        n_clusters = check_integer(n_clusters, "n_clusters", 1)
        if n_clusters > self.n_components:
            raise ValueError(f"n_clusters={n_clusters} should be <= n_components={self.n_components}.")
        return cluster_of(self.children, n_clusters)

    def labels(self, n_clusters: int) -> NDArray[np.int64]:
        """The cluster of each row of the X that `merge` was given, or of the training data: that of its component.

        Of other rows it is ``tree.cut(n)[fitted.predict(X)]``, and their probabilities are
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
            If there cannot be so many, or the components of rows are not known.
        """
        clusters = self.cut(n_clusters)
        if self.components is None:
            raise ValueError("The tree knows no rows, as the fit had no labels_: give merge X.")
        return clusters[np.asarray(self.components)]

    def elbow(self, alpha: float = 0.01) -> int | None:
        """The number of clusters that the joins themselves suggest, or None if none stands out.

        For "entropy" it is that before the first join that removes less, by a factor, than all before it have: its log
        falls faster over log n than exponential slopes of the mean of those before would. For "ward" it is the elbow of
        `increase_`, as of `Sweep.elbow`, up to half of the components.

        Parameters
        ----------
        alpha : float, default=0.01
            Significance, between 0 and 1.

        Returns
        -------
        n_clusters : int or None
            None also of fewer than some seven joins: too few to tell.

        References
        ----------
        As of `Sweep.elbow`.
        """
        if not 0 < check_real(alpha, "alpha", 0.0) < 1:
            raise ValueError(f"alpha must be between 0 and 1, got {alpha}.")
        if self.entropy is not None:
            return drop(self.changes, self.entropy, alpha)
        sizes = np.arange(1, self.n_components // 2 + 1)
        return elbow(sizes, self.increase_[: len(sizes)], alpha)

    def to_linkage(self) -> NDArray[np.float64]:
        """The tree as SciPy has it, for `scipy.cluster.hierarchy.dendrogram`.

        Heights are, for "ward", √(2 ΔJ) of each join, SciPy's own where all weights are 1. For "entropy" they are
        log(H/ΔH), H being the entropy of all components and ΔH what the join takes away, but never below the height of
        the join before; each of the joins without a point in common is 1 above the one before.

        Returns
        -------
        Z : ndarray of shape (n_components − 1, 4)
            The two clusters of each join, its height, and how many components it has; heights rise.
        """
        counts = np.ones(2 * self.n_components - 1)
        for i, (a, b) in enumerate(self.children):
            counts[self.n_components + i] = counts[a] + counts[b]
        return np.column_stack([self.children, self.heights, counts[self.n_components :]])

    @cached_property
    def heights(self) -> NDArray[np.float64]:
        """Of the joins in `to_linkage`: (n_components − 1,), rising."""
        if self.entropy is None:
            return np.maximum.accumulate(np.sqrt(2 * self.changes))
        n_met = int(np.count_nonzero(self.changes > 0))
        logs = np.log(self.changes[:n_met])  # their quotient may underflow
        met = np.maximum.accumulate(np.maximum(np.log(self.entropy) - logs, 0.0)) if n_met else logs
        return np.append(met, met.max(initial=0.0) + np.arange(1, len(self.changes) - n_met + 1))
