"""Display of the top of a merge tree and of the changes that merges cause."""

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans
from cprime.datasets import birch
from cprime.selection import merge

pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install cprime[plots]")
from matplotlib.colors import to_hex

from cprime._utils.style import GREY
from cprime.plots import MergeTreeDisplay

X = birch(3, random_state=0).data


def test_clusters_of_the_cut_have_colors_and_what_joins_them_is_grey():
    display = MergeTreeDisplay.from_estimator(KMeans(60, random_state=0).fit(X), n_leaves=20)
    assert display.n_clusters == 9
    top, joins = display.axes_
    colors = [to_hex(color) for color in top.collections[0].get_colors()]
    assert len(colors) == 19
    assert colors.count(GREY) == 8
    (curve,) = [line for line in joins.lines if len(line.get_xdata()) > 2]
    np.testing.assert_array_equal(curve.get_xdata(), np.arange(60, 1, -1))
    np.testing.assert_array_equal(curve.get_ydata(), display.tree.changes)
    assert [text.get_text() for text in joins.texts] == ["9 clusters"]


def test_joins_that_remove_nothing_are_triangles_at_the_foot():
    X = np.repeat([[1e4, 0.0], [2e4, 0.0], [0.0, 1e4]], 40, axis=0)
    X += np.random.default_rng(0).standard_normal(X.shape)
    mixture = GaussianMixture(4, covariance_type="spherical", means_init=X[[0, 40, 80, 1]]).fit(X)
    display = MergeTreeDisplay.from_estimator(mixture, X, n_clusters=None, panels_shown=("joins",))
    assert display.n_clusters is None
    (foot,) = [line for line in display.axes_[0].lines if line.get_marker() == "v"]
    assert foot.get_xdata().tolist() == [3, 2]


def test_errors_name_what_came():
    tree = merge(KMeans(5, random_state=0).fit(X))
    with pytest.raises(ValueError, match=r"panels_shown must be among .* got 'curve'"):
        MergeTreeDisplay.from_tree(tree, panels_shown=["curve"])
    with pytest.raises(ValueError, match=r"n_clusters=6 should be <= n_components=5"):
        MergeTreeDisplay.from_tree(tree, n_clusters=6)
    with pytest.raises(ValueError, match=r"tree must have two components at least, got one"):
        MergeTreeDisplay.from_estimator(KMeans(1).fit(X))
