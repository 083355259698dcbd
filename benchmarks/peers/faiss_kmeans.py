"""Adapters of faiss: `Kmeans`, `SuperKmeans` and its initializations."""

from functools import partial

import numpy as np

from benchmarks.peers.base import GIVEN, OWN, Fitted, Peer, Settings, Task

_SAMPLE = 256  # faiss's own max_points_per_centroid
_LEAST_DIMENSIONS = 32  # required by SuperKMeans


def fit(task: Task, niter: int = 25, max_points_per_centroid: int | None = None, spherical: bool = False) -> Fitted:
    import faiss

    faiss.omp_set_num_threads(task.n_threads)
    most = len(task.X) if max_points_per_centroid is None else max_points_per_centroid
    kmeans = faiss.Kmeans(
        task.X.shape[1],
        task.n_clusters,
        niter=niter,
        max_points_per_centroid=most,
        seed=1 + task.seed,
        spherical=spherical,
    )
    kmeans.train(task.single, init_centroids=task.start)
    return Fitted(kmeans.centroids, len(kmeans.obj))


def fit_super(task: Task, niter: int = 25) -> Fitted:
    import faiss

    faiss.omp_set_num_threads(task.n_threads)
    most = len(task.X)
    kmeans = faiss.SuperKmeans(
        task.X.shape[1], task.n_clusters, niter=niter, max_points_per_centroid=most, seed=1 + task.seed
    )
    kmeans.train(task.single)
    return Fitted(kmeans.centroids, len(kmeans.obj))


def choose(task: Task, method: str) -> Fitted:
    import faiss

    faiss.omp_set_num_threads(task.n_threads)
    initialization = faiss.ClusteringInitialization(task.X.shape[1], task.n_clusters)
    initialization.method = getattr(faiss, f"ClusteringInitMethod_{method}")
    initialization.seed = 1 + task.seed
    centers = np.empty((task.n_clusters, task.X.shape[1]), dtype=np.float32)
    initialization.init_centroids(len(task.X), faiss.swig_ptr(task.X), faiss.swig_ptr(centers))
    return Fitted(centers)


def _iterations(n: int) -> Settings:
    return {"niter": n}


def _nothing_to_sample(N: int, D: int, C: int) -> str | None:
    return None if N > _SAMPLE * C else f"does what faiss does: there are no more than {_SAMPLE} points a center"


def _too_few_dimensions(N: int, D: int, C: int) -> str | None:
    return None if D >= _LEAST_DIMENSIONS else f"needs {_LEAST_DIMENSIONS} dimensions"


_LIBRARY: Settings = {"family": "faiss", "distribution": "faiss-cpu", "statement": "import faiss"}

PEERS = (
    Peer(name="faiss", **_LIBRARY, model="k-means", fit=fit, start=GIVEN, note="Kmeans, all points", fixed=_iterations),
    Peer(
        name="faiss-sampled",
        **_LIBRARY,
        model="k-means",
        fit=partial(fit, max_points_per_centroid=_SAMPLE),
        start=GIVEN,
        note=f"Kmeans as it comes: a sample of {_SAMPLE} points a center",
        fixed=_iterations,
        unsuitable=_nothing_to_sample,
    ),
    Peer(
        name="faiss-super",
        **_LIBRARY,
        model="k-means",
        fit=fit_super,
        start=OWN,
        note="SuperKmeans, all points",
        fixed=_iterations,
        unsuitable=_too_few_dimensions,
    ),
    Peer(
        name="faiss-plusplus",
        **_LIBRARY,
        model="seeding",
        fit=partial(choose, method="KMEANS_PLUS_PLUS"),
        start="none",
        note="plain k-means++",
        choices=({},),
    ),
    Peer(
        name="faiss-afk-mc2",
        **_LIBRARY,
        model="seeding",
        fit=partial(choose, method="AFK_MC2"),
        start="none",
        note="AFK-MC², chains of 50",
        choices=({},),
    ),
)
