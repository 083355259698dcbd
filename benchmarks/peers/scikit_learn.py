"""Adapters of scikit-learn: KMeans, MiniBatchKMeans, BisectingKMeans, the two mixtures and k-means++."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers.base import GIVEN, OWN, Fitted, Peer, Settings, Task, precisions


def kmeans(task: Task, algorithm: str, init: str | None = None, n_init: int = 1, **settings: Any) -> Fitted:
    from sklearn.cluster import KMeans

    start = task.start if init is None else init
    given: Settings = {"algorithm": algorithm, "random_state": task.seed}
    model = KMeans(task.n_clusters, init=start, n_init=n_init, **given, **settings).fit(task.X)
    return Fitted(model.cluster_centers_, model.n_iter_, float(model.inertia_))


def minibatch(task: Task, init: str | None = None, **settings: Any) -> Fitted:
    from sklearn.cluster import MiniBatchKMeans

    start = task.start if init is None else init
    model = MiniBatchKMeans(task.n_clusters, init=start, n_init=1, random_state=task.seed, **settings)
    model.fit(task.single)
    return Fitted(model.cluster_centers_, model.n_iter_, float(model.inertia_))


def bisecting(task: Task, **settings: Any) -> Fitted:
    from sklearn.cluster import BisectingKMeans

    model = BisectingKMeans(task.n_clusters, random_state=task.seed, **settings).fit(task.X)
    return Fitted(model.cluster_centers_, None, float(model.inertia_))


def mixture(task: Task, covariance_type: str = "spherical", **settings: Any) -> Fitted:
    """Fit a mixture from the given means, equal weights, and the variance of k-means with these means.

    General mixtures are fitted in double precision, because in single precision fits fail on some data when a
    covariance is no longer positive definite. Spherical ones are fitted in the data's precision.
    """
    from sklearn.mixture import GaussianMixture

    C = len(task.start)
    model = GaussianMixture(
        C,
        covariance_type=covariance_type,
        means_init=task.start,
        weights_init=np.full(C, 1 / C),
        precisions_init=precisions(task, covariance_type),
        init_params="random_from_data",  # every parameter is given; other values would run k-means first
        random_state=task.seed,
        **settings,
    )
    model.fit(task.X if covariance_type == "spherical" else task.X.astype(np.float64))
    return Fitted(model.means_, model.n_iter_, float(model.lower_bound_), model.weights_, model.covariances_)


def bayesian(task: Task, **settings: Any) -> Fitted:
    from sklearn.mixture import BayesianGaussianMixture

    model = BayesianGaussianMixture(
        n_components=task.n_clusters,
        covariance_type="spherical",
        init_params="random_from_data",
        random_state=task.seed,
        **settings,
    ).fit(task.X)
    return Fitted(model.means_, model.n_iter_, None, model.weights_, model.covariances_)


def plusplus(task: Task) -> Fitted:
    from sklearn.cluster import kmeans_plusplus

    return Fitted(kmeans_plusplus(task.X, task.n_clusters, random_state=task.seed)[0])


def _steps(n: int) -> Settings:
    return {"max_iter": n, "tol": 0}


def _epochs(n: int) -> Settings:
    return {"max_iter": n, "max_no_improvement": None}


_LIBRARY: Settings = {"family": "scikit-learn", "distribution": "scikit-learn"}
_KMEANS: Settings = {**_LIBRARY, "model": "k-means", "statement": "from sklearn.cluster import KMeans"}
_BATCHES: Settings = {
    **_LIBRARY,
    "family": "scikit-learn in batches",
    "model": "k-means",
    "statement": "from sklearn.cluster import MiniBatchKMeans",
}
_OTHER_MODEL = "every component has a variance and a weight of its own, which is more than one variance for all"

PEERS = (
    Peer(
        name="sklearn-lloyd",
        **_KMEANS,
        fit=partial(kmeans, algorithm="lloyd"),
        start=GIVEN,
        note="KMeans(algorithm='lloyd')",
        fixed=_steps,
    ),
    Peer(
        name="sklearn-elkan",
        **_KMEANS,
        fit=partial(kmeans, algorithm="elkan"),
        start=GIVEN,
        note="KMeans(algorithm='elkan')",
        fixed=_steps,
    ),
    Peer(
        name="sklearn-default",
        **_KMEANS,
        fit=partial(kmeans, algorithm="lloyd", init="k-means++"),
        start="greedy k-means++",
        note="KMeans as it comes",
        choices=({},),
    ),
    Peer(
        name="sklearn-minibatch",
        **_BATCHES,
        fit=partial(minibatch, init="k-means++"),
        start="greedy k-means++ of a sample",
        note="MiniBatchKMeans as it comes, batches of 1024",
        choices=({"max_iter": 1}, {}),
    ),
    Peer(
        name="sklearn-minibatch-8k",
        **_BATCHES,
        fit=partial(minibatch, batch_size=8192),
        start=GIVEN,
        note="MiniBatchKMeans, batches of 8192",
        fixed=_epochs,
    ),
    Peer(
        name="sklearn-minibatch-64k",
        **_BATCHES,
        fit=partial(minibatch, batch_size=65536),
        start=GIVEN,
        note="MiniBatchKMeans, batches of 65536",
        fixed=_epochs,
    ),
    Peer(
        name="sklearn-bisecting",
        family="scikit-learn bisecting",
        distribution="scikit-learn",
        statement="from sklearn.cluster import BisectingKMeans",
        model="k-means",
        fit=bisecting,
        start=OWN,
        note="BisectingKMeans",
        choices=({"bisecting_strategy": "largest_cluster"}, {}),
    ),
    Peer(
        name="sklearn-mixture",
        **_LIBRARY,
        statement="from sklearn.mixture import GaussianMixture",
        model="mixture",
        fit=mixture,
        start=GIVEN,
        note=f"GaussianMixture(covariance_type='spherical'); {_OTHER_MODEL}",
        apart=True,
        fixed=_steps,
    ),
    *(
        Peer(
            name=f"sklearn-{covariance_type}",
            **_LIBRARY,
            statement="from sklearn.mixture import GaussianMixture",
            model=f"mixture-{covariance_type}",
            fit=partial(mixture, covariance_type=covariance_type),
            start=GIVEN,
            note=f"GaussianMixture(covariance_type={covariance_type!r}), in double precision",
            fixed=_steps,
        )
        for covariance_type in ("diag", "full")
    ),
    Peer(
        name="sklearn-bayesian",
        **_LIBRARY,
        statement="from sklearn.mixture import BayesianGaussianMixture",
        model="mixture",
        fit=bayesian,
        start=OWN,
        note=f"BayesianGaussianMixture(covariance_type='spherical'), judged by its posterior means; {_OTHER_MODEL}",
        apart=True,
        fixed=_steps,
    ),
    Peer(
        name="sklearn-plusplus",
        **_LIBRARY,
        statement="from sklearn.cluster import kmeans_plusplus",
        model="seeding",
        fit=plusplus,
        start="none",
        note="greedy k-means++",
        choices=({},),
    ),
)
