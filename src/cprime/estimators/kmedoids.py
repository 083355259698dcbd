"""k-medoids clustering: clusters are represented by points of the data, for any dissimilarity."""

import os
from collections.abc import Callable
from typing import Annotated, Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from cprime._utils.declared import Array, Centers, Count
from cprime._utils.messages import warn, warn_if_few
from cprime._utils.random import check_random_state
from cprime._utils.threads import limited
from cprime.em import medoids
from cprime.estimators.opening import refuse_missing
from cprime.estimators.prototypes import Prototypes
from cprime.estimators.validation import check_choice, check_integer, check_loop, check_weights
from cprime.estimators.watching import CallbackSupportMixin, Watch, restore_on_error, unfitted_copy, with_callbacks
from cprime.kernels import as_rows
from cprime.persistence import model_files
from cprime.seeding.sampling import draw_distinct
from cprime.sources import array_of
from cprime.sources.foreign import plain

# Metrics with a parameter that depends on the data by default. It must be given, because `predict` has other data.
_OF_THE_DATA = {"seuclidean": "V", "mahalanobis": "VI"}


@model_files.register
class KMedoids(CallbackSupportMixin, Prototypes):
    """k-medoids clustering: choose C points μ_c, the medoids, that minimize J = Σ_n w_n min_c V(x_n, μ_c).

    The function V is any dissimilarity of two points, and w_n is the weight of point n. Medoids are points of the data,
    so V need not be a metric, and the data need not be vectors. The whole matrix of N×N dissimilarities is stored in
    memory: 8 N² bytes, or 4 N² for Euclidean distances of float32.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters C, at most the number of points (of positive weight).
    metric : str or callable, default="euclidean"
        V: a metric of `sklearn.metrics.pairwise_distances`, a function of two rows, or "precomputed". With
        "precomputed", X is the matrix of dissimilarities, (N, N) in `fit` and (n, N) in `predict`; an entry is the cost
        of representing the point of its row by the point of its column. The matrix need not be symmetric.
    metric_params : dict or None, default=None
        Further arguments of the metric, for example {"p": 3} for "minkowski".
    method : {"fasterpam", "alternate"}, default="fasterpam"
        "fasterpam" exchanges a medoid for another point as soon as that decreases J, and ends if no single exchange
        does. "alternate" assigns points and then selects the best medoid within each cluster, as Lloyd's algorithm
        does for means; it is faster with many clusters, but its optima are worse.
    init : {"build", "random"} or array-like of shape (n_clusters,), default="build"
        Initialization: the greedy BUILD of PAM, about O(N² log C); distinct random points, drawn with probabilities
        proportional to weights; or indices of points in the data.
    n_init : int, default=1
        Number of random starts; the result of least J is returned.
    max_iter : int, default=300
        Maximum number of iterations of one start: passes over all points ("fasterpam") or assignments ("alternate").
    max_memory : int, default=2**32
        Most bytes of the matrix. The default allows a float64 matrix of 23,170 points; more points are an error.
    callbacks : callback or sequence of them, default=None
        Functions that are called after every iteration with a dictionary and the estimator with its current parameters,
        or objects with such a method `on_iteration`. The dictionary has objective (J), n_swaps, seconds, and the
        entries described in `cprime.callbacks.Callback`. The fit ends if one returns True. Model files do not contain
        callbacks.
    n_threads : int or None, default=None
        Threads for Euclidean distances; None is every processor that the process may use. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random start.
    verbose : int, default=0

    Attributes
    ----------
    medoid_indices_ : ndarray of shape (n_clusters,), int64
        Indices of the medoids in the training data.
    cluster_centers_ : ndarray of shape (n_clusters, n_features) or None
        Rows of the medoids; None for metric="precomputed".
    labels_ : ndarray of shape (n_samples,), int32
        The medoid of least dissimilarity to each training point; ties go to the lower index.
    inertia_ : float
        J, the weighted sum of dissimilarities (not squared) to the nearest medoid.
    objectives_ : list of float
        J at the start and after each iteration; it never rises.
    n_iter_, n_swaps_ : int
        Number of iterations of the best start, and number of medoids that were replaced in these.
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    An integer weight has the effect of as many copies of the point; a point of weight 0 is labeled, but is never a
    medoid. For more points than memory allows, fit a random sample and `predict` the rest (the idea of CLARA).

    References
    ----------
    Bishop, *Pattern Recognition and Machine Learning*, section 9.1, eq. (9.6).
    Schubert & Rousseeuw, *Fast and eager k-medoids clustering: O(k) runtime improvement of the PAM, CLARA, and CLARANS
    algorithms*, Information Systems 101, 2021. Kaufman & Rousseeuw, *Finding Groups in Data*, 1990: PAM.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import KMedoids
    >>> X = np.array([[0.0], [1.0], [3.0], [80.0], [90.0], [95.0]])
    >>> medoids = KMedoids(2, metric="manhattan").fit(X)
    >>> sorted(medoids.cluster_centers_[:, 0].tolist()), medoids.inertia_
    ([1.0, 90.0], 18.0)
    """

    medoid_indices_: Annotated[NDArray, Array("C", "i", is_first=True, least=0)]
    cluster_centers_: Centers | None
    objectives_: list[float]
    n_swaps_: Count

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: str | Callable = "euclidean",
        metric_params: dict[str, Any] | None = None,
        method: str = "fasterpam",
        init: Any = "build",
        n_init: int = 1,
        max_iter: int = 300,
        max_memory: int = 2**32,
        callbacks: Any = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.metric_params = metric_params
        self.method = method
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @restore_on_error
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the medoids.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, n_samples) for metric="precomputed"
            Finite numbers. Types of up to 16 bits and float32 become float32, wider ones float64.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the point twice; None is 1 for each.

        Returns
        -------
        self : KMedoids

        Raises
        ------
        ValueError
            If an argument is out of its range, there are fewer points than clusters, or a precomputed X is not square.
        MemoryError
            If the matrix would take more than max_memory bytes.
        """
        C = check_loop(self)
        check_choice(self.method, "method", ("fasterpam", "alternate"))
        check_integer(self.max_memory, "max_memory", 1)
        self._check_metric()
        watch = Watch(self, (X, y, sample_weight), lambda fit: unfitted_copy(self)._set_run(fit, X))
        X = self._validated(X, reset=True)
        sample_weight = check_weights(sample_weight, X)
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        if np.count_nonzero(weights) < C:
            raise ValueError(
                f"sample_weight must have at least n_clusters={C} positive entries, got {np.count_nonzero(weights)}."
            )
        given = self._given_start(len(X))
        V = medoids.by_columns(self._matrix(X))
        random_state = check_random_state(self.random_state)
        improve = medoids.swap if self.method == "fasterpam" else medoids.alternate

        def run(callback: Any) -> tuple[float, bool, medoids.MedoidsRun]:
            if given is not None:
                begin = given
            elif self.init == "build":
                begin = medoids.build(V, C, weights)
            else:
                begin = draw_distinct(len(X), C, sample_weight, random_state)
            fit = improve(V, begin, weights, self.max_iter, callback)
            return fit.objectives[-1], fit.stopped, fit

        n_starts = self.n_init if given is None and self.init == "random" else 1
        self._set_run(watch.best_of(n_starts, self.max_iter, run), X)
        costs = self._costs(X)
        self.labels_ = costs.argmin(axis=1).astype(np.int32)
        self.inertia_ = float((weights * costs.min(axis=1)).sum())
        n_found = len(np.unique(self.labels_))
        warn_if_few(n_found, C)
        return self

    def _set_run(self, fit: medoids.MedoidsRun, X: NDArray) -> Self:
        """Set the fitted attributes from `fit`, the present state of one start on the data X; return the estimator."""
        self.medoid_indices_ = fit.medoids.astype(np.int64)
        self.cluster_centers_ = None if self._precomputed else X[fit.medoids]
        self.objectives_ = list(fit.objectives)
        self.n_iter_ = len(fit.objectives) - 1
        self.n_swaps_ = fit.n_swaps
        self.converged_ = fit.converged
        return self

    def _check_metric(self) -> None:
        if not isinstance(self.metric, str) and not callable(self.metric):
            raise TypeError(f"metric must be a name or a function, got {self.metric!r}.")
        needed = _OF_THE_DATA.get(self.metric) if isinstance(self.metric, str) else None
        if needed is not None and needed not in (self.metric_params or {}):
            raise ValueError(
                f"metric={self.metric!r} needs metric_params={{{needed!r}: …}}, got {self.metric_params!r}."
            )

    def _given_start(self, n: int) -> NDArray[np.intp] | None:
        """Return the indices (C,) of the points that `init` gives as medoids; None if `init` is the name of a method.

        n: number of points
        """
        if isinstance(self.init, str):
            check_choice(self.init, "init", ("build", "random"))
            return None
        given = array_of(self.init, "init")
        if given.dtype.kind not in "iu" or given.shape != (self.n_clusters,):
            raise ValueError(
                f"init must be 'build', 'random' or n_clusters={self.n_clusters} positions, got {self.init!r}."
            )
        if given.min() < 0 or given.max() >= n or len(np.unique(given)) < len(given):
            raise ValueError(f"init must have distinct positions from 0 to {n - 1}, got {self.init!r}.")
        return given.astype(np.intp)

    def _validated(self, X: Any, reset: bool) -> NDArray:
        """Return X as a checked array of float32 or float64, in the shape of X.

        A precomputed matrix keeps its memory layout, by rows or by columns.    reset: whether X is training data
        """
        if not self._precomputed:
            with limited(self.n_threads):
                return super()._validated(X, reset).dense()
        if not reset:
            check_is_fitted(self)
        dtypes = [np.float64, np.float32]
        X = validate_data(self, plain(X), reset=reset, dtype=dtypes, accept_sparse=False, ensure_all_finite=False)
        refuse_missing(self, as_rows(X))
        if reset and X.shape[0] != X.shape[1]:
            raise ValueError(f"X must be square for metric='precomputed', got shape {X.shape}.")
        if reset:
            _warn_of_similarities(X)
        if reset and len(X) < self.n_clusters:
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={self.n_clusters}.")
        return X

    def _matrix(self, X: NDArray) -> NDArray:
        if self._precomputed:
            return X
        narrow = self.metric in medoids.EUCLIDEAN and not self.metric_params
        needed = len(X) ** 2 * (X.itemsize if narrow else 8)
        if needed > self.max_memory:
            raise MemoryError(
                f"{len(X)} points need {needed} bytes for their {len(X)} x {len(X)} dissimilarities, more than "
                f"max_memory={self.max_memory}: fit a random sample and predict the rest, or raise max_memory."
            )
        return medoids.dissimilarities(X, X, self.metric, self.metric_params or {}, self.n_threads)

    def _costs(self, X: NDArray) -> NDArray:
        """Return the dissimilarity of each row to each medoid: (n, C)."""
        if self.cluster_centers_ is None:
            return X[:, self.medoid_indices_]
        return medoids.dissimilarities(X, self.cluster_centers_, self.metric, self.metric_params or {}, self.n_threads)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the index of the medoid of least dissimilarity to each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, n_training_samples) for metric="precomputed"

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        return self._costs(self._validated(X, reset=False)).argmin(axis=1).astype(np.int32)

    def transform(self, X: Any) -> NDArray:
        """Return the dissimilarity of each row to each medoid.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, n_training_samples) for metric="precomputed"

        Returns
        -------
        dissimilarities : ndarray of shape (n_samples, n_clusters)
            In the units of the metric, in the dtype of the data. This is a dense N×C array.
        """
        X = self._validated(X, reset=False)
        return self._costs(X).astype(X.dtype, copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return −J: minus the weighted sum of dissimilarities to the nearest medoid.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, n_training_samples) for metric="precomputed"
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        X = self._validated(X, reset=False)
        weights = check_weights(sample_weight, X)
        least = self._costs(X).min(axis=1).astype(np.float64)
        return -float((least if weights is None else weights * least).sum())

    def save(self, path: str | os.PathLike[str] | BinaryIO, *, training_labels: bool = True) -> None:
        """Write the fitted estimator to a safetensors file, completely or not at all; `cprime.load` reads it.

        Parameters
        ----------
        path : path-like or binary file object
            Path of the file, which replaces an existing one when it is complete; or an open file.
        training_labels : bool, default=True
            Whether to store `labels_`, which has a value for each training row.

        Raises
        ------
        TypeError
            If metric is a function, because a file cannot contain it.
        """
        if callable(self.metric):
            raise TypeError(f"metric must be a name for the estimator to be saved, got {self.metric!r}.")
        super().save(path, training_labels=training_labels)


def _warn_of_similarities(V: NDArray) -> None:
    """Warn if a matrix (N, N) that is given as dissimilarities has signs of similarities."""
    greatest, least = V.max(axis=1), V.min(axis=1)
    found = []
    if (V.diagonal() == greatest).all() and (least < greatest).any():
        found.append("the largest values of its rows are on the diagonal")
    if (least < 0).any():
        found.append("some of its values are negative")
    if found:
        warn(
            f"X seems to be a matrix of similarities: {' and '.join(found)}. metric='precomputed' needs "
            "dissimilarities, such as X.max() - X.",
            UserWarning,
        )
