"""How the fit went: J and F by second, and what an iteration looked at."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.report.evidence import Evidence


@dataclass(frozen=True)
class Course:
    """One entry an iteration: seconds since the first began, J, F [nats a point], and evaluations by row and iteration.

    error: None where the fit has not measured J
    by_batch: whether the rows are batches, whose J and F are of different points
    lowers_error: whether J is what the fit lowers
    evaluations: as a share of all C, None where the weight of the fit is not known
    """

    seconds: NDArray[np.float64]
    error: NDArray[np.float64] | None
    lower_bound: NDArray[np.float64]
    evaluations: NDArray[np.float64]
    by_batch: bool
    lowers_error: bool


def course(evidence: Evidence) -> Course | None:
    """None where the estimator keeps no such history."""
    history: Any = getattr(evidence.estimator, "history_", None)
    if history is None or "quantization_error" not in (history.dtype.names or ()) or not len(history):
        return None
    labels = getattr(evidence.estimator, "labels_", None)
    n = evidence.n_points if labels is None else len(labels)
    error = np.asarray(history["quantization_error"], dtype=np.float64)
    return Course(
        np.cumsum(history["seconds"]),
        None if np.isnan(error).any() else error,
        np.asarray(history["lower_bound"], dtype=np.float64),
        history["n_distances"] / (max(n, 1) * evidence.n_clusters),
        bool((history["phase"] == "online").any()),
        hasattr(evidence.estimator, "inertia_") and not hasattr(evidence.estimator, "predict_proba"),
    )
