"""Data, estimators and results that tests of executions share."""

import numpy as np

from cprime import GaussianMixture, KMeans
from cprime.search import Bounded, Full, Graph, Papers

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


def clustered(n, D, dtype=np.float64, seed=0, n_clusters=20, spread=4.0):
    """Return points (n, D) of unit variance around random centers, so that some clusters overlap."""
    rng = np.random.default_rng(seed)
    places = spread * rng.standard_normal((n_clusters, D))
    return (places[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, D))).astype(dtype)


def random_weights(n, seed=1):
    """Return weights (n,) float64, some of which are zero."""
    rng = np.random.default_rng(seed)
    return rng.exponential(size=n) * (rng.random(n) > 0.2)


def kmeans(search, **changes):
    return KMeans(C, search=search, **({"random_state": 0, "n_threads": 1} | changes))


def mixture(search, family="diag", **changes):
    """Return a mixture with three active components per point, or one if the search finds only one."""
    n_active = 1 if isinstance(search, Bounded) else 3
    given = {"n_active": n_active, "reg_covar": 1e-3, "max_iter": 6, "random_state": 0, "n_threads": 1} | changes
    return GaussianMixture(C, covariance_type=family, search=search, **given)


def centers_of(estimator):
    return estimator.cluster_centers_ if isinstance(estimator, KMeans) else estimator.means_


def outcome(estimator):
    """Return all results of a fit as bytes, except the seconds it took."""
    found = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    history = found.pop("history_")
    certificate = found.pop("certificate_") or {}
    found |= {name: history[name] for name in history.dtype.names if name != "seconds"}
    return {name: np.asarray(value).tobytes() for name, value in (found | certificate).items() if value is not None}
