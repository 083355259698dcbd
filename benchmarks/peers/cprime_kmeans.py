"""Adapter of this library's k-means."""

from typing import Any

from benchmarks.peers.base import GIVEN, Fitted, Peer, Settings, Task


def fit(task: Task, search: str = "auto", n_neighbors: int | None = None, **settings: Any) -> Fitted:
    """Fit from the library's own two-level initialization, which is timed too; return centers without labels."""
    from cprime import KMeans

    given: Settings = {"random_state": task.seed, "n_threads": task.n_threads, "search": search_of(search, n_neighbors)}
    model = KMeans(task.n_clusters, **given, **settings).fit(task.X)
    extra = {
        "evaluations": float(model.history_["n_distances"].sum()) / len(task.X),
        "step_seconds": model.history_["seconds"].tolist(),
    }
    if model.neighbors_ is not None:
        extra["n_neighbors"] = model.neighbors_.shape[1]
    if model.certificate_ is not None:
        extra["agreement"] = model.certificate_["agreement"]
        extra["relative_excess"] = model.certificate_["relative_excess"]
    return Fitted(model.cluster_centers_, model.n_iter_, model.inertia_, extra=extra)


def search_of(name: str, n_neighbors: int | None) -> Any:
    """Return a search with lists of this length, or of its default length, without a final pass over all centers."""
    from cprime.estimators.validation import as_search

    given = {} if n_neighbors is None else {"n_neighbors": n_neighbors}
    return as_search(name).with_params(final_assignment="found", **given)


def lloyd(task: Task, **settings: Any) -> Fitted:
    return fit(task, init=task.start, search="full", **settings)


def graph(task: Task, **settings: Any) -> Fitted:
    return fit(task, init=task.start, search="graph", **settings)


def _steps(n: int) -> Settings:
    return {"max_iter": n, "tol": 0}


_LIBRARY: Settings = {
    "family": "cprime",
    "distribution": "cprime",
    "statement": "from cprime import KMeans",
    "model": "k-means",
}

PEERS = (
    Peer(
        name="cprime",
        **_LIBRARY,
        fit=fit,
        start="two-level or k-means++, by search",
        note="search='auto'",
        fixed=_steps,
        choices=(
            {"tol": 1e-2},
            {},
            {"n_neighbors": 65},
            {"n_neighbors": 129},
            {"n_neighbors": 129, "tol": 1e-5},
        ),
    ),
    Peer(name="cprime-lloyd", **_LIBRARY, fit=lloyd, start=GIVEN, note="search='full'", fixed=_steps),
    Peer(name="cprime-graph", **_LIBRARY, fit=graph, start=GIVEN, note="search='graph'", fixed=_steps),
)
