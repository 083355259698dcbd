"""k-means of rows with missing values: hard assignment to components of equal variance, by the observed values.

Distances between points and centers are sums over the observed columns of the point. In the update of the centers, the
missing values of a point are those of its nearest center (k-pod: Chi, Chi & Baraniuk 2016). This is classification EM
of a Gaussian mixture with equal weights and one variance.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime.estimators.validation import check_real, resolve_search
from cprime.execution import Data
from cprime.model import PooledSpherical
from cprime.model.tied_spherical import variance_floor


def plan_of_gaps(k_means: Any, data: Data) -> em.FitPlan:
    """Return the options of a k-means fit of rows with missing values.

    The fit has neither jumps of centers nor exchange steps (single reassignments that account for the shift of both
    centers), and its search does not use bounds on distances.

    Raises ValueError if an argument of the estimator does not allow missing values.
    """
    if k_means.metric != "euclidean":
        raise ValueError(f"missing='marginal' needs metric='euclidean', got {k_means.metric!r}.")
    if check_real(k_means.epsilon, "epsilon", 0.0):
        raise ValueError(f"missing='marginal' needs epsilon=0 where numbers are missing, got {k_means.epsilon}.")
    if k_means.exchange is True:
        raise ValueError("missing='marginal' needs exchange='auto' or False where numbers are missing, got True.")
    search = resolve_search(k_means, k_means.n_clusters, 1, data.n_weighted)
    if search.stores_bounds:
        raise ValueError("missing='marginal' needs another search than 'bounded' where numbers are missing.")
    # A relative change t of J changes the free energy −(D/2) log J + constant by (D/2) t, in nats per point.
    tol = k_means.tol * data.n_features / 2
    stage = em.EM(em.MixtureSettings(k_means.max_iter, tol, 1, "hard", settles=False))
    return em.FitPlan(
        1,
        search,
        stage,
        k_means._copies and search.regroups(data),
        final=k_means.final_assignment,
    )


def first_of_gaps(data: Data, centers: NDArray, exact: bool) -> Any:
    """Return the starting parameters of k-means with missing values, as a model.

    The centers of the model are the means of the points nearest to each of the starting `centers` (C, D). Its variance
    is that of the points about these means.    exact: whether points are compared with all starting centers
    """
    start = PooledSpherical(centers, np.ones(len(centers)), variance_floor(centers))
    return em.hard_start(data, start, exact)
