"""k-means: truncated EM in which the active set of a point is its nearest center (C′ = 1)."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime._utils.declared import Array, Count, NonNegative, Positive, Presence
from cprime._utils.messages import warn_if_few
from cprime.em.batches import RecentArrays
from cprime.estimators.approximate import approximate_search, certify, near_best
from cprime.estimators.base import Clusterer
from cprime.estimators.batches import partial_fit
from cprime.estimators.budget import opened_within
from cprime.estimators.constraints import partial_labels
from cprime.estimators.memory_limit import Memory
from cprime.estimators.missing import impute
from cprime.estimators.nearest_center import NearestCenter, nearest, nearest_labels, to_sklearn, transform
from cprime.estimators.problems import KMeansOptions, kmeans_model
from cprime.estimators.solutions import FitRecord, KMeansSolution
from cprime.estimators.updating import update
from cprime.estimators.validation import check_choice, check_common, check_flag, check_integer
from cprime.estimators.watching import restore_on_error, with_callbacks
from cprime.execution import Data
from cprime.kernels import Rows, computing
from cprime.model import TiedSpherical
from cprime.model.unit import unit_rows
from cprime.neighbors.near import CellArrays
from cprime.persistence import model_files
from cprime.search.base import BaseSearch


class _ObjectiveBound(TypedDict):
    value: NonNegative
    inertia: NonNegative
    gap: NonNegative
    method: str
    parts: Any


@model_files.register
class KMeans(NearestCenter, Clusterer):
    """k-means clustering: truncated EM of a Gaussian mixture in which each point has one active component (C′ = 1).

    The fit decreases J = Σ_n w_n min_c ‖x_n − μ_c‖² for points x_n of weight w_n and centers μ_c. So it increases the
    free energy F = −log C − (D/2) log(2πe J/(DN)), a lower bound of the log-likelihood of a Gaussian mixture.

    Parameters are in four groups: clusters (`n_clusters` to `missing`), algorithm (`search` to `random_state`),
    constraints (`size_max` to `semi_supervised`) and resources (`n_threads` to `verbose`). `docs/options.md` says more.

    Parameters
    ----------
    n_clusters : int, default=8
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" is spherical k-means: rows are scaled to length 1 (a copy; rows of zeros are an error), and so are the
        centers. J is then 2 Σ_n w_n (1 − cos(x_n, μ)), and `transform` returns cosine distances. With the lengths of
        the rows as `sample_weight` it maximizes Σ_n max_c x_n·μ_c, the sum of inner products with centers of length 1.
    missing : {"error", "marginal"}, default="error"
        How NaN and nulls are treated: as an error, or as missing values, which are set to those of the center of the
        point (k-pod). J is over observed values. See `impute`.
    search : str or object of cprime.search, default="auto"
        Candidate centers of a point: "full" is all centers (Lloyd's algorithm); "bounded" leaves out those that bounds
        on distances exclude, with the same result; "graph" is the neighbors of the center of the point; "exact" and
        "estimated" are var-k-means-X and -S of Forster & Lücke; "auto" chooses by N, C and D. The classes of
        `cprime.search` of these names have options, such as the length of the lists.
    init : str, array-like, fitted estimator or callable, default="auto"
        Initialization: "k-means++", "k-means||", "random" (distinct rows), "afk-mc2", "two-level" (rows of coarse
        cells), "jumps" (k-means++ of a sample, improved by jumps), centers of shape (n_clusters, n_features), a fitted
        estimator whose centers are used, or a function of (X, n_clusters, random_state). "auto" is "two-level" for many
        clusters or data that are not in memory, otherwise "jumps", or "k-means++" without jumps.
    n_init : int, default=1
    max_iter : int, default=300
    tol : float, default=1e-4
        A start has converged if J changes by no more than this share of J, or if no point is reassigned.
    jumps : bool, "auto" or "never", default="auto"
        Whether centers jump across the data: two close clusters are united, and the center that becomes free divides
        another cluster. Jumps lead to better optima, mostly the best known one. "auto" is True for a graph search, and
        if search and init are "auto" and rows are not sparse. Needs epsilon=0. The center of an empty cluster is moved
        to the point farthest from its center, except with "never", where it stays, as in the published algorithms.
    epsilon : float, default=0.0
        Laziness of lazy-k-means: a point is reassigned only to a center that is nearer by the factor 1 + epsilon (eq.
        21 of Lücke & Forster). 0 is k-means. `labels_`, `inertia_` and `lower_bound_` are those of the nearest centers,
        or with search=Auto(final_assignment="found") those of the lazy assignment.
    learning_decay : float, default=1.0
        κ of `partial_fit`, above 0.5 and at most 1: a point moves its center by the share n^−κ, where n is the total
        weight assigned to the center so far. 1 gives running means; smaller values forget early points.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of starts and of the samples that are searched exactly.
    size_max, size_min : int, float, str, array-like of shape (n_clusters,) or None, default=None
        Bounds of the number of points in each cluster, or of the sum of their weights: a number, one for each cluster,
        or a text such as "1.2x", that multiple of N/C. After a fit without bounds, assignments within the bounds at the
        least cost alternate with means. `predict` returns the nearest center. Needs complete rows, not from Dask.
    fixed : array-like of shape (m, n_features) or None, default=None
        Known centers of the first m clusters, which the fit does not change. The others are fitted. No centers jump.
    semi_supervised : bool, default=False
        Whether the argument `y` of `fit` has labels of points, integers from 0 to C − 1, and −1 for unknown. Points
        with a label keep their cluster; the search is exact. False ignores y, because a pipeline passes the targets of
        its last step to all steps.
    n_threads : int or None, default=None
    checkpoint : path or None, default=None
    max_memory : int, str, Memory or None, default=None
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0
        1 shows a progress bar: J, the share of points whose nearest center the search has found (in a sample), and the
        estimated time left; or the library's log, one line per iteration, if no bar can be drawn (as in a file).

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,), int32
        The nearest center of each training point, or the one found by a partial search.
    inertia_ : float
    variance_ : float
        σ² = J/(DN), eq. (14) of Lücke & Forster, in data unit².
    structure_ : dict
        The cells (groups of near centers) in which `partial_fit` searches, as arrays; absent if its search is exact.
    final_assignment_ : str
        How `labels_` were computed: "exact" (nearest centers), "found" (by a partial search or lazy-k-means), "bounded"
        (within bounds of sizes), or "labeled" (points with labels keep their clusters).
    metric_ : str
        The metric of the fit.
    recent_ : dict
        Rows of the last batches, fewer than 20 per cluster, for later jumps of `partial_fit`; absent if it makes none.
    n_iter_ : int
    counts_ : ndarray of shape (n_clusters,)
        The total weight of the points assigned to each cluster; after `partial_fit`, of those of all batches.
    converged_ : bool
    lower_bound_ : float
        F of the returned parameters per point, eq. (15) of Lücke & Forster, in nats.
    lower_bounds_ : list of float
        F at the E-step of each iteration; for an exchange step, F with re-estimated centers. It never falls.
    history_ : structured ndarray of shape (`n_iter_`,)
        One row per iteration: phase ("warmup", "em" or "online"), lower_bound, quantization_error (J), n_distances
        (number of evaluated distances of points), n_between (number of pairs of centers compared for neighbor lists; −1
        if a former version made the file), n_moved (number of reassigned points), seconds.
    n_active_ : int
        C′, always 1.
    neighbors_ : ndarray of shape (n_clusters, G), int32, or None
        The neighbor lists of a partial search, each beginning with the center itself and filled with −1 at its end;
        None after a full search.
    certificate_ : dict or None
        Quality of a partial search, measured on random points searched exactly: n_points, agreement (share of points
        whose nearest center was found) and relative_excess (of J), with 95 % intervals agreement_interval and
        relative_excess_interval. An interval is one number if all points were searched. None after a full or lazy one.
    n_relocated_ : int
        Number of times that an empty cluster got a new center, over all iterations.
    n_displaced_, size_cost_ : int, float
        With bounded sizes: the number of training points that are not with their nearest center, and the relative
        excess of J over that of the nearest centers.
    objective_bound_ : dict
        After `theory.lower_bound(X, km)`: value (a lower bound of J of all clusterings of X), inertia, gap, method,
        parts.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
    list_column_ : str
        Name of the column of lists of numbers that was fitted; present after a fit of such a column of a file.

    References
    ----------
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*: Prop. 2, 3, Cor. 2.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import KMeans
    >>> X = np.array([[0.0, 0.0], [0.0, 2.0], [9.0, 9.0], [9.0, 7.0]])
    >>> km = KMeans(2, random_state=0).fit(X)
    >>> km.inertia_
    4.0
    """

    variance_: Positive
    counts_: Annotated[NDArray, Array("C", least=0)]
    metric_: Annotated[Literal["euclidean", "cosine"], Presence.OPTIONAL]
    structure_: Annotated[CellArrays, Presence.OPTIONAL]
    recent_: Annotated[RecentArrays, Presence.OPTIONAL]
    n_relocated_: Annotated[Count, Presence.OPTIONAL]
    n_displaced_: Annotated[Count, Presence.OPTIONAL]
    size_cost_: Annotated[float, Presence.OPTIONAL]
    objective_bound_: Annotated[Any, _ObjectiveBound, Presence.OPTIONAL]

    # Largest Σ_c ‖shift of center c‖² at which a fit ends [data unit²]; None if the argument `tol` decides instead.
    _least_shift: float | None = None
    _takes_sparse = True

    partial_fit = partial_fit
    update = update
    nearest = nearest
    transform = transform
    certify = certify
    impute = impute
    to_sklearn = to_sklearn

    def __init__(
        self,
        # clusters
        n_clusters: int = 8,
        *,
        metric: str = "euclidean",
        missing: str = "error",
        # algorithm
        search: str | BaseSearch = "auto",
        init: Any = "auto",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        jumps: bool | str = "auto",
        epsilon: float = 0.0,
        learning_decay: float = 1.0,
        random_state: Any = None,
        # constraints
        size_max: Any = None,
        size_min: Any = None,
        fixed: Any = None,
        semi_supervised: bool = False,
        # resources
        n_threads: int | None = None,
        checkpoint: Any = None,
        max_memory: int | float | str | Memory | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.missing = missing
        self.search = search
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.jumps = jumps
        self.epsilon = epsilon
        self.learning_decay = learning_decay
        self.random_state = random_state
        self.size_max = size_max
        self.size_min = size_min
        self.fixed = fixed
        self.semi_supervised = semi_supervised
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.max_memory = max_memory
        self.callbacks = callbacks
        self.verbose = verbose

    @restore_on_error
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the centers.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Finite numbers. Arrays of the narrow types uint8, int8, bool, float16 and bfloat16 are not converted as a
            whole; the computation uses float32. Other types of up to 16 bits and float32 become float32, wider ones
            float64. A C-contiguous array and a CSR array are not copied; a memory map of more than 512 MiB is read in
            chunks.
        y : array-like of shape (n_samples,), default=None
            Labels of some points, see `semi_supervised`; otherwise ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the point twice; None is 1 for each.

        Returns
        -------
        self : KMeans

        Raises
        ------
        ValueError
            If an argument is out of its range, or there are fewer points than clusters.
        """
        self._check_arguments()
        data = opened_within(self, X, sample_weight)
        labels = partial_labels(self, y, data.n_points, self.n_clusters)
        return self._fit_to(data, (X, y, sample_weight), labels)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Compute the centers and return the labels of the training points: `fit(X, y).labels_`."""
        return self.fit(X, y, sample_weight).labels_

    def _options(self) -> KMeansOptions:
        return KMeansOptions.of(self, least_shift=self._least_shift)

    def _solution(self, run: em.Run, n_active: int, record: FitRecord) -> KMeansSolution:
        assert run.counts is not None
        model = run.model
        return KMeansSolution(
            model.centers, model.variance, run.counts, run.error, run.bound, record, run.n_relocated, metric=self.metric
        )

    def _warn_of(self, run: em.Run) -> None:
        labeled = self.final_assignment_ == "labeled"
        cause = ["labels in y that leave too few points for other clusters"] if labeled else []
        warn_if_few(int(np.count_nonzero(self.counts_)), self.n_clusters, *cause)

    def _check_arguments(self) -> None:
        check_common(self)
        check_integer(self.n_clusters, "n_clusters", 1)
        check_choice(self.metric, "metric", ("euclidean", "cosine"))

    def _opened(self, X: Any, sample_weight: Any = None, reset: bool = False) -> Data:
        data = super()._opened(X, sample_weight, reset)
        return data.prepared(unit_rows) if self.metric == "cosine" else data

    def _parameters(self) -> TiedSpherical:
        return kmeans_model(self.metric, self.cluster_centers_, self.variance_)

    def _searched_by(self) -> tuple[str, ...]:
        return ("cluster_centers_",)

    def predict(self, X: Any, approximate: bool = False, *, out: Any = None) -> NDArray[np.int32]:
        """Return the index of the nearest center of each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        approximate : bool, default=False
            False searches all centers. True searches only cells near each row, if there are more than 4,096 centers; a
            cell is a group of about √C centers that are near each other. `certify` measures the quality.
        out : ndarray, str or path-like, default=None
            Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
            file, which is written completely or not at all and returned as a memory map.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        with computing(self.n_threads):
            data = self._opened(X)
            job: Callable[[Rows], NDArray[np.int32]] = partial(nearest_labels, self.cluster_centers_)
            if check_flag(approximate, "approximate"):
                model = self._parameters()
                job = partial(near_best, model, approximate_search(self, model))
            return data.map(job, None, np.int32, out)
