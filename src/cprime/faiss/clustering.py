"""Class `Kmeans`, with the arguments, methods and attributes of `faiss.Kmeans`."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import KMeans
from cprime._utils.arguments import check_integer
from cprime.faiss.parameters import ALL_POINTS, OURS, check_served, checked_weights, fitted, sampled
from cprime.faiss.progressive import check_steps, start_of_all, steps_of
from cprime.faiss.vectors import checked, faiss, rows
from cprime.sources import array_of


class Kmeans:
    """k-means with the arguments, methods and attributes of `faiss.Kmeans`, computed by `cprime.KMeans`.

    Differences: all points are used unless `max_points_per_centroid` is given; training ends before `niter` once no
    point is reassigned; `obj` includes `weights`. `early_stop_threshold` is the relative change of `obj`, as in FAISS.
    Without `init_method`, the initialization is that of `cprime`. `gpu`, `decode_block_size`, `use_faster_subsampling`,
    `use_super_kmeans`, `update_index`, `afkmc2_chain_length` and `check_input_data_for_NaNs` have no effect, because
    everything is computed on the CPU by one method and NaN always raises an error.

    With progressive_dim_steps = s > 1 there are s fits (steps), of at most niter iterations each. Step i uses the first
    int(d**(i/s)) principal coordinates of x, or columns of x if apply_pca=False. It starts from the centroids of the
    previous step, with 0 in the added coordinates. The first step starts like a plain fit; the last one uses x itself.
    Unlike in FAISS, x may be a source, and `weights` are supported, also in the covariance matrix of the principal
    coordinates. Not supported are spherical=True, `init_centroids`, an array as init, and checkpoint. A callback that
    ends a fit ends only its step. A value of 1 or less is a plain fit.

    Parameters
    ----------
    d : int
        Dimension of the vectors.
    k : int
        Number of centroids.
    **kwargs
        Arguments of FAISS: niter=25, nredo=1, seed=1234, verbose=False, spherical=False, int_centroids=False (True
        rounds the final centroids), init_method, max_points_per_centroid, min_points_per_centroid, early_stop_threshold
        and the other fields of `faiss.ClusteringParameters`. If progressive_dim_steps is given, even as 1, the defaults
        are those of `faiss.ProgressiveDimClusteringParameters`, niter=10 and apply_pca=True. Arguments that only
        `cprime.KMeans` has are accepted too, such as search, n_threads, callbacks.

    Attributes
    ----------
    centroids : ndarray of shape (k, d), float32
    obj : ndarray of shape (n_iterations,), float64
        The objective of each iteration, Σ w ‖x − μ‖² or, with spherical=True, Σ w x·μ; the last value is that of
        `centroids`. With several starts (nredo), the values of the selected start. With several steps
        (progressive_dim_steps), the values of all steps in sequence, in the dimensions of each step.
    iteration_stats : list of dict
        For each iteration: obj, time [s, since the beginning of the fit or of the step], time_search (equal to time,
        because sums are computed in the same pass), imbalance_factor, nsplit.
    index : faiss.IndexFlatL2 or faiss.IndexFlatIP
        Index of the centroids.
    cp : faiss.ClusteringParameters or faiss.ProgressiveDimClusteringParameters
    estimator : cprime.KMeans
        The fitted estimator, of the last step; its `certificate_` reports the quality of the search.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import faiss
    >>> x = np.array([[0, 0], [0, 2], [9, 9], [9, 7]], dtype=np.float32)
    >>> kmeans = faiss.Kmeans(2, 2, min_points_per_centroid=1)
    >>> float(kmeans.train(x))
    4.0
    >>> distances, ids = kmeans.assign(x)
    >>> distances.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, d: int, k: int, **kwargs: Any) -> None:
        self.d = check_integer(d, "d", 1, 2**31 - 1)
        self.gpu = kwargs.pop("gpu", False)
        self._ours = {name: kwargs.pop(name) for name in list(kwargs) if name in OURS}
        progressive = "progressive_dim_steps" in kwargs
        self.cp = faiss.ProgressiveDimClusteringParameters() if progressive else faiss.ClusteringParameters()
        self.cp.max_points_per_centroid = ALL_POINTS
        for name, value in kwargs.items():
            if not hasattr(self.cp, name):
                raise TypeError(
                    f"Kmeans() got the unexpected argument {name!r}: it is none of faiss.ClusteringParameters, nor of "
                    "cprime.KMeans."
                )
            setattr(self.cp, name, value)
        check_served(self.cp)
        self.reset(k)

    def reset(self, k: int | None = None) -> None:
        """Discard the results of training and set the number of centroids to k."""
        if k is not None:
            k = int(k) if isinstance(k, float) and k.is_integer() else k
            self.k = check_integer(k, "k", 1, 2**31 - 1)
        self.centroids: NDArray[np.float32] | None = None
        self.obj: NDArray[np.float64] | None = None
        self.iteration_stats: list[dict[str, Any]] | None = None
        self.estimator: KMeans | None = None
        self.set_index()

    def set_index(self) -> None:
        """Set `index` to an empty FAISS index: of inner products if cp.spherical, else of distances."""
        self.index = (faiss.IndexFlatIP if self.cp.spherical else faiss.IndexFlatL2)(self.d)

    def train(self, x: Any, weights: Any = None, init_centroids: Any = None) -> float:
        """Fit the centroids to the vectors.

        Parameters
        ----------
        x : array-like of shape (n, d), path or source
            Vectors; arrays are converted to float32, paths and sources that `cprime.open_data` accepts are read in
            chunks.
        weights : array-like of shape (n,), default=None
        init_centroids : array-like of shape (k, d), default=None
            Initial centroids.

        Returns
        -------
        obj : float
            The objective of the centroids.

        Raises
        ------
        ValueError
            If x does not have d columns, has fewer rows than k, or contains NaN; if an argument is not supported, or
            not together with progressive_dim_steps.
        """
        X = checked(x, self.d, "x")
        if len(X) < self.k:
            raise ValueError(f"x must have at least k={self.k} rows, got {len(X)}.")
        X, w = sampled(self.cp, self.k, X, checked_weights(weights, len(X)))
        arguments = dict(self._ours)
        if init_centroids is not None:
            start = np.ascontiguousarray(array_of(init_centroids, "init_centroids"), dtype=np.float32)
            if start.shape != (self.k, self.d):
                raise ValueError(f"init_centroids must have shape (k={self.k}, d={self.d}), got {start.shape}.")
            arguments["init"] = start
        steps: list[dict[str, Any]] = []
        if steps_of(self.cp) > 1:
            check_steps(self.cp, arguments)
            # From the second step on, fits start from given centers, for which jumps="auto" would mean no jumps.
            arguments.setdefault("jumps", True)

            def step(part: Any, start: Any) -> KMeans:
                estimator, stats = self._fitted(part, w, arguments if start is None else arguments | {"init": start})
                steps.extend(stats.iteration_stats(estimator, False))
                return estimator

            n_threads = arguments.get("n_threads", faiss.omp_get_max_threads())
            arguments["init"] = start_of_all(self.cp, X, w, n_threads, step)
        estimator, stats = self._fitted(X, w, arguments)
        if self.cp.int_centroids:
            estimator.cluster_centers_ = np.rint(estimator.cluster_centers_)
            estimator.inertia_ = -estimator.score(X, sample_weight=w)
        self.reset()
        self.estimator, self.centroids = estimator, estimator.cluster_centers_
        self.index.add(self.centroids)
        self.iteration_stats = steps + stats.iteration_stats(estimator, bool(self.cp.spherical))
        self.obj = np.array([row["obj"] for row in self.iteration_stats])
        return self.obj[-1]

    def _fitted(self, X: Any, w: Any, arguments: dict[str, Any]) -> tuple[KMeans, "_StatsCallback"]:
        """Fit `cprime.KMeans` to X with weights w; return it and the callback that recorded its iterations."""
        given, stats = arguments.get("callbacks"), _StatsCallback()
        estimator = fitted(self.cp, self.k, X, w, arguments | {"callbacks": [*_as_list(given), stats]})
        return estimator.set_params(callbacks=given), stats

    def assign(self, x: Any) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the nearest of the current `centroids` for each vector, found by FAISS's index.

        Returns
        -------
        D : ndarray of shape (n,), float32
            Squared distances to the nearest centroids or, if spherical, inner products with them.
        I : ndarray of shape (n,), int64
            Indices of the nearest centroids.
        """
        if self.centroids is None:
            raise RuntimeError("train() comes before assign().")
        X = checked(x, self.d, "x")
        self.index.reset()
        self.index.add(np.ascontiguousarray(self.centroids, dtype=np.float32))
        D, found = self.index.search(rows(X, np.arange(len(X))), 1)
        return D.ravel(), found.ravel()


class _StatsCallback:
    """Callback that records for each iteration the figures in FAISS's `iteration_stats`."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def on_iteration(self, row: Mapping[str, Any], estimator: KMeans) -> None:
        counts = estimator.counts_
        imbalance = len(counts) * float((counts**2).sum()) / float(counts.sum()) ** 2
        splits = estimator.n_relocated_
        self._rows.append({**row, "imbalance_factor": imbalance, "n_relocated": splits})

    def iteration_stats(self, estimator: KMeans, spherical: bool) -> list[dict[str, Any]]:
        """Return FAISS's record, a dict, of each iteration of the selected initialization.

        The last record has the objective `obj` of the final centroids, those before it have `obj` of their iteration.
        """
        seconds = estimator.history_["seconds"].tolist()
        starts = [
            [row for row in self._rows if row["start"] == start] for start in {row["start"] for row in self._rows}
        ]
        rows = next(rows for rows in starts if [row["seconds"] for row in rows] == seconds)
        errors = [*(row["quantization_error"] for row in rows[:-1]), estimator.inertia_]
        weight, time, before, found = float(estimator.counts_.sum()), 0.0, 0, []
        for row, error in zip(rows, errors, strict=True):
            time += row["seconds"]
            found.append(
                {
                    "obj": weight - error / 2 if spherical else error,
                    "time": time,
                    "time_search": time,
                    "imbalance_factor": row["imbalance_factor"],
                    "nsplit": row["n_relocated"] - before,
                }
            )
            before = row["n_relocated"]
        return found


def _as_list(callbacks: Any) -> list[Any]:
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
