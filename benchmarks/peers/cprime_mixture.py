"""This library's mixtures: equal weights, one variance for all components and directions."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers.base import GIVEN, Fitted, Peer, Settings, Task

_MODEL: Settings = {"covariance_type": "tied_spherical", "weights": "equal"}


def fit(task: Task, **settings: Any) -> Fitted:
    from cprime import GaussianMixture

    given: Settings = {**_MODEL, "means_init": task.start, "random_state": task.seed, "n_threads": task.n_threads}
    model = GaussianMixture(task.n_clusters, **given, **settings).fit(task.X)
    return Fitted(
        model.means_,
        model.n_iter_,
        model.lower_bound_,
        weights=model.weights_,
        variances=np.full(task.n_clusters, model.variance_),
        extra={
            "evaluations": float(model.history_["n_distances"].sum()) / len(task.X),
            "step_seconds": model.history_["seconds"].tolist(),
        },
    )


def _steps(n: int) -> Settings:
    return {"max_iter": n, "tol": 1e-300}


def _mixture(name: str, n_active: int | None, note: str) -> Peer:
    return Peer(
        name=name,
        family="cprime",
        distribution="cprime",
        statement="from cprime import GaussianMixture",
        model="mixture",
        fit=partial(fit, n_active=n_active),
        start=GIVEN,
        note=f"{note}; equal weights, one variance for all",
        fixed=_steps,
    )


PEERS = (
    _mixture("cprime-em", None, "exact EM"),
    _mixture("cprime-mixture-5", 5, "C′ = 5"),
    _mixture("cprime-mixture-3", 3, "C′ = 3"),
)
