"""Neighbor lists, random sets and the two-level structure of cells."""

import numpy as np
import pytest
from search_data import DTYPES, KEY, clustered

from cprime._utils.random import Key, Purpose
from cprime.kernels import Dense, as_rows
from cprime.neighbors import (
    Cells,
    GroupedCenters,
    coarse_centers,
    exact_lists,
    refined_lists,
    table,
    with_self,
    without_self,
)
from cprime.neighbors.components import Centers
from cprime.search import Papers
from cprime.search.papers import random_lists, random_sets
from fits import squared_distances
from passes import Passes
from reference import Reference


def numbers(n, key=KEY, purpose=Purpose.SETS):
    """Return a function that draws a column of random numbers for n rows."""
    return lambda column: key.uniform(purpose, 0, n, column)


def nearest_others(centers, n):
    """Return the indices of the n nearest other centers of each center, by sorting all distances."""
    between = squared_distances(centers, centers)
    np.fill_diagonal(between, np.inf)
    return np.argsort(between, axis=1, kind="stable")[:, :n]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("C", "G"), [(2, 2), (30, 2), (30, 7), (30, 30), (30, 99), (200, 33)])
def test_exact_lists_are_the_nearest_others(C, G, dtype):
    centers = clustered(C, 4, dtype)
    lists = exact_lists(centers, G)
    assert lists.dtype == np.int32
    np.testing.assert_array_equal(lists, nearest_others(centers, min(G, C) - 1))
    moved = centers + dtype(0.3) * clustered(C, 4, dtype, seed=1)
    np.testing.assert_array_equal(exact_lists(moved, G, lists), exact_lists(moved, G))
    np.testing.assert_array_equal(with_self(lists)[:, 0], np.arange(C))


def test_exact_lists_of_equal_centers_have_no_component_itself():
    lists = exact_lists(np.ones((20, 3)), 5)
    assert (lists >= 0).all()
    assert (lists != np.arange(20)[:, np.newaxis]).all()
    assert all(len(set(row)) == 4 for row in lists.tolist())


def test_without_self_leaves_no_hole():
    lists = np.array([[0, 1, 2, 3], [0, 2, 1, -1], [0, 1, 3, 4], [-1, -1, -1, -1], [-1, 4, 0, -1]], dtype=np.int32)
    expected = [[1, 2, 3], [0, 2, -1], [0, 1, 3], [-1, -1, -1], [0, -1, -1]]
    np.testing.assert_array_equal(without_self(lists), expected)


def test_refined_lists_get_better_until_they_are_nearly_exact():
    centers = clustered(400, 3)
    truth = nearest_others(centers, 15)
    lists = random_lists(400, 16, Key(0))

    def found(lists):
        return np.mean([len(set(a) & set(b)) for a, b in zip(lists.tolist(), truth.tolist(), strict=True)]) / 15

    shares = [found(lists)]
    for _ in range(7):
        lists, _ = refined_lists(centers, lists, 16)
        assert (lists != np.arange(400)[:, np.newaxis]).all()
        shares.append(found(lists))
    assert (np.diff(shares) >= 0).all()
    assert shares[0] < 0.1
    assert shares[-1] > 0.9


def test_refined_lists_choose_among_neighbours_and_theirs():
    centers = clustered(60, 2)
    lists = random_lists(60, 4, Key(0))
    refined, n_distances = refined_lists(centers, lists, 6)
    between = squared_distances(centers, centers)
    for c in range(60):
        offered = sorted({*lists[c], *lists[lists[c]].ravel()} - {c}, key=lambda b: (between[c, b], b))
        np.testing.assert_array_equal(refined[c][refined[c] >= 0], offered[:5])
        n_distances -= len(offered)
    assert n_distances == 0


@pytest.mark.parametrize(("C", "size"), [(1, 1), (7, 7), (7, 3), (50, 1), (50, 49)])
def test_random_sets_are_distinct(C, size):
    sets = random_sets(500, C, size, numbers(500))
    assert sets.dtype == np.int32
    assert sets.shape == (500, size)
    assert sets.min() >= 0
    assert sets.max() < C
    assert all(len(set(row)) == size for row in sets.tolist())


