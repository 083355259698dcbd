"""Random numbers by counter are uniform, independent of the division into chunks, and different for each purpose."""

import numpy as np
import pytest
from scipy.stats import kstest

from cprime._utils.random import Key, Purpose
from cprime.execution.block import Block
from cprime.kernels import Dense

N = 20_000
KEYS = [Key(0), Key(1), Key(0, 1), Key(0, 0, 1), Key(0, 1, 1), Key(2**31 - 1), Key(0, 2**20, 2**20)]


def test_rows_have_their_numbers_however_they_are_cut():
    whole = Key(3, 1, 2).uniform(Purpose.EXPLORE, 0, N, 4)
    assert whole.shape == (N,)
    cuts = np.unique(np.random.default_rng(0).integers(0, N, 300))
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), N], strict=True):
        np.testing.assert_array_equal(Key(3, 1, 2).uniform(Purpose.EXPLORE, begin, end - begin, 4), whole[begin:end])
    for first in range(9):
        assert Key(3, 1, 2).uniform(Purpose.EXPLORE, first, 1, 4) == whole[first]
    assert len(Key(3).uniform(Purpose.EXPLORE, 5, 0)) == 0


def test_rows_far_down_have_numbers_of_their_own():
    far = 2**40 + 3
    there = Key(0).uniform(Purpose.SETS, far, 10)
    np.testing.assert_array_equal(Key(0).uniform(Purpose.SETS, far + 6, 4), there[6:])
    assert not np.isin(there, Key(0).uniform(Purpose.SETS, 0, 1000)).any()


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_they_are_uniform_and_without_correlation(key):
    numbers = key.uniform(Purpose.POSTERIOR, 0, N)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert kstest(numbers, "uniform").pvalue > 1e-4
    for lag in (1, 2, 3, 4, 8, 1024):
        assert abs(np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]) < 5 / np.sqrt(N)


def test_every_purpose_column_run_iteration_and_seed_has_others():
    streams = {
        (key, purpose, column): key.uniform(purpose, 0, 500, column)
        for key in KEYS
        for purpose in Purpose
        for column in (0, 1, 63)
    }
    numbers = np.array(list(streams.values()))
    assert len(np.unique(numbers)) == numbers.size
    correlation = np.corrcoef(numbers) - np.eye(len(numbers))
    assert np.abs(correlation).max() < 6 / np.sqrt(500)


def test_generators_repeat_and_differ():
    draws = {
        (key, purpose): tuple(key.generator(purpose).integers(2**60, size=3)) for key in KEYS for purpose in Purpose
    }
    assert len(set(draws.values())) == len(draws)
    for (key, purpose), draw in draws.items():
        assert tuple(key.generator(purpose).integers(2**60, size=3)) == draw
    states = {
        (key, purpose): tuple(key.random_state(purpose).randint(2**31, size=3)) for key in KEYS for purpose in Purpose
    }
    assert len(set(states.values())) == len(states)


def test_regrouped_blocks_give_every_row_its_own():
    X = np.zeros((100, 1))
    order = np.random.default_rng(0).permutation(100)
    plain = Block(X, None, 1000).uniform(Key(5), Purpose.SETS, 2)
    np.testing.assert_array_equal(Block(X, None, 1000, order).uniform(Key(5), Purpose.SETS, 2), plain[order])
    np.testing.assert_array_equal(plain, Key(5).uniform(Purpose.SETS, 1000, 100, 2))


@pytest.mark.parametrize("regrouped", [False, True])
def test_what_is_drawn_for_a_point_is_drawn_for_its_number(regrouped):
    """Points of positive weight are numbered consecutively; rows without weight draw from another stream."""
    weights = np.random.default_rng(0).integers(0, 3, N).astype(float)
    order = np.random.default_rng(1).permutation(N) if regrouped else np.arange(N)
    block = Block(Dense(np.empty((N, 0))), weights[order], 50, order if regrouped else None, 20)
    heavy, drawn = weights > 0, np.empty(N)
    drawn[order] = block.uniform(Key(3), Purpose.EXPLORE, 1)
    np.testing.assert_array_equal(drawn[heavy], Key(3).uniform(Purpose.EXPLORE, 20, heavy.sum(), 1))
    assert len(np.unique(drawn)) == N
    np.testing.assert_array_equal(block.row_numbers(), 20 + (np.cumsum(heavy) - heavy)[order])
    parts = [
        Block(Dense(np.empty((n, 0))), weights[i : i + n], 50 + i, None, 20 + np.count_nonzero(heavy[:i]))
        for i, n in ((0, 7), (7, N - 7))
    ]
    np.testing.assert_array_equal(np.concatenate([part.uniform(Key(3), Purpose.EXPLORE, 1) for part in parts]), drawn)
