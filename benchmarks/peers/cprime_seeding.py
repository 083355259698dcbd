"""Adapters of this library's seeding functions."""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.peers.base import Fitted, Peer, Task


def choose(task: Task, method: str, **settings: Any) -> Fitted:
    from cprime import seeding

    seed = getattr(seeding, method)
    return Fitted(seed(task.X, task.n_clusters, random_state=task.seed, n_threads=task.n_threads, **settings)[0])


def random_rows(task: Task) -> Fitted:
    from cprime import seeding

    return Fitted(seeding.random_rows(task.X, task.n_clusters, random_state=task.seed)[0])


def _start(name: str, fit: Callable[..., Fitted], note: str) -> Peer:
    return Peer(
        name=name,
        family="cprime",
        distribution="cprime",
        statement="from cprime import seeding",
        model="seeding",
        fit=fit,
        start="none",
        note=note,
        choices=({},),
    )


PEERS = (
    _start("cprime-random", random_rows, "distinct random rows"),
    _start("cprime-two-level", partial(choose, method="two_level"), "two levels"),
    _start("cprime-afk-mc2", partial(choose, method="afk_mc2", chain_length=20), "AFK-MC², chains of 20"),
    _start("cprime-plusplus", partial(choose, method="kmeans_plusplus", n_local_trials=1), "plain k-means++"),
    _start("cprime-greedy", partial(choose, method="kmeans_plusplus"), "greedy k-means++"),
)