def test_random_sets_are_uniform_over_sets():
    sets = np.sort(random_sets(30_000, 6, 3, numbers(30_000)), axis=1)
    _, counts = np.unique(sets, axis=0, return_counts=True)
    assert len(counts) == 20
    assert np.abs(counts - 1500).max() < 5 * np.sqrt(1500)


@pytest.mark.parametrize(("C", "G"), [(2, 2), (9, 9), (9, 4), (9, 20)])
def test_random_lists_are_others(C, G):
    lists = np.concatenate([random_lists(C, G, Key(seed)) for seed in range(200)])
    assert lists.shape == (200 * C, min(G, C) - 1)
    own = np.tile(np.arange(C), 200)
    assert (lists != own[:, np.newaxis]).all()
    assert all(len(set(row)) == len(row) for row in lists.tolist())
    counts = np.bincount(lists[own == 0].ravel(), minlength=C)[1:]
    assert np.abs(counts - counts.mean()).max() < 5 * np.sqrt(counts.mean())


def test_a_table_lists_the_members_of_each_group():
    np.testing.assert_array_equal(table(np.array([2, 0, 2, 0, 2]), 4), [[1, 3, -1], [-1] * 3, [0, 2, 4], [-1] * 3])
    assert table(np.array([], dtype=int), 2).shape == (2, 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_on_the_middle_of_their_group_are_no_exception(dtype):
    """The nearest center is found for all rows of a group, even for a row at the point near the group's rows."""
    centers = np.array([[-3.0], [-1.0], [1.5], [2.5]], dtype=dtype)
    X = np.array([[0.0], [-3.0], [2.5], [1e-12]], dtype=dtype)  # the mean of the centers is 0
    grouped = GroupedCenters(centers.mean(axis=0, keepdims=True), centers, np.arange(4, dtype=np.int32)[np.newaxis])
    labels, distances = grouped.choose(as_rows(X), np.zeros(4, dtype=np.int32))
    np.testing.assert_array_equal(labels, [1, 0, 3, 1])
    np.testing.assert_allclose(distances, [1, 0, 0, 1], rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("C", [1, 2, 5, 64, 700])
def test_cells_find_a_near_component(C, dtype):
    centers, X = clustered(C, 3, dtype), clustered(1500, 3, dtype, seed=1)
    cells = Cells(centers)
    members = cells.members[cells.members >= 0]
    np.testing.assert_array_equal(np.sort(members), np.arange(C))
    labels, distances = cells.find(as_rows(X))
    assert labels.dtype == np.int32
    assert labels.min() >= 0
    assert labels.max() < C
    truth = squared_distances(X, centers)
    np.testing.assert_allclose(distances, truth[np.arange(1500), labels], rtol=1e-4 if dtype == np.float32 else 1e-9)
    agreement = np.mean(labels == Dense(X).nearest(centers)[0][:, 0])
    assert agreement == 1 if C <= 64 else agreement > 0.95
    if C == 700:
        offered = (cells.offer.offered >= 0).sum(axis=1)
        assert len(cells.coarse) + offered.mean() < C / 2
    lists = cells.lists(min(C, 10))
    expected = Dense(centers).nearest(centers, min(C, 10))[0]
    assert np.mean([len(set(a) & set(b)) / len(a) for a, b in zip(lists, expected, strict=True)]) > 0.9


@pytest.mark.parametrize("n_distinct", [1, 3, 60])
def test_cells_find_duplicates_of_centers(n_distinct):
    centers = np.repeat(clustered(n_distinct, 2), 10, axis=0)
    X = np.repeat(centers, 3, axis=0)
    labels, distances = Cells(centers).find(as_rows(X))
    assert distances.max() == 0
    np.testing.assert_array_equal(centers[labels], X)


def test_coarse_centers_lower_the_error_of_random_rows():
    X = clustered(2000, 4)
    rows = X[np.random.default_rng(0).permutation(2000)[:30]]
    coarse = coarse_centers(as_rows(X), 30, np.random.RandomState(0))
    assert len(coarse) <= 30
    assert Dense(X).nearest(coarse)[1].sum() < 0.8 * Dense(X).nearest(rows)[1].sum()
    assert len(coarse_centers(as_rows(np.ones((50, 2))), 7, np.random.RandomState(0))) == 1


def estimated_lists(distances, looked, winners, weights, G):
    """Return lists by eq. (8) of Forster & Lücke: by mean distance to c̃ of points of c that evaluated c̃; d_cc = 0."""
    sums, counts, C = {}, {}, distances.shape[1]
    for n, winner in enumerate(winners):
        for c in looked[n]:
            if c >= 0 and weights[n] > 0:
                sums[winner, c] = sums.get((winner, c), 0) + weights[n] * distances[n, c]
                counts[winner, c] = counts.get((winner, c), 0) + weights[n]
    lists = np.full((C, G - 1), -1)
    for c in range(C):
        seen = sorted((sums[c, b] / counts[c, b], b) for b in range(C) if (c, b) in sums and b != c)
        lists[c, : len(seen[: G - 1])] = [b for _, b in seen[: G - 1]]
    return lists


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_kept", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_estimated_lists_are_those_of_equation_8(dtype, n_kept, weighted):
    X, centers = clustered(300, 2, dtype), clustered(25, 2, dtype, seed=1)
    weights = np.random.default_rng(0).integers(1, 4, size=300).astype(float) if weighted else np.ones(300)
    components, key = Centers(centers), Key(5)
    search = Papers("estimated", n_neighbors=5, n_explore=2, start="random")
    passes = Passes(search, X, components, n_kept, weights if weighted else None, key)
    # The reference evaluates the same components as the search, including the same random ones.
    lists = random_lists(25, 5, key)
    previous = random_sets(300, 25, n_kept, numbers(300, key))
    for iteration in (1, 2, 3):
        explore = numbers(300, key._replace(iteration=iteration), Purpose.EXPLORE)
        extra = np.column_stack([explore(column) * 25 for column in range(2)]).astype(np.int32)
        reached = Reference(X).search_lists(centers, lists, previous, n_kept, extra)
        found = passes.find(components)
        np.testing.assert_array_equal(found.kept.ids, reached.kept)
        assert found.n_distances == reached.counts.sum()
        passes.refresh(components)
        looked = [set(lists[row[:n_kept]].ravel()) | set(row) for row in np.column_stack([previous, extra]).tolist()]
        distances = np.sqrt(squared_distances(X, centers))
        lists = estimated_lists(distances, looked, reached.kept[:, 0], weights, 5).astype(np.int32)
        np.testing.assert_array_equal(passes.lists(), with_self(lists))
        previous = reached.kept


def test_exact_search_has_exact_lists_after_a_refresh():
    X, centers = clustered(300, 2), clustered(25, 2, seed=1)
    for start in ("random", "two-level"):
        passes = Passes(Papers("exact", n_neighbors=5, n_explore=0, start=start), X, Centers(centers), 2)
        assert passes.kept.ids.shape == (300, 2)
        passes.refresh(Centers(centers))
        np.testing.assert_array_equal(passes.lists(), with_self(nearest_others(centers, 4)))


def test_a_new_start_knows_no_evidence_of_the_last():
    X, centers = clustered(300, 2), clustered(25, 2, seed=1)
    search, turned = Papers("estimated", n_neighbors=5, n_explore=0), Centers(centers[::-1].copy())
    passes = Passes(search, X, Centers(centers))
    first = passes.lists()
    passes.find(Centers(centers))
    again = Passes(search, X, turned)
    began = again.lists()
    again.refresh(turned)
    np.testing.assert_array_equal(again.lists(), began)
    assert (began != first).any()
