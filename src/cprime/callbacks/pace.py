"""Estimate of the time that a fit still needs, from the duration and the change of its last iterations."""

import math
from collections import deque

_LOOKED_AT = 6  # number of last iterations to whose changes (values compared with tol) a line is fitted


class Pace:
    """Predictor of the remaining iterations and seconds of a fit from one initialization (start).

    The change per iteration falls geometrically near an optimum. So a line fitted to the logarithms of the last changes
    predicts when a change falls below `tol`. Nothing is predicted if `tol` is None, because such a fit ends when its
    objective does not improve any more.
    """

    def __init__(self, max_iter: int, tol: float | None):
        self.max_iter = max_iter
        self.tol = tol
        self.iteration = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=_LOOKED_AT)

    def add(self, iteration: int, change: float, seconds: float) -> None:
        """Record an iteration: its change, which is compared with `tol`, and its duration [s].

        If the iteration number does not exceed the last one, a fit from a new initialization has begun, so all earlier
        iterations are dropped.
        """
        if iteration <= self.iteration:
            self._recent.clear()
        self.iteration = iteration
        self._recent.append((change, seconds))

    @property
    def iterations_left(self) -> int | None:
        """Return the predicted number of further iterations, limited by `max_iter`; None if there is no prediction."""
        limit = max(self.max_iter - self.iteration, 0)
        if limit == 0:
            return 0
        if self.tol is None:
            return None
        logs = [math.log(change) for change, _ in self._recent if 0 < change < math.inf]
        if self.tol <= 0:
            return limit
        if len(logs) < 3:
            return None
        middle = (len(logs) - 1) / 2
        steps = [place - middle for place in range(len(logs))]
        slope = sum(step * log for step, log in zip(steps, logs, strict=True)) / sum(step * step for step in steps)
        above = sum(logs) / len(logs) + slope * middle - math.log(self.tol)
        if above <= 0:
            return min(1, limit)
        return None if slope >= 0 else min(math.ceil(above / -slope), limit)

    @property
    def seconds_left(self) -> float | None:
        """Return the predicted time until the fit from this initialization ends [s]; None if there is no prediction."""
        left = self.iterations_left
        if left is None or not self._recent:
            return None
        return left * sum(seconds for _, seconds in self._recent) / len(self._recent)
