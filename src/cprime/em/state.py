"""How a fit runs, where it stands, and the record it leaves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cprime.model import Model, Scatter
from cprime.search import Search
from cprime.statistics import Statistics

HISTORY = np.dtype(
    [
        ("phase", "U6"),
        ("lower_bound", np.float64),
        ("quantization_error", np.float64),
        ("n_distances", np.int64),
        ("n_moved", np.int64),
        ("seconds", np.float64),
    ]
)


@dataclass(frozen=True)
class Settings:
    """How a fit runs; none of it changes while it does.

    n_active: C′, the components that a point keeps    search: which components a point looks at
    assignment: what the kept ones are given: "soft" is the truncated posterior (5); "hard" gives all to the best one,
    which is then K(n) in F; "posterior" gives all to one drawn from the truncated posterior, by `random_state`
    k_means: σ² follows J by (14) within the E-step, and stopping is on J or on no move; otherwise the
    stopping rule is on the bound    tol: relative change of J (k-means) or absolute change of F [nats a point]
    n_warmup: E-steps before the first M-step    epsilon: laziness of lazy-k-means (21)
    exchange: whether k-means begins with exchange steps, see `exchange_factors`
    regroup: whether the points may be copied into the order of their components, for speed
    callback: given every row of the history as a dictionary, and the parameters after that iteration
    """

    n_active: int
    search: Search
    k_means: bool
    max_iter: int
    tol: float
    assignment: str = "soft"
    n_warmup: int = 0
    epsilon: float = 0.0
    exchange: bool = False
    regroup: bool = False
    n_threads: int | None = None
    random_state: np.random.RandomState | None = None
    callback: Callable[[dict, Model], None] | None = None


@dataclass
class Fit:
    """Where a run stands. `statistics` are those of the last E-step, which saw `model` once the run has ended."""

    model: Model
    statistics: Statistics | None = None
    history: list[tuple] = field(default_factory=list)
    converged: bool = False
    n_iter: int = 0
    n_relocated: int = 0
    exchanging: bool = False
    scatter: Scatter | None = None

    @property
    def lower_bound(self) -> float:
        """F of the model and the kept sets, per unit of weight [nats]."""
        assert self.statistics is not None
        return free_energy(self.model, self.statistics)

    @property
    def quantization_error(self) -> float:
        """J of the kept sets' winners [data unit²]."""
        assert self.statistics is not None
        return self.statistics.quantization_error


def free_energy(model: Model, statistics: Statistics) -> float:
    """F (7) per unit of weight [nats]."""
    return model.log_scale + statistics.log_sum / statistics.weight


def history(rows: Sequence[tuple]) -> NDArray:
    """The rows as a structured array, one row an iteration."""
    return np.array(rows, dtype=HISTORY)
