"""Random numbers by counter, and the seeds of fits."""

import numpy as np
import pytest

from cprime._utils.random import Key, Purpose, seed_of


@pytest.mark.parametrize("random_state", [0, 7, np.int64(7), 2**32 - 1])
def test_the_seed_of_a_fit_is_the_first_number_of_its_generator(random_state):
    expected = np.random.RandomState(int(random_state)).randint(2**31)
    assert [seed_of(random_state) for _ in range(2)] == [expected] * 2


def test_a_generator_goes_on_from_fit_to_fit():
    rng, same = np.random.RandomState(3), np.random.RandomState(3)
    assert [seed_of(rng) for _ in range(2)] == [same.randint(2**31) for _ in range(2)]


def test_none_draws_from_the_generator_of_numpy():
    np.random.seed(5)  # noqa: NPY002 - the generator that None means
    assert seed_of(None) == np.random.RandomState(5).randint(2**31)


@pytest.mark.parametrize("random_state", [-1, 2**32, "seed"])
def test_what_is_no_seed_is_refused(random_state):
    with pytest.raises(
        ValueError, match=r"random_state == .*, must be from 0 to|random_state: .* cannot be used to seed"
    ):
        seed_of(random_state)


def test_the_older_generator_has_the_stream_of_its_seed():
    """Both ways to make a RandomState give the stream of the same seed words."""
    key = Key(11, run=2)
    words = key._philox(Purpose.START).random_raw(8).astype(np.uint32)
    for _ in range(2):
        found = key.random_state(Purpose.START).random_sample(1000)
        np.testing.assert_array_equal(found, np.random.RandomState(words).random_sample(1000))
