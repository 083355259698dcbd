"""What a run consists of: stages, each a value that says which pass comes next and judges what it has found.

A k-means is `Exchange` and then `Lloyd`, a mixture `EM` or `Momentum`; any of them may come after a `Warmup`, and
before a `Final` pass, which sees the parameters that are returned.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol

from cprime._random import Key
from cprime._storable import storable
from cprime._values import replace
from cprime.block import Kept
from cprime.components import Components
from cprime.em.expectation import Totals
from cprime.execution import Data
from cprime.execution.base import Job
from cprime.model import Model
from cprime.search import Look, Search


class End(StrEnum):
    """Why a run has ended."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    STOPPED = "stopped"


class Accept(NamedTuple):
    """What follows from a pass that counts.

    model: from here on, or `Later`
    stage: of the next pass, None if this one has seen the parameters that are returned
    bound, error: F per unit of weight [nats] and J of the record    counts (C,): Σ w_n q_nc
    change: what is compared with the tolerance    end: why the run ends, None if it goes on
    n_relocated: empty clusters that were given a point
    then: what is done before the next pass once the search has learnt; it is given the data, this, the search, what
    that knows, and a key, and returns the two that it may replace
    """

    model: Any
    stage: Any
    bound: float
    error: float
    counts: Any
    change: float = math.inf
    end: End | None = None
    n_relocated: int = 0
    then: "Callable[[Data, Accept, Search, Any, Key], tuple[Accept, Any]] | None" = None


@dataclass(frozen=True)
class Later:
    """Parameters that are made once those of the pass, which may be as large, are gone."""

    make: Callable[[], Any]


class Undo(NamedTuple):
    """A pass that does not count: these parameters and this stage instead."""

    model: Any
    stage: Any


class Stage(Protocol):
    """Some of the passes of a run."""

    phase: ClassVar[str | None]  # of the record; None for a pass that is not in it

    def components(self, model: Any) -> Components:
        """What the next pass compares points with."""
        ...

    def propose(self, model: Any, look: Look, key: Key) -> Job[Totals]:
        """The next pass."""
        ...

    def judge(self, model: Any, totals: Totals, data: Data) -> Accept | Undo:
        """What follows from it."""
        ...

    def final(self, model: Any, look: Look, key: Key) -> Job[Totals]:
        """A pass that sees the parameters that are returned."""
        ...

    def measured(self, model: Any, totals: Totals) -> Accept:
        """What a pass without an M-step has found."""
        ...

    def standing(self, model: Any) -> Any:
        """The parameters to return if the run ends where it stands."""
        ...

    def certified(self, model: Any, kept: Kept) -> tuple[Kept, float | None]:
        """What counts in F of what points keep, and what makes a cost a log-probability, None where only J counts."""
        ...


@storable("em.Final")
@dataclass(frozen=True)
class Final:
    """The pass after the end of a stage that sees the parameters that are returned."""

    of: Any
    end: End

    phase: ClassVar[str | None] = None

    def components(self, model: Model) -> Components:
        return model.components()

    def propose(self, model: Any, look: Look, key: Key) -> Job[Totals]:
        return self.of.final(model, look, key)

    final = propose

    def measured(self, model: Any, totals: Totals) -> Accept:
        return self.of.measured(model, totals)

    def judge(self, model: Any, totals: Totals, data: Data) -> Accept:
        return self.measured(model, totals)._replace(end=self.end)

    def standing(self, model: Any) -> Any:
        return model

    def certified(self, model: Any, kept: Kept) -> tuple[Kept, float | None]:
        return self.of.certified(model, kept)


@storable("em.Warmup")
@dataclass(frozen=True)
class Warmup:
    """E-steps before the first M-step: n of them, and then another stage."""

    n: int
    before: Any

    phase: ClassVar[str | None] = "warmup"

    def components(self, model: Model) -> Components:
        return model.components()

    def propose(self, model: Any, look: Look, key: Key) -> Job[Totals]:
        return self.before.propose(model, look, key)

    def final(self, model: Any, look: Look, key: Key) -> Job[Totals]:
        return self.before.final(model, look, key)

    def measured(self, model: Any, totals: Totals) -> Accept:
        return self.before.measured(model, totals)

    def judge(self, model: Any, totals: Totals, data: Data) -> Accept:
        stage = self.before if self.n == 1 else replace(self, n=self.n - 1)
        return self.before.measured(model, totals)._replace(stage=stage)

    def standing(self, model: Any) -> Any:
        return model

    def certified(self, model: Any, kept: Kept) -> tuple[Kept, float | None]:
        return self.before.certified(model, kept)
