"""Adapter of scikit-learn-intelex, Intel's implementation of scikit-learn's interface; optional, x86-64 only."""

from typing import Any

from benchmarks.peers.base import GIVEN, Fitted, Peer, Settings, Task


def fit(task: Task, **settings: Any) -> Fitted:
    from sklearnex.cluster import KMeans

    model = KMeans(
        task.n_clusters, init=task.start, n_init=1, algorithm="lloyd", random_state=task.seed, **settings
    ).fit(task.X)
    return Fitted(model.cluster_centers_, model.n_iter_, float(model.inertia_))


def _steps(n: int) -> Settings:
    return {"max_iter": n, "tol": 0}


PEERS = (
    Peer(
        name="intelex",
        family="scikit-learn-intelex",
        distribution="scikit-learn-intelex",
        statement="from sklearnex.cluster import KMeans",
        model="k-means",
        fit=fit,
        start=GIVEN,
        note="KMeans(algorithm='lloyd')",
        fixed=_steps,
    ),
)
