"""How a fit runs, where it stands, and the record it leaves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key
from cprime.model import Model, TiedSpherical
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
class Fit:
    """Where a run stands.

    key: the seed, which of the starts this is, and how many passes there have been    model: the parameters
    rule, search: what these know    rows: of the history    n_iter: of them, all that count
    converged, ended: whether the rule has seen its end, and whether the last pass has seen these parameters
    stopped: whether who is told of the iterations has asked for the end    statistics: of the last pass
    """

    key: Key
    model: Model
    rule: Any
    search: Any
    rows: tuple[tuple, ...] = ()
    converged: bool = False
    ended: bool = False
    last: bool = False
    stopped: bool = False
    statistics: Statistics | None = None

    @property
    def n_iter(self) -> int:
        return len(self.rows)

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


# Given the row of every iteration by names, and where the run stands; True asks for the end.
Callback = Callable[[dict[str, Any], Fit], bool]


def free_energy(model: Model, statistics: Statistics) -> float:
    """F (7) per unit of weight [nats]."""
    return model.log_scale + statistics.log_sum / statistics.weight


def hard_free_energy(model: TiedSpherical, J: float, weight: float) -> float:
    """F (15) of a partition of error J, for σ² of (14) [nats per unit of weight]."""
    model = model.with_variance(J / weight)
    return model.log_scale + model.scale * J / weight


def history(rows: Sequence[tuple]) -> NDArray:
    """The rows as a structured array, one row an iteration."""
    return np.array(list(rows), dtype=HISTORY)
