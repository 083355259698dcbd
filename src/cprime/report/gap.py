"""Loss by truncation to C′ components: free energy F with C′ and C′ + 2 active components, and log-likelihood L."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import as_rows
from cprime.report.evidence import ReportData, log_sum, products

_EXPONENTIALS = 10**8  # maximum number of rows times components in the computation of the log-likelihood L
_PRODUCTS = 10**10


@dataclass(frozen=True)
class Estimate:
    """Estimate of a free energy, a log-likelihood or a difference of these, in nats per point.

    value: mean over a sample of rows    error: its standard error
    """

    value: float
    error: float


@dataclass(frozen=True)
class BoundGap:
    """Free energy F, log-likelihood L and their differences, as means over a sample of rows.

    n_active: C′, the active components per row    more: C′ + 2, at most C    n_rows: rows in the sample
    gain: F(more) − F(C′)    gap: L − F(C′)    free_energy, log_likelihood: F(C′) and L
    """

    n_active: int
    more: int
    n_rows: int
    free_energy: Estimate
    log_likelihood: Estimate
    gain: Estimate
    gap: Estimate


def gap(evidence: ReportData) -> BoundGap | None:
    """Return free energy F, log-likelihood L and the gap L − F for a sample; None if C′ = C or without densities."""
    if evidence.best is None or evidence.model is None:
        return None
    H, C = int(evidence.estimator.n_active_), evidence.n_clusters
    if H >= C:
        return None
    n = max(min(_EXPONENTIALS // C, _PRODUCTS // products(evidence.model, *evidence.centers.shape)), 1_000)
    chosen = np.unique(np.linspace(0, len(evidence.X) - 1, min(n, len(evidence.X))).astype(np.intp))
    joint, weight = evidence.best.log_joint[chosen], evidence.weight[chosen]
    total = evidence.model.log_likelihood(as_rows(evidence.X[chosen]))
    kept, more = log_sum(joint[:, :H]), log_sum(joint)
    return BoundGap(
        H,
        joint.shape[1],
        len(chosen),
        _mean(kept, weight),
        _mean(total, weight),
        _mean(more - kept, weight),
        _mean(total - kept, weight),
    )


def _mean(values: NDArray[np.float64], weight: NDArray[np.float64]) -> Estimate:
    mean = float(np.average(values, weights=weight))
    share = weight / weight.sum()
    return Estimate(mean, float(np.sqrt(np.sum(np.square(share * (values - mean))))))
