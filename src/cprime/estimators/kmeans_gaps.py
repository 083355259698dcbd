"""k-means of rows of which numbers are missing: hard assignment to components of one variance, by what is observed.

A point goes to the center that is nearest over what is observed of it, and what is missing is where that center is
(k-pod: Chi, Chi & Baraniuk 2016). In terms of F it is classification EM of the papers' mixture.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime.estimators.validation import check_real, resolve_regroup, resolve_search
from cprime.execution import Data
from cprime.model import PooledSpherical
from cprime.model.tied_spherical import variance_floor
from cprime.search import Bounded


def plan_of_gaps(k_means: Any, data: Data) -> em.Plan:
    """How such data are fitted: plain steps by any search that does not go by bounds."""
    if k_means.metric != "euclidean":
        raise ValueError(f"missing='marginal' needs metric='euclidean', got {k_means.metric!r}.")
    if check_real(k_means.epsilon, "epsilon", 0.0):
        raise ValueError(f"missing='marginal' needs epsilon=0 where numbers are missing, got {k_means.epsilon}.")
    if k_means.exchange is True:
        raise ValueError("missing='marginal' needs exchange='auto' or False where numbers are missing, got True.")
    search = resolve_search(k_means, k_means.n_clusters, 1, data.n_weighted)
    if isinstance(search, Bounded):
        raise ValueError("missing='marginal' needs another search than 'bounded' where numbers are missing.")
    tol = k_means.tol * data.n_features / 2  # F is −D/2 log J but for a constant
    stage = em.EM(em.MixtureSettings(k_means.max_iter, tol, 1, "hard", settles=False))
    return em.Plan(
        1, search, stage.begun, k_means._copies and resolve_regroup(search, data), final=k_means.final_assignment
    )


def first_of_gaps(data: Data, centers: NDArray, exact: bool) -> Any:
    """The means of what is nearest to the starting centers, and the variance about them."""
    start = PooledSpherical(centers, np.ones(len(centers)), variance_floor(centers))
    return em.hard_start(data, start, exact)
