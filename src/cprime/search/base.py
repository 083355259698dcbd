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
from cprime.kernels import Found as Among
from cprime.kernels.native import Floats


class Factors(NamedTuple):
    """What a squared distance is multiplied by before components are compared; both (C,) and >= 0.

    inside: for the component that a point is in    outside: for any other
    """

    inside: NDArray
    outside: NDArray


class Components(Protocol):
    """C components and the verbs of a search; costs are any numbers of which the least is the best."""

    @property
    def centers(self) -> Floats:
        """Where components lie among the points: (C, D)."""
        ...

    @property
    def squared_distances(self) -> bool:
        """Whether costs are those of points to centres."""
        ...

    @property
    def steady(self) -> bool:
        """Whether these points are moreover those of before, whatever an M-step has done."""
        ...

    def best(self, points: Floats, n_kept: int, hint: NDArray[np.int32] | None = None) -> tuple[NDArray, Floats]:
        """The n_kept best of all for every point, by (cost, id): (n, H) int32, and their costs."""
        ...

    def reassign(
        self,
        points: Floats,
        lists: NDArray[np.int32],
        winners: NDArray[np.int32],
        factors: tuple[NDArray, NDArray] | None = None,
        active: NDArray[np.bool_] | None = None,
        known: Floats | None = None,
    ) -> tuple[NDArray[np.int32], Floats]:
        """The best of the winner and its list for every point: (n,), and its cost; see `kernels.reassign`."""
        ...

    def keep(
        self, points: Floats, lists: NDArray[np.int32], previous: NDArray[np.int32], n_kept: int
    ) -> tuple[NDArray, Floats]:
        """The n_kept best of K(n) and of the list of the first in K(n)."""
        ...

    def among(
        self,
        points: Floats,
        lists: NDArray[np.int32],
        previous: NDArray[np.int32],
        n_kept: int,
        extra: NDArray[np.int32] | None = None,
        evidence: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Among:
        """The n_kept best of K(n), of the lists of all in K(n), and of extra ones; on request what (8) averages."""
        ...

    def lists(self, n_neighbors: int, previous: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """The neighbours of every component, itself left out: (C, min(n_neighbors, C) − 1)."""
        ...

    def changed(self, before: Floats) -> NDArray[np.bool_]:
        """Which components may give other costs than when these were the centers: (C,)."""
        ...

    def scale_of(self, costs: Floats) -> float:
        """What an excess over the least possible costs (n,) is compared with: their sum, or what it would be."""
        ...


@dataclass(frozen=True)
class Seen:
    """What a pass over the data tells the search; additive.

    n_points    n_heavy: those of positive weight    n_gone: of these, those whose winner is another one
    touched (m,): components that have won or lost, rising
    evidence (C, C): Σ w_n of what (8) averages in the real part, Σ w_n in the imaginary, by (c_o, c̃)
    around: whether points have looked at anything that they did not keep
    """

    n_points: int
    n_heavy: int
    n_gone: int = 0
    touched: NDArray[np.int32] | None = None
    evidence: csr_array | None = None
    around: bool = True

    def __add__(self, other: "Seen") -> "Seen":
        touched, evidence = self.touched, self.evidence
        if touched is not None and other.touched is not None:
            touched = np.union1d(touched, other.touched)
        if evidence is not None and other.evidence is not None:
            evidence = evidence + other.evidence
        n_points, n_heavy = self.n_points + other.n_points, self.n_heavy + other.n_heavy
        around = self.around and other.around
        return Seen(n_points, n_heavy, self.n_gone + other.n_gone, touched, evidence, around)


class Found(NamedTuple):
    """What a look finds for the points of a block."""

    kept: Kept
    n_distances: int
    seen: Seen


class Look(Protocol):
    """What travels to a chunk: finds K(n) for its points."""

    def __call__(
        self, block: Block, points: Floats, kept: Kept | None, components: Components, n_kept: int
    ) -> Found: ...


Sample = Callable[[NDArray[np.int64]], tuple[Floats, Kept]]  # a few rows as points, and what they keep

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

    def look(self, state: State, components: Components, factors: Factors | None, key: Key) -> Look:
        """For one pass over the data."""
        ...

    def learn(
        self, state: State, look: Any, components: Components, seen: Seen, sample: Sample, key: Key
    ) -> tuple[State, int]:
        """After a pass that counts; says too how many evaluations a look at a sample has taken."""
        ...

    def jumped(self, state: State, one: NDArray[np.intp], cut: NDArray[np.intp], share: float) -> State:
        """After jumps: components `one` (n,) have left their places for those of `cut` (n,), with a share of points."""
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

    def agreement(self, state: Any) -> float | None:
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
