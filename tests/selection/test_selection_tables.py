"""`Sweep` and `MergeTree` as text and as data frames."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cprime import GaussianMixture, KMeans
from cprime.datasets import birch
from cprime.selection import merge, sweep

X = birch(3, random_state=0).data  # 900 points around 9 centers
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.fixture(scope="module")
def found():
    return sweep(KMeans(), X, range(6, 12), criteria=["bic"], random_state=0)


@pytest.fixture(scope="module")
def trees():
    mixture = GaussianMixture(5, tol=0.1, random_state=0).fit(X)
    return {"ward": merge(KMeans(40, random_state=0).fit(X)), "entropy": merge(mixture, X)}


def test_a_sweep_prints_a_table_of_the_criteria_that_it_has(found):
    title, names, *rows = repr(found).splitlines()
    assert title == "Sweep of 6 fits of KMeans; best n_components: 9 by bic, 9 by held_out"
    assert names.split() == ["n_components", "bic", "held_out", "inertia", "seconds", "converged"]
    assert [row.split()[0] for row in rows] == ["6", "7", "8", "9", "10", "11"]
    assert [float(row.split()[1].replace(",", "")) for row in rows] == pytest.approx(found.bic, rel=1e-5)
    assert len({len(row) for row in [names, *rows]}) == 1
    assert str(found) == repr(found)


def test_a_tree_prints_its_first_and_last_joins(trees):
    title, names, *rows = repr(trees["ward"]).splitlines()
    assert title == "MergeTree of 40 components by criterion 'ward'; a row for each join"
    assert names.split()[0] == "n_clusters"
    assert [row.split()[0] for row in rows] == [*map(str, range(39, 29, -1)), "…", *map(str, range(10, 0, -1))]
    assert len(repr(trees["entropy"]).splitlines()) == 2 + 4
    assert repr(merge(KMeans(1, random_state=0).fit(X))).startswith("MergeTree of 1 components")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_sweep_is_a_frame_with_a_row_for_each_number(found, library):
    frame = found.to_frame(library)
    assert isinstance(frame, LIBRARIES[library])
    arrays = {name: value for name, value in vars(found).items() if isinstance(value, np.ndarray)}
    assert set(frame.columns) == set(arrays)
    for name, values in arrays.items():
        np.testing.assert_array_equal(frame[name].to_numpy(), values)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("criterion", ["ward", "entropy"])
def test_a_tree_is_a_frame_with_a_row_for_each_join(trees, library, criterion):
    tree, C = trees[criterion], trees[criterion].n_components
    frame = tree.to_frame(library)
    assert isinstance(frame, LIBRARIES[library])
    column = {name: frame[name].to_numpy() for name in frame.columns}
    np.testing.assert_array_equal(np.column_stack([column["first"], column["second"]]), tree.children)
    np.testing.assert_array_equal(column["n_joined"], tree.to_linkage()[:, 3])
    np.testing.assert_array_equal(column["change"], tree.changes)
    for i, n_clusters in enumerate(column["n_clusters"]):
        leaves = tree.cut(n_clusters)
        a = int(tree.children[i, 0])
        while a >= C:
            a = int(tree.children[a - C, 0])
        assert column["weight"][i] == pytest.approx(tree.weights[leaves == leaves[a]].sum())
        after = tree.increase_ if criterion == "ward" else tree.entropy_
        assert column["increase" if criterion == "ward" else "entropy"][i] == after[n_clusters - 1]


def test_errors_name_the_library(found, monkeypatch):
    with pytest.raises(ValueError, match=r"library must be one of .*pandas.*polars.*'arrow'"):
        found.to_frame("arrow")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="to_frame needs polars, which is missing: pip install polars"):
        found.to_frame("polars")
