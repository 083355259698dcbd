"""Weights of points in M-steps of t distributions, which decrease with the distance from the center."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.measures import Floats, GaussianParameters


class StudentTWeights(NamedTuple):
    """Weights of points in the M-step of t distributions, and sums for their degrees of freedom.

    Let q be the responsibilities of n rows for H components each, u the factors of t distributions (which are small for
    points far from the mean), and w the sample weights.
    scaled (n, H): q u    counts (C,): Σ w q    logs (C,): Σ w q log u
    """

    scaled: NDArray[np.float64]
    counts: NDArray[np.float64]
    logs: NDArray[np.float64]


def scaled_responsibilities(
    components: GaussianParameters,
    kept: NDArray[np.int32],
    costs: Floats,
    responsibilities: NDArray[np.float64] | None = None,
    sample_weight: Floats | None = None,
    *,
    n_threads: int | None = None,
    kernels: Any = _core,
) -> StudentTWeights:
    """Return weights q_nh u_nh of rows in the M-step of t distributions, where u = (ν + D)/(ν + δ).

    q: responsibilities    ν: degrees of freedom    δ: squared Mahalanobis distance, computed from the costs
    kept (n, H): components of each row    costs (n, H): their costs    responsibilities (n, H): q, or None for ones
    ->  q u (n, H), Σ w q (C,) and Σ w q log u (C,), with sample weights w
    """
    given = check.gaussians(components, components.means)
    if given.dof is None:
        raise TypeError("components must have degrees of freedom, dof, got None")
    costs, (C, D) = check.contiguous(costs, given.means.dtype), given.means.shape
    kept = check.array(kept, "kept", np.int32, *costs.shape)
    responsibilities = check.array(responsibilities, "responsibilities", np.float64, *costs.shape)
    weights = check.array(sample_weight, "sample_weight", np.float64, len(costs))
    scaled, tails = np.empty(kept.shape), np.zeros((2, C))
    rows, parameters = (kept, costs, responsibilities, weights), (given.offsets, given.dof, D)
    try:
        kernels.scaled_responsibilities(*rows, *parameters, scaled, tails, resolve_threads(n_threads))
    except ValueError:
        check.ids(C, kept=(kept, 0))
        raise
    return StudentTWeights(scaled, *tails)
