"""What a description of cases draws from: a seeded generator in long runs, hypothesis in tests.

A description is a function of a `Draw`, and knows neither. What is drawn first and least is the plainest, so that
hypothesis shrinks towards it.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Draw(Protocol):
    """A source of choices."""

    def integer(self, low: int, high: int) -> int:
        """From low to high, both among them."""
        ...

    def choice(self, options: Sequence[T]) -> T:
        """One of the options; one that is there twice is twice as likely."""
        ...


def rarely(draw: Draw, percent: int) -> bool:
    """True so often."""
    return draw.integer(0, 99) >= 100 - percent


class Seeded:
    """Choices of case number k of a run: the same for the same seed and number."""

    def __init__(self, seed: int, number: int):
        generator = random.Random(f"{seed}:{number}")
        self.integer, self.choice = generator.randint, generator.choice


def strategy(describe: Callable[[Draw], T]) -> Any:
    """The description as a strategy of hypothesis."""
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
