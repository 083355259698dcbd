"""Rows drawn by their weights do not depend on the chunks of the data, and rows of weight 0 come last."""

from functools import partial

import numpy as np
import pytest
from seeding_data import METHODS, clustered

from cprime._utils.random import Key
from cprime.execution import Local, local
from cprime.seeding import place
from cprime.seeding.keys import FindSmallestKeys
from cprime.sources import open_data

N = 500


def weights_of(n_heavy):
    weight = np.random.default_rng(0).exponential(size=N)
    weight[np.random.default_rng(1).permutation(N)[n_heavy:]] = 0
    return weight


def cut(X, weight, rows):
    return Local(open_data(X, chunk_rows=rows).with_weights(weight))


@pytest.mark.parametrize("n_heavy", [7, 100, N])
def test_any_chunks_give_the_same_rows(n_heavy):
    X, weight = clustered(N, 2), weights_of(n_heavy)
    for n in (1, 50, N):
        whole = local(X, weight).each(FindSmallestKeys(Key(3), n)).rows
        assert len(set(whole.tolist())) == n
        assert (weight[whole[:n_heavy]] > 0).all()
        assert not weight[whole[n_heavy:]].any()
        for rows in (1, 33, 499):
            np.testing.assert_array_equal(cut(X, weight, rows).each(FindSmallestKeys(Key(3), n)).rows, whole)


def test_rows_without_weight_come_in_a_random_order():
    X, weight = clustered(N, 2), weights_of(1)
    drawn = np.array([local(X, weight).each(FindSmallestKeys(Key(seed), 51)).rows[1:] for seed in range(60)])
    assert abs(drawn.mean() - N / 2) < 5 * N / np.sqrt(12 * drawn.size)
    assert len(np.unique(drawn)) > 0.95 * N


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_the_unit_of_weights_does_not_matter(unit):
    X, weight = clustered(N, 2), weights_of(100)
    found = [local(X, w).each(FindSmallestKeys(Key(3), 150)).rows for w in (weight, unit * weight)]
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("n_heavy", [20, 400])
@pytest.mark.parametrize("name", ["random", "two-level"])
def test_starts_of_chunks_are_those_of_the_whole(name, n_heavy):
    X, weight = clustered(N, 3), weights_of(n_heavy)
    whole = place(local(X, weight), 40, name, partial(np.random.RandomState, 0))
    parts = place(cut(X, weight, 77), 40, name, partial(np.random.RandomState, 0))
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(METHODS[name](X, 40, sample_weight=weight, random_state=0)[0], whole)
