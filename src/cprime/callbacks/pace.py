"""How long a fit will take still: what iterations take, and how fast their changes become small."""

import math
from collections import deque

_LOOKED_AT = 6  # iterations that the trend is taken from


class Pace:
    """Foresees the end of a start from its last iterations.

    Changes fall geometrically near an optimum: a line through their logarithms says when they will be below `tol`.
    Nothing is foreseen where that is None: of what ends once nothing improves.
    """

    def __init__(self, max_iter: int, tol: float | None):
        self.max_iter = max_iter
        self.tol = tol
        self.iteration = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=_LOOKED_AT)

    def add(self, iteration: int, change: float, seconds: float) -> None:
        """An iteration: what is compared with `tol`, and what it took [s]. The first of a start forgets the last."""
        if iteration <= self.iteration:
            self._recent.clear()
        self.iteration = iteration
        self._recent.append((change, seconds))

    @property
    def iterations_left(self) -> int | None:
        """How many more there will be; None where nothing can be said but that `max_iter` is the most."""
        most = max(self.max_iter - self.iteration, 0)
        if most == 0:
            return 0
        if self.tol is None:
            return None
        logs = [math.log(change) for change, _ in self._recent if 0 < change < math.inf]
        if self.tol <= 0:
            return most
        if len(logs) < 3:
            return None
        middle = (len(logs) - 1) / 2
        steps = [place - middle for place in range(len(logs))]
        slope = sum(step * log for step, log in zip(steps, logs, strict=True)) / sum(step * step for step in steps)
        above = sum(logs) / len(logs) + slope * middle - math.log(self.tol)
        if above <= 0:
            return min(1, most)
        return None if slope >= 0 else min(math.ceil(above / -slope), most)

    @property
    def seconds_left(self) -> float | None:
        """[s], or None where it cannot be said."""
        left = self.iterations_left
        if left is None or not self._recent:
            return None
        return left * sum(seconds for _, seconds in self._recent) / len(self._recent)
