"""Display of the last joins in a tree of merged components, and of the change of the criterion by each join."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.ticker import FuncFormatter, MultipleLocator
from scipy.cluster.hierarchy import dendrogram

from cprime._utils.style import BLACK, BLUE, COLORS, GREY, frame, name_line
from cprime.estimators.validation import check_integer
from cprime.plots.style import COLUMN, TEXT, panels, plain_counts
from cprime.selection import MergeTree, merge

PANELS = ("dendrogram", "joins")
_COLORS = COLORS[:-1]
_LOG_TEN = float(np.log(10))


class MergeTreeDisplay:
    """The last joins of a `MergeTree` as a dendrogram, and the change by each join over the number of clusters.

    Clusters of the cut have colors, joins above the cut are gray, and a dotted line shows the cut. A horizontal line of
    the dendrogram is a join; the higher it is, the less alike the joined clusters. If components are joined by Ward's
    criterion, its height is √(2 ΔJ) in units of the data, where ΔJ is the increase of J, the sum of squared distances.
    If they are joined by entropy, the axis shows the share of the entropy of the assignment that the join removes: a
    large share at the bottom, for components that overlap, and small shares above. A join that is not above the join
    before it is drawn at the same height.

    The second panel shows, on logarithmic scales, ΔJ in the square of the data's unit, or the removed entropy in nats
    (a sum over all points), at the number of clusters before the join. A triangle at the bottom is a join that removes
    less entropy than the rounding error.

    Parameters
    ----------
    tree : MergeTree
    n_clusters : int or None
        Number of clusters at which the tree is cut; None for no cut.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each panel.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> from cprime.plots import MergeTreeDisplay
    >>> X = birch(3, random_state=0).data  # 9 clusters
    >>> display = MergeTreeDisplay.from_estimator(KMeans(60, random_state=0).fit(X))
    >>> display.n_clusters
    9
    """

    def __init__(self, tree: MergeTree, n_clusters: int | None) -> None:
        self.tree = tree
        self.n_clusters = n_clusters

    @classmethod
    def from_tree(cls, tree: MergeTree, *, n_clusters: int | str | None = "elbow", ax: Any = None, **kw: Any) -> Self:
        """Show a tree.

        Parameters
        ----------
        tree : MergeTree
            A tree of at least two components.
        n_clusters : int, "elbow" or None, default="elbow"
            Number of clusters at which to cut; "elbow" is the number that the tree suggests, if any.
        ax : array-like of matplotlib Axes or None, default=None
            Axes to draw on, one for each panel; None makes a figure.
        **kw : dict
            Arguments of `plot`.

        Returns
        -------
        display : MergeTreeDisplay

        Raises
        ------
        ValueError
            If there are no joins, or n_clusters is out of range.
        """
        if tree.n_components == 1:
            raise ValueError("tree must have two components at least, got one.")
        n: Any = tree.elbow() if n_clusters == "elbow" else n_clusters
        if n is not None:
            tree.cut(n)
        return cls(tree, n).plot(ax, **kw)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        n_clusters: int | str | None = "elbow",
        ax: Any = None,
        n_leaves: int = 40,
        colors: Sequence[Any] | None = None,
        panels_shown: Sequence[str] = PANELS,
        **options: Any,
    ) -> Self:
        """Join the components of a fit, draw the resulting tree, and return the display.

        Arguments are those of `cprime.selection.merge`, of `from_tree`, and of `plot`.
        """
        tree = merge(estimator, X, **options)
        shown: dict[str, Any] = {"n_leaves": n_leaves, "colors": colors, "panels_shown": panels_shown}
        return cls.from_tree(tree, n_clusters=n_clusters, ax=ax, **shown)

    def plot(
        self,
        ax: Any = None,
        *,
        n_leaves: int = 40,
        colors: Sequence[Any] | None = None,
        panels_shown: Sequence[str] = PANELS,
    ) -> Self:
        """Draw the dendrogram and the change by each join.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of them or None, default=None
        n_leaves : int, default=40
            Maximum number of leaves of the dendrogram; it is raised to the number of clusters of the cut.
        colors : sequence of colors of matplotlib or None, default=None
            Colors of the clusters, used cyclically in the order of their indices; None is the default palette.
        panels_shown : sequence of {"dendrogram", "joins"}, default=("dendrogram", "joins")

        Returns
        -------
        display : MergeTreeDisplay
        """
        palette = [to_hex(color) for color in (_COLORS if colors is None else colors)]
        n_leaves = check_integer(n_leaves, "n_leaves", 2)
        draw = {"dendrogram": lambda axes: self._draw_dendrogram(axes, n_leaves, palette), "joins": self._draw_joins}
        for name in panels_shown:
            if name not in draw:
                raise ValueError(f"panels_shown must be among {list(PANELS)}, got {name!r}.")
        n = len(panels_shown)
        self.figure_, self.axes_ = panels(ax, n, 1, COLUMN * (0.1 + 0.6 * n))
        for axes, name in zip(self.axes_, panels_shown, strict=True):
            draw[name](axes)
        return self

    def _draw_dendrogram(self, axes: Any, n_leaves: int, palette: list[str]) -> None:
        tree, C = self.tree, self.tree.n_components
        n = self.n_clusters
        clusters = np.zeros(C, dtype=np.intp) if n is None else tree.cut(n)
        n_leaves = min(max(n_leaves, n or 2), C)
        # For each node of the tree: the index of one component in its subtree, whose color the node gets.
        one = np.arange(2 * C - 1)
        for i, (a, _) in enumerate(tree.children):
            one[C + i] = one[a]
        lowest = C if n is None else 2 * C - n  # index of the first node above the cut of the tree

        def color(node: int) -> str:
            return GREY if node >= lowest or n is None else palette[clusters[one[node]] % len(palette)]

        drawn = dendrogram(tree.to_linkage(), n_leaves, "lastp", no_plot=True, link_color_func=color)
        lines = [np.column_stack(line) for line in zip(drawn["icoord"], drawn["dcoord"], strict=True)]
        axes.add_collection(LineCollection(lines, colors=drawn["color_list"], linewidths=1.2))
        feet = tree.heights[C - n_leaves - 1] if n_leaves < C else 0.0
        # A leaf of the drawing that contains several components has a larger marker.
        for x, node in enumerate(drawn["leaves"]):
            axes.plot(5 + 10 * x, 0, "o", color=color(node), markersize=2.5 if node >= C else 1, clip_on=False)
        frame(axes, "", f"{n_leaves} of {C:,} components" if n_leaves == C else f"the last {n_leaves} clusters", "")
        axes.set_ylabel("√(2 × increase of J)" if tree.entropy is None else "entropy removed, share", fontsize=9)
        axes.set_xlim(0, 10 * n_leaves)
        top = float(tree.heights[-1])
        axes.set_ylim(0, 1.06 * top if top > 0 else 1)
        if tree.entropy is not None:  # A height is −log of a share; five labels at most fit an axis of any panel.
            axes.yaxis.set_major_locator(MultipleLocator(np.ceil(top / _LOG_TEN / 4) * _LOG_TEN if top > 0 else 1))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda height, _: f"{100 * np.exp(-height):.3g} %"))
        axes.set_xticks([])
        axes.grid(False, axis="x")
        if n is not None and 1 < n < C:
            low, high = tree.heights[C - n - 1], tree.heights[C - n]
            level = float(max(low, feet) + high) / 2
            axes.axhline(level, color=BLACK, linewidth=0.8, linestyle=":")
            axes.annotate(
                f"{n} clusters", (1, level), xycoords=("axes fraction", "data"), xytext=(0, 2),
                textcoords="offset points", ha="right", fontsize=TEXT,
                bbox={"color": "white", "pad": 0.5, "alpha": 0.8},
            )  # fmt: skip

    def _draw_joins(self, axes: Any) -> None:
        tree, n = self.tree, self.n_clusters
        sizes = np.arange(tree.n_components, 1, -1)
        seen = tree.changes > (0 if tree.entropy is None else np.finfo(np.float64).eps * tree.entropy)
        axes.plot(sizes[seen], tree.changes[seen], "o-", color=BLUE, markersize=2.5, linewidth=0.8)
        what = "increase of J" if tree.entropy is None else "entropy removed (nats)"
        frame(axes, "", "clusters before the join", what)
        axes.set_xscale("log")
        if seen.any():
            axes.set_yscale("log")
        axes.set_xlim(1.8, max(tree.n_components, 3) * 1.1)
        plain_counts(axes.xaxis)
        hidden = sizes[~seen]
        if tree.entropy is not None and len(hidden):
            axes.plot(
                hidden, np.zeros(len(hidden)), "v", color=BLUE, markersize=3, clip_on=False,
                transform=axes.get_xaxis_transform(),
            )  # fmt: skip
        if n is not None:
            name_line(axes, n, f"{n} clusters", BLACK)
