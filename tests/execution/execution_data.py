"""Data, estimators and results that tests of executions share."""

from functools import partial

import fits
from cprime import GaussianMixture, KMeans
from cprime.search import Bounded, Full, Graph, Papers

clustered = partial(fits.clustered, n_clusters=20, spread=4.0)
C = 24
SEARCHES = {
    "full": Full(),
    "bounded": Bounded(),
    "graph": Graph(6),
    "graph, regrouped": Graph(6, regroup=True),
    "exact": Papers("exact", n_neighbors=6),
    "exact, random": Papers("exact", n_neighbors=6, start="random", n_warmup=3),
    "estimated": Papers("estimated", n_neighbors=6, n_explore=2),
}


def kmeans(search, **changes):
    return KMeans(C, search=search, **({"random_state": 0, "n_threads": 1} | changes))


def mixture(search, family="diag", **changes):
    """Return a mixture with three active components per point, or one if the search finds only one."""
    n_active = 1 if isinstance(search, Bounded) else 3
    given = {"n_active": n_active, "reg_covar": 1e-3, "max_iter": 6, "random_state": 0, "n_threads": 1} | changes
    return GaussianMixture(C, covariance_type=family, search=search, **given)
