"""Adapters of this library's mixtures: the papers' model with equal weights and one variance, and general mixtures."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.base import GIVEN, OWN, Fitted, Peer, Settings, Task, precisions
from benchmarks.peers.cprime_kmeans import search_of

_LIBRARY: Settings = {
    "family": "cprime",
    "distribution": "cprime",
    "statement": "from cprime import GaussianMixture",
}
_PAPERS: Settings = {"covariance_type": "tied_spherical", "weights": "equal"}


def fit(task: Task, **settings: Any) -> Fitted:
    """Fit the papers' model."""
    model = _fitted(task, {**_PAPERS, **settings})
    return _result(model, np.full(task.n_clusters, model.variance_))


def general(task: Task, covariance_type: str, **settings: Any) -> Fitted:
    """Fit components with their own covariances and weights."""
    C = task.n_clusters
    start = {"weights_init": np.full(C, 1 / C), "precisions_init": precisions(task, covariance_type)}
    model = _fitted(task, {"covariance_type": covariance_type, **start, **settings})
    return _result(model, _covariances(model))


def default(task: Task, **settings: Any) -> Fitted:
    """Fit with default settings and the library's own initialization."""
    model = _fitted(task, {**settings}, given_start=False)
    return _result(model, _covariances(model))


def _covariances(model: Any) -> NDArray[np.float64]:
    """Return covariances computed from their factors, because those rounded to float32 may have a negative variance."""
    from cprime.model import FAMILIES

    means, factors = model.means_.astype(np.float64), {"precisions_cholesky_": model.precisions_cholesky_}
    return FAMILIES[model.covariance_type_].from_attributes(factors, means, None).attributes()["covariances_"]


def _fitted(task: Task, settings: Settings, given_start: bool = True) -> Any:
    from cprime import GaussianMixture

    given: Settings = {"means_init": task.start} if given_start else {}
    given |= {"random_state": task.seed, "n_threads": task.n_threads}
    search = search_of(settings.pop("search", "auto"), settings.pop("n_neighbors", None))
    return GaussianMixture(task.n_clusters, search=search, **given, **settings).fit(task.X)


def _result(model: Any, covariances: Any) -> Fitted:
    extra = {
        "evaluations": float(model.history_["n_distances"].sum()) / len(model.labels_),
        "step_seconds": model.history_["seconds"].tolist(),
    }
    if model.certificate_ is not None:
        extra["agreement"] = model.certificate_["agreement"]
        extra["shortfall"] = model.certificate_["shortfall"]
    return Fitted(
        model.means_, model.n_iter_, model.lower_bound_, weights=model.weights_, covariances=covariances, extra=extra
    )


def _steps(n: int) -> Settings:
    return {"max_iter": n, "tol": 1e-300}


def _mixture(name: str, n_active: int | None, note: str) -> Peer:
    return Peer(
        name=name,
        **_LIBRARY,
        model="mixture",
        fit=partial(fit, n_active=n_active),
        start=GIVEN,
        note=f"{note}; equal weights, one variance for all",
        fixed=_steps,
    )


def _general(covariance_type: str, name: str, note: str, **settings: Any) -> Peer:
    return Peer(
        name=f"cprime-{covariance_type}-{name}",
        **_LIBRARY,
        model=f"mixture-{covariance_type}",
        fit=partial(general, covariance_type=covariance_type, **settings),
        start=GIVEN,
        note=f"covariance_type={covariance_type!r}, {note}",
        fixed=_steps,
    )


def _default(covariance_type: str) -> Peer:
    return Peer(
        name=f"cprime-{covariance_type}",
        **_LIBRARY,
        model=f"mixture-{covariance_type}",
        fit=partial(default, covariance_type=covariance_type),
        start=OWN,
        note=f"covariance_type={covariance_type!r}, as it comes, with momentum and without",
        choices=({}, {"momentum": False}),
    )


PEERS = (
    _mixture("cprime-em", None, "exact EM"),
    _mixture("cprime-mixture-5", 5, "C′ = 5"),
    _mixture("cprime-mixture-3", 3, "C′ = 3"),
    *(
        peer
        for covariance_type in ("diag", "full")
        for peer in (
            _default(covariance_type),
            _general(covariance_type, "em", "exact EM", n_active=None),
            _general(covariance_type, "graph-5", "C′ = 5, search='graph'", n_active=5, search="graph"),
            _general(covariance_type, "estimated-5", "C′ = 5, search='estimated'", n_active=5, search="estimated"),
        )
    ),
)
