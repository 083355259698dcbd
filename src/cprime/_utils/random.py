"""Counter-based random numbers: a draw depends on the seed, its purpose and its row, not on the order of draws.

A fit has one seed. The numbers for row n of the data do not depend on how the rows are split into chunks, on the order
of the chunks, or on how often a chunk is computed. The generator is Philox (Salmon et al. 2011).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import IntEnum
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import utils

from cprime._utils.arguments import naming
from cprime._utils.storable import storable

_WORDS = 4  # number of random 64-bit integers that Philox generates per value of its counter


class Purpose(IntEnum):
    """Purpose of a random draw; each purpose has its own stream of random numbers."""

    START = 1
    SEEDING = 2
    AUDIT = 3
    CERTIFICATE = 4
    EXPLORE = 5
    POSTERIOR = 6
    SETS = 7
    LISTS = 8
    JUMPS = 9
    MISSING = 10
    SIZES = 11
    COMBINING = 12
    BATCHES = 13
    PARTS = 14
    RESAMPLES = 15


@storable("_random.Key")
class Key(NamedTuple):
    """Counter-based random key of a pass over the data: seed of a fit, index of the initialization, number of the pass.

    The random numbers of a pass depend only on this key, on their purpose, and on the row of the data.
    """

    seed: int
    run: int = 0
    iteration: int = 0

    def uniform(self, purpose: Purpose, first: int, n: int, column: int = 0) -> NDArray[np.float64]:
        """Return one random number in [0, 1) for each of the rows first … first + n − 1 of the data: (n,).

        purpose, column: select one of several independent streams of random numbers
        """
        begin, skip = divmod(first, _WORDS)
        raw = self._philox(purpose, begin, column).random_raw(n + skip)[skip:]
        return (raw >> np.uint64(11)) * np.float64(2.0**-53)

    def generator(self, purpose: Purpose) -> np.random.Generator:
        """Return a NumPy generator for draws of this purpose that do not belong to single rows of the data."""
        return np.random.Generator(self._philox(purpose))

    def random_state(self, purpose: Purpose) -> np.random.RandomState:
        """Return a `RandomState`, as scikit-learn needs it, for draws of this purpose that belong to no row of data."""
        return np.random.RandomState(self._philox(purpose).random_raw(8).astype(np.uint32))

    def drawing(self, purpose: Purpose) -> AbstractContextManager[np.random.RandomState]:
        """Return a context manager that yields a `RandomState` with the same draws as that of `random_state`.

        It takes less time, because an existing generator is seeded again. It must be used only in the `with` block.
        """
        return seeded(self._philox(purpose).random_raw(8).astype(np.uint32))

    def _philox(self, purpose: Purpose, begin: int = 0, column: int = 0) -> np.random.Philox:
        """Return Philox's generator, with its key and counter made of this key, the purpose, a place and a column.

        begin: place in the stream, counted in groups of 4 numbers    column: number of the stream
        """
        counter = np.array([begin, column, self.iteration, self.run], dtype=np.uint64)
        return np.random.Philox(counter=counter, key=np.array([self.seed, purpose], dtype=np.uint64))


_idle: list[np.random.RandomState] = []  # generators that no context of the function `seeded` uses at present


@contextmanager
def seeded(seed: int | NDArray[np.uint32]) -> Iterator[np.random.RandomState]:
    """Yield `RandomState(seed)` for use within this context only.

    An existing generator that no other context uses is seeded again, because creating one takes fifty times as long.
    """
    try:
        generator = _idle.pop()
    except IndexError:
        generator = np.random.RandomState()
    try:
        generator.seed(seed)
        yield generator
    finally:
        _idle.append(generator)


def check_random_state(random_state: Any) -> np.random.RandomState:
    """Convert the argument `random_state` of an estimator to a RandomState, and return it.

    The argument is None, an int, a RandomState or a Generator. None means NumPy's global generator, as in scikit-learn.
    If a Generator is given, the result shares its state. Raises ValueError for anything else.
    """
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    if isinstance(random_state, Integral) and not 0 <= int(random_state) < 2**32:
        raise ValueError(f"random_state == {random_state}, must be from 0 to 2**32 - 1.")
    with naming("random_state"):
        return utils.check_random_state(random_state)


def seed_of(random_state: Any) -> int:
    """Return the seed of a fit: an integer from 0 to 2³¹ − 1, drawn from the argument `random_state`."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and 0 <= int(random_state) < 2**32:
        with seeded(int(random_state)) as rng:
            return int(rng.randint(2**31))
    return int(check_random_state(random_state).randint(2**31))
