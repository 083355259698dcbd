"""Sources of random choices for cases: a seeded generator in long runs, hypothesis in tests.

A description of cases is a function of a `Draw` of either type. The first options and least numbers are the simplest,
so that hypothesis shrinks towards them.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Draw(Protocol):
    """Source of random choices."""

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        ...

    def choice(self, options: Sequence[T]) -> T:
        """Return one of the options; an option that is listed twice is twice as likely."""
        ...


def rarely(draw: Draw, percent: int) -> bool:
    """Return True with this probability."""
    return draw.integer(0, 99) >= 100 - percent


class Seeded:
    """Random choices for case number k of a run, determined by seed and number."""

    def __init__(self, seed: int, number: int):
        generator = random.Random(f"{seed}:{number}")
        self.integer, self.choice = generator.randint, generator.choice


def strategy(describe: Callable[[Draw], T]) -> Any:
    """Return the description as a strategy of hypothesis."""
    from hypothesis import strategies as st

    class Shrinking:
        def __init__(self, draw: Any):
            self._draw = draw

        def integer(self, low: int, high: int) -> int:
            return self._draw(st.integers(low, high))

        def choice(self, options: Sequence[T]) -> T:
            return self._draw(st.sampled_from(list(options)))

    @st.composite
    def cases(draw: Any) -> T:
        return describe(Shrinking(draw))

    return cases()
