"""What every search is and offers to the loop.

A search is a value: its options, frozen. What it knows in a fit, neighbour lists above all, is another value, which the
loop carries from iteration to iteration: `begin`, then `refresh`, `look` for the pass over the data, and `learn`. A
look is what travels to the chunks.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cprime._random import Key
from cprime.block import Block, Kept
from cprime.components import Components
from cprime.kernels import Rows


@dataclass(frozen=True)
class SearchStats:
    """What a pass over the data tells the search; additive.

    n_weighted: points of positive weight    n_moved: of these, those whose winner is another one
    touched (m,): components that have won or lost points, rising
    evidence (C, C): Σ w_n of what (8) averages in the real part, Σ w_n in the imaginary, by (c_o, c̃)
    explored: whether points have looked at anything that they did not keep
    """

    n_weighted: int
    n_moved: int = 0
    touched: NDArray[np.int32] | None = None
    evidence: csr_array | None = None
    explored: bool = True

    def __add__(self, other: "SearchStats") -> "SearchStats":
        touched, evidence = self.touched, self.evidence
        if touched is not None and other.touched is not None:
            touched = np.union1d(touched, other.touched)
        if evidence is not None and other.evidence is not None:
            evidence = evidence + other.evidence
        n_weighted = self.n_weighted + other.n_weighted
        explored = self.explored and other.explored
        return SearchStats(n_weighted, self.n_moved + other.n_moved, touched, evidence, explored)


class Lookup(NamedTuple):
    """What a look finds for the points of a block."""

    kept: Kept
    n_distances: int
    stats: SearchStats


class Look(Protocol):
    """What travels to a chunk: finds K(n) for its points."""

    def __call__(
        self, block: Block, points: Rows, kept: Kept | None, components: Components, n_kept: int
    ) -> Lookup: ...


# A few points by their numbers among those of positive weight, as components are compared with them; what they keep.
Sample = Callable[[NDArray[np.int64]], tuple[Rows, Kept]]

State = Any  # what a search knows: a frozen value that it alone understands, of arrays, numbers and the like


class Search(Protocol):
    """Which components a point looks at before it keeps the best."""

    @property
    def exact(self) -> bool:
        """Whether what is found are the best of all C."""
        ...

    @property
    def keeps_winners(self) -> bool:
        """Whether winners that are known already are where it begins."""
        ...

    @property
    def warmup(self) -> int:
        """E-steps before the first M-step."""
        ...

    def with_params(self, **params: Any) -> Self:
        """The same search with other options."""
        ...

    def begin(self, components: Components, n_kept: int, placed: bool, key: Key) -> tuple[State, Look | None]:
        """What it knows before the first iteration, and what gives points their first kept sets, if it needs any."""
        ...

    def refresh(self, state: State, components: Components) -> State:
        """Before a pass over the data: brings the neighbour lists up to date."""
        ...

    def look(self, state: State, components: Components, key: Key) -> Look:
        """For one pass over the data."""
        ...

    def learn(
        self, state: State, look: Any, components: Components, stats: SearchStats, sample: Sample, key: Key
    ) -> tuple[State, int]:
        """After a pass that counts; says too how many evaluations a look at a sample has taken."""
        ...

    def jumped(self, state: State, one: NDArray[np.intp], cut: NDArray[np.intp], share: float) -> State:
        """After jumps: components `one` (n,) have left their places for those of `cut` (n,), with a share of points."""
        ...

    def undone(self, state: State) -> State:
        """After a pass that does not count: points keep what they kept before it."""
        ...

    def agreement(self, state: State) -> float | None:
        """The share of points whose best component it finds, by its last audit; None where there was none."""
        ...

    def neighbors(self, state: State) -> NDArray[np.int32] | None:
        """G_c of every component as (C, G) int32, c itself first, −1 behind the last; None where all are looked at."""
        ...


V = TypeVar("V", bound="Value")


class Value:
    """Base of searches: parameters as scikit-learn's `clone`, `set_params` and `GridSearchCV` ask for them."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def with_params(self: V, **params: Any) -> V:
        """The same search with other options.

        Raises
        ------
        ValueError
            If an option is not one of this search, or its value is out of range.
        """
        names = self.get_params()
        for name in params:
            if name not in names:
                raise ValueError(f"Invalid parameter {name!r} for {self!r}. Valid parameters are: {list(names)}.")
        return type(self)(**{**names, **params})

    def jumped(self, state: State, one: NDArray[np.intp], cut: NDArray[np.intp], share: float) -> State:
        """A search whose knowledge is made anew before each pass."""
        return state

    def undone(self, state: State) -> State:
        """A search whose looks change nothing of what points keep."""
        return state

    def agreement(self, state: State) -> float | None:
        """A search without audits."""
        return None

    def __sklearn_clone__(self: V) -> V:
        return type(self)(**self.get_params())


def checked_count(value: Any, name: str, least: int) -> int:
    """`value` as an integer of an option, or an error that says what came."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an instance of int, got {value!r}.")
    if value < least:
        raise ValueError(f"{name} == {value}, must be >= {least}.")
    return int(value)
