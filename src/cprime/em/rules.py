"""What a rule is: what an E-step is asked for, what follows from it, and when it ends.

A rule is a value; what it knows in a run is another, which the loop carries. `judge` is given what a pass has found and
says whether it counts and which parameters follow. There are two: `k_means_rule.py` and `mixture_rule.py`.
"""

import math
from typing import Any, NamedTuple, Protocol, TypeVar

from cprime._random import Key
from cprime.block import Kept
from cprime.em.expectation import EStep, ExactEStep, Totals
from cprime.em.jumps import Jumped
from cprime.execution import Data
from cprime.model import Model
from cprime.search import Factors, Look
from cprime.statistics import Statistics


class Step(NamedTuple):
    """What follows from a pass.

    model, state: from here on    accept: whether the pass counts    converged, done: whether the run is at its end
    bound, J: of the record    statistics: of the pass
    ripe: whether clusters may jump now    change: what is compared with the tolerance
    """

    model: Model
    state: Any
    accept: bool
    converged: bool
    done: bool
    bound: float
    J: float
    statistics: Statistics
    ripe: bool = False
    change: float = math.inf


M_contra = TypeVar("M_contra", contravariant=True)
S = TypeVar("S")


class Rule(Protocol[M_contra, S]):
    """A k-means, or a mixture; generic in the parameters and in what it knows in a run."""

    @property
    def max_iter(self) -> int:
        """Most passes with an M-step."""
        ...

    @property
    def finds_variance(self) -> bool:
        """Whether the first σ² is that of points with the nearest start (14)."""
        ...

    @property
    def jumps(self) -> bool:
        """Whether components jump, on the way, from where two share a cluster to where one has several."""
        ...

    def begin(self, model: M_contra, data: Data) -> S:
        """What it knows before the first pass."""
        ...

    def factors(self, model: M_contra, state: S) -> Factors | None:
        """What the next pass multiplies distances by."""
        ...

    def propose(self, model: M_contra, state: S, look: Look, key: Key, last: bool) -> EStep | ExactEStep:
        """The next pass; the last one sees the parameters that are returned."""
        ...

    def judge(self, model: M_contra, state: S, totals: Totals, data: Data) -> Step:
        """What follows from a pass."""
        ...

    def warm(self, model: M_contra, state: S, totals: Totals) -> Step:
        """What follows from a pass before the first M-step, or from the last one: no M-step."""
        ...

    def jumped(self, step: Step, jumped: Jumped) -> Step:
        """What follows from jumps after a step that was ripe for them."""
        ...

    def needs_last(self, step: Step) -> bool:
        """Whether what is kept is not yet of the parameters that are returned."""
        ...

    def settled(self, model: Any, state: S) -> Any:
        """The parameters to return if the run ends where it stands."""
        ...

    def judged(self, kept: Kept) -> Kept:
        """What counts in F of what points keep."""
        ...

    def scale(self, model: M_contra) -> float | None:
        """What makes a cost a log-probability; None where only J counts."""
        ...
