"""Adapter of the package superkmeans, flat and hierarchical. It chooses its own initial rows."""

from functools import partial
from typing import Any

from benchmarks.peers.base import OWN, Fitted, Peer, Settings, Task


def fit(task: Task, hierarchical: bool, **settings: Any) -> Fitted:
    import superkmeans

    kmeans = superkmeans.SuperKMeans(
        task.n_clusters,
        task.X.shape[1],
        hierarchical=hierarchical,
        n_threads=task.n_threads,
        seed=1 + task.seed,
        **settings,
    )
    return Fitted(kmeans.train(task.single), settings.get("iters"))


def _iterations(n: int) -> Settings:
    return {"iters": n}


_LIBRARY: Settings = {
    "family": "superkmeans",
    "distribution": "superkmeans",
    "statement": "import superkmeans",
    "model": "k-means",
    "start": OWN,
}
_ALL: Settings = {"sampling_fraction": 1.0, "max_points_per_cluster": 1 << 30}

PEERS = (
    Peer(
        name="superkmeans",
        **_LIBRARY,
        fit=partial(fit, hierarchical=False, early_termination=False, **_ALL),
        note="flat, all points",
        fixed=_iterations,
    ),
    Peer(
        name="superkmeans-sampled",
        **_LIBRARY,
        fit=partial(fit, hierarchical=False),
        note="flat as it comes: three points in ten, ends early",
        choices=({"iters": 3}, {}, {"iters": 25}),
    ),
    Peer(
        name="superkmeans-tree",
        **_LIBRARY,
        fit=partial(fit, hierarchical=True),
        note="hierarchical",
        choices=(
            {"iters_mesoclustering": 1, "iters_fineclustering": 1},
            {},
            {"iters_refinement": 2},
            {"iters_mesoclustering": 10, "iters_fineclustering": 10, "iters_refinement": 10},
        ),
    ),
)
