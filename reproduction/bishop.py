"""k-means on Old Faithful by half-steps, as in Bishop's section 9.1: centers, assignments and J after each."""

from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import scale

from cprime.datasets import old_faithful
from cprime.estimators import KMeans
from cprime.kernels import as_rows
from reproduction.base import Context

# The text does not give the initial centers. Ours are one at the upper left and one at the lower right, so that the
# line between them cuts through both clusters. Among such starts, this is one that takes the book's three M-steps.
START = np.array([[-2.0, 1.0], [1.0, -1.0]])
PUBLISHED_STEPS = 3


@dataclass(frozen=True)
class HalfSteps:
    """A k-means run from its start until a cycle changes nothing.

    centers (T + 1, 2, 2) [standard deviations]: before the first cycle, and after the M-step of each cycle
    labels (T, n): after the E-step of each cycle    errors (T, 2): J after the E- and the M-step of each cycle
    """

    centers: NDArray[np.float64]
    labels: NDArray[np.int32]
    errors: NDArray[np.float64]

    @property
    def n_steps(self) -> int:
        """Number of M-steps until convergence, without the last cycle, which changes nothing."""
        changes = np.flatnonzero((self.labels[1:] != self.labels[:-1]).any(axis=1))
        return int(changes[-1]) + 2 if len(changes) else 1


def standardised() -> NDArray[np.float64]:
    """Return Old Faithful (272, 2), each variable with mean 0 and standard deviation 1."""
    return scale(old_faithful().data)


def half_steps(X: NDArray[np.float64], start: NDArray[np.float64], context: Context) -> HalfSteps:
    """Run Lloyd's algorithm from given centers (2, 2); return all half-steps."""
    visited: list[NDArray] = [start]

    def watch(_: Any, standing: Any) -> None:
        visited.append(standing.cluster_centers_)

    KMeans(len(start), init=start, search="full", tol=0.0, callbacks=watch, n_threads=context.n_threads).fit(X)
    before, after = visited[:-1], visited[1:]
    labels = np.array([as_rows(X).nearest(centers, n_threads=context.n_threads)[0][:, 0] for centers in before])
    errors = [
        [float(np.square(X - centers[assigned]).sum()) for centers in pair]
        for *pair, assigned in zip(before, after, labels, strict=True)
    ]
    return HalfSteps(np.array(visited), labels, np.array(errors))


def steps_by_start(X: NDArray[np.float64], context: Context) -> dict[str, int]:
    """Return the number of starts by their M-steps, over pairs of grid points from −2 to 2 without an empty cluster."""
    counts: dict[int, int] = {}
    for pair in combinations(product(range(-2, 3), repeat=2), 2):
        start = np.array(pair, dtype=np.float64)
        assigned = as_rows(X).nearest(start, n_threads=context.n_threads)[0]
        if len(np.unique(assigned)) == len(start):
            steps = half_steps(X, start, context).n_steps
            counts[steps] = counts.get(steps, 0) + 1
    return {str(steps): counts[steps] for steps in sorted(counts)}


def record(X: NDArray[np.float64], run: HalfSteps) -> dict[str, Any]:
    """Return the run in types that JSON can represent."""
    return {
        "points": X.round(4).tolist(),
        "centers": run.centers.tolist(),
        "labels": run.labels.tolist(),
        "errors": run.errors.tolist(),
    }
