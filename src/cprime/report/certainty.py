"""Certainty of assignments by a mixture: the greatest responsibility of each row, and the least certain rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import posterior
from cprime.report.evidence import ReportData

_BINS = 20
_LEAST_CERTAIN = 8


@dataclass(frozen=True)
class AmbiguousRow:
    """A row whose assignment is uncertain.

    row: its index in the data    first, second: its two best components    shares: responsibilities of these two
    """

    row: int
    first: int
    second: int
    shares: tuple[float, float]


@dataclass(frozen=True)
class Certainty:
    """Distribution of the greatest responsibility of each row.

    counts (20,): weight of the rows in bins of the greatest responsibility from 0 to 1
    mean: mean of the greatest responsibility    sure: fraction of the rows, by weight, for which it exceeds 0.95
    doubts: the eight rows whose greatest responsibility is lowest
    """

    counts: NDArray[np.float64]
    mean: float
    sure: float
    doubts: list[AmbiguousRow]


def certainty(evidence: ReportData) -> Certainty | None:
    """Return the `Certainty` of the assignments of the examined rows; None for k-means, or for a single component."""
    graded = hasattr(evidence.estimator, "predict_proba")
    if evidence.best is None or evidence.best.ids.shape[1] < 2 or not graded:
        return None
    ids = evidence.best.ids
    q = posterior(evidence.best.log_joint).responsibilities
    greatest = q[:, 0]
    counts, _ = np.histogram(greatest, _BINS, (0, 1), weights=evidence.weight)
    least = np.argsort(greatest, kind="stable")[:_LEAST_CERTAIN]
    return Certainty(
        counts,
        float(np.average(greatest, weights=evidence.weight)),
        float(evidence.weight[greatest > 0.95].sum() / evidence.weight.sum()),
        [
            AmbiguousRow(int(evidence.rows[i]), int(ids[i, 0]), int(ids[i, 1]), (float(q[i, 0]), float(q[i, 1])))
            for i in least
        ],
    )
