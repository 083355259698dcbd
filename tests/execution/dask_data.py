"""The same data and chunks in memory, in a file and on Dask, and fits of every estimator."""

import dask.array as da

from cprime import GaussianMixture, KMeans, SoftKMeans, open_data

CHUNK = 110


def k_means(**options):
    return KMeans(6, random_state=2, n_threads=1, **{"max_iter": 4, "tol": 0, "init": "two-level"} | options)


def mixture(**options):
    given = {"covariance_type": "diag", "max_iter": 3, "tol": 1e-9, "n_active": 2} | options
    return GaussianMixture(4, random_state=2, n_threads=1, init_params="two-level", **given)


FITS = {
    **{f"k-means, {search}": k_means(search=search) for search in ("full", "bounded", "graph", "exact", "estimated")},
    "k-means from random rows": k_means(init="random"),
    "k-means, cosine": k_means(metric="cosine", search="full"),
    "mixture, full covariances": mixture(covariance_type="full"),
    "mixture, tied": mixture(covariance_type="tied"),
    "mixture, C'=C": mixture(n_active=None),
    "mixture, drawn": mixture(assignment="sampled"),
    "mixture, hard": mixture(assignment="hard"),
    "papers' mixture": mixture(covariance_type="tied_spherical", weights="equal", search="exact"),
    "mixture, graph": mixture(covariance_type="tied_spherical", search="graph"),
    "soft k-means": SoftKMeans(5, random_state=2, init="two-level", max_iter=3, n_threads=1),
}


def in_memory(X, chunk=CHUNK):
    return open_data(X, chunk_rows=chunk)


def on_dask(X, chunks=CHUNK):
    return da.from_array(X, chunks=(chunks, -1))
