"""Convergence history of a fit: squared error J and free energy F over seconds, and evaluated distances."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.report.evidence import ReportData


@dataclass(frozen=True)
class ConvergenceHistory:
    """Convergence history of a fit, arrays with one entry for each iteration (or mini-batch).

    seconds: elapsed time since the start of the first iteration    lower_bound: F [nats per point]
    error: J, the sum of squared distances to the centers, None if the fit did not compute it
    evaluations: number of evaluated distances as a fraction of all N·C; if the fit has no labels, N is that of the
        report's data
    by_batch: whether each entry is a mini-batch, so that J and F refer to different points
    lowers_error: whether the fit minimizes J
    """

    seconds: NDArray[np.float64]
    error: NDArray[np.float64] | None
    lower_bound: NDArray[np.float64]
    evaluations: NDArray[np.float64]
    by_batch: bool
    lowers_error: bool


def course(evidence: ReportData) -> ConvergenceHistory | None:
    """Return the convergence history of the fit; None if the estimator has no `history_` with the error J."""
    history: Any = getattr(evidence.estimator, "history_", None)
    if history is None or "quantization_error" not in (history.dtype.names or ()) or not len(history):
        return None
    labels = getattr(evidence.estimator, "labels_", None)
    n = evidence.n_points if labels is None else len(labels)
    error = np.asarray(history["quantization_error"], dtype=np.float64)
    return ConvergenceHistory(
        np.cumsum(history["seconds"]),
        None if np.isnan(error).any() else error,
        np.asarray(history["lower_bound"], dtype=np.float64),
        history["n_distances"] / (max(n, 1) * evidence.n_clusters),
        bool((history["phase"] == "online").any()),
        hasattr(evidence.estimator, "inertia_") and not hasattr(evidence.estimator, "predict_proba"),
    )
