"""Tables of clusters against classes: their counts, their matching and their measures of agreement."""

from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from cprime import FuzzyKMeans, GaussianMixture
from cprime.selection import classification_table, purity

LABELS = np.random.default_rng(0).integers(5, size=400)


def test_purity_is_the_share_of_the_majority():
    assert purity(LABELS, LABELS) == 1.0
    assert purity([0, 0, 1, 1, 1], [3, 3, 3, 3, 3]) == pytest.approx(0.6)
    assert purity([0, 1, 2], [0, 1, 2]) == 1.0
    with pytest.raises(ValueError, match="labels must have one entry for each of labels_true, got 2 and 3"):
        purity([0, 1, 2], [0, 1])


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(1, 1), (4, 4), (3, 5), (5, 2)])
def test_no_other_matching_has_more_points(n_classes, n_clusters, rng):
    names = np.array(["e", "d", "c", "b", "a"])[:n_classes]
    classes = rng.integers(n_classes, size=60)
    clusters = np.where(rng.random(60) < 0.4, rng.integers(n_clusters, size=60), (classes * 3 + 1) % n_clusters)
    table = classification_table(names[classes], clusters)
    for i, name in enumerate(table.classes):
        for j, cluster in enumerate(table.clusters):
            assert table.counts[i, j] == ((names[classes] == name) & (clusters == cluster)).sum()
    n, counts = min(n_classes, n_clusters), table.counts
    wide = counts if n_classes <= n_clusters else counts.T
    most = max(wide[np.arange(n), list(order)].sum() for order in permutations(range(wide.shape[1]), n))
    assert 1 - table.error_rate == pytest.approx(most / 60)
    assert table.matched[:, 1].tolist() == list(range(n))
    assert len(set(table.matched[:, 0])) == n
    assert table.adjusted_rand == pytest.approx(adjusted_rand_score(classes, clusters))


def test_a_fit_is_compared_with_classes_and_other_fits():
    """mclust's three components with free covariances (VVV) on iris differ from the species in five flowers."""
    iris = load_iris()
    gm = GaussianMixture(3, n_init=5, random_state=0).fit(iris.data)
    table = classification_table(iris.target, gm)
    assert table.error_rate == pytest.approx(5 / 150)
    assert table.adjusted_rand == pytest.approx(0.904, abs=5e-4)
    assert classification_table(gm, gm).error_rate == 0
    title, names, *rows = repr(classification_table(iris.target_names[iris.target], gm)).splitlines()
    assert title == "Classification of 150 points: error rate 0.0333, adjusted Rand index 0.904"
    assert names.split() == ["class", *map(str, table.clusters)]
    assert [row.split()[0] for row in rows] == ["setosa", "versicolor", "virginica"]
    assert "(88 more clusters are not shown)" in repr(classification_table(np.zeros(100), np.arange(100)))


@pytest.mark.parametrize("library", [pd, pl])
def test_a_table_is_a_frame_with_a_row_for_each_class(library):
    table = classification_table(["x", "y", "y"], [7, 8, 8])
    frame = table.to_frame(library.__name__)
    assert frame.columns[0] == "class"
    assert list(frame["class"]) == ["x", "y"]
    np.testing.assert_array_equal(frame[["7", "8"]].to_numpy(), table.counts)


def test_partitions_of_other_points_are_refused():
    for classes, clusters, message in (
        ([0, 1, 2], [0, 1], "clusters must have one entry for each of classes, got 2 and 3"),
        ([], [], "clusters must have one entry for each of classes, got 0 and 0"),
        ([[0, 1]], [0, 1], "classes"),
        ([0, 1], GaussianMixture(), "not fitted"),
        ([0, 1, 2], FuzzyKMeans(2).fit([[0.0], [1.0], [2.0]]), None),
    ):
        if message is None:
            assert classification_table(classes, clusters).counts.shape == (3, 2)
        else:
            with pytest.raises(ValueError, match=message):
                classification_table(classes, clusters)
