"""Display of the number of points in each cluster."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cprime._utils.style import BLUE, GREY, frame, name_curves
from cprime.estimators.fitted import centers_of
from cprime.estimators.validation import check_weights
from cprime.plots.fitted import accepting
from cprime.plots.style import COLUMN, TEXT, panels, plain_counts

_NAMED = 25


class SizesDisplay:
    """Sizes of the clusters in decreasing order, with a line at their mean N/C.

    N is the number of points, or the sum of their weights, C that of clusters. Up to 25 clusters are drawn as bars with
    their indices at the left and their sizes at the right. A larger number is drawn as a curve: size over the rank.

    Parameters
    ----------
    sizes : array-like of shape (n_clusters,)
        Number of points, or weight, of each cluster.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import old_faithful
    >>> from cprime.plots import SizesDisplay
    >>> km = KMeans(2, random_state=0).fit(old_faithful().data)
    >>> sorted(SizesDisplay.from_estimator(km).sizes.tolist())
    [100.0, 172.0]
    """

    def __init__(self, sizes: ArrayLike) -> None:
        self.sizes: NDArray[np.float64] = np.asarray(sizes, dtype=np.float64)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, sample_weight: Any = None, ax: Any = None, **kw: Any
    ) -> Self:
        """Count the points of each cluster and show the counts.

        Parameters
        ----------
        estimator : fitted estimator
            It must have `cluster_centers_` or `means_`, and `labels_` or predict.
        X : array-like of shape (n_samples, n_features), or any data that predict accepts, default=None
            Points to count by `predict`; None counts the labels of the training data.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the points.
        ax : matplotlib Axes or None, default=None
        **kw : dict
            Arguments of `plot`.

        Returns
        -------
        display : SizesDisplay
        """
        C = len(centers_of(estimator))
        if X is None:
            check_is_fitted(estimator, "labels_", msg="X must be given: %(name)s has no labels_.")
        labels = np.asarray(estimator.labels_ if X is None else accepting(estimator, X).predict(X))
        return cls(np.bincount(labels, check_weights(sample_weight, labels), minlength=C)).plot(ax, **kw)

    def plot(self, ax: Any = None, *, log: bool = False) -> Self:
        """Draw the sizes of the clusters.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
        log : bool, default=False
            Whether the axis of the sizes is logarithmic.

        Returns
        -------
        display : SizesDisplay
        """
        C = len(self.sizes)
        order = np.argsort(-self.sizes, kind="stable")
        mean = float(self.sizes.mean())
        if C <= _NAMED:
            self._bars(ax, order, mean)
        else:
            self._curve(ax, order, mean)
        if log:
            least = 0.5 * float(self.sizes[self.sizes > 0].min(initial=1))
            if C <= _NAMED:
                self.ax_.set(xscale="log", xlim=(least, None))
            else:
                self.ax_.set(yscale="log", ylim=(least, None))
            plain_counts(self.ax_.xaxis if C <= _NAMED else self.ax_.yaxis)
        return self

    def _bars(self, ax: Any, order: NDArray, mean: float) -> None:
        self.figure_, (self.ax_,) = panels(ax, 1, 1, 0.7 + 0.17 * len(order))
        places = np.arange(len(order))
        self.ax_.barh(places, self.sizes[order], color=BLUE, height=0.75)
        right = self.ax_.get_yaxis_transform()
        beside = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "fontsize": TEXT}
        for place, size in zip(places, self.sizes[order], strict=True):
            self.ax_.annotate(f"{size:.6g}", (1, place), xycoords=right, **beside)
        frame(self.ax_, "", "points", "cluster")
        self.ax_.grid(False)
        self.ax_.set_yticks(places, [str(c) for c in order])
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_ylim(len(order) - 0.4, -0.6)
        self.ax_.set_xlim(0, max(1.02 * float(self.sizes.max()), np.finfo(float).tiny))
        self.ax_.axvline(mean, color="white", linewidth=0.8)
        self.ax_.axvline(mean, color=GREY, linewidth=0.8, linestyle=":")
        self.ax_.annotate(
            "N/C", (mean, 1), xycoords=("data", "axes fraction"), xytext=(0, 1), textcoords="offset points",
            ha="center", fontsize=TEXT, color=GREY,
        )  # fmt: skip

    def _curve(self, ax: Any, order: NDArray, mean: float) -> None:
        self.figure_, (self.ax_,) = panels(ax, 1, 1, COLUMN * 0.65)
        ranks = np.arange(1, len(order) + 1)
        ordered = self.sizes[order]
        self.ax_.fill_between(ranks, ordered, color=BLUE, alpha=0.25, linewidth=0, step="mid")
        self.ax_.step(ranks, ordered, where="mid", color=BLUE, linewidth=1.4)
        n_empty = int((ordered == 0).sum())
        facts = f"largest {ordered[0]:.6g}, median {np.median(ordered):.6g}, smallest {ordered[-1]:.6g}"
        frame(self.ax_, "", "clusters, the largest first", "points")
        self.ax_.set_title(f"{facts}, {n_empty} empty" if n_empty else facts, fontsize=TEXT, loc="left")
        self.ax_.set_xlim(1, len(order))
        self.ax_.set_ylim(bottom=0)
        self.ax_.axhline(mean, color=GREY, linewidth=0.8, linestyle=":")
        name_curves(self.ax_, [(f"N/C = {mean:.4g}", mean, GREY)])
